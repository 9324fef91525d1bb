"""One plan of one model to measure: written by the benchmark, read by the process that trains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from fedfreeze.layout import Layout
from tasks.loading import load
from tasks.options import Options
from tasks.task import Task

# Model -> the task whose examples it takes.
TASK_OF = {
    "fashion-cnn": "fashion-cnn",
    "resnet18-gn": "cifar10",
    "vit-tiny": "cifar10",
    "minilm": "reuters-r8-minilm",
}
SLOTS_OF = {"sgd": 0, "momentum": 1, "adam": 2}


@dataclass(frozen=True)
class Case:
    """What is trained.

    Attributes:
        model: a key of ``TASK_OF``.
        plan: what the choice of layers is called.
        trained: the layers.
        optimizer: a key of ``SLOTS_OF``.
    """

    model: str
    plan: str
    trained: tuple[str, ...]
    batch_size: int
    optimizer: str = "momentum"

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Case:
        """The inverse of :meth:`to_json`."""
        return cls(**{**data, "trained": tuple(data["trained"])})


def task_of(model: str) -> Task:
    """The task, with that model."""
    return load(TASK_OF[model], Options(model=model))


def plans(layout: Layout) -> dict[str, tuple[str, ...]]:
    """Kinds of freezing, each with the layers that it trains."""
    names: Sequence[str] = layout.names
    half = len(names) // 2
    return {
        "full": tuple(names),
        "prefix frozen": tuple(names[half:]),
        "head alone": tuple(names[-1:]),
        "suffix frozen": tuple(names[:half]),
        "scattered": tuple(names[1::3]),
    }
