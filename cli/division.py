"""A task's data as a strategy divides it among clients, in numbers and in words."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strategies.schema import Strategy
from tasks.partition.split import has_classes
from tasks.skew import Skew, counts, skew
from tasks.task import Task


@dataclass(frozen=True)
class Division:
    """A task's data as a strategy divides it.

    Attributes:
        task: its name.
        source: where the data came from.
        partition: how it is divided, in words.
        seed: of the strategy.
        labels: of the classes; one made-up class if the targets are none.
        has_classes: whether they are.
        owner: what a natural client is; empty if the examples have no owners.
        held: ``[clients, classes]`` examples.
        owners: how many owners each client has; None without.
        validation, test: examples that no client holds.
        test_majority: share of the test half that is of the clients' commonest class.
    """

    task: str
    source: str
    partition: str
    seed: int
    labels: tuple[str, ...]
    has_classes: bool
    owner: str
    held: NDArray[np.int64]
    owners: list[int] | None
    validation: int
    test: int
    test_majority: float | None

    @property
    def skew(self) -> Skew:
        """How uneven it is."""
        return skew(self.held, has_classes=self.has_classes)


def divide(task: Task, settings: Strategy, clients: int, data_dir: str | None) -> Division:
    """How the strategy divides the task's data.

    Raises:
        ConfigError: the data is not there, or it cannot be divided so.
    """
    dataset = task.dataset(data_dir)
    targets = task.client_targets(clients, settings.split, data_dir)
    test_targets = np.asarray(task.test(data_dir).targets)
    classes = has_classes(np.concatenate(targets))
    if classes:
        # A class may have any number, such as -1, or one far above the others.
        numbers = np.unique(np.concatenate([np.arange(len(task.labels)), *targets, test_targets]))
        named = dict(enumerate(task.labels))
        labels = tuple(named.get(number, str(number)) for number in numbers.tolist())
        targets = tuple(np.searchsorted(numbers, some) for some in targets)
        test_targets = np.searchsorted(numbers, test_targets)
    else:
        targets, labels = tuple(np.zeros(len(some), np.int64) for some in targets), ("examples",)
    held = counts(targets, len(labels))
    test_majority = None
    if classes and len(test_targets):
        test_majority = float((test_targets == held.sum(0).argmax()).mean())
    groups, owners = dataset.train_groups, None
    if groups is not None:
        parts = task.division(clients, settings.split, data_dir)
        owners = [len(np.unique(groups[part])) for part in parts]
    return Division(
        task=task.name,
        source=dataset.source,
        partition=task.divided_by or partition_words(settings),
        seed=settings.seed,
        labels=labels,
        has_classes=classes,
        owner=dataset.group,
        held=held,
        owners=owners,
        validation=task.validation_count(settings.split, data_dir),
        test=len(test_targets),
        test_majority=test_majority,
    )


def partition_words(settings: Strategy) -> str:
    """The partition with the keys that it reads.

    >>> from strategies.schema import load
    >>> partition_words(load("fedfreeze", ["data.partition=shards"]))
    'shards (shards-per-client 2)'
    """
    table = settings.data
    read = {
        "dirichlet": ["alpha"],
        "quantity": ["quantity_alpha"],
        "dirichlet-quantity": ["alpha", "quantity_alpha"],
        "shards": ["shards_per_client"],
    }.get(table.partition, [])
    keys = ", ".join(f"{key.replace('_', '-')} {getattr(table, key):g}" for key in read)
    return f"{table.partition} ({keys})" if keys else table.partition


def values(division: Division) -> dict[str, Any]:
    """The division for programs; what is not known is absent."""
    rows = [
        {
            "client": client,
            "examples": int(row.sum()),
            **({"by_class": row.tolist()} if division.has_classes else {}),
            **({"owners": division.owners[client]} if division.owners is not None else {}),
        }
        for client, row in enumerate(division.held)
    ]
    return _known(
        {
            "task": division.task,
            "source": division.source,
            "partition": division.partition,
            "seed": division.seed,
            "labels": list(division.labels) if division.has_classes else None,
            "owner": division.owner or None,
            "train_examples": int(division.held.sum()),
            "validation_examples": division.validation,
            "test_examples": division.test,
            "test_majority_share": division.test_majority,
            "skew": _known(asdict(division.skew)),
            "clients": rows,
        }
    )


def heading(division: Division) -> list[str]:
    """What is divided, and how."""
    clients, total = len(division.held), int(division.held.sum())
    return [
        f"{division.task}: {division.source}",
        f"{total} examples on {clients} clients by {division.partition}, seed {division.seed}",
        f"{division.validation} examples for validation, {division.test} for the test",
    ]


def sentences(division: Division) -> list[str]:
    """What the bars do not say by themselves."""
    found = division.skew
    sizes = f"{found.smallest} to {found.largest}, median {found.median:g}"
    lines = [f"sizes     {sizes} examples a client; largest / smallest {found.size_ratio:.1f}"]
    if found.total_variation is not None:
        share = f"{100 * found.total_variation:.0f} %"
        spread = f"{found.effective_classes:.1f} of {len(division.labels)}"
        lines.append(
            f"mix       on average {share} of a client's examples would have to be of another "
            "class for all clients to have the same mix"
        )
        lines.append(
            f"classes   on average a client's examples spread like {spread} equally common classes"
        )
    if found.majority_class is not None and division.test_majority is not None:
        commonest = division.labels[found.majority_class]
        share = f"{division.test_majority:.3f}"
        lines.append(
            f'majority  always to answer "{commonest}", the commonest class, is right for {share} '
            "of the test"
        )
    return lines


def _known(members: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in members.items() if value is not None}
