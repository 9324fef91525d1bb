"""Every error the project raises on purpose.

    FedFreezeError
    ├── ConfigError        a strategy, fleet, board or run config is wrong; nothing was started
    ├── LayoutError        a tensor or layer is not what the layout says
    ├── PacketError        bytes that arrived are not a packet of this layout
    ├── ProtocolError      a message lacks a field, or comes from other code
    ├── PlanError          no plan fits a board
    ├── StateError         a stored file is torn, foreign or from another run
    ├── FleetError         too few boards answered
    └── RunError           a run failed or could not be started

A message says what was expected, what came, and the likely fix. Each class carries the exit code
that the command line ends with; ``docs/errors.md`` lists them.
"""

from __future__ import annotations

from typing import ClassVar


class FedFreezeError(Exception):
    """Base of the tree: catch it to catch whatever this project raises on purpose."""

    exit_code: ClassVar[int] = 1


class ConfigError(FedFreezeError):
    """What a person wrote is wrong. ``problems`` holds one line for each mistake."""

    exit_code: ClassVar[int] = 3

    def __init__(self, problems: str | list[str], summary: str = "") -> None:
        self.problems = [problems] if isinstance(problems, str) else list(problems)
        super().__init__("\n".join([*self.problems, *([summary] if summary else [])]))


class LayoutError(FedFreezeError):
    """A tensor or layer differs from the layout that both ends agreed on."""

    exit_code: ClassVar[int] = 4


class PacketError(FedFreezeError):
    """Bytes that arrived are refused: torn, foreign, over their budget or malformed."""

    exit_code: ClassVar[int] = 4


class ProtocolError(FedFreezeError):
    """A message lacks a field, has one of the wrong type, or was written by other code."""

    exit_code: ClassVar[int] = 4


class PlanError(FedFreezeError):
    """No plan fits the board: ``limit`` names what is short."""

    exit_code: ClassVar[int] = 4

    def __init__(self, message: str, limit: str) -> None:
        self.limit = limit
        super().__init__(message)


class StateError(FedFreezeError):
    """A stored file is torn, foreign, or belongs to another run."""

    exit_code: ClassVar[int] = 5


class FleetError(FedFreezeError):
    """Too few boards are there, or too few of them answered."""

    exit_code: ClassVar[int] = 6


class RunError(FedFreezeError):
    """A run failed, or what it needs could not be started."""

    exit_code: ClassVar[int] = 7
