"""What a run may choose about the codec."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from fedfreeze.errors import ConfigError

Mode = Literal["sparse", "dense"]
Bits = Literal[8, 16, 32]


@dataclass(frozen=True)
class CodecSettings:
    """How an update becomes bytes.

    Attributes:
        mode: ``sparse`` keeps the largest values that fit the budget; ``dense`` sends every value.
        bits: of one value in mode ``dense``: 32 is float32 unchanged, 16 and 8 are signed integers
            with one scale a tensor. Mode ``sparse`` has no use for it.

    Raises:
        ConfigError: a value that is not listed above.
    """

    mode: Mode = "sparse"
    bits: Bits = 32

    def __post_init__(self) -> None:
        if self.mode not in get_args(Mode):
            raise ConfigError(f"expected a codec mode of sparse or dense, got {self.mode!r}")
        if self.bits not in get_args(Bits):
            raise ConfigError(f"expected 8, 16 or 32 bits a dense value, got {self.bits!r}")
