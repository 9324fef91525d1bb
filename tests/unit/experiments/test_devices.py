"""Predicted memory of training against real processes: the cheapest rows of the benchmark."""

import importlib
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[3] / "experiments" / "devices"


@pytest.fixture(scope="module")
def devices():
    """The benchmark's modules ``case`` and ``benchmark``, which import each other by name."""
    sys.path.insert(0, str(FOLDER))
    try:
        yield importlib.import_module("case"), importlib.import_module("benchmark")
    finally:
        sys.path.remove(str(FOLDER))
        for name in ("case", "benchmark"):
            sys.modules.pop(name, None)


def measurable():
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


@pytest.mark.skipif(not measurable(), reason="the peak can only be reset where Linux lets us")
@pytest.mark.parametrize(
    ("model", "plan"),
    [
        ("fashion-cnn", "full"),
        ("resnet18-gn", "prefix frozen"),
        ("resnet18-gn", "suffix frozen"),
    ],
)
def test_training_takes_the_memory_that_is_predicted(devices, model, plan):
    case, benchmark = devices
    layout = case.task_of(model).layout()
    trained = case.plans(layout)[plan]
    found = benchmark.row(case.Case(model, plan, trained, 8), layout)
    assert found.good, found


def test_the_plans_that_are_measured_are_what_they_are_called(devices):
    case, _ = devices
    layout = case.task_of("fashion-cnn").layout()
    assert case.plans(layout) == {
        "full": ("stem", "conv2", "conv3", "conv4", "fc", "head"),
        "prefix frozen": ("conv4", "fc", "head"),
        "head alone": ("head",),
        "suffix frozen": ("stem", "conv2", "conv3"),
        "scattered": ("conv2", "fc"),
    }


@pytest.mark.parametrize(
    ("modelled", "measured", "good"),
    [
        (400e6, 500e6, True),  # 20 %
        (399e6, 500e6, False),
        (600e6, 500e6, True),
        (601e6, 500e6, False),
        (31e6, 1e6, True),  # 30 MB
        (32e6, 1e6, False),
    ],
)
def test_a_prediction_is_good_within_20_per_cent_or_30_mb(devices, modelled, measured, good):
    case, benchmark = devices
    row = benchmark.Row(case.Case("fashion-cnn", "full", ("head",), 8), modelled, int(measured))
    assert row.good == good
