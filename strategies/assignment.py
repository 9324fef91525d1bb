"""Which client is asked for which layers, so that each layer is trained by enough clients.

A client whose board can train all that it reaches at once may be asked for any number of layers;
another one for one layer a round. What is left of a block of rounds is then a flow problem: a layer
needs so many more clients, a client takes no more layers than rounds are left. The greatest flow
is found by augmenting paths (Ford and Fulkerson 1956). While the clients that were asked train and
come again, what could be done at the start of a block can be done in every round of it, because
each round of a full client takes one layer off it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Trained = Mapping[str, frozenset[str]]


@dataclass(frozen=True)
class Reach:
    """What one client could train in this round.

    Attributes:
        layers: that its board can train alone and that the policy does not rule out, in forward
            order.
        roomy: whether it can train all of them in one round.
        planned: what it would train if nobody asked.
        settled: of ``layers``, those that the policy has frozen as settled.
    """

    layers: tuple[str, ...]
    roomy: bool
    planned: frozenset[str]
    settled: frozenset[str] = frozenset()


def assigned(
    cohort: Mapping[str, Reach], trained: Trained, *, q_min: int, rounds_left: int
) -> dict[str, tuple[str, ...]]:
    """By device id, the layers that a client is asked to train before all others.

    Who is needed for the count comes first. Every other client that cannot train all it reaches is
    asked for the layer of which the fewest clients are known to train it in this block, so that
    weak boards do not all train the same one; never for one that the policy has settled on
    freezing. Of several, it is asked for the one that the fewest of the cohort reach: who is here
    now may not come again in this block.

    Args:
        cohort: by device id.
        trained: by layer, the clients that have trained it in this block.
        q_min: clients that every layer needs in a block.
        rounds_left: in the block, the present one included.
    """
    matching = matched(cohort, trained, q_min=q_min, rounds_left=rounds_left)
    counts = Counter({layer: len(clients) for layer, clients in trained.items()})
    for reach in cohort.values():
        if reach.roomy:
            counts.update(reach.planned)
    reaching = Counter(name for reach in cohort.values() for name in reach.layers)
    asked: dict[str, tuple[str, ...]] = {}
    for device_id in sorted(cohort):
        reach, wanted = cohort[device_id], matching[device_id]
        if reach.roomy:
            asked[device_id] = wanted
            continue
        open_layers = [name for name in reach.layers if name not in reach.settled]
        if not wanted and not set(open_layers) <= reach.planned:
            wanted = tuple(open_layers)
        if wanted:
            layer = _least_trained(wanted, device_id, trained, counts, reaching)
            counts[layer] += 1
            asked[device_id] = (layer,)
    return {device_id: layers for device_id, layers in asked.items() if layers}


def matched(
    cohort: Mapping[str, Reach], trained: Trained, *, q_min: int, rounds_left: int
) -> dict[str, tuple[str, ...]]:
    """By device id, the layers that the client should train in what is left of the block.

    As many as can be are given the clients that they need; where there is a choice, to clients
    that would train them anyway, then to those that have the least to do.
    """
    flow = _Flow(cohort, trained, rounds_left)
    names = sorted({name for reach in cohort.values() for name in reach.layers})
    for layer in sorted(names, key=lambda name: (len(flow.clients(name)), name)):
        for _ in range(q_min - len(trained.get(layer, frozenset()))):
            if not flow.augment(layer):
                break
    return {
        device_id: tuple(name for name in reach.layers if name in flow.given[device_id])
        for device_id, reach in cohort.items()
    }


class _Flow:
    """Layers given to clients, and room for more."""

    def __init__(self, cohort: Mapping[str, Reach], trained: Trained, rounds_left: int) -> None:
        self._cohort = cohort
        self._trained = trained
        self._rounds_left = rounds_left
        self.given: dict[str, set[str]] = {device_id: set() for device_id in cohort}

    def clients(self, layer: str) -> list[str]:
        """Who could be asked for a layer, the best first."""
        there = self._trained.get(layer, frozenset())
        able = [i for i, r in self._cohort.items() if layer in r.layers and i not in there]
        return sorted(
            able, key=lambda i: (layer not in self._cohort[i].planned, len(self.given[i]), i)
        )

    def augment(self, layer: str) -> bool:
        """Give the layer to one more client, moving others' layers if need be."""
        reached_from: dict[str, str] = {}  # client: the layer that it would take
        taken_from: dict[str, str] = {}  # layer: the client that would give it away
        queue = [layer]
        for current in queue:
            for device_id in self.clients(current):
                if device_id in reached_from or current in self.given[device_id]:
                    continue
                reached_from[device_id] = current
                if self._has_room(device_id):
                    self._move(device_id, reached_from, taken_from)
                    return True
                for other in sorted(self.given[device_id] - {layer, *taken_from}):
                    taken_from[other] = device_id
                    queue.append(other)
        return False

    def _has_room(self, device_id: str) -> bool:
        return self._cohort[device_id].roomy or len(self.given[device_id]) < self._rounds_left

    def _move(
        self, device_id: str, reached_from: Mapping[str, str], taken_from: Mapping[str, str]
    ) -> None:
        while True:
            layer = reached_from[device_id]
            self.given[device_id].add(layer)
            if layer not in taken_from:
                return
            device_id = taken_from[layer]
            self.given[device_id].remove(layer)


def _least_trained(
    layers: Sequence[str],
    device_id: str,
    trained: Trained,
    counts: Mapping[str, int],
    reaching: Mapping[str, int],
) -> str:
    """The layer with the fewest clients that this one has not trained.

    Of several, the one that fewest reach, and then the deepest.
    """

    def pressing(at: int) -> tuple[bool, int, int, int]:
        name = layers[at]
        done = device_id in trained.get(name, frozenset())
        return done, counts.get(name, 0), reaching[name], -at

    return layers[min(range(len(layers)), key=pressing)]
