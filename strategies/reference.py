"""What every key of the strategy TOML means, read off the schema itself.

The page ``docs/strategy.md``, ``fedfreeze policies`` and ``fedfreeze init`` are all made from it,
so none of them can say anything that the reader does not do. To write the page again::

    python -m strategies.reference > docs/strategy.md
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic.fields import FieldInfo

from fedfreeze.settings import Settings
from fedfreeze.toml_faults import one_of
from fedfreeze.units import EXAMPLES, Dimension, exact
from strategies.freeze import POLICIES
from strategies.methods import METHODS
from strategies.schema import Strategy
from strategies.tables import OnlyWith

# Table name to the key that chooses one of its forms, and the forms.
REGISTRIES: dict[str, tuple[str, Mapping[str, Any]]] = {
    "freeze": ("policy", POLICIES),
    "method": ("name", METHODS),
}


@dataclass(frozen=True)
class Key:
    """One key of a table.

    Attributes:
        kind: the values it takes, in words.
        default: as TOML; None when the key has no value unless it is set.
        required: whether it must be set.
        only_with: the setting under which it is read, or "".
        is_active: whether it is read when every other key has its default.
    """

    name: str
    kind: str
    default: str | None
    required: bool
    description: str
    only_with: str = ""
    is_active: bool = True

    @property
    def meaning(self) -> str:
        """Description and condition in one phrase."""
        condition = f"only with {self.only_with}" if self.only_with else ""
        return "; ".join(part for part in (self.description, condition) if part)


def keys(table: type[Settings]) -> list[Key]:
    """The keys of one table, without the tables inside it, in the order of the file."""
    return [
        _key(table, name, field)
        for name, field in table.model_fields.items()
        if name not in tables(table)
    ]


def tables(table: type[Settings]) -> dict[str, type[Settings]]:
    """The tables inside a table, by name; of a choice, the default one."""
    return {
        name: type(field.default)
        for name, field in table.model_fields.items()
        if isinstance(field.default, Settings)
    }


def summary(entry: type) -> str:
    """The first line of the docstring of the module that a policy or method is written in."""
    line = (inspect.getdoc(inspect.getmodule(entry)) or "").partition("\n")[0]
    return line.partition(": ")[2] or line


def page() -> str:
    """``docs/strategy.md``."""
    parts = [
        "# The strategy TOML",
        "<!-- Made by `python -m strategies.reference > docs/strategy.md`; do not edit. -->",
        (
            "A strategy says what is trained, by whom, how, and what may be sent. Unknown keys are "
            "errors, and so are keys that nothing would read. Start from `fedfreeze init`, look at "
            "one with `fedfreeze check FILE`. What `--set KEY=VALUE` gives wins over the file, and "
            "the file over the defaults below."
        ),
        "## Top level",
        _rows(keys(Strategy)),
    ]
    for name, table in tables(Strategy).items():
        if name not in REGISTRIES:
            parts += [f"## `[{name}]`", _rows(keys(table))]
            continue
        tag, registry = REGISTRIES[name]
        for choice, entry in registry.items():
            parts += [
                f'## `[{name}]` with `{tag} = "{choice}"`',
                _sentence(summary(entry)),
                _rows(keys(entry.Settings)),
            ]
    return "\n\n".join(parts) + "\n"


def _key(table: type[Settings], name: str, field: FieldInfo) -> Key:
    marks = [mark for mark in field.metadata if isinstance(mark, OnlyWith)]
    return Key(
        name=field.alias or name,
        kind=_kind(field.annotation, field.metadata),
        default=_default(field),
        required=field.is_required(),
        description=field.description or ("chooses this table" if _is_tag(field) else ""),
        only_with=" and ".join(map(str, marks)),
        is_active=all(
            mark.is_met({name: table.model_fields[name].default for name in mark.selectors})
            for mark in marks
        ),
    )


def _is_tag(field: FieldInfo) -> bool:
    return get_origin(field.annotation) is Literal and len(get_args(field.annotation)) == 1


def _default(field: FieldInfo) -> str | None:
    if field.is_required() or field.default is None:
        return None
    dimension = next((m for m in field.metadata if isinstance(m, Dimension)), None)
    return json.dumps(field.default if dimension is None else exact(field.default, dimension))


def _kind(annotation: Any, metadata: list[Any]) -> str:
    arguments = get_args(annotation)
    if get_origin(annotation) is Annotated:
        inner = [m for part in arguments[1:] for m in getattr(part, "metadata", [part])]
        return _kind(arguments[0], [*inner, *metadata])
    if get_origin(annotation) is Literal:
        return one_of(json.dumps(choice) for choice in arguments)
    if get_origin(annotation) in {Union, UnionType}:
        return " or ".join(_kind(a, metadata) for a in arguments if a is not NoneType)
    if get_origin(annotation) in {dict, list}:
        return _collection(annotation)
    for mark in metadata:
        if isinstance(mark, Dimension):
            return f'quantity such as "{EXAMPLES[mark]}"'
    words = {int: "whole number", float: "number", bool: "true or false", str: "text"}
    limits = [
        f"{sign} {value:g}"
        for mark in metadata
        for kind, sign, value in (
            (Gt, ">", getattr(mark, "gt", None)),
            (Ge, "≥", getattr(mark, "ge", None)),
            (Lt, "<", getattr(mark, "lt", None)),
            (Le, "≤", getattr(mark, "le", None)),
        )
        if isinstance(mark, kind)
    ]
    return ", ".join([words.get(annotation, str(annotation)), *limits])


def _collection(annotation: Any) -> str:
    """A table or an array, by what it holds."""
    *_, of = get_args(annotation)
    if get_origin(of) is list:
        held = f"arrays of {'text' if get_args(of)[0] is str else 'numbers'}"
    else:
        held = "text" if of is str else "numbers"
    return f"{'a table' if get_origin(annotation) is dict else 'an array'} of {held}"


def _rows(listed: list[Key]) -> str:
    rows = ["| key | values | default | meaning |", "|---|---|---|---|"]
    for key in listed:
        default = f"`{key.default}`" if key.default else "must be set" if key.required else "absent"
        rows.append(f"| `{key.name}` | {key.kind} | {default} | {key.meaning} |")
    return "\n".join(rows)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


if __name__ == "__main__":
    sys.stdout.write(page())
