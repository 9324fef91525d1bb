"""Tasks by name, by module and by file."""

import pytest

from fedfreeze.errors import ConfigError
from tasks.loading import load
from tasks.options import Options
from tasks.registry import TASKS
from tasks.task import Task


@pytest.mark.parametrize("name", sorted(TASKS))
def test_every_task_loads_under_its_name(name):
    task = load(name)
    assert isinstance(task, Task)
    assert task.name == name


def test_options_go_into_the_task():
    options = Options(augment=True)
    assert load("fashion-cnn", options).options is options


@pytest.fixture
def package(tmp_path, monkeypatch):
    folder = tmp_path / "my_package"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "good_task.py").write_text("from tasks.catalogue.fashion_cnn import task\n")
    (folder / "without.py").write_text("")
    (folder / "half.py").write_text("class task:\n    name = 'half'\n")
    (folder / "sick.py").write_text("1 / 0\n")
    (folder / "broken.py").write_text("import no_such_library\n")
    monkeypatch.syspath_prepend(tmp_path)
    return folder


@pytest.mark.usefixtures("package")
def test_a_dotted_name_is_a_module_with_a_task():
    assert load("my_package.good_task").name == "fashion-cnn"


def test_a_file_is_a_task_without_being_installed(package):
    assert load(str(package / "good_task.py")).name == "fashion-cnn"


def test_an_unknown_task_lists_the_tasks_and_says_how_to_name_ones_own():
    with pytest.raises(ConfigError) as caught:
        load("fashion-cn")
    assert str(caught.value) == (
        f'unknown task "fashion-cn"; the tasks are {", ".join(TASKS)}; for your own, write a file '
        'such as "my_task.py" or a module such as "my_package.my_task" that has an attribute '
        '"task"; did you mean "fashion-cnn"?'
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
            "my_package.sick",
            (
                'task "my_package.sick": module my_package.sick does not run: ZeroDivisionError: '
                "division by zero"
            ),
        ),
        (
            "my_package.without",
            (
                'task "my_package.without": expected my_package.without to have an attribute '
                '"task" that is a fedfreeze.Task, got none'
            ),
        ),
        (
            "my_package.half",
            (
                'task "my_package.half": expected my_package.half to have an attribute "task" '
                "that is a fedfreeze.Task, got a type"
            ),
        ),
    ],
)
def test_a_module_that_is_no_task_says_why(name, message):
    with pytest.raises(ConfigError) as caught:
        load(name)
    assert str(caught.value) == message


def test_a_file_that_is_not_there_says_where_it_was_looked_for(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as caught:
        load("my_task.py")
    assert str(caught.value) == (
        f'task "my_task.py": expected a file, {tmp_path / "my_task.py"} is none; `fedfreeze run` '
        "sends a file along, elsewhere name an installed module"
    )


def test_a_file_that_does_not_run_says_what_its_error_is(tmp_path):
    path = tmp_path / "sick.py"
    path.write_text("import no_such_library\n")
    with pytest.raises(ConfigError) as caught:
        load(str(path))
    assert str(caught.value) == (
        f'task "{path}": the file does not run: ModuleNotFoundError: No module named '
        "'no_such_library'"
    )


def test_a_file_that_exits_is_an_error_and_not_the_end_of_the_process(tmp_path):
    path = tmp_path / "script.py"
    path.write_text("import sys\nsys.exit('usage: script.py FILE')\n")
    with pytest.raises(ConfigError) as caught:
        load(str(path))
    assert str(caught.value) == (
        f'task "{path}": the file does not run: SystemExit: usage: script.py FILE'
    )


def test_a_file_whose_task_is_declared_wrongly_says_what_is_wrong_with_it(tmp_path):
    path = tmp_path / "wrong.py"
    path.write_text(
        "from torch import nn\nfrom fedfreeze import Task, Values\n"
        "task = Task('wrong', Values((4,)), read=None, model=nn.Linear(4, 2))\n"
    )
    with pytest.raises(ConfigError) as caught:
        load(str(path))
    assert str(caught.value) == (
        'task "wrong": read must be a function from a Place to a Dataset, got None'
    )
