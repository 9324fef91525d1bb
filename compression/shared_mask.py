"""Positions that both ends draw by themselves: a random mask, anew in every round.

Each layer is one vector of its parameters in layout order. Into how many stretches of nearly equal
length it is cut follows from the share of its values that is to be sent; one position is drawn in
each, and all are moved on by one random number, round the end of the vector. So every value has
the same chance in every round, whatever the layer's size, and no stretch is ever without one
(stratified sampling with a random start). They are the "random masks" of Konečný et al. (2016), but
for one thing: clients that send the same share have the same mask, so that each value that is sent
is averaged over all of them.

Everything is whole numbers. For a layer of n values, a share s in 1/2^32, and three numbers of 64
bits, little-endian, from BLAKE2b (24 bytes, personalised ``fedfreeze-mask``) of seed and round, of
64 bits each, and the layer's name in UTF-8::

    start, rounding, state = blake2b(seed | round | name)
    k = (n s + rounding >> 32) >> 32                       so that k is n s / 2^32 in the mean
    first_i = i n // k                                     of stretch i, from 0 to k - 1
    p_i = (first_i + splitmix64(state)_i mod (first_(i+1) - first_i) + start) mod n
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from compression.bits import Ints
from fedfreeze.layout import Layout

WHOLE_SHARE = 1 << 32
"""All values; a share is so many parts of this."""

_MOST = (1 << 64) - 1
_KEY = struct.Struct("<QQ")
_NUMBERS = struct.Struct("<QQQ")
_PERSON = b"fedfreeze-mask"


@dataclass(frozen=True)
class SharedMask:
    """Which values are sent in one round.

    Attributes:
        seed: of the run, below 2^64.
        round_number: below 2^64.
        share: of all values, from 0 to ``WHOLE_SHARE``.

    Raises:
        ValueError: a number is out of its range.
    """

    seed: int
    round_number: int
    share: int

    def __post_init__(self) -> None:
        for name, most in (("seed", _MOST), ("round_number", _MOST), ("share", WHOLE_SHARE)):
            if not 0 <= (came := getattr(self, name)) <= most:
                raise ValueError(f"{name} of a shared mask: expected from 0 to {most}, got {came}")

    def positions(self, layout: Layout, layers: Iterable[str]) -> dict[str, Ints]:
        """The ascending flat positions in each parameter tensor of these layers.

        They are what :func:`compression.encode` and :func:`compression.decode` take. Those of a
        layer do not depend on which others there are.

        Raises:
            LayoutError: an unknown layer.
        """
        found: dict[str, Ints] = {}
        for name in layout.ordered(layers):
            tensors = [t for t in layout[name].parameters if t.travels]
            ends = [0, *accumulate(t.size for t in tensors)]
            chosen = self._chosen(name, ends[-1])
            bounds = np.searchsorted(chosen, ends).tolist()
            for tensor, start, (first, last) in zip(
                tensors, ends[:-1], pairwise(bounds), strict=True
            ):
                found[tensor.name] = chosen[first:last] - start
        return found

    def _chosen(self, layer: str, size: int) -> Ints:
        """Ascending positions in a layer of so many values."""
        key = _KEY.pack(self.seed, self.round_number) + layer.encode()
        digest = hashlib.blake2b(key, digest_size=_NUMBERS.size, person=_PERSON).digest()
        start, rounding, state = _NUMBERS.unpack(digest)
        count = (size * self.share + (rounding >> 32)) >> 32
        if not count:
            return np.zeros(0, np.int64)
        firsts = np.arange(count + 1, dtype=np.int64) * size // count
        lengths = np.diff(firsts).astype(np.uint64)
        places = firsts[:-1] + (splitmix64(state, count) % lengths).astype(np.int64) + start % size
        beyond = int(np.searchsorted(places, size))
        return np.concatenate([places[beyond:] - size, places[:beyond]])


def splitmix64(state: int, count: int) -> NDArray[np.uint64]:
    """The first numbers of SplitMix64 (Steele, Lea and Flood, 2014) from a state below 2^64.

    >>> splitmix64(1234567, 2).tolist()
    [6457827717110365317, 3203168211198807973]
    """
    numbers = np.arange(1, count + 1, dtype=np.uint64)
    numbers *= np.uint64(0x9E3779B97F4A7C15)
    numbers += np.uint64(state)
    numbers ^= numbers >> np.uint64(30)
    numbers *= np.uint64(0xBF58476D1CE4E5B9)
    numbers ^= numbers >> np.uint64(27)
    numbers *= np.uint64(0x94D049BB133111EB)
    numbers ^= numbers >> np.uint64(31)
    return numbers
