"""A ``task.py`` of Flower's quickstarts, taken as it is."""

import pytest
import torch

from client_app.pooled import pooled_examples
from fedfreeze.errors import ConfigError
from tasks.loading import load
from tasks.partition import Split

SPLIT = Split("iid", 0.3, 0.1, 0)

QUICKSTART = """
import torch
from torch import nn
from torch.utils.data import DataLoader

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(4, 8)
        self.fc2 = nn.Linear(8, 3)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))

ROWS = [{BATCH} for i in range(60)]

def load_data(partition_id: int, num_partitions: int, batch_size: int):
    mine = ROWS[partition_id::num_partitions]
    held_out = len(mine) // 5
    return (
        DataLoader(mine[held_out:], batch_size=batch_size, shuffle=True),
        DataLoader(mine[:held_out], batch_size=batch_size),
    )

def train(net, trainloader, epochs, lr, device):
    raise AssertionError("FedFreeze trains")

def test(net, testloader, device):
    raise AssertionError("FedFreeze measures")
"""
DICTIONARIES = '{"img": torch.full((4,), float(i)), "label": i % 3}'
PAIRS = "(torch.full((4,), float(i)), i % 3)"
CENTRAL = """
def load_centralized_dataset():
    return DataLoader([{"img": torch.full((4,), 99.0), "label": 0}] * 6, batch_size=4)
"""


EMPTY = """
def load_data(partition_id, num_partitions, batch_size):
    return [], []
"""


@pytest.fixture
def made(tmp_path):
    def make(batch=DICTIONARIES, more=""):
        path = tmp_path / "task.py"
        path.write_text(QUICKSTART.replace("{BATCH}", batch) + more)
        return load(str(path))

    return make


def numbers(examples):
    return sorted(int(row[0]) for row in examples.inputs)


@pytest.mark.parametrize("batch", [DICTIONARIES, PAIRS])
def test_each_client_trains_on_its_own_loader(made, batch):
    task = made(batch)
    examples = task.client_examples(1, 3, SPLIT, None)
    assert numbers(examples) == list(range(1, 60, 3))[4:]
    assert examples.targets.tolist() == [int(row[0]) % 3 for row in examples.inputs]


def test_a_shuffling_loader_gives_the_same_order_in_every_process(made):
    first = made().client_examples(0, 2, SPLIT, None).inputs
    torch.manual_seed(5)
    assert torch.equal(made().client_examples(0, 2, SPLIT, None).inputs, first)


def test_held_out_examples_are_halved_into_validation_and_test(made):
    task = made()
    validation, test = task.validation(SPLIT, None), task.test(None)
    assert numbers(validation) == list(range(0, 12, 2))
    assert numbers(test) == list(range(1, 12, 2))


def test_a_central_test_set_is_what_results_are_measured_on(made):
    task = made(more=CENTRAL)
    assert numbers(task.validation(SPLIT, None)) + numbers(task.test(None)) == [99] * 6


def test_its_net_is_the_model(made):
    assert made().layout().names == ("fc1", "fc2")


def test_the_strategys_partition_has_no_say(made):
    with pytest.raises(ConfigError) as caught:
        made().division(3, SPLIT, None)
    assert str(caught.value).endswith(
        "divides its data by itself, in load_data(); [data] has no say"
    )


@pytest.mark.parametrize(
    ("batch", "came"),
    [
        ('{"a": torch.zeros(4), "b": torch.zeros(4)}', "a dictionary with the keys a, b"),
        ("torch.zeros(4)", "a Tensor"),
        ("(torch.zeros(4), 1, 2)", "a list"),
    ],
)
def test_batches_of_another_form_are_refused(made, batch, came):
    with pytest.raises(ConfigError) as caught:
        made(batch).client_examples(0, 3, SPLIT, None)
    assert str(caught.value) == (
        "load_data() must give batches of one tensor of inputs and one of targets, as a pair or as "
        f'{{"img": ..., "label": ...}}, got {came}'
    )


def test_a_client_without_a_batch_is_refused(made):
    with pytest.raises(ConfigError) as caught:
        made(more=EMPTY).client_examples(2, 3, SPLIT, None)
    assert str(caught.value) == (
        "load_data() gave a loader without a batch; a client needs one example"
    )


def test_pooled_are_all_examples_that_the_module_trains_on(made):
    """It holds others out by itself, so the strategy's validation share takes none of them."""
    task = made()
    assert len(pooled_examples(task, SPLIT, None)) == len(task.dataset(None).train) == 48
