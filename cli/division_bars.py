"""A division as one stacked bar a client, in characters. Pure: numbers in, styled text out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from rich.style import Style
from rich.text import Text

from cli.class_keys import ClassKey, grouped


def bars(
    held: NDArray[np.int64],
    keys: Sequence[ClassKey],
    notes: Sequence[str],
    *,
    width: int,
    rows: int,
) -> list[Text]:
    """A row for each client that fits, and one that says how many more there are.

    A bar's length is the client's size, against the largest client; its letters are classes.

    Args:
        held: ``[clients, classes]`` examples.
        keys: letters and colours.
        notes: what stands behind each bar.
        width: columns of a row.
        rows: most rows, the last one included.
    """
    by_key = grouped(held, keys)
    sizes = by_key.sum(1)
    shown = len(sizes) if len(sizes) <= rows else max(1, rows - 1)
    digits = len(str(len(sizes) - 1))
    note_width = max((len(note) for note in notes[:shown]), default=0)
    room = max(8, width - len("client ") - digits - note_width - 4)
    lines = []
    for client in range(shown):
        cells = max(1, round(room * int(sizes[client]) / int(sizes.max())))
        line = Text(f"client {client:>{digits}}  ")
        for key, count in zip(keys, apportioned(by_key[client], cells), strict=True):
            line.append(key.letter * count, Style(color="#000000", bgcolor=key.colour))
        line.append(" " * (room - cells) + f"  {notes[client]:>{note_width}}")
        lines.append(line)
    if shown < len(sizes):
        lines.append(Text(f"and {len(sizes) - shown} more clients"))
    return lines


def legend(keys: Sequence[ClassKey], *, width: int) -> list[Text]:
    """What each letter means, in as many lines as it takes."""
    lines = [Text()]
    for key in keys:
        name = key.name if len(key.name) <= 24 else f"{key.name[:23]}…"
        entry = Text.assemble((key.letter, Style(color="#000000", bgcolor=key.colour)), f" {name}")
        if lines[-1] and len(lines[-1]) + 2 + len(entry) > width:
            lines.append(Text())
        lines[-1].append("  " if lines[-1] else "").append(entry)
    return lines


def apportioned(counts: NDArray[np.int64], cells: int) -> list[int]:
    """So many cells in proportion to the counts, by largest remainders.

    >>> apportioned(np.array([5, 3, 0, 1]), 4)
    [2, 1, 0, 1]
    """
    exact = counts * cells / counts.sum()
    whole = np.floor(exact).astype(int)
    most = np.argsort(whole - exact, kind="stable")[: cells - int(whole.sum())]
    whole[most] += 1
    return [int(count) for count in whole]
