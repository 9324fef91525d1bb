"""FedFreeze: train one model over boards that cannot each train all of it.

What a program of its own needs stands here; everything else may move. To embed the strategy in a
ServerApp::

    import fedfreeze

    settings = fedfreeze.load_strategy("fedfreeze", ["rounds=10"])
    task = fedfreeze.load_task(settings.task)
    strategy = fedfreeze.FedFreeze(settings, task.layout(), fleet=fedfreeze.fleet_text("mixed"))
    result = strategy.start(grid, fedfreeze.initial_record(task, seed=0), num_rounds=10)

Names of other rooms are imported when they are first used, so that reading a strategy loads
neither Flower nor torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from fedfreeze.capacity import Capacity, Known
from fedfreeze.errors import (
    ConfigError,
    FedFreezeError,
    FleetError,
    LayoutError,
    PacketError,
    PlanError,
    ProtocolError,
    RunError,
    StateError,
)
from fedfreeze.layout import Layer, LayerCosts, Layout, TensorSpec
from fedfreeze.plan import Plan, PlanCost, Reason, Stage

if TYPE_CHECKING:
    from compression import decode, encode
    from device_profiles.fleet import fleet_text
    from strategies.flower import FedFreeze
    from strategies.schema import load as load_strategy
    from tasks.dataset import Dataset, Examples
    from tasks.inputs import Images, Tokens, Values
    from tasks.loading import load as load_task
    from tasks.metric import (
        ACCURACY,
        MACRO_F1,
        MEAN_ABSOLUTE_ERROR,
        R2,
        ROOT_MEAN_SQUARE_ERROR,
        Metric,
    )
    from tasks.task import Task, initial_record

__version__ = "0.1.0"

_ELSEWHERE = {
    "ACCURACY": ("tasks.metric", "ACCURACY"),
    "MACRO_F1": ("tasks.metric", "MACRO_F1"),
    "MEAN_ABSOLUTE_ERROR": ("tasks.metric", "MEAN_ABSOLUTE_ERROR"),
    "R2": ("tasks.metric", "R2"),
    "ROOT_MEAN_SQUARE_ERROR": ("tasks.metric", "ROOT_MEAN_SQUARE_ERROR"),
    "Dataset": ("tasks.dataset", "Dataset"),
    "Examples": ("tasks.dataset", "Examples"),
    "FedFreeze": ("strategies.flower", "FedFreeze"),
    "Images": ("tasks.inputs", "Images"),
    "Metric": ("tasks.metric", "Metric"),
    "Task": ("tasks.task", "Task"),
    "Tokens": ("tasks.inputs", "Tokens"),
    "Values": ("tasks.inputs", "Values"),
    "decode": ("compression", "decode"),
    "encode": ("compression", "encode"),
    "fleet_text": ("device_profiles.fleet", "fleet_text"),
    "initial_record": ("tasks.task", "initial_record"),
    "load_strategy": ("strategies.schema", "load"),
    "load_task": ("tasks.loading", "load"),
}

__all__ = [
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


def __getattr__(name: str) -> Any:
    if name not in _ELSEWHERE:
        raise AttributeError(f"module 'fedfreeze' has no attribute {name!r}")
    module, attribute = _ELSEWHERE[name]
    return getattr(importlib.import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
