"""Clients with few examples: a finer step or a damped weight, so that noise does not drown them.

A client with n examples takes about n / batch steps, so its update is short, and what of it is
noise of the quantiser weighs the more. Below ``n_min`` examples a strategy may

- send fewer values more finely (``finer-step``): the quantiser's thresholds grow by
  ``fineness = min(sqrt(n_min / n), 4)`` relative to its step Δ. At a given threshold the variance
  Δ²/12 of a sent value's error then shrinks to n / n_min of itself, in step with the examples
  behind it; error feedback keeps what is not sent. A value costs log2(fineness) bits more, so
  the limit of 4 is two bits: beyond it the packet would carry next to nothing;
- merge it with less weight (``damped-weight``): ``n * n / n_min`` instead of n, in proportion to
  n² where others have n, continuous at n = n_min.

Neither touches the plan, so both ends agree on that whatever the board's examples are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

MOST_FINENESS = 4.0

Treatment = Literal["plain", "finer-step", "damped-weight"]


@dataclass(frozen=True)
class FewExamples:
    """What is done about clients with fewer than ``n_min`` examples.

    >>> FewExamples("damped-weight", 50).weight(10), FewExamples("finer-step", 90).fineness(40)
    (2.0, 1.5)
    """

    treatment: Treatment = "plain"
    n_min: int = 1

    def weight(self, examples: int) -> float:
        """What the server merges the client's update with."""
        if self.treatment != "damped-weight" or examples >= self.n_min:
            return float(examples)
        return examples * examples / self.n_min

    def fineness(self, examples: int) -> float:
        """What the client encodes with; 1 is as everybody."""
        if self.treatment != "finer-step" or examples >= self.n_min:
            return 1.0
        return min(math.sqrt(self.n_min / examples), MOST_FINENESS)
