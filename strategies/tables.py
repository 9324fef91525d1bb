"""The tables of the strategy TOML that are the same under every policy and method."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from compression.settings import MAX_SPARSE_BITS, CodecSettings, Effort
from fedfreeze.settings import (
    Natural,
    NonNegative,
    Positive,
    PositiveInt,
    Seconds,
    Settings,
    Share,
)
from strategies.few_examples import FewExamples
from strategies.layer_wishes import MAX_WEIGHT, MIN_WEIGHT, rows_of
from strategies.mask_rule import MaskRule
from tasks.options import OwnLayers
from tasks.partition import Partition, Split
from tasks.registry import known_model

Precision = Literal["float32", "float16"]
Fate = Literal["keep", "decay", "drop"]
# Of [clients] selection, those that choose by a score.
SCORED = ("resource", "gain", "oort")


@dataclass(frozen=True)
class OnlyWith:
    """Marks a key that is read only when the key ``selector`` above it has one of ``values``.

    ``or_else`` names more keys, of which one with such a value is enough; ``why`` is a reason that
    a refusal gives. A key with several marks is read only where all of them are met.
    """

    selector: str
    values: tuple[str, ...]
    or_else: tuple[str, ...] = ()
    why: str = ""

    @property
    def selectors(self) -> tuple[str, ...]:
        """All keys that decide, in Python's spelling."""
        return (self.selector, *self.or_else)

    def is_met(self, chosen: Mapping[str, Any]) -> bool:
        """Whether these values, one for each selector, make that the key is read."""
        return any(chosen[selector] in self.values for selector in self.selectors)

    def __str__(self) -> str:
        keys = " or ".join(selector.replace("_", "-") for selector in self.selectors)
        return f"{keys} = {' or '.join(json.dumps(value) for value in self.values)}"


class Table(Settings):
    """A table that refuses a key nobody would read: it would look as if it did something."""

    @field_validator("*")
    @classmethod
    def _is_read(cls, value: Any, info: ValidationInfo) -> Any:
        field = cls.model_fields[str(info.field_name)]
        for mark in field.metadata:
            if not isinstance(mark, OnlyWith) or not set(mark.selectors) <= set(info.data):
                continue
            # The default passes, so that a resolved document can hold every key.
            if not mark.is_met(info.data) and value != field.default:
                why = f": {mark.why}" if mark.why else ""
                raise ValueError(
                    f"only {mark} reads this key, got {json.dumps(value)}{why}; remove it"
                )
        return value


class Clients(Table):
    """``[clients]``: who is asked, and how long the server waits."""

    selection: Literal["all", "uniform", "bernoulli", "resource", "gain", "oort"] = Field(
        "all",
        description="who is asked in a round, of those online: everybody, a draw, or the best by "
        "speed and reliability, by what their updates brought, or by Oort's utility",
    )
    share: Annotated[float, OnlyWith("selection", ("uniform", "bernoulli", *SCORED))] = Field(
        1.0, gt=0, le=1, description="share of the clients that is asked"
    )
    exploration: Annotated[Share, OnlyWith("selection", SCORED)] = Field(
        0.2,
        description="share of the cohort for clients that were never asked or have long waited; "
        "with oort it begins at 0.9 and falls to this",
    )
    fairness_rounds: Annotated[PositiveInt, OnlyWith("selection", SCORED)] = Field(
        20,
        description="rounds within which every client that is there is asked at least once, as far "
        "as the share allows",
    )
    quorum: Share = Field(
        0.6, description="share of those asked that must answer, else the round is void"
    )
    round_deadline: Seconds = Field(
        60.0, gt=0, description="simulated time by which an update must have arrived"
    )
    round_timeout: Seconds = Field(
        600.0, gt=0, description="wall-clock time that the server waits for replies"
    )
    start_timeout: Seconds = Field(
        120.0, gt=0, description="wall-clock time that the server waits for boards before round 1"
    )
    min_nodes: Natural = Field(
        0, description="nodes that must be online before round 1; 0 takes whoever is there"
    )
    q_min: Natural = Field(
        0,
        description="clients that train each layer within coverage-rounds, even where the policy "
        "has settled on freezing it; 0 leaves it to the policy",
    )
    coverage_rounds: PositiveInt = Field(
        5, description="rounds in which that holds, counted in blocks; only with q-min above 0"
    )

    @field_validator("coverage_rounds")
    @classmethod
    def _is_wanted(cls, value: int, info: ValidationInfo) -> int:
        if info.data.get("q_min") == 0 and value != cls.model_fields["coverage_rounds"].default:
            raise ValueError(f"only q-min above 0 reads this key, got {value}; remove it")
        return value


class RoundLimits(Table):
    """``[limits]``: what a client may spend in a round at most, whatever its board could."""

    flops_per_round: Positive | None = Field(
        None, description="operations of local training; no limit when absent, as with the others"
    )
    upload_bytes_per_round: PositiveInt | None = Field(
        None, description="bytes of a reply, with its envelope"
    )
    energy_j_per_round: Positive | None = Field(
        None, description="joules of transfers and training, modelled from the board's profile"
    )


class Model(Table):
    """``[model]``: what is trained, how it begins, and into which layers it divides."""

    name: Annotated[str, AfterValidator(known_model)] | None = Field(
        None, description="a model by name; the task's own when absent"
    )
    pretrained: str | None = Field(
        None,
        min_length=1,
        description='"hub" or a file that initial weights come from; random ones when absent',
    )
    layers: str | dict[str, list[str]] = Field(
        "auto",
        description='"auto", a grouping that the model has, or a table of layer names, each with '
        "globs over the names of tensors",
    )

    @field_validator("layers")
    @classmethod
    def _has_layers(cls, value: str | dict[str, list[str]]) -> str | dict[str, list[str]]:
        if isinstance(value, dict) and not (value and all(value.values()) and "" not in value):
            raise ValueError(
                'expected at least one layer, each with globs such as body = ["layer1.*"]'
            )
        return value

    @property
    def own_layers(self) -> str | OwnLayers:
        """``layers`` as a value that can be compared and hashed."""
        if isinstance(self.layers, str):
            return self.layers
        return tuple((name, tuple(globs)) for name, globs in self.layers.items())


class Data(Table):
    """``[data]``: how a simulation divides the data."""

    partition: Partition = Field(
        "dirichlet", description="how the examples are divided among the clients"
    )
    alpha: Annotated[Positive, OnlyWith("partition", ("dirichlet", "dirichlet-quantity"))] = Field(
        0.3, description="concentration of the classes; smaller is more uneven"
    )
    quantity_alpha: Annotated[
        Positive, OnlyWith("partition", ("quantity", "dirichlet-quantity"))
    ] = Field(1.0, description="concentration of the clients' sizes; smaller is more uneven")
    shards_per_client: Annotated[PositiveInt, OnlyWith("partition", ("shards",))] = Field(
        2, description="shards of examples sorted by class that a client holds"
    )
    validation_share: float = Field(
        0.1, gt=0, lt=0.5, description="share of the training data that the server validates on"
    )
    test_examples: PositiveInt | None = Field(
        None, description="how many test examples each round is measured on; all when absent"
    )
    augment: bool = Field(
        False, description="change training examples at random, as the task knows how"
    )

    def split(self, seed: int) -> Split:
        """The table as a value that divides."""
        return Split(
            self.partition,
            self.alpha,
            self.validation_share,
            seed,
            quantity_alpha=self.quantity_alpha,
            shards_per_client=self.shards_per_client,
        )


class Compression(Table):
    """``[compression]``: how large an update may be, and how it is packed."""

    mode: Literal["sparse", "dense", "literal"] = Field(
        "sparse",
        description="sparse sends the values that earn their bits within the budget, dense all of "
        "them, literal the largest as FedFreeze's text packs them",
    )
    bits: Annotated[Literal[8, 16, 32], OnlyWith("mode", ("dense",))] = Field(
        32, description="bits of a value"
    )
    mask: Annotated[Literal["chosen", "shared"], OnlyWith("mode", ("sparse",))] = Field(
        "chosen",
        description="which values are sent: chosen sends those that earn their bits, and where "
        "they are; shared sends those at positions that both ends draw from the seed, others in "
        "each round",
    )
    density: Annotated[float | None, OnlyWith("mode", ("sparse", "literal"))] = Field(
        None,
        gt=0,
        le=1,
        description="share of the values that is sent, if they fit; when absent, chosen with the "
        "step, or of a shared mask as large as the budget allows",
    )
    value_bits: Annotated[
        int | None, OnlyWith("mode", ("sparse",)), OnlyWith("mask", ("chosen",))
    ] = Field(
        None,
        ge=1,
        le=MAX_SPARSE_BITS,
        description="bits of a value that is sent, its sign among them; chosen when absent",
    )
    effort: Annotated[Effort, OnlyWith("mode", ("sparse",)), OnlyWith("mask", ("chosen",))] = Field(
        "thorough", description="thorough takes about twice as long as fast, for a smaller error"
    )
    floors: Annotated[
        dict[str, Share] | None,
        OnlyWith("mode", ("sparse",)),
        OnlyWith("mask", ("chosen",), why="a shared mask takes the same share of every layer"),
    ] = Field(
        None,
        description="globs over layers, each with the least share of its values that is sent, and "
        "never fewer than 8; when absent, a thousandth of the last layer",
    )
    boost: Annotated[dict[str, float] | None, OnlyWith("mode", ("sparse",))] = Field(
        None,
        description="globs over layers or tensors, and rows of them as in head.weight[0:4], each "
        "with how much an error counts there, against 1 elsewhere: 4 halves the step, 0.25 doubles "
        "it; of several globs the highest counts",
    )
    boost_by: Annotated[Literal["globs", "importance"], OnlyWith("mode", ("sparse",))] = Field(
        "globs",
        description="what weighs an error: the globs of boost alone, or importance, the mean "
        "squared gradient of a layer in this round over the median of the trained layers, times "
        "its globs",
    )
    upload_time: Seconds = Field(
        10.0, gt=0, description="the budget is what the uplink carries in this time"
    )
    compression_ratio: float = Field(
        100.0, ge=1, description="the budget is at most the dense update divided by this"
    )
    downlink: Literal["dense", "delta", "quantised", "sparse"] = Field(
        "delta",
        description="dense sends the whole model, delta the layers that changed, quantised and "
        "sparse the steps in packets with error feedback on the server: all values of 8 bits, or "
        "the largest that fit",
    )
    downlink_ratio: Annotated[float, OnlyWith("downlink", ("sparse",))] = Field(
        50.0, ge=1, description="a packet down is at most the dense model divided by this"
    )
    error_feedback: bool = Field(
        True, description="keep what was not sent and add it to the next update"
    )
    few_examples: Literal["plain", "finer-step", "damped-weight"] = Field(
        "plain",
        description="clients with fewer than n-min examples: as others, with fewer values sent "
        "more finely, or merged with the weight n * n / n-min",
    )
    n_min: Annotated[PositiveInt, OnlyWith("few_examples", ("finer-step", "damped-weight"))] = (
        Field(64, description="examples below which few-examples applies")
    )

    @field_validator("few_examples")
    @classmethod
    def _has_a_step(cls, value: str, info: ValidationInfo) -> str:
        if value == "finer-step" and info.data.get("mode") == "dense":
            raise ValueError(
                'mode = "dense" sends every value, so no step can be finer; expected "plain" or '
                '"damped-weight"'
            )
        if value == "finer-step" and info.data.get("mask") == "shared":
            raise ValueError(
                'mask = "shared" sends every value of the mask, so no step can be finer; expected '
                '"plain" or "damped-weight"'
            )
        return value

    @field_validator("boost")
    @classmethod
    def _can_be_weighed(cls, value: dict[str, float] | None) -> dict[str, float] | None:
        for pattern, weight in (value or {}).items():
            rows_of(pattern)
            if not MIN_WEIGHT <= weight <= MAX_WEIGHT:
                raise ValueError(
                    f"{json.dumps(pattern)}: expected a weight from 1/{MAX_WEIGHT:g} to "
                    f"{MAX_WEIGHT:g}, got {weight:g}; what no glob names has a weight of 1"
                )
        return value

    def codec(self, examples: int) -> CodecSettings:
        """How a client with so many examples packs its update."""
        return CodecSettings(
            self.mode,
            self.bits,
            density=self.density if self.mask == "chosen" else None,
            value_bits=self.value_bits,
            fineness=self.small_clients.fineness(examples),
            effort=self.effort,
        )

    def mask_rule(self, seed: int) -> MaskRule | None:
        """What decides which values are sent, where not their sizes do; None where they do."""
        return MaskRule(seed, self.density) if self.mask == "shared" else None

    @property
    def small_clients(self) -> FewExamples:
        """What is done about clients with few examples, as a value."""
        return FewExamples(self.few_examples, self.n_min)


class Residual(Table):
    """``[residual]``: what becomes of what was not sent yet. Read with error feedback alone."""

    frozen: Fate = Field("keep", description="of a layer that is frozen, in each such round")
    missed: Fate = Field(
        "keep", description="after rounds in which the client did not train, for each of them"
    )
    layout_change: Fate = Field(
        "drop",
        description="when the model's layers change within a run; what has no tensor of the same "
        "name and shape is always dropped",
    )
    decay: Annotated[float, OnlyWith("frozen", ("decay",), ("missed", "layout_change"))] = Field(
        0.9, gt=0, lt=1, description="what is left of it after one round"
    )
    precision: Precision = Field(
        "float32", description="of the residual on a board; float16 halves its disk and memory"
    )
    summary: bool = Field(
        False, description="report norm, largest value and age of each layer's residual"
    )


class Local(Table):
    """``[local]``: training on a board."""

    epochs: PositiveInt = Field(
        1, le=100_000, description="passes over the client's data in a round"
    )
    batch_size: PositiveInt = Field(32, le=1_000_000, description="examples in a step")
    micro_batches: Literal["never", "without-batch-norm", "always"] = Field(
        "never",
        description="where memory is short, compute a batch in parts whose gradients add up: in "
        "no model, in those without BatchNorm, or in all; BatchNorm then sees the parts",
    )
    optimizer: Literal["sgd", "adam", "adamw"] = Field("sgd", description="local optimizer")
    learning_rate: Positive = Field(0.1, description="local learning rate, before the schedule")
    momentum: Annotated[float, OnlyWith("optimizer", ("sgd",))] = Field(
        0.0, ge=0, lt=1, description="momentum of SGD"
    )
    weight_decay: NonNegative = Field(0.0, description="weight decay of trained layers")
    clip_norm: Positive | None = Field(
        None, description="largest l2 norm of a step's gradient; not clipped when absent"
    )
    schedule: Literal["constant", "step", "inverse", "cosine"] = Field(
        "constant", description="the learning rate over the rounds"
    )
    warm_up_rounds: Natural = Field(
        0, description="rounds over which the learning rate rises linearly to its full value"
    )
    final_share: Annotated[Share, OnlyWith("schedule", ("cosine",))] = Field(
        0.1, description="share of the learning rate that is left in the last round"
    )
    step_rounds: Annotated[PositiveInt, OnlyWith("schedule", ("step",))] = Field(
        10, description="rounds between two steps"
    )
    step_factor: Annotated[float, OnlyWith("schedule", ("step",))] = Field(
        0.1, gt=0, le=1, description="what a step multiplies the learning rate with"
    )
    inverse_decay: Annotated[Positive, OnlyWith("schedule", ("inverse",))] = Field(
        0.1, description="d in rate / (1 + d * rounds)"
    )
    device: Literal["auto", "cpu", "cuda"] = Field("auto", description="where a board trains")
