"""What a person asked to run: two texts and a few numbers, kept so that it can be asked again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cli.named_files import data_folder, weights_file
from cli.own_task import OwnTask, own_task
from device_profiles.fleet import Fleet, fleet_text, load_fleet
from fedfreeze import plain_json
from fedfreeze.errors import ConfigError, StateError
from fedfreeze.run_folder import RunFolder
from strategies import schema
from strategies.schema import Strategy


@dataclass(frozen=True)
class Request:
    """A checked request.

    Attributes:
        stem: short name of the strategy, for the run's name.
        strategy_text: TOML as it was written.
        fleet_text: TOML as it was written.
        overrides: ``key=value``, later ones win.
        clients: how many boards to simulate.
        task: a task file of the user's own, if the strategy names one.
        data_dir: absolute folder with data sets; empty if nobody named one.
    """

    stem: str
    strategy_text: str
    fleet_text: str
    overrides: tuple[str, ...]
    clients: int
    task: OwnTask | None = None
    data_dir: str = ""

    @property
    def strategy(self) -> Strategy:
        """The strategy with its overrides; see :func:`strategies.schema.from_text`."""
        return schema.from_text(self.strategy_text, f"{self.stem}.toml", self.overrides)

    @property
    def strategy_here(self) -> Strategy:
        """The same for this process, which has a task file where it was found."""
        own = [] if self.task is None else [f"task={plain_json.text(self.task.path)}"]
        return schema.from_text(self.strategy_text, f"{self.stem}.toml", [*self.overrides, *own])

    def with_rounds(self, rounds: int | None) -> Request:
        """The same request for another number of rounds."""
        if rounds is None:
            return self
        return replace(self, overrides=(*self.overrides, f"rounds={rounds}"))

    def save(self, folder: RunFolder) -> None:
        """Write it into the run's folder."""
        folder.strategy.write_text(self.strategy_text, encoding="utf-8")
        folder.fleet.write_text(self.fleet_text, encoding="utf-8")
        rest = {
            "stem": self.stem,
            "set": list(self.overrides),
            "clients": self.clients,
            "data_dir": self.data_dir,
            "task": None if self.task is None else vars(self.task),
        }
        folder.request.write_text(plain_json.text(rest), encoding="utf-8")

    def run_config(
        self, folder: RunFolder, *, resume: bool, start_timeout_s: float = 0.0
    ) -> dict[str, bool | int | float | str]:
        """The values that the server app reads, by the keys of its project file.

        The texts travel, not their paths: a path means nothing where the server runs.
        """
        return {
            "strategy": self.stem,
            "strategy-toml": self.strategy_text,
            "fleet-toml": self.fleet_text,
            "set": plain_json.text(list(self.overrides)),
            "min-nodes": self.clients,
            "start-timeout-s": start_timeout_s,
            "data-dir": self.data_dir,
            "out-dir": str(folder.path.absolute()),
            "resume": resume,
        }


def new(
    strategy: str,
    fleet: str | None,
    overrides: Sequence[str],
    *,
    seed: int | None = None,
    rounds: int | None = None,
    clients: int | None = None,
    data_dir: str | None = None,
) -> Request:
    """A request from what stands on the command line.

    Args:
        strategy: a preset's name or a file.
        fleet: a fleet's name or a file; None takes the one that the strategy names.
        overrides: ``key=value`` in the strategy.
        seed: an override of its own name, as is ``rounds``.
        rounds: see ``seed``.
        clients: how many boards to simulate; None for the fleet's size.
        data_dir: folder with data sets.

    Raises:
        ConfigError: something in it is wrong; all mistakes of a file at once.
    """
    every = [*overrides]
    if fleet is not None:
        read_fleet(fleet)  # its own error names what was typed
        every.append(f"fleet={plain_json.text(fleet)}")
    if seed is not None:
        every.append(f"seed={seed}")
    if rounds is not None:
        every.append(f"rounds={rounds}")
    checked = schema.load(strategy, every)
    if (weights := weights_file(checked.model.pretrained, strategy)) is not None:
        every.append(f"model.pretrained={plain_json.text(weights)}")
    task = own_task(checked.task, strategy)
    if task is not None:
        every.append(f"task={plain_json.text(task.name)}")
    folder = data_folder(data_dir)
    fleet_text, boards = read_fleet(checked.fleet)
    simulated = boards.size if clients is None else clients
    if checked.clients.min_nodes > simulated:
        raise ConfigError(
            f"clients.min-nodes: expected at most {simulated}, the boards that are simulated, got "
            f"{checked.clients.min_nodes}; lower it, or simulate more with "
            f"--clients {checked.clients.min_nodes}",
            "Nothing was started.",
        )
    return Request(
        stem=Path(strategy).stem,
        strategy_text=schema.read_text(strategy),
        fleet_text=fleet_text,
        overrides=tuple(every),
        clients=simulated,
        task=task,
        data_dir=folder or "",
    )


def saved(folder: RunFolder) -> Request:
    """The request that a run was started with.

    Raises:
        ConfigError: the run was not started by this command.
        StateError: its files are not what :meth:`Request.save` writes.
    """
    try:
        rest: Any = plain_json.parse(folder.request.read_text(encoding="utf-8"))
        return Request(
            stem=str(rest["stem"]),
            strategy_text=folder.strategy.read_text(encoding="utf-8-sig"),
            fleet_text=folder.fleet.read_text(encoding="utf-8-sig"),
            overrides=tuple(str(override) for override in rest["set"]),
            clients=int(rest["clients"]),
            task=None if rest["task"] is None else OwnTask(**rest["task"]),
            data_dir=str(rest["data_dir"]),
        )
    except FileNotFoundError as error:
        raise ConfigError(
            f'run "{folder.name}" cannot be resumed from here: expected {error.filename}, '
            "which `fedfreeze run` writes; resume it with the command that started it"
        ) from error
    except OSError as error:
        raise StateError(
            f"{error.filename}: expected a file that can be read, got: {error.strerror}; "
            "start a new run"
        ) from error
    except (KeyError, TypeError, ValueError) as error:
        raise StateError(
            f"{folder.request}: expected what `fedfreeze run` writes, got something else "
            f"({error!r:.100}); start a new run"
        ) from error


def read_fleet(name_or_path: str) -> tuple[str, Fleet]:
    """The text of a fleet and what it says.

    Raises:
        ConfigError: see :func:`device_profiles.fleet.load_fleet`.
    """
    return fleet_text(name_or_path), load_fleet(name_or_path)
