"""The best set of layers by looking at every one: exact, for a dozen layers."""

from __future__ import annotations

import numpy as np

from strategies.choice import Choice, Key, key_of
from strategies.means import Means
from strategies.pieces import Chosen, Counts, Floats, Pieces, summed
from strategies.worth import Worth

EXACT_LAYERS = 12

# The arrays round otherwise than the scalar formulas, which have the last word.
_SLACK = 1e-9


def best_of_all(means: Means, pieces: Pieces, worth: Worth) -> Choice | None:
    """The set that comes first by the order of :func:`strategies.choice.key_of`; None if none fits.

    Every set is sized up by array arithmetic, a little too well; the best of them are then held
    against the formulas of plans until nothing that is left can be better.
    """
    layers = len(pieces.free)
    numbers = np.arange(1, 2**layers)
    every: Chosen = (numbers[None, :] >> np.arange(layers)[:, None]) & 1 == 1
    hopeful = every[:, may_fit(means, pieces, every)]
    keys = _hoped(means, pieces, worth, hopeful)
    best: tuple[Key, Choice] | None = None
    for at in np.lexsort(keys[::-1])[::-1].tolist():
        if best is not None and tuple(int(column[at]) for column in keys) < best[0]:
            break
        places = tuple(np.flatnonzero(hopeful[:, at]).tolist())
        terms = means.terms([pieces.free[place] for place in places])
        if terms is None:
            continue
        key = key_of(places, terms, worth)
        if best is None or key > best[0]:
            best = (key, Choice(places, terms))
    return None if best is None else best[1]


def may_fit(means: Means, pieces: Pieces, chosen: Chosen) -> Counts:
    """The columns that may train for an epoch, whatever rounding says."""
    flops, least = pieces.epoch_flops(chosen), pieces.least_packet_bytes(chosen)
    fits = flops <= _most_flops(means, least)
    fits &= (least <= means.most_packet_bytes) & (_splits(means, pieces, chosen) > 0)
    return np.flatnonzero(fits)


def _hoped(means: Means, pieces: Pieces, worth: Worth, chosen: Chosen) -> tuple[Counts, ...]:
    """Columns of keys that are at least those of the sets."""
    flops, least = pieces.epoch_flops(chosen), pieces.least_packet_bytes(chosen)
    most_epochs = _most_flops(means, least) / np.maximum(flops, 1e-6)
    epochs = np.clip(most_epochs, 1, means.limits.epochs).astype(np.int64)
    packet = np.maximum(least, _most_packet_bytes(means, epochs * flops))
    sent = packet + means.load.envelope_bytes
    total_s = (
        means.download_s
        + epochs * flops / means.capacity.flops_per_s.value
        + sent / means.capacity.uplink_bytes_per_s.value
    )
    powers = 2 ** np.arange(len(chosen), dtype=np.int64)
    return (
        summed(np.array(worth.whole), chosen),
        epochs,
        packet,
        -_splits(means, pieces, chosen),
        chosen.sum(axis=0),
        1 - np.floor(total_s * (1 - _SLACK) * 1e6).astype(np.int64),
        summed(powers, chosen),
    )


def _most_flops(means: Means, packet: Counts) -> Floats:
    """The most operations beside packets of so many bytes, a little too many."""
    limits, speed = means.limits, means.capacity.flops_per_s.value
    sent = packet + means.load.envelope_bytes
    radio_s = means.download_s + sent / means.capacity.uplink_bytes_per_s.value
    most = (limits.deadline_s - radio_s) * speed
    if limits.flops_per_round is not None:
        most = np.minimum(most, limits.flops_per_round)
    if limits.energy_j_per_round is not None and means.load.board is not None:
        power = means.load.board.power
        left_j = limits.energy_j_per_round - power.radio.value * radio_s
        most = np.minimum(most, left_j / power.compute.value * speed)
    # Differences of large numbers have lost more digits than they show.
    return most + _SLACK * limits.deadline_s * speed


def _most_packet_bytes(means: Means, flops: Floats) -> Counts:
    """The largest packets beside so many operations, a little too large."""
    limits, uplink = means.limits, means.capacity.uplink_bytes_per_s.value
    compute_s = flops / means.capacity.flops_per_s.value
    upload_s = limits.deadline_s - means.download_s - compute_s
    if limits.energy_j_per_round is not None and means.load.board is not None:
        power = means.load.board.power
        left_j = limits.energy_j_per_round - power.compute.value * compute_s
        upload_s = np.minimum(upload_s, left_j / power.radio.value - means.download_s)
    upload_s = upload_s + _SLACK * limits.deadline_s
    room = upload_s * uplink - means.load.envelope_bytes + 1
    return np.minimum(room, means.most_packet_bytes).astype(np.int64)


def _splits(means: Means, pieces: Pieces, chosen: Chosen) -> Counts:
    """The fewest parts of a batch with which each set may fit the memory; 0 if it cannot."""
    has = means.capacity.memory_bytes.value * (1 + _SLACK)
    splits = np.zeros(chosen.shape[1], np.int64)
    for parts in reversed(means.limits.splits):
        splits[pieces.memory_bytes(chosen, parts) <= has] = parts
    return splits
