"""What can be known to be wrong with a run before anything is started."""

import pytest

from fedfreeze.errors import ConfigError, LayoutError
from server_app.preflight import check, check_model
from strategies.schema import load
from tasks.division_cache import cached_examples
from tasks.layout_cache import cached_layout


@pytest.fixture(autouse=True)
def _no_data_folder(monkeypatch):
    monkeypatch.delenv("FEDFREEZE_DATA_DIR", raising=False)


@pytest.fixture(autouse=True)
def _a_home_of_its_own(monkeypatch, tmp_path):
    monkeypatch.setenv("FEDFREEZE_HOME", str(tmp_path / "home"))


def test_a_sound_run_passes_and_what_a_plan_needs_is_remembered():
    strategy = load("fedfreeze")
    task = check_model(strategy)
    assert cached_examples("fashion-cnn", strategy.split, 10, None) is None
    check(strategy, 10, None)
    assert cached_layout("fashion-cnn", strategy.options) == task.layout()
    held = [len(task.client_examples(i, 10, strategy.split, None)) for i in range(10)]
    assert cached_examples("fashion-cnn", strategy.split, 10, None) == tuple(held)


def test_layers_that_do_not_fit_the_model_are_found_without_data():
    strategy = load("fedfreeze", ['model.layers={body=["stem.*"]}'])
    with pytest.raises(LayoutError, match=r"conv2\.weight"):
        check_model(strategy)


def test_data_that_is_not_there_is_found():
    with pytest.raises(ConfigError, match=r"CIFAR-10 does not ship with the project"):
        check(load("fedfreeze", ["task=cifar10"]), 10, None)


def test_more_clients_than_examples_are_found():
    with pytest.raises(ConfigError, match=r"10000"):
        check(load("fedfreeze"), 10_000, None)


def test_a_budget_without_room_for_a_packet_is_found():
    with pytest.raises(ConfigError, match=r"compression.compression-ratio: 100000 leaves 4 of"):
        check_model(load("fedfreeze", ["compression.compression-ratio=100000"]))


def test_weights_that_are_not_there_are_found():
    with pytest.raises(ConfigError, match=r"there is no file /nowhere.safetensors"):
        check(load("fedfreeze", ["model.pretrained=/nowhere.safetensors"]), 10, None)


def test_a_policy_for_layers_that_the_model_has_not_is_found():
    with pytest.raises(ConfigError) as caught:
        check_model(load("fedfreeze", ["freeze.policy=fedfrozen"]))
    assert str(caught.value) == (
        'freeze.kernel: no layer is called "*.qk"; the layers are stem, conv2, conv3, conv4, fc, '
        'head; fedfrozen is for models with attention, such as model.name = "vit-nano"'
    )
