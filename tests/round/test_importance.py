"""``boost-by = "importance"``: where the loss is steep, less of the update is left behind."""

from __future__ import annotations

import statistics

import numpy as np
import pytest
import torch

from tasks.task import initial_arrays
from tests.conftest import records
from tests.round.held_models import held_by
from tests.wide_task import task

WIDE = (
    'task="tests.wide_task"',
    "fleet=high",
    "rounds=1",
    "local.epochs=2",
    "local.batch-size=8",
    "local.warm-up-rounds=0",
    "compression.compression-ratio=24",
)
LAYOUT = task.layout()


def mean_squares(run):
    """Of the gradients of board 0 in round 1: local SGD once more, by torch alone."""
    settings = run.settings
    sequence = np.random.SeedSequence([settings.seed, 1, *b"sim-0000"])
    seed = int(sequence.generate_state(1, np.uint64)[0] >> np.uint64(1))
    examples = task.client_examples(0, 1, settings.split, None)
    torch.manual_seed(seed)
    model = task.build()
    begin = initial_arrays(task, settings.seed)
    model.load_state_dict({name: torch.from_numpy(array) for name, array in begin.items()})
    optimizer = torch.optim.SGD(model.parameters(), run.strategy.learning_rate(1))
    order, squares = np.random.default_rng(seed), {name: [] for name in LAYOUT.names}
    for _ in range(settings.local.epochs):
        for chosen in np.split(order.permutation(len(examples)), (8, 16)):
            loss = torch.nn.functional.cross_entropy(
                model(examples.inputs[chosen]), examples.targets[chosen]
            )
            optimizer.zero_grad()
            loss.backward()
            for name, found in squares.items():
                gradients = [p.grad.flatten() for p in model.get_submodule(name).parameters()]
                found.append(float(torch.cat(gradients).square().mean()))
            optimizer.step()
    return {name: np.mean(found) for name, found in squares.items()}


def squared_errors(run):
    """By layer, of what board 0 meant to send and did not."""
    residual = held_by(run, 0).residual
    return {
        layer.name: sum(
            float(np.square(residual[t.name].astype(np.float64)).sum()) for t in layer.parameters
        )
        for layer in LAYOUT
    }


@pytest.fixture
def plain_and_weighted(small_run):
    runs = []
    for by in ("globs", "importance"):
        run = small_run(*WIDE, f"compression.boost-by={by}", nodes=1, preset="full", name=by)
        run.play()
        runs.append(run)
    return runs


def test_errors_weighted_by_squared_gradients_fall_at_the_same_budget(plain_and_weighted):
    plain, weighted = plain_and_weighted
    squares = mean_squares(plain)
    median = statistics.median(squares.values())
    weights = {name: square / median for name, square in squares.items()}
    heaviest = max(weights, key=weights.get)
    assert weights[heaviest] > 4
    before, after = squared_errors(plain), squared_errors(weighted)
    assert after[heaviest] < before[heaviest]
    assert sum(weights[n] * after[n] for n in weights) < sum(
        weights[n] * before[n] for n in weights
    )


def test_no_weight_makes_a_packet_longer_than_its_budget(plain_and_weighted):
    (plain,), (weighted,) = (records(run.folder, "decisions") for run in plain_and_weighted)
    assert plain["upload_budget_bytes"] == weighted["upload_budget_bytes"]
    for record in (plain, weighted):
        budget = record["upload_budget_bytes"]
        assert 0.9 * budget < record["upload_packet_bytes"] <= budget


def test_the_measured_gradients_are_those_of_the_report(plain_and_weighted):
    """The reported norm is a mean of roots, so its square is no more than the mean square."""
    (record,) = records(plain_and_weighted[0].folder, "decisions")
    for name, square in mean_squares(plain_and_weighted[0]).items():
        norm = record["measures"][name]["gradient_norm"]
        assert 0.5 * square < norm**2 <= square * (1 + 1e-4)
