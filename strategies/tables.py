"""The tables of the strategy TOML that are the same under every policy and method."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from fedfreeze.settings import (
    Natural,
    NonNegative,
    Positive,
    PositiveInt,
    Seconds,
    Settings,
    Share,
)
from tasks.options import OwnLayers
from tasks.partition import Partition, Split
from tasks.registry import known_model


@dataclass(frozen=True)
class OnlyWith:
    """Marks a key that is read only when the key ``selector`` above it has one of ``values``."""

    selector: str
    values: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.selector} = {' or '.join(json.dumps(value) for value in self.values)}"


class Table(Settings):
    """A table that refuses a key nobody would read: it would look as if it did something."""

    @field_validator("*")
    @classmethod
    def _is_read(cls, value: Any, info: ValidationInfo) -> Any:
        field = cls.model_fields[str(info.field_name)]
        for mark in field.metadata:
            if not isinstance(mark, OnlyWith) or mark.selector not in info.data:
                continue
            # The default passes, so that a resolved document can hold every key.
            if info.data[mark.selector] not in mark.values and value != field.default:
                raise ValueError(f"only {mark} reads this key, got {json.dumps(value)}; remove it")
        return value


class Clients(Table):
    """``[clients]``: who is asked, and how long the server waits."""

    selection: Literal["all", "uniform", "bernoulli"] = Field(
        "all", description="who is asked in a round, of those online"
    )
    share: Annotated[float, OnlyWith("selection", ("uniform", "bernoulli"))] = Field(
        1.0, gt=0, le=1, description="share of the clients that is asked"
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

    mode: Literal["sparse", "dense"] = Field(
        "sparse", description="sparse sends the largest values that fit, dense sends all"
    )
    bits: Annotated[Literal[8, 16, 32], OnlyWith("mode", ("dense",))] = Field(
        32, description="bits of a value"
    )
    upload_time: Seconds = Field(
        10.0, gt=0, description="the budget is what the uplink carries in this time"
    )
    compression_ratio: float = Field(
        100.0, ge=1, description="the budget is at most the dense update divided by this"
    )
    downlink: Literal["dense", "delta"] = Field(
        "delta", description="delta sends what a client lacks, dense the whole model"
    )
    error_feedback: bool = Field(
        True, description="keep what was not sent and add it to the next update"
    )


class Local(Table):
    """``[local]``: training on a board."""

    epochs: PositiveInt = Field(
        1, le=100_000, description="passes over the client's data in a round"
    )
    batch_size: PositiveInt = Field(32, le=1_000_000, description="examples in a step")
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
