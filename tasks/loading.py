"""Finding a task by its name."""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import ModuleType

from fedfreeze.errors import ConfigError, FedFreezeError
from tasks.flower_task import flower_task, is_flower_task
from tasks.options import AS_THE_TASK_IS, Options
from tasks.registry import module_of
from tasks.task import Task


def load(name: str, options: Options | None = None) -> Task:
    """The task of that name; a module's name, or a ``.py`` file, has an attribute ``task``.

    Raises:
        ConfigError: no such task, the module cannot be imported, or it holds no task.

    >>> load("fashion-cnn").metric.name
    'accuracy'
    """
    try:
        module_name = module_of(name)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    module = _from_file(module_name) if module_name.endswith(".py") else _module(name, module_name)
    task = getattr(module, "task", None)
    if task is None and is_flower_task(module):
        task = flower_task(name, module)
    if not isinstance(task, Task):
        came = "none" if task is None else f"a {type(task).__name__}"
        raise ConfigError(
            f'task "{name}": expected {module_name} to have an attribute "task" that is a '
            f"fedfreeze.Task, got {came}"
        )
    return replace(task, options=options or AS_THE_TASK_IS)


def _module(name: str, module_name: str) -> ModuleType:
    try:
        return importlib.import_module(module_name)
    except ImportError as error:
        raise ConfigError(
            f'task "{name}": module {module_name} cannot be imported: {error}; '
            "it must be installed where the server and the boards run"
        ) from error
    except FedFreezeError:
        raise
    except (Exception, SystemExit) as error:  # whatever the user's code raises
        raise ConfigError(
            f'task "{name}": module {module_name} does not run: {type(error).__name__}: {error}'
        ) from error


@cache
def _from_file(path: str) -> ModuleType:
    if not Path(path).is_file():
        raise ConfigError(
            f'task "{path}": expected a file, {Path(path).absolute()} is none; `fedfreeze run` '
            "sends a file along, elsewhere name an installed module"
        )
    spec = importlib.util.spec_from_file_location(f"fedfreeze_own_{Path(path).stem}", path)
    assert spec is not None, "a .py file has a loader"
    assert spec.loader is not None, "a .py file has a loader"
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except FedFreezeError:
        raise
    except (Exception, SystemExit) as error:  # whatever the user's code raises
        raise ConfigError(
            f'task "{path}": the file does not run: {type(error).__name__}: {error}'
        ) from error
    return module
