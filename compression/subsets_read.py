"""Reading subsets (:mod:`compression.golomb`) and the cells that are nested in them.

What is coded of a subset of k among N are its members or the others, whichever are fewer. At least
one bit stands for each, and of all planes of cells together no more are coded than there are
values, for each plane has at least as many fewer members than the one before as are coded of it.
So an array of what is coded is bounded by the layout; wider ones are made a piece at a time.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from compression.bit_string import PIECE, BitString, by_planes, owners
from compression.bits import Bools, Ints, bit_length
from compression.golomb import divisors
from compression.packet import refusal

Places = NDArray[np.signedinteger]  # of 32 bits, or of 64 where universes need them


def coded_of(chosen: Ints, universes: Ints) -> Ints:
    """Elements of each subset that are coded."""
    counts: Ints = np.minimum(chosen, universes - chosen)
    return counts


def read(bits: BitString, chosen: Ints, universes: Ints) -> Places:
    """The coded elements of subsets, each within its own universe; they fill all that is left.

    Args:
        bits: at the first bit of the subsets.
        chosen: members of each.
        universes: elements of each universe.

    Raises:
        PacketError: too few or too many bits, or a position outside its universe.
    """
    counts = coded_of(chosen, universes)
    total = int(counts.sum())
    if total > bits.left:
        raise refusal(f"at least {total} more bits", str(bits.left))
    divisor = divisors(counts, universes)
    width = bit_length(divisor - 1)
    cutoff = np.where(width > 0, (1 << width) - divisor, 1)  # 1 is above the only remainder
    wide = universes.max(initial=0) >= 2**31
    positions: Places = np.empty(total, np.int64 if wide else np.int32)
    for start, stop, owner, numbers in by_planes(bits, counts, np.maximum(width - 1, 0)):
        cutoffs = cutoff[owner]
        longer = np.flatnonzero(numbers >= cutoffs)
        last = bits.bits(bits.skip(len(longer)), len(longer))
        numbers[longer] += numbers[longer] + last - cutoffs[longer]
        positions[start:stop] = numbers
    _add_quotients(bits, positions, np.cumsum(counts), universes, divisor)
    return positions


def _add_quotients(
    bits: BitString, positions: Places, ends: Ints, universes: Ints, divisor: Ints
) -> None:
    """Turn remainders into positions, by the quotients in unary that fill all that is left."""
    total, most = len(positions), universes // divisor
    left = bits.left
    first = bits.skip(left)
    done, zeros = 0, 0  # numbers that are read, zeros since the last one
    owner_before, position_before = -1, -1
    for place in range(first, first + left, PIECE):
        part = bits.bits(place, min(PIECE, first + left - place))
        ones = np.flatnonzero(part)
        if not len(ones):
            zeros += len(part)
            continue
        if done + len(ones) > total:
            raise refusal(f"{total} unary numbers", "more")
        quotients = np.diff(ones, prepend=-1 - zeros) - 1
        zeros = len(part) - 1 - int(ones[-1])
        owner = owners(ends, done, done + len(ones))
        # Checked before the product, which could otherwise overflow.
        if (quotients > most[owner]).any():
            raise refusal("positions inside their universe", "one beyond its end")
        own = positions[done : done + len(ones)]
        sums = np.cumsum(quotients * divisor[owner] + own + 1)
        begins = np.flatnonzero(np.diff(owner, prepend=owner_before))
        before = np.full(len(ones), -1 - position_before)
        if len(begins):
            lengths = np.diff(begins, append=len(ones))
            before[begins[0] :] = np.repeat(np.where(begins > 0, sums[begins - 1], 0), lengths)
        sums -= before + 1
        if (sums >= universes[owner]).any():
            raise refusal("positions inside their universe", "one beyond its end")
        own[:] = sums
        owner_before, position_before = int(owner[-1]), int(sums[-1])
        done += len(ones)
    if done != total:
        raise refusal(f"{total} unary numbers", str(done))
    if zeros > 7:
        raise refusal("less than a byte of padding", f"{zeros} bits")


def members(coded: Places, chosen: Ints, universes: Ints) -> Bools:
    """Which elements of all universes, one behind another, are members of their subset."""
    flipped = 2 * chosen > universes
    marked = np.repeat(flipped, universes)
    counts = coded_of(chosen, universes)
    places = coded + np.repeat(np.cumsum(universes) - universes, counts)
    marked[places] = np.repeat(~flipped, counts)
    return marked


def depths(levels: list[Ints], coded: Places) -> NDArray[np.uint8]:
    """The deepest plane that each value is in (:class:`compression.nested.Nested`).

    Args:
        levels: members of each plane in each unit; plane 0 counts all values.
        coded: of all planes from 1 on, as :func:`read` returns them.
    """
    found = np.zeros(int(levels[-1].sum()), np.uint8)
    stop = len(coded)
    for outer, inner in reversed(list(pairwise(levels))):
        start = stop - int(coded_of(inner, outer).sum())
        inside = members(coded[start:stop], inner, outer)
        here = np.zeros(len(inside), np.uint8)
        here[inside] = found + 1
        found, stop = here, start
    return found
