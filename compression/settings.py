"""What a run may choose about the codec."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from fedfreeze.errors import ConfigError

Mode = Literal["sparse", "dense", "literal"]
DenseBits = Literal[8, 16, 32]
Effort = Literal["fast", "thorough"]

MAX_SPARSE_BITS = 16


@dataclass(frozen=True)
class CodecSettings:
    """How an update becomes bytes.

    Attributes:
        mode: ``sparse`` keeps the values that earn their bits within the budget; ``dense`` sends
            every value; ``literal`` keeps the largest and quantises them as FedFreeze's text has
            it (:mod:`compression.literal`).
        bits: of one value in mode ``dense``: 32 is float32 unchanged, 16 and 8 are signed integers
            with one scale a tensor.
        density: share of the values that is kept, where they fit the budget; None to choose it
            together with the step. Not in mode ``dense``.
        value_bits: of one kept value in mode ``sparse``, its sign among them; None to choose.
        fineness: 1 or more: how much larger than usual thresholds are against the step, so that
            fewer values are sent, each nearer to what it was. Mode ``sparse`` only.
        effort: ``thorough`` lets dead zones and position classes settle on each other, which
            lowers the error; ``fast`` takes the first of them. Mode ``sparse`` only.
        structured: whether positions may be coded by row and column classes.
        affine: whether units of nearly one sign may be coded from a zero point.

    Raises:
        ConfigError: a value that is not listed above.
    """

    mode: Mode = "sparse"
    bits: DenseBits = 32
    density: float | None = None
    value_bits: int | None = None
    fineness: float = 1.0
    effort: Effort = "thorough"
    structured: bool = True
    affine: bool = True

    def __post_init__(self) -> None:
        if self.mode not in get_args(Mode):
            raise ConfigError(
                f"expected a codec mode of sparse, dense or literal, got {self.mode!r}"
            )
        if self.bits not in get_args(DenseBits):
            raise ConfigError(f"expected 8, 16 or 32 bits a dense value, got {self.bits!r}")
        if self.density is not None and not 0 < self.density <= 1:
            raise ConfigError(f"expected a density above 0, at most 1, got {self.density!r}")
        if self.value_bits is not None and not 1 <= self.value_bits <= MAX_SPARSE_BITS:
            raise ConfigError(
                f"expected from 1 to {MAX_SPARSE_BITS} bits a kept value, got {self.value_bits!r}"
            )
        if self.effort not in get_args(Effort):
            raise ConfigError(f"expected an effort of fast or thorough, got {self.effort!r}")
        if not 1 <= self.fineness <= 64:
            raise ConfigError(f"expected a fineness from 1 to 64, got {self.fineness!r}")
