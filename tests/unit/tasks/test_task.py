"""Tasks by name, and seeded initial states."""

import numpy as np
import pytest
import torch

from fedfreeze.errors import ConfigError
from tasks.registry import TASKS
from tasks.task import Examples, Task, initial_arrays, load


@pytest.mark.parametrize("name", sorted(TASKS))
def test_every_task_loads_under_its_name(name):
    task = load(name)
    assert isinstance(task, Task)
    assert task.name == task.layout().model == name


@pytest.fixture
def package(tmp_path, monkeypatch):
    folder = tmp_path / "my_package"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "good_task.py").write_text(
        "from tasks.fashion_cnn import FashionCnn as t\ntask = t()"
    )
    (folder / "without.py").write_text("")
    (folder / "half.py").write_text("class task:\n    name = 'half'\n    metric = 'accuracy'\n")
    (folder / "broken.py").write_text("import no_such_library\n")
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("package")
def test_a_dotted_name_is_a_module_with_a_task():
    assert load("my_package.good_task").name == "fashion-cnn"


def test_an_unknown_task_lists_the_tasks_and_says_how_to_name_ones_own():
    with pytest.raises(ConfigError) as caught:
        load("fashion-cn")
    assert str(caught.value) == (
        f'unknown task "fashion-cn"; the tasks are {", ".join(TASKS)}; for your own, write a '
        'dotted module name such as "my_package.my_task" that has an attribute "task"; '
        'did you mean "fashion-cnn"?'
    )


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "my_package.absent",
            (
                'task "my_package.absent": module my_package.absent cannot be imported: No module '
                "named 'my_package.absent'; it must be installed where the server and the boards "
                "run"
            ),
        ),
        (
            "my_package.broken",
            (
                'task "my_package.broken": module my_package.broken cannot be imported: No module '
                "named 'no_such_library'; it must be installed where the server and the boards run"
            ),
        ),
        (
            "my_package.without",
            'task "my_package.without": module my_package.without needs an attribute "task"',
        ),
        (
            "my_package.half",
            (
                'task "my_package.half": my_package.half.task lacks build, client_examples, '
                "data_source, layout, loss, score, test, validation"
            ),
        ),
    ],
)
def test_a_module_that_is_no_task_says_why(name, message):
    with pytest.raises(ConfigError) as caught:
        load(name)
    assert str(caught.value) == message


def test_initial_arrays_are_the_layouts_tensors():
    task = load("fashion-cnn")
    arrays = initial_arrays(task, 7)
    task.layout().check(arrays)
    assert list(arrays) == list(task.layout().tensors)


def test_initial_arrays_are_those_of_a_model_built_after_the_seed():
    task = load("fashion-cnn")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        state = task.build().state_dict()
    arrays = initial_arrays(task, 7)
    assert all(np.array_equal(arrays[name], state[name].numpy()) for name in state)
    other = initial_arrays(task, 8)
    assert not any(np.array_equal(arrays[name], other[name]) for name in arrays)


def test_initial_arrays_leave_the_random_state_alone():
    before = torch.get_rng_state()
    initial_arrays(load("fashion-cnn"), 7)
    assert torch.equal(before, torch.get_rng_state())


def test_examples_without_a_target_each_are_refused():
    with pytest.raises(ConfigError) as caught:
        Examples(torch.zeros(3, 2), torch.zeros(2))
    assert str(caught.value) == (
        "a task must give a target for each input, got 3 inputs and 2 targets"
    )
