"""A division as an SVG picture that stands alone: no script, no font, no file beside it.

Whoever cannot see colours has letters, whoever cannot see has a title, a description, and a title
on each part of a bar.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape

import numpy as np
from numpy.typing import NDArray

from cli.class_keys import ClassKey, grouped

MOST_ROWS = 200

_WIDTH, _ROW, _BAR, _LEFT, _RIGHT = 860, 20, 16, 90, 90
_COLUMN, _LEGEND_ROW = 190, 18
_LETTER_WIDTH = 11


def picture(
    held: NDArray[np.int64], keys: Sequence[ClassKey], *, title: str, description: str
) -> str:
    """The document; of more clients than :data:`MOST_ROWS` it says how many more there are.

    Args:
        held: ``[clients, classes]`` examples.
        keys: letters and colours.
        title: above the bars.
        description: for whoever has the picture read out.
    """
    by_key = grouped(held, keys)
    sizes = by_key.sum(1)
    shown = min(len(sizes), MOST_ROWS)
    body = [_text(16, 26, title, size=15)]
    top = 44
    scale = (_WIDTH - _LEFT - _RIGHT) / int(sizes.max())
    for client in range(shown):
        body += _row(client, by_key[client], keys, top + client * _ROW, scale)
    top += shown * _ROW
    if shown < len(sizes):
        body.append(_text(_LEFT, top + 13, f"and {len(sizes) - shown} more clients"))
        top += _ROW
    top += 12
    columns = (_WIDTH - 32) // _COLUMN
    for number, key in enumerate(keys):
        x, y = 16 + number % columns * _COLUMN, top + number // columns * _LEGEND_ROW
        body.append(
            f'<rect x="{x}" y="{y}" width="14" height="14" fill="{key.colour}" stroke="#444"/>'
        )
        body.append(_text(x + 7, y + 11, key.letter, anchor="middle"))
        body.append(_text(x + 20, y + 11, key.name[:24]))
    height = top + -(-len(keys) // columns) * _LEGEND_ROW + 12
    return "\n".join(
        [
            (
                f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
                f'viewBox="0 0 {_WIDTH} {height}" role="img" aria-labelledby="title description" '
                'font-family="sans-serif">'
            ),
            f'<title id="title">{escape(title)}</title>',
            f'<desc id="description">{escape(description)}</desc>',
            f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>',
            *body,
            "</svg>",
            "",
        ]
    )


def _row(
    client: int, counts: NDArray[np.int64], keys: Sequence[ClassKey], y: int, scale: float
) -> list[str]:
    size = int(counts.sum())
    parts = [_text(_LEFT - 8, y + 12, f"client {client}", anchor="end")]
    x = float(_LEFT)
    for key, count in zip(keys, counts.tolist(), strict=True):
        if not count:
            continue
        width = count * scale
        words = f"client {client}: {count} of {key.name}, {100 * count / size:.0f} %"
        parts.append(
            f'<rect x="{x:.2f}" y="{y}" width="{width:.2f}" height="{_BAR}" fill="{key.colour}" '
            f'stroke="#fff" stroke-width="0.5"><title>{escape(words)}</title></rect>'
        )
        if width >= _LETTER_WIDTH:
            parts.append(_text(x + width / 2, y + 12, key.letter, anchor="middle"))
        x += width
    parts.append(_text(x + 6, y + 12, str(size)))
    return parts


def _text(x: float, y: float, words: str, *, anchor: str = "start", size: int = 12) -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}" fill="#000">'
        f"{escape(words)}</text>"
    )
