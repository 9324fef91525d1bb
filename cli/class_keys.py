"""A letter and a colour for each class, so that bars can be read with and without colours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_OTHERS = "."

# Black letters can be read on each of them, and neighbours differ in hue and lightness.
COLOURS = (
    "#e69f00",
    "#56b4e9",
    "#2bb07f",
    "#f0e442",
    "#7fa8e0",
    "#f07f4f",
    "#d99bc4",
    "#b8b8b8",
    "#a6d854",
    "#c49a6c",
    "#8fd3d1",
    "#f4a6b0",
)


@dataclass(frozen=True)
class ClassKey:
    """How one class, or all those that are too many to have a letter each, is drawn.

    Attributes:
        letter: in the terminal's bars, and in wide parts of the picture's.
        name: of the class.
        colour: ``#rrggbb``.
        members: positions of its classes.
    """

    letter: str
    name: str
    colour: str
    members: tuple[int, ...]


def class_keys(held: NDArray[np.int64], names: Sequence[str]) -> list[ClassKey]:
    """A key for every class; of more than there are letters, the largest get one.

    Args:
        held: ``[clients, classes]`` examples.
        names: of the classes.

    >>> [key.letter for key in class_keys(np.ones((1, 3), int), ["cat", "dog", "emu"])]
    ['a', 'b', 'c']
    """
    shown: Sequence[int] = range(len(names))
    if len(names) > len(_LETTERS):
        largest = np.argsort(-held.sum(0), kind="stable")[: len(_LETTERS) - 1]
        shown = sorted(int(at) for at in largest)
    keys = [
        ClassKey(letter, _printable(names[at]), COLOURS[number % len(COLOURS)], (at,))
        for number, (letter, at) in enumerate(zip(_LETTERS, shown, strict=False))
    ]
    rest = tuple(at for at in range(len(names)) if at not in shown)
    if rest:
        keys.append(ClassKey(_OTHERS, f"{len(rest)} other classes", "#dddddd", rest))
    return keys


def grouped(held: NDArray[np.int64], keys: Sequence[ClassKey]) -> NDArray[np.int64]:
    """Examples by key instead of by class, ``[clients, keys]``."""
    return np.stack([held[:, list(key.members)].sum(1) for key in keys], axis=1)


def _printable(name: str) -> str:
    """A name that breaks neither a terminal nor a picture."""
    return name if name.isprintable() else ascii(name)[1:-1]
