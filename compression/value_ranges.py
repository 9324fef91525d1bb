"""How large a layer's values have lately been: the history from which a width is chosen.

FedFreeze's text (6.2) picks the bits of a layer by its dynamic range and by how its values were
distributed before. Both are one number a layer here, a maximum that falls off exponentially::

    R_t = max(max|u_t|, 0.9 R_(t-1))        with R = 0 before a layer is trained

A layer that is not trained keeps its R.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from compression.residual import Tensors
from fedfreeze.layout import Layout

_KEPT = 0.9  # of R, where the layer's values are smaller now


def value_ranges(
    before: Mapping[str, float], update: Tensors, layout: Layout, layers: Sequence[str]
) -> dict[str, float]:
    """R of every layer that has one, after a round that trained ``layers``.

    Args:
        before: R after the round before.
        update: what is about to be sent, by tensor name.
        layout: of the model; what it lacks is forgotten.
        layers: trained ones; their parameters count, buffers do not.
    """
    ranges = {name: before[name] for name in layout.names if name in before}
    for name in layers:
        largest = max(
            (
                float(np.abs(update[t.name]).max(initial=0))
                for t in layout[name].parameters
                if t.travels
            ),
            default=0.0,
        )
        ranges[name] = max(largest, _KEPT * ranges.get(name, 0.0))
    return ranges
