"""Columns of plain text: the same in a terminal, in a file and in a test."""

from __future__ import annotations

from collections.abc import Sequence

Cells = Sequence[str]


def columns(header: Cells, rows: Sequence[Cells], *, gap: int = 2, left: int = 1) -> list[str]:
    """Lines with a header; the first ``left`` columns begin alike, the others end alike.

    >>> columns(["board", "J"], [["laptop", "9"], ["pi", "10"]])
    ['board    J', 'laptop   9', 'pi      10']
    """
    widths = widths_of(header, rows)
    lines = []
    for row in (header, *rows):
        cells = [
            cell.ljust(width) if at < left else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append((" " * gap).join(cells).rstrip())
    return lines


def widths_of(header: Cells, rows: Sequence[Cells]) -> list[int]:
    """Characters of each column."""
    return [max(map(len, column)) for column in zip(header, *rows, strict=True)]


def figure(value: float) -> str:
    """A number of a table in at most three digits before and two behind the point.

    >>> [figure(value) for value in (0.004, 1.234, 12.34, 1234.5)]
    ['0.00', '1.23', '12.3', '1234']
    """
    digits = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:.{digits}f}"
