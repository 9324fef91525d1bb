"""What pydantic found wrong with a TOML document, said in TOML's words.

Every fault is the path of a key and a message of the form "expected X, got Y". The path is the
one in the file: the tags and labels that pydantic adds for unions are left out.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from fedfreeze.toml_lines import Path


class Fault(NamedTuple):
    """One mistake: the key it is about, and what is wrong."""

    path: Path
    message: str


# So many first letters of a word say which one is meant.
_TELLING = 3

_EXPECTED = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "string_type": "text in quotes",
    "tuple_type": "an array",
    "list_type": "an array",
    "dict_type": "a table",
    "model_type": "a table",
    "model_attributes_type": "a table",
    "greater_than": "more than {gt:g}",
    "greater_than_equal": "{ge:g} or more",
    "less_than": "less than {lt:g}",
    "less_than_equal": "{le:g} or less",
}


def faults(error: ValidationError, model: type[BaseModel], document: dict[str, Any]) -> list[Fault]:
    """Every mistake that ``error`` reports about ``document`` read as ``model``."""
    found: dict[Path, list[str]] = {}
    for details in error.errors(include_url=False):
        path, table = _locate(details["loc"], model)
        if details["type"].startswith("union_tag"):
            path = (*path, details["ctx"]["discriminator"].strip("'"))
        value = _value_at(document, path)
        found.setdefault(path, []).append(_message(details, path, table, value))
    return [Fault(path, _merged(messages)) for path, messages in found.items()]


def written(path: Path) -> str:
    """The path as a person writes it.

    >>> written(("device", 1, "ram"))
    'device[1].ram'
    """
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            bare = part.replace("-", "").replace("_", "").isalnum() and part.isascii()
            text += ("." if text else "") + (part if bare else json.dumps(part))
    return text


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """``; did you mean "..."?``, or nothing when no known word is near.

    >>> did_you_mean("layrs", ["layers", "policy"])
    '; did you mean "layers"?'

    One that begins so is meant rather than one that is as near otherwise.

    >>> did_you_mean("mnist", ["femnist", "mnist-writers"])
    '; did you mean "mnist-writers"?'
    """
    begun, words = str(word).lower(), list(known)
    near = [each for each in words if len(begun) >= _TELLING and each.startswith(begun)]
    near = near or difflib.get_close_matches(begun, words, n=1, cutoff=0.6)
    return f'; did you mean "{near[0]}"?' if near else ""


def shown(value: Any) -> str:
    """A value that a person wrote, short and as TOML writes it."""
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list | tuple):
        return "an array"
    text = json.dumps(value, ensure_ascii=False, default=str)
    text = {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}.get(text, text)
    return text if len(text) <= 60 else f"{text[:57]}..."


def one_of(choices: Iterable[str]) -> str:
    """The choices as a phrase.

    >>> one_of(['"sgd"', '"adam"', '"adamw"'])
    'one of "sgd", "adam" or "adamw"'
    """
    *rest, last = choices
    return f"one of {', '.join(rest)} or {last}" if rest else last


def _message(details: ErrorDetails, path: Path, table: type[BaseModel] | None, value: Any) -> str:
    kind, context = details["type"], details.get("ctx", {})
    if kind in {"missing", "union_tag_not_found"}:
        return "missing; this key must be set"
    if kind == "value_error":
        return str(context["error"])
    if kind == "extra_forbidden":
        known = [] if table is None else [*_fields(table)]
        hint = did_you_mean(path[-1], known)
        return f"unknown key{hint or f'; expected {one_of(known)}'}"
    if kind in {"literal_error", "union_tag_invalid"}:
        listed = context.get("expected_tags") or context["expected"].replace(" or ", ", ")
        choices = [choice.strip("'") for choice in listed.split(", ")]
        quoted = [c if c.isdigit() else f'"{c}"' for c in choices]
        hint = did_you_mean(value, choices) if isinstance(value, str) else ""
        return f"expected {one_of(quoted)}, got {shown(value)}{hint}"
    if kind in _EXPECTED:
        return f"expected {_EXPECTED[kind].format(**context)}, got {shown(value)}"
    expected = details["msg"].removeprefix("Input should be ")
    return f"expected {expected}, got {shown(value)}"


def _merged(messages: list[str]) -> str:
    """One message for a key that may be of several types and is of none."""
    first, *others = messages
    for other in others:
        expected, got, value = other.removeprefix("expected ").partition(", got ")
        head, same, rest = first.partition(", got ")
        if got and same:
            first = f"{head} or {expected}, got {max(rest, value, key=len)}"
    return first


def _locate(loc: tuple[int | str, ...], model: type[BaseModel]) -> tuple[Path, Any]:
    """The path in the file, and the model of the last table on the way to it."""
    path: Path = ()
    here: Any = model
    table: type[BaseModel] | None = model
    for part in loc:
        members = _members(here)
        tables = [m for m in members if isinstance(m, type) and issubclass(m, BaseModel)]
        if len(tables) > 1:  # pydantic names the chosen one of a union by its tag
            here = table = next((m for m in tables if _is_named(m, part)), None)
        elif tables:
            table = tables[0]
            path = (*path, part)
            here = _fields(table).get(str(part))
        elif item := [m for m in members if get_origin(m) in {tuple, list, dict}]:
            path = (*path, part)
            is_dict = get_origin(item[0]) is dict
            table, here = None, get_args(item[0])[1 if is_dict else 0]
        # Otherwise the part labels a member of a union of scalars: no key of the file.
    return path, table


def _value_at(document: Any, path: Path) -> Any:
    """What stands at ``path``; None where nothing does, as for a missing key."""
    for part in path:
        try:
            document = document[part]
        except (KeyError, IndexError, TypeError):
            return None
    return document


def _members(annotation: Any) -> list[Any]:
    if get_origin(annotation) is Annotated:
        return _members(get_args(annotation)[0])
    if get_origin(annotation) in {Union, UnionType}:
        return [inner for member in get_args(annotation) for inner in _members(member)]
    return [annotation]


def _fields(table: type[BaseModel]) -> dict[str, Any]:
    return {field.alias or name: field.annotation for name, field in table.model_fields.items()}


def _is_named(table: type[BaseModel], tag: int | str) -> bool:
    return any(
        get_origin(annotation) is Literal and tag in get_args(annotation)
        for annotation in _fields(table).values()
    )
