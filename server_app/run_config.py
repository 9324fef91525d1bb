"""The run config: what ``flwr run --run-config`` and ``fedfreeze run`` hand to the server.

Flower accepts any type for a declared key and says nothing; here every key is checked first.

    strategy         name of a preset
    strategy-toml    text of a strategy file; wins over ``strategy``
    fleet-toml       text of a fleet file; wins over the strategy's ``fleet``
    set              overrides: a JSON list, or words such as "local.epochs=2 rounds=5"
    min-nodes        nodes that must be there before round 1, if the strategy does not ask for more
    start-timeout-s  how long to wait for them; 0 takes the strategy's
    data-dir         absolute folder with data sets, for the server and simulated clients; empty:
                     $FEDFREEZE_DATA_DIR, an installed package, or what ships with the project
    out-dir          absolute folder of the run; empty: a new one under ~/.fedfreeze/runs
    resume           go on from the checkpoint in out-dir
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedfreeze.errors import ConfigError
from fedfreeze.run_folder import RunFolder, new_run_folder
from strategies import schema

DEFAULTS: dict[str, str | int | float | bool] = {
    "strategy": "fedfreeze",
    "strategy-toml": "",
    "fleet-toml": "",
    "set": "",
    "min-nodes": 0,
    "start-timeout-s": 0.0,
    "data-dir": "",
    "out-dir": "",
    "resume": False,
}

_KINDS = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}


@dataclass(frozen=True)
class RunRequest:
    """A checked run config.

    Attributes:
        strategy: as it will run, overrides applied.
        fleet_toml: empty when the strategy's ``fleet`` is meant.
        data_dir: None when nobody named one.
    """

    strategy: schema.Strategy
    fleet_toml: str
    min_nodes: int
    start_timeout_s: float
    data_dir: str | None
    folder: RunFolder
    resume: bool


def read(run_config: Mapping[str, Any]) -> RunRequest:
    """Check a run config and make the run's folder.

    Raises:
        ConfigError: all mistakes at once, those in the strategy included.
    """
    problems = [
        f"run-config {key}: unknown key; the keys are {', '.join(DEFAULTS)}. Keys of the "
        f"strategy go into set, as in set='{key}=...'"
        for key in sorted(set(run_config) - set(DEFAULTS))
    ]
    values = {**DEFAULTS, **{k: v for k, v in run_config.items() if k in DEFAULTS}}
    for key, default in DEFAULTS.items():
        if problem := _type_problem(key, values[key], default):
            problems.append(problem)
            values[key] = default  # so that the other keys are still looked at
    problems += _value_problems(values)
    strategy = None
    try:
        strategy = _strategy(values)
    except ConfigError as error:
        problems += error.problems
    if problems or strategy is None:
        raise ConfigError(problems, "Nothing was started.")
    out_dir = values["out-dir"]
    return RunRequest(
        strategy=strategy,
        fleet_toml=values["fleet-toml"],
        min_nodes=max(values["min-nodes"], strategy.clients.min_nodes),
        start_timeout_s=float(values["start-timeout-s"]) or strategy.clients.start_timeout,
        data_dir=values["data-dir"] or None,
        folder=_folder(Path(out_dir)) if out_dir else new_run_folder(values["strategy"]),
        resume=values["resume"],
    )


def _type_problem(key: str, value: Any, default: Any) -> str | None:
    kinds = (int, float) if isinstance(default, float) else (type(default),)
    if isinstance(value, kinds) and isinstance(value, bool) == isinstance(default, bool):
        return None
    return f"run-config {key}: expected {_KINDS[type(default)]}, got {value!r:.100}"


def _value_problems(values: Mapping[str, Any]) -> list[str]:
    problems = [
        f"run-config {key}: expected an absolute path, got {values[key]!r}; the server does not "
        "run in your folder"
        for key in ("data-dir", "out-dir")
        if values[key] and not Path(values[key]).is_absolute()
    ]
    out_dir = values["out-dir"]
    if (
        out_dir
        and Path(out_dir).is_absolute()
        and not values["resume"]
        and any(RunFolder(Path(out_dir)).checkpoint.glob("*"))
    ):
        # Its boards still hold residuals by this run's name, and would bring them into a new one.
        problems.append(
            f"run-config out-dir: {out_dir} holds a run already; set resume=true to go on with it, "
            "or choose another folder"
        )
    if values["resume"] and not out_dir:
        problems.append("run-config resume: needs out-dir, the folder of the run to go on with")
    if values["min-nodes"] < 0:
        problems.append(f"run-config min-nodes: expected 0 or more, got {values['min-nodes']}")
    timeout_s = values["start-timeout-s"]
    if not (math.isfinite(timeout_s) and timeout_s >= 0):
        problems.append(f"run-config start-timeout-s: expected 0 or more, got {timeout_s}")
    return problems


def _strategy(values: Mapping[str, Any]) -> schema.Strategy:
    overrides = _overrides(values["set"])
    if values["strategy-toml"]:
        return schema.from_text(values["strategy-toml"], "strategy.toml", overrides)
    name = values["strategy"]
    if name not in schema.presets():
        raise ConfigError(
            f"run-config strategy: expected one of {', '.join(schema.presets())}, got {name!r}; "
            "for a file of your own use `fedfreeze run --strategy FILE`"
        )
    return schema.load(name, overrides)


def _overrides(text: str) -> list[str]:
    if not text.strip():
        return []
    try:
        words = json.loads(text) if text.lstrip().startswith("[") else shlex.split(text)
    except ValueError as error:
        raise ConfigError(f"run-config set: {error}, in {text!r:.100}") from error
    if not all(isinstance(word, str) for word in words):
        raise ConfigError(f'run-config set: expected words such as "rounds=5", got {text!r:.100}')
    return list(words)


def _folder(path: Path) -> RunFolder:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"run-config out-dir: {path} cannot be made: {error.strerror}", "Nothing was started."
        ) from error
    return RunFolder(path)
