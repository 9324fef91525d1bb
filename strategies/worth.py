"""How much it is worth to train each layer, in whole numbers.

A layer's worth is the policy's value of it times the share of the steps in which it may train, in
steps of a power of two that is less than a millionth of the largest: the last bits of a float
decide nothing. What the policy says must train is worth more than everything else together, and
what the fleet's coverage asks for more than all of that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from strategies.freeze.policy import Advice
from strategies.stages import share_of

# The largest worth has so many bits.
BITS = 21


@dataclass(frozen=True)
class Worth:
    """Worth of the free layers, in forward order.

    Attributes:
        plain: by the policy's values alone.
        whole: with what comes first.
        first: places of the layers that come first, the most pressing ones in front.
    """

    plain: tuple[int, ...]
    whole: tuple[int, ...]
    first: tuple[int, ...]


def worth_of(advice: Advice, free: Sequence[str]) -> Worth:
    """The worth of each free layer.

    >>> worth_of(Advice({}, {"a": 0.5, "b": 1.0}, must_train=("a",)), ("a", "b"))
    Worth(plain=(524288, 1048576), whole=(2097153, 1048576), first=(0,))
    """
    values = [
        max(0.0, advice.values.get(name, 0.0)) * share_of(advice.stages, name) for name in free
    ]
    _, exponent = math.frexp(max(values))
    # What is worth something is worth 1 at least.
    plain = [max(round(math.ldexp(value, BITS - exponent)), int(value > 0)) for value in values]
    must = [name in advice.must_train and name not in advice.covers for name in free]
    covers = [name in advice.covers for name in free]
    above = sum(plain) + 1
    top = above * (sum(must) + 1)
    whole = [
        value + above * is_must + top * is_cover
        for value, is_must, is_cover in zip(plain, must, covers, strict=True)
    ]
    order = sorted(range(len(free)), key=lambda at: (-whole[at], -at))
    first = [at for at in order if must[at] or covers[at]]
    return Worth(tuple(plain), tuple(whole), tuple(first))
