"""A task file of the user's own: found, sent along, kept for a resumed run."""

import pytest

from cli import bundle, request
from cli.own_task import own_task
from fedfreeze.code_digest import code_digest
from fedfreeze.errors import ConfigError
from fedfreeze.run_folder import RunFolder

TEXT = "from tasks.catalogue.fashion_cnn import task\n"
STRATEGY = 'version = 1\nrounds = 1\ntask = "mine.py"\n'


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A working directory with a folder that holds a strategy and its task."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "strategies"
    folder.mkdir()
    (folder / "mine.py").write_text(TEXT)
    (folder / "mine.toml").write_text(STRATEGY)
    return tmp_path


def test_a_name_that_is_no_path_is_no_file():
    assert own_task("my_package.my_task", "fedfreeze") is None


def test_the_file_beside_the_strategy_comes_before_one_in_the_working_directory(here):
    (here / "mine.py").write_text("# another\n")
    assert own_task("mine.py", "strategies/mine.toml").text == TEXT
    assert own_task("mine.py", "fedfreeze").text == "# another\n"


@pytest.mark.usefixtures("here")
def test_a_file_that_is_nowhere_says_where_it_was_looked_for(here):
    with pytest.raises(ConfigError) as caught:
        own_task("other.py", "strategies/mine.toml")
    assert str(caught.value) == (
        f'task "other.py": expected a file {here / "strategies" / "other.py"} or '
        f"{here / 'other.py'}, found none"
    )


@pytest.mark.usefixtures("here")
def test_a_file_that_no_module_can_be_named_after_is_refused(here):
    (here / "my-task.py").write_text(TEXT)
    with pytest.raises(ConfigError) as caught:
        own_task("my-task.py", "fedfreeze")
    assert str(caught.value) == (
        'task "my-task.py": "my-task" cannot be the name of a Python module; rename the file to '
        'letters, digits and underscores, such as "my_task.py"'
    )


@pytest.mark.usefixtures("here")
def test_a_request_sends_the_file_along_under_a_name_that_the_staged_app_has(tmp_path):
    asked = request.new("strategies/mine.toml", "high", [])
    assert asked.strategy.task == "tasks.own.mine"
    app = tmp_path / "app"
    app.mkdir()
    bundle.stage(app)
    before = code_digest(app)
    asked.task.stage(app)
    assert (app / "tasks" / "own" / "mine.py").read_text() == TEXT
    assert (app / "tasks" / "own" / "__init__.py").is_file()
    code_digest.cache_clear()
    assert code_digest(app) != before


@pytest.mark.usefixtures("here")
def test_a_resumed_run_takes_the_file_as_it_was(here):
    asked = request.new("strategies/mine.toml", "high", [], data_dir=str(here))
    folder = RunFolder(here / "run")
    folder.path.mkdir()
    asked.save(folder)
    (here / "strategies" / "mine.py").write_text("# changed since\n")
    assert request.saved(folder) == asked


@pytest.mark.usefixtures("here")
def test_a_data_dir_that_is_no_folder_is_refused(here):
    with pytest.raises(ConfigError) as caught:
        request.new("fedfreeze", None, [], data_dir="nowhere")
    assert str(caught.value) == '--data-dir: expected a folder, "nowhere" is none'


@pytest.mark.usefixtures("here")
def test_a_data_dir_travels_as_an_absolute_path(here):
    asked = request.new("fedfreeze", None, [], data_dir="strategies")
    config = asked.run_config(RunFolder(here / "run"), resume=False)
    assert config["data-dir"] == str(here / "strategies")
