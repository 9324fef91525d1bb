"""What a strategy chooses of a task; knows no torch, so that reading a strategy is fast."""

from __future__ import annotations

from dataclasses import dataclass

# A strategy's own layers: (name, globs over tensor names), in any order.
OwnLayers = tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True)
class Options:
    """What a strategy chooses of a task.

    Attributes:
        model: a model by name instead of the task's own.
        pretrained: where initial weights come from: "hub" or a file; None for random ones.
        layers: "auto", one of the model's groupings, or globs of the strategy's own.
        augment: whether training examples are changed at random.
        test_examples: how many of the test half to measure on; None for all.
    """

    model: str | None = None
    pretrained: str | None = None
    layers: str | OwnLayers = "auto"
    augment: bool = False
    test_examples: int | None = None


# What a strategy chooses that says nothing of its task.
AS_THE_TASK_IS = Options()
