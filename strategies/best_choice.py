"""The best way to train on a board: everything, else every set, else a knapsack."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from strategies.choice import Choice, key_of
from strategies.knapsack import pack
from strategies.means import Means, Terms
from strategies.pieces import Floats, Pieces
from strategies.stages import share_of
from strategies.subsets import EXACT_LAYERS, best_of_all, may_fit
from strategies.worth import Worth


def best_choice(means: Means, pieces: Pieces, worth: Worth) -> Choice | None:
    """The best set of the free layers with its terms; None if not even one layer fits."""
    terms = means.terms(pieces.free)
    limits = means.limits
    everything = tuple(range(len(pieces.free)))
    if terms is not None and (terms.epochs, terms.packet_bytes, terms.splits) == (
        limits.epochs,
        means.most_packet_bytes,
        1,
    ):
        return Choice(everything, terms)
    if len(pieces.free) <= EXACT_LAYERS:
        return best_of_all(means, pieces, worth)
    return _packed(means, pieces, worth)


def _packed(means: Means, pieces: Pieces, worth: Worth) -> Choice | None:
    """By :func:`strategies.knapsack.pack`, or one layer alone, whichever is better.

    What comes first is held as far as it fits, one after another; where some of it is in the way of
    other, it is also sought as what is worth the most. Of advice with stages the knapsack overrates
    the cost: it lets each stage reach back to the shallowest layer of all.
    """
    forced: list[int] = []
    in_the_way = False
    for at in worth.first:
        if _terms(means, pieces, [*forced, at]) is not None:
            forced.append(at)
        elif _terms(means, pieces, [at]) is not None:
            in_the_way = True
    alone = next((at for at in _by_worth(worth) if _terms(means, pieces, [at]) is not None), None)
    sets = [forced, [] if alone is None else [alone], _knapsack(means, pieces, worth.plain, forced)]
    if in_the_way:
        sets.append(_knapsack(means, pieces, worth.whole, ()))
    choices = [
        choice for places in sets if (choice := _cut_down(means, pieces, worth, places)) is not None
    ]
    if not choices:
        return None
    best = max(choices, key=lambda choice: key_of(choice.places, choice.terms, worth))
    return _filled_up(means, pieces, worth, best)


def _knapsack(
    means: Means, pieces: Pieces, values: Sequence[int], forced: Sequence[int]
) -> Sequence[int]:
    """The set of the greatest value, or one a little smaller if it takes too much by rounding."""
    takes, room = _resources(means, pieces)
    found = pack(values, takes, room, forced)
    if found is not None and not means.stages and _terms(means, pieces, found.items) is None:
        found = pack(values, takes, room * (1 - 1e-9), forced)
    return () if found is None else found.items


def _resources(means: Means, pieces: Pieces) -> tuple[Floats, Floats]:
    """What each layer takes, and what is left for it and all above it: float64[D, K] both."""
    limits, load, capacity = means.limits, means.load, means.capacity
    speed, uplink = capacity.flops_per_s.value, capacity.uplink_bytes_per_s.value
    shares = np.array([share_of(means.stages, name) for name in pieces.free])
    flops = load.examples * shares * pieces.weight_flops
    reach = load.examples * pieces.reach_flops
    rows = [
        (extra, capacity.memory_bytes.value - fixed)
        for fixed, extra in pieces.memory(limits.splits[-1])
    ]
    if limits.flops_per_round is not None:
        rows.append((flops, limits.flops_per_round - reach))
    for size, fixed in _packets(means, pieces):
        rows.append((size, np.full(len(size), means.most_packet_bytes - fixed, float)))
        # A byte more, because packets are whole bytes.
        radio_s = means.download_s + (load.envelope_bytes + fixed + 1) / uplink
        left_s = limits.deadline_s - radio_s - reach / speed
        rows.append((flops / speed + size / uplink, left_s))
        if limits.energy_j_per_round is not None and load.board is not None:
            power = load.board.power
            radio_w, compute_w = power.radio.value, power.compute.value
            takes = compute_w * flops / speed + radio_w * size / uplink
            left_j = limits.energy_j_per_round - radio_w * radio_s - compute_w * reach / speed
            rows.append((takes, left_j))
    return np.array([row for row, _ in rows]), np.array([room for _, room in rows])


def _packets(means: Means, pieces: Pieces) -> Iterable[tuple[Floats, float]]:
    """Bytes of each layer in a packet and beside them, by each rule of :mod:`strategies.means`."""
    limits = means.limits
    if limits.dense_bits is not None:
        size = pieces.buffers + pieces.parameters * limits.dense_bits / 8
        return [(size, limits.smallest_packet_bytes)]
    rate = limits.full_upload_bytes / means.layout.parameter_count
    buffers = pieces.buffers.astype(float)
    return [(buffers, limits.smallest_packet_bytes), (rate * pieces.parameters, 0.0)]


def _cut_down(means: Means, pieces: Pieces, worth: Worth, places: Sequence[int]) -> Choice | None:
    """The set with its terms, less what must go if the knapsack was wrong about it."""
    left = sorted(places, key=lambda at: (-worth.whole[at], -at))
    while left:
        if (terms := _terms(means, pieces, left)) is not None:
            return Choice(tuple(sorted(left)), terms)
        left.pop()
    return None


def _filled_up(means: Means, pieces: Pieces, worth: Worth, choice: Choice) -> Choice:
    """The choice with every further layer that makes it better."""
    while True:
        others = [at for at in _by_worth(worth) if at not in choice.places]
        chosen = np.zeros((len(pieces.free), len(others)), bool)
        chosen[list(choice.places)] = True
        chosen[others, np.arange(len(others))] = True
        for column in may_fit(means, pieces, chosen).tolist():
            places = tuple(sorted([*choice.places, others[column]]))
            terms = _terms(means, pieces, places)
            if terms is not None and key_of(places, terms, worth) > key_of(
                choice.places, choice.terms, worth
            ):
                choice = Choice(places, terms)
                break
        else:
            return choice


def _by_worth(worth: Worth) -> list[int]:
    return sorted(range(len(worth.whole)), key=lambda at: (-worth.whole[at], -at))


def _terms(means: Means, pieces: Pieces, places: Iterable[int]) -> Terms | None:
    return means.terms([pieces.free[at] for at in sorted(places)])
