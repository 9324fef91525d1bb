"""A part of a task that is not what it should be is named when the task is written."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import nn

from fedfreeze.errors import ConfigError
from tasks.dataset import Dataset, Examples
from tasks.inputs import Values
from tasks.metric import ACCURACY, MACRO_F1, Metric
from tasks.task import Task

INPUTS, TARGETS = torch.rand(8, 4), torch.arange(8) % 2


def read(place):
    del place
    return Dataset(Examples(INPUTS, TARGETS), Examples(INPUTS, TARGETS), "made up")


def model():
    return nn.Sequential(nn.Linear(4, 2))


def declared(**parts):
    written = {"name": "mine", "inputs": Values((4,)), "read": read, "model": model}
    return Task(**{**written, "labels": ("a", "b"), **parts})


@dataclass
class Thawed:
    """Equal by value but no constant, so that it has no hash."""

    scale: float = 1.0

    def __call__(self, inputs):
        return inputs * self.scale


def test_lists_and_tables_are_kept_as_values():
    task = declared(
        labels=["a", "b"], metrics=[ACCURACY, MACRO_F1], layers={"body": ["0.*"], "head": ("1.*",)}
    )
    assert task == declared(
        labels=("a", "b"),
        metrics=(ACCURACY, MACRO_F1),
        layers=(("body", ("0.*",)), ("head", ("1.*",))),
    )
    assert hash(task) == hash(declared(labels=["a", "b"], metrics=task.metrics, layers=task.layers))


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"name": ""}, "a task needs a name such as \"heat-pump\", got ''"),
        (
            {"inputs": (8,)},
            'task "mine": inputs must be Images(...), Tokens(...) or Values(...), got (8,)',
        ),
        (
            {"read": None},
            'task "mine": read must be a function from a Place to a Dataset, got None',
        ),
        (
            {"model": nn.Linear(4, 2)},
            (
                'task "mine": model must be a function that builds a fresh model each time, got a '
                "Linear that is built already; write model=lambda: Linear(...)"
            ),
        ),
        (
            {"model": 3},
            'task "mine": model must be a function that builds it, or the name of a model, got 3',
        ),
        ({"loss": 1.0}, 'task "mine": loss must be a function of outputs and targets, got 1.0'),
        (
            {"preprocessing": None},
            (
                'task "mine": preprocessing must be something that can be called with a '
                "batch of raw "
                "inputs, got None"
            ),
        ),
        (
            {"augmentation": True},
            'task "mine": augmentation must be a function of inputs and rng, got True',
        ),
        (
            {"labels": (0, 1)},
            'task "mine": labels must be the names of the classes, as texts in a tuple, got (0, 1)',
        ),
        ({"outputs": -1}, 'task "mine": outputs must be a whole number of 0 or more, got -1'),
        (
            {"metrics": ()},
            (
                'task "mine": metrics must be one Metric(name, function) or more in a tuple, as '
                "(ACCURACY,), got ()"
            ),
        ),
        (
            {"metrics": (Metric("loss", abs),)},
            (
                'task "mine": a metric needs a name in snake case, such as "mean_error", '
                'and "loss" is '
                "taken, got 'loss'"
            ),
        ),
        (
            {"metrics": (Metric("error", abs), Metric("error", max))},
            'task "mine": two metrics are named "error"; rename one',
        ),
        (
            {"layers": (("body", "0.*"),)},
            (
                'task "mine": layers must be names with globs each, as (("body", ("0.*", "2.*")), '
                "...), got (('body', '0.*'),)"
            ),
        ),
        (
            {"layers": [("body", ["0.*"]), ("body", ["1.*"])]},
            (
                'task "mine": layers must be names with globs each, as (("body", ("0.*", "2.*")), '
                "...), got [('body', ['0.*']), ('body', ['1.*'])]"
            ),
        ),
        (
            {"preprocessing": Thawed()},
            (
                'task "mine": preprocessing must be a value that never changes, a Thawed can '
                "(unhashable type: 'Thawed'); make it a function or a frozen dataclass"
            ),
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_wrong_part_is_named(parts, message):
    with pytest.raises(ConfigError) as caught:
        declared(**parts)
    assert str(caught.value) == message


# ---- what its functions give


def refused(task, step):
    with pytest.raises(ConfigError) as caught:
        step(task)
    return str(caught.value)


def failing(*_):
    raise OSError("no such thing")


def test_a_model_that_cannot_be_built_says_why():
    for step in (Task.layout, Task.build, lambda task: task.initial(0)):
        assert refused(declared(model=failing), step) == (
            'task "mine": a model of its own cannot be built: OSError: no such thing'
        )
    assert refused(declared(model=lambda: None), Task.build) == (
        'task "mine": expected the function model to return a torch.nn.Module, got None'
    )


def test_inputs_of_which_no_example_can_be_made_say_why():
    assert refused(declared(inputs=Values(4)), Task.layout) == (
        'task "mine": no example can be made of its inputs and preprocessing: TypeError: Value '
        "after * must be an iterable, not int"
    )


def test_data_that_cannot_be_read_say_why():
    assert refused(declared(read=failing), lambda task: task.dataset(None)) == (
        'task "mine": its data cannot be read: OSError: no such thing'
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((INPUTS, TARGETS), "expected read() to return a Dataset, got a tuple"),
        (
            Dataset(
                Examples(INPUTS.numpy(), TARGETS.numpy()), Examples(INPUTS, TARGETS), "made up"
            ),
            (
                "read() must give train.inputs as a tensor on the CPU without gradient, "
                "got ndarray; "
                "torch.from_numpy() and detach() make one"
            ),
        ),
        (
            Dataset(
                Examples(INPUTS, TARGETS),
                Examples(INPUTS.clone().requires_grad_(), TARGETS),
                "made up",
            ),
            (
                "read() must give test.inputs as a tensor on the CPU without gradient, "
                "got one with "
                "requires_grad; torch.from_numpy() and detach() make one"
            ),
        ),
        (
            Dataset(
                Examples(INPUTS, TARGETS),
                Examples(INPUTS, TARGETS),
                "made up",
                "pump",
                train_groups=[0] * 8,
            ),
            (
                "read() must give train_groups as an array of whole numbers, one for "
                "each example, got "
                "a list; np.array(..., np.int64) makes one"
            ),
        ),
        (
            Dataset(
                Examples(INPUTS, TARGETS),
                Examples(INPUTS, TARGETS),
                "made up",
                "pump",
                test_groups=np.zeros(8),
            ),
            (
                "read() must give test_groups as an array of whole numbers, one for each "
                "example, got "
                "a ndarray; np.array(..., np.int64) makes one"
            ),
        ),
    ],
    ids=["a tuple", "arrays", "with gradient", "a list of owners", "owners by float"],
)
def test_data_of_another_form_are_refused(given, message):
    task = declared(read=lambda place: given)
    assert refused(task, lambda task: task.dataset(None)) == f'task "mine": {message}'
