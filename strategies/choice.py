"""One way to train on a board, and when it is better than another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from strategies.means import Terms
from strategies.worth import Worth

Key = tuple[int, ...]


@dataclass(frozen=True)
class Choice:
    """Which layers train, by place among the free ones, and on which terms."""

    places: tuple[int, ...]
    terms: Terms


def key_of(places: Sequence[int], terms: Terms, worth: Worth) -> Key:
    """What a choice is compared by: larger is better, field by field.

    Worth, epochs, bytes of the packet, fewer parts of a batch, more layers, fewer microseconds,
    deeper layers.
    """
    return (
        sum(worth.whole[at] for at in places),
        terms.epochs,
        terms.packet_bytes,
        -terms.splits,
        len(places),
        -round(terms.total_s * 1e6),
        sum(1 << at for at in places),
    )
