"""FedBug's toy: two clients with orthogonal data train a two-layer linear network.

Client 1 has x = (1, 0), y = 1, client 2 has x = (0, 1), y = 1, and the model is
f(x) = (x . (a, b)) v, so that

    L1 = (a v - 1)^2        L2 = (b v - 1)^2

Client 1 never moves b, client 2 never moves a. In each round both start from (a, b, v), take K
steps of gradient descent, and the server averages what they come to. FedBug freezes v in the first
k of the steps; k = K is FedBABU. All functions work on arrays: one entry for each seed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Model:
    """The parameters, one entry for each seed."""

    a: Values
    b: Values
    v: Values

    @classmethod
    def drawn(cls, seeds: int) -> Model:
        """Uniform in [0, 2], by the legacy generator that the authors used: seeds 0, 1, ..."""
        drawn = [np.random.RandomState(seed).rand(3) * 2 for seed in range(seeds)]
        return cls(*np.array(drawn).T)

    @property
    def discrepancy(self) -> Values:
        """D = |a - b|."""
        return np.abs(self.a - self.b)


def descend(
    first: Values, last: Values, *, steps: int, frozen_steps: int, rate: float
) -> tuple[Values, Values]:
    """Gradient descent of one client on (first * last - 1)^2, ``last`` frozen at the beginning."""
    for step in range(steps):
        error = first * last - 1
        of_first, of_last = 2 * error * last, 2 * error * first
        first = first - rate * of_first
        if step >= frozen_steps:
            last = last - rate * of_last
    return first, last


def play(
    model: Model, *, rounds: int, frozen_steps: int, steps: int = 50, rate: float = 0.1
) -> list[Model]:
    """The server's model before the first round and after each one."""
    local = {"steps": steps, "frozen_steps": frozen_steps, "rate": rate}
    course = [model]
    for _ in range(rounds):
        a, v_of_1 = descend(model.a, model.v, **local)  # type: ignore[arg-type]
        b, v_of_2 = descend(model.b, model.v, **local)  # type: ignore[arg-type]
        model = Model((a + model.a) / 2, (b + model.b) / 2, (v_of_1 + v_of_2) / 2)
        course.append(model)
    return course


def contraction(course: list[Model], first: int = 10, last: int = 18) -> Values:
    """The measured ratio r = d after over d before a round, on average over some rounds."""
    d = [model.discrepancy for model in course]
    return np.mean([d[at + 1] / d[at] for at in range(first, last + 1)], axis=0)
