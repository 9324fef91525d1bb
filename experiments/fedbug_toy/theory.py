"""What can be known about the toy without running it.

Gradient flow of client 1 keeps c = a^2 - v^2, and ends where a v = 1, so that

    a = sqrt((c + sqrt(c^2 + 4)) / 2)        v = sqrt((-c + sqrt(c^2 + 4)) / 2)        (a, v > 0)

Near the curve a v = 1 a client moves along the gradient, which is normal to it. With theta the
angle between the curve and the a axis, tan theta = v^2 at the minimum, a round shrinks d = |a - b|
by r, and with v frozen for k steps of size eta, which leave q of a client's error, by r_k:

    r = 1 - sin^2(theta) / 2 = (1 + cos^2 theta) / 2        cos^2 theta = 1 / (1 + v^4)
    r_k = (1 + q cos^2 theta) / 2                           q = (1 - 2 eta v^2)^k

r_0 = r, and r_k tends to 1/2, which is FedBABU's. r is the paper's; r_k is the exact linearisation
at the minimum.
"""

from __future__ import annotations

import numpy as np
from two_clients import Model, Values


def minimiser(first: Values, last: Values) -> tuple[Values, Values]:
    """Where gradient flow ends, from positive values."""
    c = first**2 - last**2
    root = np.sqrt(c**2 + 4)
    return np.sqrt((c + root) / 2), np.sqrt((root - c) / 2)


def cos_square_at(v: Values) -> Values:
    """cos^2 theta at the minimum with this v."""
    return 1 / (1 + v**4)


def cos_square_of_gradient(model: Model) -> Values:
    """cos^2 theta as the text estimates it: from the direction of a client's gradient.

    The gradient (2 e v, 2 e a) of client 1 is normal to the level curve, so that the curve has the
    direction (a, -v), and cos^2 theta = a^2 / (a^2 + v^2); on average over both clients.
    """
    of_1 = model.a**2 / (model.a**2 + model.v**2)
    of_2 = model.b**2 / (model.b**2 + model.v**2)
    return (of_1 + of_2) / 2


def ratio(cos_square: Values) -> Values:
    """FedAvg's r."""
    return (1 + cos_square) / 2


def ratio_after_freezing(v: Values, frozen_steps: int, rate: float = 0.1) -> Values:
    """FedBug's r_k."""
    left = (1 - 2 * rate * v**2) ** frozen_steps
    return (1 + left * cos_square_at(v)) / 2


def explained(measured: Values, predicted: Values) -> float:
    """Squared correlation coefficient, R^2."""
    return float(np.corrcoef(measured, predicted)[0, 1] ** 2)
