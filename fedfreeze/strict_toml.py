"""Reads a TOML document into a settings model: all mistakes at once, each with its line.

strategy.toml:7: compression.upload-time: expected a quantity such as "60 s", got "-1"
strategy.toml:12: freeze.layrs: unknown key; did you mean "layers"?
2 errors in strategy.toml. Nothing was started.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time
from typing import Any, NoReturn, TypeVar

import tomli
import tomli_w
from pydantic import ValidationError

from fedfreeze.errors import ConfigError
from fedfreeze.settings import Settings
from fedfreeze.toml_faults import Fault, faults, written
from fedfreeze.toml_lines import Path, key_lines, line_of

M = TypeVar("M", bound=Settings)

_TOO_LONG = "expected a number, got one of thousands of digits"


def read(text: str, model: type[M], *, file: str, overrides: Sequence[str] = ()) -> M:
    """The document as ``model``.

    Args:
        text: a TOML document.
        model: the settings that it must describe completely.
        file: what messages call the document.
        overrides: ``KEY=VALUE`` each, as from ``--set``; a later one wins over an earlier one,
            and each over the document. A value that is not TOML is taken as text.

    Raises:
        ConfigError: ``problems`` holds a line for each mistake, in the order of the document.
    """
    try:
        document = tomli.loads(text)
    except tomli.TOMLDecodeError as error:
        _refuse([f"{file}:{error.lineno}:{error.colno}: {_syntax(error.msg)}"], [file])
    except RecursionError:
        _refuse([f"{file}: tables or arrays are nested too deeply"], [file])
    except ValueError:  # Python reads no longer ones
        _refuse([f"{file}: {_TOO_LONG}"], [file])
    lines = key_lines(text)

    found: list[tuple[int, str]] = []  # place in the file (overrides after it), message
    end = max(lines.values()) + 1
    set_paths: dict[Path, int] = {}
    for number, override in enumerate(overrides):
        try:
            set_paths[_override(document, override)] = end + number
        except ConfigError as error:
            found.append((end + number, f"--set {error}"))

    result, mistakes = _validated(document, model)
    for path, message in mistakes:
        place = next((at for key, at in set_paths.items() if _is_set_by(key, path, lines)), 0)
        line = place or line_of(path, lines)
        source = "--set " if place else f"{file}:{line}: "
        name = f"{written(path)}: " if path else ""
        found.append((line, f"{source}{name}{message}"))
    if result is None or found:
        found.sort(key=lambda entry: entry[0])
        places = [
            name
            for name, hit in (
                (file, any(at < end for at, _ in found)),
                ("--set", any(at >= end for at, _ in found)),
            )
            if hit
        ]
        _refuse([message for _, message in found], places)
    return result


def write(settings: Settings) -> str:
    """The settings as a TOML document with every key; :func:`read` returns an equal value."""
    return tomli_w.dumps(settings.model_dump(mode="json", by_alias=True, exclude_none=True))


def _refuse(problems: list[str], places: list[str]) -> NoReturn:
    count = "1 error" if len(problems) == 1 else f"{len(problems)} errors"
    raise ConfigError(problems, f"{count} in {' and '.join(places)}. Nothing was started.")


def _is_set_by(key: Path, path: Path, lines: Mapping[Path, int]) -> bool:
    if path[: len(key)] == key:
        return True
    # The override may have created the table around its key.
    return bool(path) and path not in lines and key[: len(path)] == path


def _validated(document: dict[str, Any], model: type[M]) -> tuple[M | None, list[Fault]]:
    dates = {
        path: Fault(path, "no key holds a date or time; write text in quotes")
        for path in _dates(document)
    }
    try:
        # JSON mode, because there a strict model takes an array for a tuple.
        result = model.model_validate_json(
            json.dumps(document, default=str), by_alias=True, by_name=False
        )
    except ValidationError as error:
        others = [fault for fault in faults(error, model, document) if fault.path not in dates]
        return None, [*dates.values(), *others]
    return result, [*dates.values()]


def _dates(value: Any, path: Path = ()) -> list[Path]:
    if isinstance(value, date | datetime | time):
        return [path]
    items: Iterable[tuple[str | int, Any]] = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    return [found for key, item in items for found in _dates(item, (*path, key))]


def _override(document: dict[str, Any], override: str) -> Path:
    """Sets one key of the document; returns its path.

    Raises:
        ConfigError: the text is no ``KEY=VALUE``, or the key leads through something else.
    """
    key, equals, value = (part.strip() for part in override.partition("="))
    if not equals or not key or not value:
        raise ConfigError(f'"{override}": expected KEY=VALUE such as local.epochs=2')
    path = _key_path(key)
    here: Any = document
    done: Path = ()
    for part in path[:-1]:
        done = (*done, part)
        here = here.setdefault(part, {})
        if not isinstance(here, dict):
            raise ConfigError(f"{key}: {written(done)} is a value, not a table")
    here[path[-1]] = _toml_value(key, value)
    return path


def _key_path(key: str) -> tuple[str, ...]:
    try:
        nested: Any = tomli.loads(f"{key} = 0")
    except tomli.TOMLDecodeError:
        nested = {}
    path: tuple[str, ...] = ()
    while isinstance(nested, dict) and len(nested) == 1:
        ((part, nested),) = nested.items()
        path = (*path, part)
    if nested != 0 or not path:
        raise ConfigError(f'"{key}": expected a key such as local.epochs')
    return path


def _toml_value(key: str, value: str) -> Any:
    try:
        parsed = tomli.loads(f"value = {value}")
    except tomli.TOMLDecodeError:
        parsed = {}
    except ValueError as error:
        raise ConfigError(f"{key}: {_TOO_LONG}") from error
    if set(parsed) == {"value"}:
        return parsed["value"]
    if value[0] in "\"'[{":
        raise ConfigError(f"{key}: {value} is not a TOML value; is a quote or bracket missing?")
    return value


def _syntax(message: str) -> str:
    if message == "Cannot overwrite a value":
        return "this key is set a second time"
    return message[:1].lower() + message[1:]
