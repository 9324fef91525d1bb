"""The public names, pinned: whoever adds or drops one does it here too."""

from __future__ import annotations

import subprocess
import sys

import pytest

import fedfreeze

NAMES = [
    "ACCURACY",
    "MACRO_F1",
    "MEAN_ABSOLUTE_ERROR",
    "R2",
    "ROOT_MEAN_SQUARE_ERROR",
    "Capacity",
    "ConfigError",
    "Dataset",
    "Examples",
    "FedFreeze",
    "FedFreezeError",
    "FleetError",
    "Images",
    "Known",
    "Layer",
    "LayerCosts",
    "Layout",
    "LayoutError",
    "Metric",
    "PacketError",
    "Plan",
    "PlanCost",
    "PlanError",
    "ProtocolError",
    "Reason",
    "RunError",
    "Stage",
    "StateError",
    "Task",
    "TensorSpec",
    "Tokens",
    "Values",
    "decode",
    "encode",
    "fleet_text",
    "initial_record",
    "load_strategy",
    "load_task",
]


def test_the_public_names_are_these():
    assert fedfreeze.__all__ == NAMES
    assert set(NAMES) <= set(dir(fedfreeze))


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_is_there_and_says_what_it_is(name):
    assert getattr(fedfreeze, name).__doc__


def test_a_name_that_is_not_public_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"^module 'fedfreeze' has no attribute 'melt'$"):
        fedfreeze.melt  # noqa: B018 - the look-up is what is tested


def test_reading_a_strategy_loads_neither_flower_nor_torch():
    code = (
        "import sys, fedfreeze; fedfreeze.load_strategy('fedfreeze'); "
        "print(sorted({'flwr', 'torch', 'ray'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_version_is_that_of_the_distribution():
    from importlib.metadata import version

    assert fedfreeze.__version__ == version("fedfreeze")
