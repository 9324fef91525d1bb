"""The strategy TOML: its model, its presets, and how it is read.

A strategy names one freeze policy and one method; their tables are typed by what the registries
in :mod:`strategies.freeze` and :mod:`strategies.methods` hold, so a new policy needs no line here.
"""

from __future__ import annotations

import json
import pathlib
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, field_validator

from device_profiles.fleet import fleets
from fedfreeze import strict_toml
from fedfreeze.errors import ConfigError
from fedfreeze.settings import Natural, PositiveInt, Settings
from fedfreeze.toml_faults import did_you_mean
from strategies.freeze import POLICIES
from strategies.methods import METHODS
from strategies.tables import Clients, Compression, Data, Local, Model, Residual, RoundLimits
from tasks.options import Options
from tasks.partition import Split
from tasks.registry import module_of

PRESET_FOLDER = pathlib.Path(__file__).parent / "presets"


def tagged_union(registry: Mapping[str, Any], tag: str) -> Any:
    """The type of a table whose key ``tag`` names an entry of ``registry``.

    Args:
        registry: name to class; each class has ``Settings`` with ``tag: Literal[name]``.
        tag: the key, in Python's spelling.
    """
    models = [entry.Settings for entry in registry.values()]
    if len(models) == 1:  # pydantic wants no tag where there is no choice
        return models[0]
    return Annotated[reduce(or_, models), Field(discriminator=tag)]


def _is_whole(value: Any) -> Any:
    # Python's True equals 1, which a Literal would take.
    if isinstance(value, bool) or not isinstance(value, int):
        # A TypeError would escape pydantic, which collects only ValueError.
        raise ValueError(f"expected 1, got {json.dumps(value)}")  # noqa: TRY004
    return value


def _known_task(name: str) -> str:
    module_of(name)
    return name


def _known_fleet(name: str) -> str:
    if name not in (known := fleets()) and not name.endswith(".toml"):
        raise ValueError(
            f'unknown fleet "{name}"; the fleets are {", ".join(known)}, or give a path that ends '
            f"in .toml{did_you_mean(name, known)}"
        )
    return name


if TYPE_CHECKING:
    FreezeTable: TypeAlias = Settings
    MethodTable: TypeAlias = Settings
else:
    FreezeTable = tagged_union(POLICIES, "policy")
    MethodTable = tagged_union(METHODS, "name")


class Strategy(Settings):
    """A whole strategy: what is trained, by whom, how, and what may be sent."""

    version: Annotated[Literal[1], BeforeValidator(_is_whole)] = Field(
        description="version of this format"
    )
    task: Annotated[str, AfterValidator(_known_task)] = Field(
        "fashion-cnn", description="model, data and loss, by name"
    )
    fleet: Annotated[str, AfterValidator(_known_fleet)] = Field(
        "mixed", description="simulated boards, by name"
    )
    rounds: PositiveInt = Field(le=1_000_000, description="rounds to run")
    seed: Natural = Field(0, le=2**63 - 1, description="the same seed gives the same bytes")
    clients: Clients = Clients()
    model: Model = Model()
    data: Data = Data()
    freeze: FreezeTable = POLICIES["fedfreeze"].Settings()
    method: MethodTable = METHODS["fedavg"].Settings()
    compression: Compression = Compression()
    residual: Residual = Residual()
    limits: RoundLimits = RoundLimits()
    local: Local = Local()

    @field_validator("residual")
    @classmethod
    def _has_a_residual(cls, value: Residual, info: ValidationInfo) -> Residual:
        compression = info.data.get("compression")
        if compression is None or compression.error_feedback or value == Residual():
            return value
        raise ValueError(
            "only compression.error-feedback = true leaves a residual; remove this table"
        )

    @property
    def options(self) -> Options:
        """What it chooses of its task, for :func:`tasks.loading.load`."""
        return Options(
            model=self.model.name,
            pretrained=self.model.pretrained,
            layers=self.model.own_layers,
            augment=self.data.augment,
            test_examples=self.data.test_examples,
        )

    @property
    def split(self) -> Split:
        """How it divides the training data."""
        return self.data.split(self.seed)


def presets() -> dict[str, pathlib.Path]:
    """The strategies that come with the project, by name."""
    return {path.stem: path for path in sorted(PRESET_FOLDER.glob("*.toml"), key=lambda p: p.stem)}


def from_text(text: str, file: str = "strategy", overrides: Sequence[str] = ()) -> Strategy:
    r"""A strategy from the text of its TOML; see :func:`fedfreeze.strict_toml.read`.

    Raises:
        ConfigError: all mistakes at once, each with its line.

    >>> from_text("version = 1\nrounds = 3", overrides=["local.epochs=2"]).local.epochs
    2
    """
    return strict_toml.read(text, Strategy, file=file, overrides=overrides)


def load(name_or_path: str, overrides: Sequence[str] = ()) -> Strategy:
    """A strategy from a preset's name or from a file.

    Raises:
        ConfigError: no such preset or file, or all mistakes in it at once.
    """
    return from_text(read_text(name_or_path), _label(name_or_path), overrides)


def read_text(name_or_path: str) -> str:
    """The TOML of a preset or file, not yet looked at.

    Raises:
        ConfigError: no such preset or file, or it is not UTF-8 text.
    """
    path = presets().get(name_or_path, pathlib.Path(name_or_path))
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{name_or_path}: expected UTF-8 text, got byte {error.object[error.start]:#04x} "
            f"at offset {error.start}"
        ) from error
    except FileNotFoundError as error:
        raise _absent(name_or_path) from error
    except OSError as error:
        raise ConfigError(f"{name_or_path}: cannot be read: {error.strerror}") from error


def _label(name_or_path: str) -> str:
    known = presets().get(name_or_path)
    return known.name if known else name_or_path


def _absent(name_or_path: str) -> ConfigError:
    names = [*presets()]
    hint = did_you_mean(name_or_path.removesuffix(".toml"), names)
    return ConfigError(
        f'no strategy file or preset "{name_or_path}"{hint}',
        f"The presets are {', '.join(names)}; `fedfreeze init` writes a file to start from.",
    )
