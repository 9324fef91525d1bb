"""How evenly a model serves the clients: their mean, and the mean of the worst tenth of them.

A mean over all test examples hides harm to a few clients. So the test half is looked at as each
client would: through the examples of each owner under ``natural``, else through each client's mix
of classes. It is measured on the test half and reported; nothing decides by it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedfreeze.errors import ConfigError
from tasks.metric import ACCURACY, Metric, predicted
from tasks.partition import Split
from tasks.partition.split import has_classes
from tasks.task import Task

Indices = NDArray[np.int64]
Values = NDArray[np.float64]


class Viewpoints(Protocol):
    """What stands for the clients in the test half."""

    @property
    def metric(self) -> Metric:
        """What is measured for each of them."""
        ...

    def per_client(self, outputs: Tensor, targets: Tensor) -> Values:
        """The metric for each client that the test half can speak for."""
        ...


@dataclass(frozen=True)
class Owners:
    """Each owner in the test half, whether or not it trained: a client like any other.

    Attributes:
        metric: measured over each owner's examples.
        members: positions in the test half of each owner's examples; none empty.
    """

    metric: Metric
    members: tuple[Indices, ...]

    def per_client(self, outputs: Tensor, targets: Tensor) -> Values:
        """One value an owner."""
        return np.array([self.metric.measure(outputs[at], targets[at]) for at in self.members])


@dataclass(frozen=True)
class LabelMixes:
    """Each client as its mix p of classes: its accuracy is the sum of p(c) · accuracy on class c.

    The simulated partitions deal the examples of a class at random, so a client's examples of it
    are like anybody's, and this is its expected accuracy. Each client is judged by all test
    examples of its classes: less noise than a part of the test half as large as the client, no
    further seed, and the same test examples for everyone. Classes that the test half lacks are
    left out of the mix, and a client that has no other is left out whole.

    Attributes:
        classes: ``[k]``, ascending.
        mixes: ``[clients, k]``, shares of a client's training examples; each row sums to 1.
    """

    classes: NDArray[np.int64]
    mixes: Values

    @property
    def metric(self) -> Metric:
        """Accuracy: the mean over examples of something that each has alone."""
        return ACCURACY

    def per_client(self, outputs: Tensor, targets: Tensor) -> Values:
        """One value a client that shares a class with the test half."""
        known = torch.from_numpy(self.classes)
        of_class = targets.long()[None] == known[:, None]
        right = predicted(outputs) == targets
        counts = of_class.sum(1).numpy().astype(np.float64)
        hits = (of_class & right[None]).sum(1).numpy().astype(np.float64)
        present = counts > 0
        mixes = self.mixes[:, present]
        covered = mixes.sum(1)
        judged = covered > 0
        scores: Values = mixes[judged] @ (hits[present] / counts[present]) / covered[judged]
        return scores


def viewpoints(task: Task, split: Split, clients: int, data_dir: str | None) -> Viewpoints | None:
    """What stands for the clients of this split; None where nothing can.

    That is so for targets without classes, or a metric other than accuracy, unless the test half
    has owners.

    Args:
        task: its data and metrics. Accuracy is looked at if it is among them, else the headline.
        split: how the training half is divided.
        clients: among how many.
        data_dir: see :meth:`tasks.task.Task.dataset`.

    Raises:
        ConfigError: see :meth:`tasks.partition.Split.clients`.
    """
    data = task.dataset(data_dir)
    has_accuracy = ACCURACY in task.metrics
    if split.partition == "natural" and data.test_groups is not None:
        owners = data.test_groups
        metric = ACCURACY if has_accuracy else task.metric
        return Owners(metric, tuple(np.flatnonzero(owners == one) for one in np.unique(owners)))
    held = task.client_targets(clients, split, data_dir)
    labels = np.concatenate(held)
    if not has_accuracy or not has_classes(labels):
        return None
    classes = np.unique(labels)
    counts = np.array([(mine[:, None] == classes[None]).sum(0) for mine in held])
    return LabelMixes(classes.astype(np.int64), counts / counts.sum(1, keepdims=True))


def spread(seen: Viewpoints, outputs: Tensor, targets: Tensor) -> dict[str, float]:
    """Mean over clients, and mean of the worst tenth of them, rounded up to whole clients.

    Every client counts alike, however many examples it has.

    Args:
        seen: who the clients are.
        outputs: of the published model for the whole test half, in its order.
        targets: of the test half.

    Returns:
        ``client_accuracy_mean`` and ``client_accuracy_worst_tenth``, or the same of another metric;
        nothing if the test half can speak for no client.

    Raises:
        ConfigError: outputs and targets differ in number.
    """
    if len(outputs) != len(targets):
        raise ConfigError(
            f"expected one output for each test example, got {len(outputs)} for {len(targets)}"
        )
    values = np.sort(seen.per_client(outputs, targets))
    if not len(values):
        return {}
    worst_first = values if seen.metric.higher_is_better else values[::-1]
    worst = worst_first[: -(-len(values) // 10)]
    name = f"client_{seen.metric.name}"
    return {f"{name}_mean": float(values.mean()), f"{name}_worst_tenth": float(worst.mean())}
