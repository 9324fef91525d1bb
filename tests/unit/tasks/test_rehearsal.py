"""What would fail on every board fails before the run, with the part and the shapes named."""

from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.nn import functional

from fedfreeze.errors import ConfigError
from tasks.dataset import Dataset, Examples
from tasks.inputs import Values
from tasks.loading import load
from tasks.metric import Metric
from tasks.options import Options
from tasks.rehearsal import rehearse
from tasks.task import Task

INPUTS = torch.rand(40, 4, generator=torch.Generator().manual_seed(0))
TARGETS = torch.tensor([0] * 36 + [1, 2, 0, 0])


def model():
    return nn.Sequential(nn.Linear(4, 3))


def task(inputs=INPUTS, targets=TARGETS, **parts):
    def read(place):
        del place
        return Dataset(Examples(inputs, targets), Examples(inputs, targets), "made up")

    written = {"name": "mine", "inputs": Values((4,)), "read": read, "model": model}
    return Task(**{**written, "labels": ("a", "b", "c"), **parts})


def refused(wrong):
    with pytest.raises(ConfigError) as caught:
        rehearse(wrong, None)
    message = str(caught.value)
    assert message.startswith('task "mine": ')
    return message.removeprefix('task "mine": ')


def raising(*_):
    raise KeyError("scale")


def test_a_sound_task_passes_and_the_random_state_is_left_alone():
    before = torch.get_rng_state()
    rehearse(task(), None)
    rehearse(load("watch-activity"), None)
    assert torch.equal(before, torch.get_rng_state())


def test_data_of_another_shape_than_the_inputs_say_are_named():
    assert refused(task(inputs=INPUTS[:, :3])) == (
        "its data does not look as its inputs say: expected examples [4], read() gave [3]"
    )


def test_data_of_a_type_that_the_model_does_not_take_are_named():
    assert refused(task(inputs=INPUTS.long())) == (
        "its model fails on examples of its data, int64[16, 4]: RuntimeError: mat1 and mat2 must "
        "have the same dtype, but got Long and Float"
    )


def test_a_label_without_an_output_is_found_though_it_is_rare():
    assert refused(task(model=lambda: nn.Linear(4, 2))) == (
        "its loss fails on outputs float32[16, 2] and targets int64[16] from 0 to 2: IndexError: "
        "Target 2 is out of bounds."
    )


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (
            lambda outputs, targets: functional.cross_entropy(outputs, targets, reduction="none"),
            (
                "its loss must be a tensor of one number, the mean over the examples; of outputs "
                "float32[16, 3] and targets int64[16] it made float32[16]"
            ),
        ),
        (
            lambda outputs, targets: functional.cross_entropy(outputs, targets).item(),
            (
                "its loss must be a tensor of one number, the mean over the examples; of outputs "
                "float32[16, 3] and targets int64[16] it made a float"
            ),
        ),
        (
            lambda outputs, targets: functional.cross_entropy(outputs, targets).detach(),
            (
                "its loss gives no gradient; compute it from the outputs with operations of torch, "
                "without detach() or item()"
            ),
        ),
        (
            lambda outputs, targets: (outputs * 0).sum().log() + targets.sum(),
            (
                "its loss is -inf before any training; look for NaN in its data, or for "
                "a logarithm or "
                "division in the loss"
            ),
        ),
        (
            raising,
            (
                "its loss fails on outputs float32[16, 3] and targets int64[16] from 0 to 2: "
                "KeyError: 'scale'"
            ),
        ),
    ],
    ids=["a row each", "a float", "detached", "not finite", "raises"],
)
def test_a_loss_that_is_none_is_refused(loss, message):
    assert refused(task(loss=loss)) == message


@pytest.mark.parametrize(
    ("measure", "message"),
    [
        (raising, "fails on outputs float32[16, 3] and targets int64[16]: KeyError: 'scale'"),
        (
            lambda outputs, targets: outputs.mean(),
            "must give a number, it gave float32[]; use float(...)",
        ),
        (lambda outputs, targets: None, "must give a number, it gave a NoneType; use float(...)"),
    ],
    ids=["raises", "a tensor", "nothing"],
)
def test_a_metric_that_gives_no_number_is_refused(measure, message):
    assert refused(task(metrics=(Metric("mine", measure),))) == f'its metric "mine" {message}'


def test_an_augmentation_is_tried_if_the_strategy_wants_it():
    cut = task(augmentation=lambda inputs, rng: inputs[:3])
    rehearse(cut, None)
    assert refused(replace(cut, options=Options(augment=True))) == (
        "its augmentation must give what it takes, it made float32[3, 4] of float32[16, 4]"
    )
    wrong = task(augmentation=raising, options=Options(augment=True))
    assert refused(wrong) == "its augmentation fails on float32[16, 4]: KeyError: 'scale'"
