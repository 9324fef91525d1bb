"""With every feature off, the federation is FedAvg on deltas to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from strategies import schema
from strategies.schedule import learning_rate
from tasks.catalogue.fashion_cnn import task
from tasks.task import initial_arrays
from tests.conftest import SMALL

ROUNDS, NODES = 5, 4


def seed_of(seed, number, device_id):
    """The documented seed of a client's round, written a second time."""
    sequence = np.random.SeedSequence([seed, number, *device_id.encode()])
    return int(sequence.generate_state(1, np.uint64)[0] >> np.uint64(1))


def plain_sgd(arrays, examples, local, rate, seed):
    """Local SGD as any tutorial writes it: nothing of the project but the model."""
    torch.manual_seed(seed)
    model = task.build()
    model.load_state_dict({name: torch.from_numpy(a.copy()) for name, a in arrays.items()})
    optimizer = torch.optim.SGD(model.parameters(), rate)
    order = np.random.default_rng(seed)
    for _ in range(local.epochs):
        for chosen in np.split(
            permutation := order.permutation(len(examples)),
            range(local.batch_size, len(permutation), local.batch_size),
        ):
            loss = torch.nn.functional.cross_entropy(
                model(task.prepare(examples.inputs[chosen])), examples.targets[chosen]
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return {name: value.numpy() for name, value in model.state_dict().items()}


@pytest.fixture
def reference():
    """A loop without Flower: train each client, average the deltas by examples."""
    settings = schema.load("fedavg", [*SMALL, "rounds=5"])
    clients = [task.client_examples(index, NODES, settings.split, None) for index in range(NODES)]
    model = initial_arrays(task, settings.seed)
    for number in range(1, ROUNDS + 1):
        rate = learning_rate(settings.local, number, settings.rounds)
        summed = {name: np.zeros(a.shape, np.float64) for name, a in model.items()}
        for index, examples in enumerate(clients):
            seed = seed_of(settings.seed, number, f"sim-{index:04d}")
            local = plain_sgd(model, examples, settings.local, rate, seed)
            for name in model:
                summed[name] += len(examples) * (local[name] - model[name]).astype(np.float64)
        total = sum(map(len, clients))
        model = {
            name: (a.astype(np.float64) + summed[name] / total).astype(np.float32)
            for name, a in model.items()
        }
    return model


def test_with_every_feature_off_the_model_after_5_rounds_equals_a_loop_without_flower(
    small_run, reference
):
    run = small_run(
        "rounds=5", "fleet=high", "compression.error-feedback=false", preset="fedavg", nodes=NODES
    )
    run.play()
    published = run.strategy.published.arrays
    assert set(published) == set(reference)
    for name, array in reference.items():
        assert published[name].tobytes() == array.tobytes(), name


def test_the_loop_without_flower_moves_every_tensor(reference):
    begin = initial_arrays(task, 0)
    assert all(not np.array_equal(begin[name], reference[name]) for name in begin)
