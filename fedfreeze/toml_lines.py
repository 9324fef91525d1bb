"""Where each key of a TOML document stands: its line number.

TOML readers return values without positions, and a message that names no line is half a message.
The document has been parsed before it comes here, so it is known to be valid; this module only
follows tables, dotted and quoted keys, arrays of tables, inline tables and multi-line strings.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import tomli

Path = tuple[str | int, ...]

_TOKEN = re.compile(
    r"""
      (?P<blank>[ \t\r]+|\#[^\n]*)
    | (?P<newline>\n)
    | (?P<quoted>\"{3}(?:\\.|[^\\])*?\"{3,5}|'{3}.*?'{3,5}|"(?:\\.|[^"\\])*"|'[^']*')
    | (?P<mark>[\[\]{}=,.])
    | (?P<bare>[^\s\[\]{}=,.\#"']+)
    """,
    re.VERBOSE | re.DOTALL,
)


class _Token(NamedTuple):
    kind: str
    text: str
    line: int


class _Reader:
    """Walks the tokens once; every method leaves ``at`` on the first token it does not own."""

    def __init__(self, text: str) -> None:
        self.lines: dict[Path, int] = {(): 1}
        self.tokens: list[_Token] = []
        self.at = 0
        self.table: Path = ()
        self.array_lengths: dict[Path, int] = {}
        line = 1
        for match in _TOKEN.finditer(text):
            if match.lastgroup != "blank":
                self.tokens.append(_Token(str(match.lastgroup), match.group(), line))
            line += match.group().count("\n")
        self.tokens.append(_Token("newline", "\n", line))

    def document(self) -> None:
        while self.at < len(self.tokens):
            if self.tokens[self.at].kind == "newline":
                self.at += 1
            elif self.tokens[self.at].text == "[":
                self.header()
            else:
                self.pair(self.table)

    def header(self) -> None:
        is_array = self.tokens[self.at + 1].text == "["
        self.at += 2 if is_array else 1
        line = self.tokens[self.at].line
        *parents, name = self.key()
        self.at += 2 if is_array else 1
        path: Path = ()
        for part in parents:
            path = self.latest((*path, part))
            self.lines.setdefault(path, line)
        path = (*path, name)
        if is_array:
            self.lines.setdefault(path, line)
            self.array_lengths[path] = self.array_lengths.get(path, 0) + 1
        # A table may stand after its sub-tables: its own header is the better line.
        self.table = self.latest(path)
        self.lines[self.table] = line

    def latest(self, path: Path) -> Path:
        """``path`` itself, or its newest element where it is an array of tables."""
        length = self.array_lengths.get(path)
        return path if length is None else (*path, length - 1)

    def key(self) -> list[str]:
        parts = []
        while True:
            token = self.tokens[self.at]
            parts.append(
                tomli.loads(f"k = {token.text}")["k"] if token.kind == "quoted" else token.text
            )
            self.at += 1
            if self.tokens[self.at].text != ".":
                return parts
            self.at += 1

    def pair(self, table: Path) -> None:
        line = self.tokens[self.at].line
        path = table
        for part in self.key():
            path = (*path, part)
            self.lines.setdefault(path, line)
        self.at += 1  # the equals sign
        self.value(path)

    def value(self, path: Path) -> None:
        self.lines.setdefault(path, self.tokens[self.at].line)
        if self.tokens[self.at].text == "[":
            self.enclosed("]", lambda count: self.value((*path, count)))
        elif self.tokens[self.at].text == "{":
            self.enclosed("}", lambda _: self.pair(path))
        else:
            while self.tokens[self.at].text not in {",", "]", "}", "\n"}:
                self.at += 1

    def enclosed(self, end: str, item: Callable[[int], None]) -> None:
        self.at += 1
        count = 0
        while self.tokens[self.at].text != end:
            if self.tokens[self.at].text in {",", "\n"}:
                self.at += 1
            else:
                item(count)
                count += 1
        self.at += 1


def key_lines(text: str) -> dict[Path, int]:
    r"""The line (from 1) of every key, table and array element of a valid TOML document.

    >>> key_lines('a = 1\n[b]\nc = [1,\n 2]')
    {(): 1, ('a',): 1, ('b',): 2, ('b', 'c'): 3, ('b', 'c', 0): 3, ('b', 'c', 1): 4}
    """
    reader = _Reader(text)
    reader.document()
    return reader.lines


def line_of(path: Path, lines: dict[Path, int]) -> int:
    """The line of a key, or of the nearest table around it when the key is not written."""
    while path not in lines:
        path = path[:-1]
    return lines[path]
