"""The base of everything that people write in TOML: strict, complete, immutable.

Keys are kebab-case in the file and snake_case in Python. Unknown keys are errors, ``true`` is not
a number, and quantities carry their unit (``"60 s"``, ``"4 MB"``).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationInfo,
)

from fedfreeze import units
from fedfreeze.units import Dimension


class Settings(BaseModel):
    """A table of a TOML file."""

    model_config = ConfigDict(
        strict=True,
        extra="forbid",
        frozen=True,
        alias_generator=lambda name: name.replace("_", "-"),
        populate_by_name=True,
        allow_inf_nan=False,
    )


def _quantity(dimension: Dimension) -> Any:
    def read(value: Any, info: ValidationInfo) -> Any:
        if isinstance(value, str):
            return units.parse(value, dimension)
        # Code states base units; a file (always read as JSON mode) must state the unit.
        if isinstance(value, float) and info.mode == "python":
            return value
        example = units.EXAMPLES[dimension]
        raise ValueError(
            f'expected a quantity with its unit such as "{example}", got {json.dumps(value):.60}'
        )

    def write(value: float) -> str:
        return units.exact(value, dimension)

    return Annotated[
        float,
        dimension,  # for whoever describes the key
        Field(ge=0),
        BeforeValidator(read),
        PlainSerializer(write, when_used="json"),
    ]


if TYPE_CHECKING:  # a type checker sees what code holds: a float in base units
    Bytes = float
    BytesPerS = float
    Seconds = float
    FlopsPerS = float
    Watts = float
    Joules = float
    Hertz = float
else:
    Bytes = _quantity(Dimension.BYTES)
    BytesPerS = _quantity(Dimension.BYTES_PER_S)
    Seconds = _quantity(Dimension.SECONDS)
    FlopsPerS = _quantity(Dimension.FLOPS_PER_S)
    Watts = _quantity(Dimension.WATTS)
    Joules = _quantity(Dimension.JOULES)
    Hertz = _quantity(Dimension.HERTZ)

PositiveInt = Annotated[int, Field(ge=1)]
Natural = Annotated[int, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]
NonNegative = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]
