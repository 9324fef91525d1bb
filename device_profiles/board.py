"""A board: what one kind of device can do, every value with the source it is known from.

Boards are TOML files in ``device_profiles/boards/``; the file's name is the board's name.
"""

from __future__ import annotations

from importlib import resources
from typing import Annotated, Generic, TypeVar

from pydantic import AfterValidator, Field

from fedfreeze import strict_toml
from fedfreeze.errors import ConfigError
from fedfreeze.settings import Bytes, BytesPerS, FlopsPerS, Settings, Watts
from fedfreeze.toml_faults import did_you_mean

_FOLDER = resources.files("device_profiles") / "boards"

# A source opens with its kind, so that nobody takes an estimate for a measurement.
SOURCE_KINDS = ("estimate", "published", "datasheet", "measured")

T = TypeVar("T")


def _with_its_kind(source: str) -> str:
    kind, colon, text = source.partition(": ")
    if kind not in SOURCE_KINDS or not colon or not text.strip():
        kinds = ", ".join(f'"{kind}: ..."' for kind in SOURCE_KINDS)
        raise ValueError(f'expected where the value is from, one of {kinds}, got "{source}"')
    return source


Source = Annotated[str, AfterValidator(_with_its_kind)]
Spread = Annotated[float, Field(ge=0, lt=1)]


class Rated(Settings, Generic[T]):
    """A value with how far it swings and where it is known from.

    Attributes:
        value: in the base unit of its dimension.
        spread: the value lies between ``1 - spread`` and ``1 + spread`` times ``value``.
        source: "estimate: ...", "published: ...", "datasheet: ..." or "measured: ...".
    """

    value: Annotated[T, Field(gt=0)]
    spread: Spread = 0.0
    source: Source


class Power(Settings):
    """What the whole board draws in each of its three states, in watts."""

    idle: Rated[Watts]
    compute: Rated[Watts]
    radio: Rated[Watts]


class Board(Settings):
    """One kind of device.

    Attributes:
        name: as fleets refer to it.
        description: one line for people.
        flops: sustained float32 speed of a training step, in FLOP/s.
        memory: bytes that a training step may allocate above the operating system, the SuperNode
            and a process that has loaded torch.
        uplink: towards the server, in bytes/s.
        downlink: from the server, in bytes/s.
        power: draw while idle, training and transferring, in watts.
    """

    name: str
    description: str
    flops: Rated[FlopsPerS]
    memory: Rated[Bytes]
    uplink: Rated[BytesPerS]
    downlink: Rated[BytesPerS]
    power: Power


def boards() -> tuple[str, ...]:
    """Names of the boards that ship with the project, sorted."""
    names = (entry.name for entry in _FOLDER.iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml")))


def board_from_text(text: str, file: str) -> Board:
    """The board that a TOML text describes.

    Raises:
        ConfigError: the text is no board; ``file`` stands in the message.
    """
    return strict_toml.read(text, Board, file=file)


def load_board(name: str) -> Board:
    """The board of that name.

    Raises:
        ConfigError: there is none.

    >>> load_board("rpi-4b-4gb").description
    'Raspberry Pi 4 Model B, 4 GB'
    """
    known = boards()
    if name not in known:
        near = did_you_mean(name, known)
        raise ConfigError(f'unknown board "{name}"; the boards are {", ".join(known)}{near}')
    return board_from_text((_FOLDER / f"{name}.toml").read_text("utf-8"), f"boards/{name}.toml")
