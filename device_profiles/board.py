"""A board: what one kind of device can do, every value with the source it is known from.

Boards are TOML files in ``device_profiles/boards/``; the file's name is the board's name.
"""

from __future__ import annotations

from importlib import resources
from typing import Annotated, Generic, Literal, TypeVar

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from fedfreeze import strict_toml
from fedfreeze.errors import ConfigError
from fedfreeze.settings import Bytes, BytesPerS, FlopsPerS, Hertz, Settings, Watts
from fedfreeze.toml_faults import did_you_mean
from fedfreeze.units import Dimension, written

_FOLDER = resources.files("device_profiles") / "boards"

# A source opens with its kind, so that nobody takes an estimate for a measurement.
SOURCE_KINDS = ("estimate", "published", "datasheet", "measured")

# SuperNode and SuperExec run beside training: 119 to 126 MB were charged to their cgroup together
# (flwr 1.42, x86, idle), more while a large model passes through them.
SUPERNODE_BYTES = 125e6

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


class Graphics(Settings):
    """A GPU that torch can train on.

    Attributes:
        memory: "shared" with the processor, as on a Jetson, or its "own".
        peak: float32 speed that no program exceeds, in FLOP/s.
    """

    memory: Literal["shared", "own"]
    peak: Rated[FlopsPerS]


class Hardware(Settings):
    """What is soldered on: facts to tell boards apart by and to check the other values against.

    Attributes:
        device_tree: how the model that the kernel names begins (`/proc/device-tree/model`).
        cores: number of processor cores.
        clock: of the fastest core, in Hz.
        ram: bytes of memory on the board.
    """

    device_tree: str | None = None
    cores: Rated[int]
    clock: Rated[Hertz]
    ram: Rated[Bytes]
    gpu: Graphics | None = None


class Board(Settings):
    """One kind of device.

    Attributes:
        name: as fleets refer to it.
        description: one line for people.
        hardware: None where nobody wrote it down.
        flops: sustained float32 speed of a training step, in FLOP/s.
        memory: bytes that a training step may allocate above the operating system, the SuperNode
            and a process that has loaded torch. With a GPU that has memory of its own, bytes of
            that; with one that shares the board's, less the CUDA context, too.
        uplink: towards the server, in bytes/s.
        downlink: from the server, in bytes/s.
        power: draw while idle, training and transferring, in watts.
    """

    name: str
    description: str
    hardware: Hardware | None = None
    flops: Rated[FlopsPerS]
    memory: Rated[Bytes]
    uplink: Rated[BytesPerS]
    downlink: Rated[BytesPerS]
    power: Power

    @field_validator("memory")
    @classmethod
    def _is_there(cls, memory: Rated[Bytes], info: ValidationInfo) -> Rated[Bytes]:
        hardware: Hardware | None = info.data.get("hardware")
        if hardware is None or (hardware.gpu is not None and hardware.gpu.memory == "own"):
            return memory
        most = hardware.ram.value - SUPERNODE_BYTES
        if memory.value * (1 + memory.spread) > most:
            raise ValueError(
                f"expected what {written(hardware.ram.value, Dimension.BYTES)} of RAM leave beside "
                f"SuperNode and SuperExec, {written(most, Dimension.BYTES)} at most, got "
                f"{written(memory.value, Dimension.BYTES)} with a spread of {memory.spread:g}"
            )
        return memory


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
