"""The default task: its size, its split, and that it learns."""

import math

import pytest
import torch

from device_profiles.board import load_board
from device_profiles.cost import training_memory_bytes
from fedfreeze.errors import ConfigError
from tasks.loading import load
from tasks.partition.split import Split

TASK = load("fashion-cnn")
SPLIT = Split(partition="dirichlet", alpha=0.3, validation_share=0.1, seed=0)


def test_the_model_has_six_layers_of_the_size_that_arithmetic_gives():
    layout = TASK.layout()
    assert {layer.name: layer.parameter_count for layer in layout} == {
        "stem": 16 * 25 + 16,
        "conv2": 32 * 16 * 9 + 32,
        "conv3": 32 * 32 * 9 + 32,
        "conv4": 48 * 32 * 9 + 48,
        "fc": 96 * 768 + 96,
        "head": 10 * 96 + 10,
    }
    # Multiply-adds: taps times positions, twice for FLOPs.
    assert [layer.costs.forward_flops / 2 for layer in layout] == [
        25 * 16 * 14 * 14,
        9 * 16 * 32 * 7 * 7,
        9 * 32 * 32 * 7 * 7,
        9 * 32 * 48 * 4 * 4,
        768 * 96,
        96 * 10,
    ]


def test_the_smallest_board_can_always_train_the_head_but_never_the_whole_model():
    memory = load_board("rpi-zero-2w").memory
    layout = TASK.layout()
    head, whole = (
        training_memory_bytes(layout, names, 10, 0) for names in (["head"], layout.names)
    )
    assert head < memory.value * (1 - memory.spread)
    assert whole > memory.value * (1 + memory.spread)


def test_clients_and_validation_share_the_training_set_out():
    clients = [TASK.client_examples(client, 10, SPLIT, None) for client in range(10)]
    validation = TASK.validation(SPLIT, None)
    assert len(validation) == 300
    assert torch.bincount(validation.targets).tolist() == [30] * 10
    assert sum(map(len, clients)) == 2700
    images = torch.cat([validation.inputs, *[client.inputs for client in clients]])
    # The subset holds no image twice, so that a shared example would show.
    assert len(torch.unique(images.flatten(1), dim=0)) == 3000


def test_the_test_set_is_never_split():
    test = TASK.test(None)
    assert torch.bincount(test.targets).tolist() == [60] * 10
    assert test.inputs.shape == (600, 1, 28, 28)


def test_raw_images_are_bytes_and_prepared_ones_are_normalised():
    raw = TASK.dataset(None).train.inputs
    assert raw.dtype == torch.uint8
    inputs = TASK.prepare(raw)
    assert inputs.dtype == torch.float32
    # Mean and deviation are those of all 60,000 images; the subset differs by sampling only.
    assert float(inputs.mean()) == pytest.approx(0.0, abs=0.02)
    assert float(inputs.std()) == pytest.approx(1.0, abs=0.02)
    assert float(inputs.min()) == pytest.approx(-0.2860 / 0.3530)


def test_a_client_that_does_not_exist_is_refused():
    with pytest.raises(ConfigError) as caught:
        TASK.client_examples(10, 10, SPLIT, None)
    assert str(caught.value) == "client 10 is not one of 10 clients, counted from 0"


def test_the_metric_is_the_share_of_what_is_right():
    outputs = torch.tensor([[2.0, 1.0], [0.0, 3.0], [5.0, 4.0], [0.0, 1.0]])
    assert TASK.metric.name == "accuracy"
    assert TASK.metric.measure(outputs, torch.tensor([0, 1, 1, 0])) == 0.5


def test_the_loss_is_a_mean():
    outputs = torch.zeros(4, 10)
    assert float(TASK.loss(outputs, torch.arange(4))) == pytest.approx(math.log(10))


def test_one_epoch_on_a_slice_beats_chance_clearly():
    split = Split(partition="iid", alpha=0.3, validation_share=0.1, seed=0)
    data = TASK.client_examples(0, 2, split, None)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = TASK.build()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for start in range(0, len(data), 16):
        optimizer.zero_grad()
        batch = slice(start, start + 16)
        TASK.loss(model(TASK.prepare(data.inputs[batch])), data.targets[batch]).backward()
        optimizer.step()
    test = TASK.test(None)
    with torch.no_grad():
        accuracy = TASK.metric.measure(model(TASK.prepare(test.inputs)), test.targets)
    assert accuracy > 0.4  # chance is 0.1
