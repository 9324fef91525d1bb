"""``top-down``: in each round, train the last module alone and unfreeze downwards, one by one.

Source: Howard and Ruder, "Universal Language Model Fine-tuning for Text Classification" (ULMFiT,
2018), made federated as in FedBug's ablation: the same periods as ``fedbug`` in the opposite
order, afresh in each round. What lies below the unfrozen modules is a frozen prefix, so that unlike
``fedbug`` it shortens the backward pass and holds fewer activations early in a round.

Two more parts of ULMFiT, off unless asked for. Discriminative rates: module m of M from the bottom
learns at

    eta_m = eta / f^(M - 1 - m)             f = ``rate-factor``, 2.6 in the paper

Slanted triangular rates over the K local steps of a round, with cut = floor(K ``cut-share``):

    p = t / cut                             for t < cut
        1 - (t - cut) / (cut (1 / cut-share - 1))    from then on
    eta_t = eta (1 + p (ratio - 1)) / ratio          ratio = ``slant-ratio``, 32 in the paper

The paper's rates rise and fall once, over all of the training; here ``[local] schedule`` does that,
and the triangle, if any, is that of a round.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from fedfreeze import settings
from fedfreeze.layout import Layout
from strategies.freeze.modules import modules_of
from strategies.freeze.policy import Advice, ClientView, FreezePolicy, RoundView
from strategies.freeze.unfreezing import Unfreezing, unfrozen_in_turn
from strategies.local_step import LocalStep
from strategies.tables import OnlyWith, Table


class TopDownSettings(Table):
    """``[freeze]`` of policy ``top-down``."""

    policy: Literal["top-down"] = "top-down"
    unfreezing_share: settings.Share = Field(
        0.2, description="share of the local steps in which modules are unfrozen one by one"
    )
    modules: list[list[str]] | None = Field(
        None,
        min_length=1,
        description="globs over layer names for each module, bottom first; a module of each layer "
        "when absent",
    )
    rate_factor: float = Field(
        1.0, ge=1, description="by how much slower each module learns than the one above it"
    )
    rates: Literal["flat", "slanted-triangular"] = Field(
        "flat", description="how rates move over the steps of a round"
    )
    cut_share: Annotated[float, OnlyWith("rates", ("slanted-triangular",))] = Field(
        0.1, gt=0, lt=1, description="share of the steps in which they rise"
    )
    slant_ratio: Annotated[float, OnlyWith("rates", ("slanted-triangular",))] = Field(
        32.0, ge=1, description="the highest rate over the lowest"
    )


class TopDown(FreezePolicy):
    """See the module's docstring."""

    name: ClassVar[str] = "top-down"
    Settings: ClassVar[type[settings.Settings]] = TopDownSettings
    settings: TopDownSettings

    def __init__(self, settings: Any, layout: Layout) -> None:
        super().__init__(settings, layout)
        self._modules = tuple(reversed(modules_of(layout, settings.modules)))

    def advise(self, view: RoundView, client: ClientView) -> Advice:
        """All layers, in as many stages as there are modules."""
        del view, client
        share, count = self.settings.unfreezing_share, len(self._modules)
        return Advice(
            frozen={},
            values=dict.fromkeys(self.layout.names, 1.0),
            stages=unfrozen_in_turn(share, self._modules),
            inputs={
                name: {"module": count - 1 - turn, "frozen_share": turn * share / count}
                for turn, module in enumerate(self._modules)
                for name in module
            },
        )

    def watch(self, view: RoundView) -> LocalStep:
        """The client half: when each module is unfrozen, and how fast it learns."""
        del view
        return _Fine(self.settings, self._modules)


def slanted_triangular(at: int, steps: int, *, cut_share: float, ratio: float) -> float:
    """The rate in step ``at`` over the highest one; see the module's docstring.

    >>> rates = [slanted_triangular(t, 10, cut_share=0.2, ratio=5.0) for t in (0, 1, 2, 6, 9)]
    >>> [round(rate, 3) for rate in rates]
    [0.2, 0.6, 1.0, 0.6, 0.3]
    """
    cut = math.floor(steps * cut_share + 1e-9)
    if at < cut:
        part = at / cut
    else:
        falling = steps - cut if cut == 0 else cut * (1 / cut_share - 1)
        part = max(0.0, 1 - (at - cut) / falling)
    return (1 + part * (ratio - 1)) / ratio


class _Fine(Unfreezing):
    def __init__(self, settings: TopDownSettings, modules: Sequence[Sequence[str]]) -> None:
        super().__init__(settings.unfreezing_share, modules)
        self._settings = settings
        self._slower = {
            name: settings.rate_factor**-turn
            for turn, module in enumerate(modules)
            for name in module
        }

    def rate_scales(self, at: int, steps: int) -> Mapping[str, float]:
        """By layer; none where all learn at the rate of the round."""
        wanted = self._settings
        if wanted.rate_factor == 1 and wanted.rates == "flat":
            return {}
        now = 1.0
        if wanted.rates == "slanted-triangular":
            now = slanted_triangular(
                at, steps, cut_share=wanted.cut_share, ratio=wanted.slant_ratio
            )
        return {name: now * slower for name, slower in self._slower.items()}
