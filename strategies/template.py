"""A strategy TOML to start from: every key, its default, and what it means."""

from __future__ import annotations

import json

from fedfreeze.toml_faults import one_of
from strategies.reference import REGISTRIES, Key, keys, tables
from strategies.schema import Strategy

# Keys without a default still need a value to start from.
FIRST_VALUES = {
    "version": "1",
    "rounds": "30",
    "name": '"timm:resnet18"',
    "pretrained": '"hub"',
    "test-examples": "1000",
    "clip-norm": "1.0",
    "density": "0.01",
    "value-bits": "4",
    "floors": "{ head = 0.001 }",
    "boost": "{ head = 4.0 }",
    "flops-per-round": "5e9",
    "upload-bytes-per-round": "20_000",
    "energy-j-per-round": "50.0",
}


def template(file_name: str) -> str:
    """The document; ``file_name`` is the file that its first line speaks of.

    Keys that the defaults leave unread, or absent, stand there as comments.

    >>> template("mine.toml").splitlines()[0]
    '# fedfreeze run --strategy mine.toml'
    """
    lines = [f"# fedfreeze run --strategy {file_name}", *_lines(keys(Strategy))]
    for table_name, table in tables(Strategy).items():
        lines += ["", f"[{table_name}]"]
        if table_name in REGISTRIES:
            tag, registry = REGISTRIES[table_name]
            names = one_of(json.dumps(name) for name in registry)
            lines.append(f"# {tag}: {names}; `fedfreeze policies` says what each does")
        lines += _lines(keys(table))
    return "\n".join(lines) + "\n"


def _lines(listed: list[Key]) -> list[str]:
    lines = []
    for key in listed:
        value = key.default or FIRST_VALUES[key.name]
        off = "" if key.is_active and (key.default or key.required) else "# "
        lines.append(f"# {key.meaning or key.name} ({key.kind})")
        lines.append(f"{off}{key.name} = {value}")
    return lines
