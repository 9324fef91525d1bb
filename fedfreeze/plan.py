"""The plan: what one client does in one round, and why.

The same value is the server's suggestion (for the capacity it knows of) and the client's decision
(for the capacity it has now); a decision never trains a layer that the suggestion freezes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

from fedfreeze.errors import ProtocolError
from fedfreeze.layout import Layout

ReasonCode = Literal[
    "score",  # the policy's score says that the layer has settled
    "window",  # frozen earlier, and its freeze window still runs
    "memory",  # training it does not fit the board's memory
    "compute",  # training it does not end before the deadline
    "uplink",  # the uplink budget is too thin to spread over it
    "upload",  # the bytes that the strategy allows in a round are too few for it
    "flops",  # training it takes more operations than the strategy allows in a round
    "energy",  # training it takes more joules than the strategy allows in a round
    "fixed",  # the policy never trains it here
    "phase",  # the policy does not train it in this phase of the run
    "client",  # the client froze it by its own measurement
]


@dataclass(frozen=True)
class Reason:
    """Why a layer is frozen: a code for programs and a sentence for people."""

    code: ReasonCode
    detail: str


@dataclass(frozen=True)
class Stage:
    """A share of the round's local steps during which one fixed set of layers trains."""

    share: float
    layers: tuple[str, ...]


@dataclass(frozen=True)
class PlanCost:
    """What a plan is predicted to cost on a board; modelled, never measured.

    Attributes:
        modelled_download_s, modelled_compute_s, modelled_upload_s: one after another.
        modelled_memory_bytes: the peak above the loaded program.
        modelled_upload_bytes: on the wire; None where no board was asked about.
        modelled_energy_j: of the work alone, without waiting for others; None where the power of
            the board is not known.
    """

    modelled_download_s: float
    modelled_compute_s: float
    modelled_upload_s: float
    modelled_memory_bytes: float
    modelled_upload_bytes: float | None = None
    modelled_energy_j: float | None = None

    @property
    def modelled_total_s(self) -> float:
        """Download, compute and upload one after another."""
        return self.modelled_download_s + self.modelled_compute_s + self.modelled_upload_s


@dataclass(frozen=True)
class Plan:
    """What one client does in one round.

    Attributes:
        stages: shares that add up to 1, each with at least one layer.
        epochs: passes over the client's data.
        batch_size: examples a step.
        upload_budget_bytes: largest packet; Flower's envelope is not part of it.
        frozen: a reason for every layer that no stage trains.
        binding: the limit that shaped the plan, if one did.
        cost: what the planner predicts.
        micro_batches: parts that each batch is computed in, one after another, to save memory;
            their gradients add up, and the optimizer steps once a batch.
        covers: trained layers that the coverage of the fleet asks for; they are given up last where
            a board can do less than it was taken for.
    """

    stages: tuple[Stage, ...]
    epochs: int
    batch_size: int
    upload_budget_bytes: int
    frozen: Mapping[str, Reason] = field(default_factory=dict)
    binding: str | None = None
    cost: PlanCost | None = None
    micro_batches: int = 1
    covers: tuple[str, ...] = ()

    @property
    def micro_batch_size(self) -> int:
        """Most examples that are computed at once."""
        return -(-self.batch_size // self.micro_batches)

    @property
    def trained(self) -> tuple[str, ...]:
        """Layers that some stage trains, in the order in which they are first trained."""
        return tuple(dict.fromkeys(name for stage in self.stages for name in stage.layers))

    def check(self, layout: Layout) -> None:
        """Refuse a plan that does not cover the layout exactly.

        Raises:
            ProtocolError: see the attributes above for what must hold.
        """
        trained, frozen = set(self.trained), set(self.frozen)
        if not self.stages or any(not stage.layers for stage in self.stages):
            raise ProtocolError("a plan needs at least one stage, and every stage a layer")
        shares = [stage.share for stage in self.stages]
        if not all(0 < share <= 1 for share in shares) or not math.isclose(sum(shares), 1.0):
            raise ProtocolError(f"the shares of a plan's stages must add up to 1, got {shares}")
        if trained & frozen or trained | frozen != set(layout.names):
            raise ProtocolError(
                f"a plan must train or freeze each of {', '.join(layout.names)}; "
                f"it trains {', '.join(sorted(trained))} and freezes {', '.join(sorted(frozen))}"
            )
        if self.epochs < 1 or self.batch_size < 1 or self.upload_budget_bytes < 0:
            raise ProtocolError(
                "epochs and batch size must be 1 or more and the budget 0 or more, got "
                f"{self.epochs}, {self.batch_size}, {self.upload_budget_bytes}"
            )
        if unknown := set(self.covers) - trained:
            raise ProtocolError(
                "a plan covers layers that it trains; it does not train "
                f"{', '.join(sorted(unknown))}"
            )
        if not 1 <= self.micro_batches <= self.batch_size:
            raise ProtocolError(
                f"expected 1 to {self.batch_size} parts of a batch of {self.batch_size}, got "
                f"{self.micro_batches}"
            )

    def to_json(self) -> dict[str, Any]:
        """The plan as plain values, for messages and the audit log; unknown costs are absent."""
        data = asdict(self)
        if self.micro_batches == 1:  # as most are: no byte for it
            del data["micro_batches"]
        if not self.covers:
            del data["covers"]
        if self.cost is not None:
            data["cost"] = {key: value for key, value in data["cost"].items() if value is not None}
        return data

    @classmethod
    def from_json(cls, data: Any) -> Plan:
        """The inverse of :meth:`to_json`, refusing anything else.

        Raises:
            ProtocolError: a field is missing or of the wrong type.
        """
        try:
            plan = cls(
                stages=tuple(
                    Stage(_number(s["share"]), tuple(_text(n) for n in s["layers"]))
                    for s in data["stages"]
                ),
                epochs=_whole(data["epochs"]),
                batch_size=_whole(data["batch_size"]),
                upload_budget_bytes=_whole(data["upload_budget_bytes"]),
                frozen={
                    _text(name): Reason(_code(r["code"]), _text(r["detail"]))
                    for name, r in data["frozen"].items()
                },
                binding=None if data["binding"] is None else _text(data["binding"]),
                cost=None if data["cost"] is None else _cost(data["cost"]),
                micro_batches=_whole(data.get("micro_batches", 1)),
                covers=tuple(_text(name) for name in data.get("covers", ())),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ProtocolError(f"not a plan: {error!r:.200}") from error
        return plan


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected text, got {value!r:.50}")
    return value


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"expected a whole number, got {value!r:.50}")
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"expected a number, got {value!r:.50}")
    return float(value)


def _cost(data: Any) -> PlanCost:
    return PlanCost(**{name: _number(value) for name, value in data.items()})


def _code(value: Any) -> ReasonCode:
    if value not in get_args(ReasonCode):
        raise ValueError(f"unknown reason {value!r:.50}")
    code: ReasonCode = value
    return code
