"""The toy with more clients, data that is not orthogonal, wider features, and more layers.

The paper names these as future work. Each client i has an input x_i, the target 1 and the loss
(f(x_i) - 1)^2; only how far the clients' first layers disagree after some rounds is looked at.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from two_clients import Values


@dataclass(frozen=True)
class Setting:
    """A generalised toy.

    Attributes:
        clients: m; client i has the i-th unit vector for its input.
        angle: by which each input is turned towards the mean of all, from 0 (orthogonal) up to 1.
        width: features of the hidden layers.
        layers: of the network, 2 at least; all but the last are hidden.
    """

    clients: int = 2
    angle: float = 0.0
    width: int = 1
    layers: int = 2

    @property
    def inputs(self) -> Values:
        """One row for each client, of length 1."""
        unit = np.eye(self.clients)
        turned = (1 - self.angle) * unit + self.angle * unit.mean(axis=0)
        return turned / np.linalg.norm(turned, axis=1, keepdims=True)


def initial(setting: Setting, seed: int) -> list[Values]:
    """Weights from bottom to top, uniform in [0, 2], over the number that is summed."""
    rng = np.random.RandomState(seed)
    sizes = [setting.clients, *[setting.width] * (setting.layers - 1), 1]
    shapes = list(itertools.pairwise(sizes))
    return [rng.rand(*shape) * 2 / (1 if at == 0 else shape[0]) for at, shape in enumerate(shapes)]


def descend(
    weights: list[Values], x: Values, *, steps: int, period: int, rate: float
) -> list[Values]:
    """One client; layer l trains from step ``l * period`` on (0: all of them at once)."""
    weights = [w.copy() for w in weights]
    for step in range(steps):
        hidden = [x[None, :]]
        for w in weights:
            hidden.append(hidden[-1] @ w)
        error = 2 * (hidden[-1] - 1)
        for at in reversed(range(len(weights))):
            gradient = hidden[at].T @ error
            error = error @ weights[at].T
            if step >= at * period:
                weights[at] = weights[at] - rate * gradient
    return weights


def discrepancies(
    setting: Setting, seed: int, *, rounds: int, period: int, steps: int = 50, rate: float = 0.02
) -> Values:
    """After each round, the largest distance of a client's output from the target."""
    weights, found = initial(setting, seed), []
    for _ in range(rounds):
        clients = [
            descend(weights, x, steps=steps, period=period, rate=rate) for x in setting.inputs
        ]
        weights = [np.mean(layer, axis=0) for layer in zip(*clients, strict=True)]
        outputs = setting.inputs
        for w in weights:
            outputs = outputs @ w
        found.append(np.abs(outputs - 1).max())
    return np.array(found)
