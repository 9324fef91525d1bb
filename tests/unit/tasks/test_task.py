"""What a task makes of its parts and of what a strategy chose."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from fedfreeze.errors import ConfigError, LayoutError
from tasks.dataset import Dataset, Examples
from tasks.inputs import Images, Tokens, Values
from tasks.loading import load
from tasks.options import Options
from tasks.partition import Split
from tasks.sources import Place
from tasks.task import Task, initial_arrays

FASHION = load("fashion-cnn")


def model():
    return nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))


def read(place: Place) -> Dataset:
    inputs = torch.arange(80.0).view(20, 4)
    targets = torch.arange(20) % 2
    return Dataset(
        Examples(inputs[:16], targets[:16]), Examples(inputs[16:], targets[16:]), "made up"
    )


TASK = Task("mine", Values((4,)), read, model, labels=("even", "odd"))
SPLIT = Split("iid", 0.3, 0.25, 0)


# ---- the model


def test_initial_arrays_are_the_layouts_tensors():
    arrays = initial_arrays(FASHION, 7)
    FASHION.layout().check(arrays)
    assert list(arrays) == list(FASHION.layout().tensors)


def test_initial_arrays_are_those_of_a_model_built_after_the_seed():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        state = FASHION.build().state_dict()
    arrays = initial_arrays(FASHION, 7)
    assert all(np.array_equal(arrays[name], state[name].numpy()) for name in state)
    other = initial_arrays(FASHION, 8)
    assert not any(np.array_equal(arrays[name], other[name]) for name in arrays)


def test_initial_arrays_leave_the_random_state_alone():
    before = torch.get_rng_state()
    initial_arrays(FASHION, 7)
    FASHION.layout()
    assert torch.equal(before, torch.get_rng_state())


def test_weights_say_that_they_are_random():
    assert TASK.initial(0)[1] == "random weights"


def test_pretrained_weights_of_a_model_without_any_are_refused_by_name():
    with pytest.raises(ConfigError) as caught:
        replace(TASK, options=Options(pretrained="hub")).initial(0)
    assert str(caught.value) == (
        "model.pretrained: expected a model that has pretrained weights, task "
        '"mine" trains a model of its own which has none; remove the key, or '
        "choose another model.name"
    )


def test_a_strategy_may_put_another_model_in_the_place_of_the_tasks_own():
    task = load("fashion-cnn", Options(model="timm:resnet10t"))
    outputs = task.build().eval()(task.prepare(task.inputs.example(2)))
    assert outputs.shape == (2, 10)


def test_a_grouping_that_the_model_does_not_have_lists_those_it_has():
    with pytest.raises(ConfigError) as caught:
        replace(TASK, options=Options(layers="blocks")).layout()
    assert str(caught.value) == (
        'model.layers: a model of its own has no grouping "blocks"; it has auto; or give a table '
        "of layer names and globs"
    )


def test_layers_by_globs_are_the_strategys_else_the_tasks_else_automatic():
    of_task = replace(TASK, layers=(("all", ("*",)),))
    halves = (("low", ("0.*",)), ("high", ("2.*",)))
    assert TASK.layout().names == ("0", "2")
    assert of_task.layout().names == ("all",)
    assert replace(of_task, options=Options(layers=halves)).layout().names == ("low", "high")


def test_the_tasks_own_layers_are_not_asked_of_another_model():
    of_task = replace(FASHION, layers=(("all", ("*",)),))
    other = replace(of_task, options=Options(model="timm:resnet10t"))
    assert len(other.layout()) > 1


def test_a_tensor_that_no_glob_matches_is_named():
    with pytest.raises(LayoutError, match=r"2\.weight"):
        replace(TASK, options=Options(layers=(("low", ("0.*",)),))).layout()


# ---- preparation


def test_training_inputs_are_changed_only_if_the_strategy_wants_that():
    class Negated:
        def __call__(self, inputs, rng):
            return -inputs

    task = replace(TASK, augmentation=Negated())
    inputs, rng = torch.ones(2, 4), np.random.default_rng(0)
    assert torch.equal(task.augmented(inputs, rng), inputs)
    assert torch.equal(replace(task, options=Options(augment=True)).augmented(inputs, rng), -inputs)


def test_augmentation_of_a_task_that_has_none_is_refused():
    with pytest.raises(ConfigError) as caught:
        replace(TASK, options=Options(augment=True)).augmented(
            torch.ones(1, 4), np.random.default_rng(0)
        )
    assert str(caught.value) == ('data.augment: task "mine" has no augmentation; remove the key')


# ---- the data


def test_clients_and_the_servers_validation_share_the_training_half_without_overlap():
    rows = [TASK.client_examples(client, 3, SPLIT, None).inputs for client in range(3)]
    rows.append(TASK.validation(SPLIT, None).inputs)
    firsts = sorted(int(row[0]) // 4 for row in torch.cat(rows))
    assert firsts == list(range(16))
    assert TASK.test(None).inputs[:, 0].div(4).tolist() == [16, 17, 18, 19]


def test_a_validation_share_that_is_not_one_example_is_refused():
    with pytest.raises(ConfigError) as caught:
        TASK.validation(replace(SPLIT, validation_share=0.001), None)
    assert str(caught.value) == (
        'data.validation-share: 0.001 of the 16 training examples of task "mine" is not one; '
        "raise it"
    )


def test_a_client_that_is_none_of_them_is_refused():
    with pytest.raises(ConfigError) as caught:
        TASK.client_examples(3, 3, SPLIT, None)
    assert str(caught.value) == "client 3 is not one of 3 clients, counted from 0"


def test_a_data_set_is_read_once():
    reads = []

    def counted(place):
        reads.append(place)
        return read(place)

    task = replace(TASK, read=counted)
    task.client_examples(0, 2, SPLIT, None)
    task.test(None)
    assert reads == [Place()]


def test_a_strategy_may_measure_on_a_part_of_the_test_half_the_same_for_all():
    data = Dataset(
        TASK.dataset(None).train,
        Examples(torch.arange(50.0), torch.arange(50)),
        "made up",
        "person",
        test_groups=np.arange(50) // 10,
    )
    task = replace(TASK, read=lambda place: data, options=Options(test_examples=20))
    part = task.dataset(None)
    chosen = part.test.targets.tolist()
    assert len(set(chosen)) == 20
    assert chosen == sorted(chosen) == part.test.inputs.tolist()
    assert part.test_groups.tolist() == [number // 10 for number in chosen]
    assert part.source == "made up; 20 of its 50 test examples"
    assert task.dataset(None).test.targets.tolist() == chosen
    assert replace(task, options=Options(test_examples=50)).dataset(None) is data


def test_examples_without_a_target_each_are_refused():
    with pytest.raises(ConfigError) as caught:
        Examples(torch.zeros(3, 2), torch.zeros(2))
    assert str(caught.value) == (
        "a task must give a target for each input, got 3 inputs and 2 targets"
    )


def test_a_data_set_that_names_too_few_owners_is_refused():
    examples = Examples(torch.zeros(3, 2), torch.zeros(3))
    with pytest.raises(ConfigError) as caught:
        Dataset(examples, examples, "made up", "writer", train_groups=np.zeros(2, np.int64))
    assert str(caught.value) == (
        "a data set must name a writer for each training example, got 2 for 3 examples"
    )


def test_owners_may_go_by_name_and_are_the_same_in_both_halves():
    examples = Examples(torch.zeros(3), torch.zeros(3))
    data = Dataset(
        examples,
        examples,
        "made up",
        "site",
        train_groups=np.array(["north", "centre", "north"]),
        test_groups=np.array(["south", "centre", "south"]),
    )
    assert data.train_groups.tolist() == [1, 0, 1]
    assert data.test_groups.tolist() == [2, 0, 2]


@pytest.mark.parametrize(
    ("inputs", "shape", "dtype"),
    [
        (Images(3, 8), (5, 3, 8, 8), torch.uint8),
        (Tokens(100, 7), (5, 7), torch.int64),
        (Values((2, 3)), (5, 2, 3), torch.float32),
        (Values((9,), torch.int16), (5, 9), torch.int16),
    ],
)
def test_made_up_examples_are_of_the_shape_and_type_of_real_ones(inputs, shape, dtype):
    example = inputs.example(5)
    assert (tuple(example.shape), example.dtype) == (shape, dtype)


def test_made_up_words_are_words_and_no_padding():
    words = Tokens(3, 50).example(20)
    assert set(words.unique().tolist()) == {1, 2}
