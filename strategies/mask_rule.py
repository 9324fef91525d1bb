"""``[compression] mask = "shared"``: which values a client sends, as both ends work it out.

The share of the values is what the strategy says, or less where the budget of the client's plan
does not hold so many at a bit and a half each. Server and client know plan and budget, so
neither has to tell the other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from compression.packet import frame_bytes
from compression.shared_mask import WHOLE_SHARE, SharedMask
from fedfreeze.layout import Layout
from strategies.packet_sizes import float_buffer_bytes

# So many values in so many bits. A value takes a bit at least, its sign; fewer values of more bits
# each leave more error, as do more of hardly more than a sign (docs/codec.md).
_VALUES, _BITS = 2, 3

# The step and the checksum of the positions; a row of the table, with a gain.
_HEAD_BYTES, _ROW_BYTES = 8, 5


@dataclass(frozen=True)
class MaskRule:
    """What of a strategy decides which values are sent.

    Attributes:
        seed: of the run.
        density: share of the values that is sent at most; None for as many as the budget holds.
    """

    seed: int
    density: float | None

    def mask(
        self, layout: Layout, layers: Iterable[str], budget_bytes: int, round_number: int
    ) -> SharedMask:
        """The mask of a client that trains these layers."""
        share = _share_within(layout, layers, budget_bytes)
        if self.density is not None:
            share = min(share, max(round(self.density * WHOLE_SHARE), 1))
        return SharedMask(self.seed, round_number, share)


def _share_within(layout: Layout, layers: Iterable[str], budget_bytes: int) -> int:
    """Share of the values of these layers that so many bytes hold, by whole numbers."""
    covered = [layout[name] for name in layers]
    tensors = [t for layer in covered for t in layer.parameters if t.travels]
    size = sum(t.size for t in tensors)
    table_bytes = _HEAD_BYTES + (len(tensors) + 7) // 8 + _ROW_BYTES * len(tensors)
    buffers = sum(map(float_buffer_bytes, covered))
    left_bytes = budget_bytes - frame_bytes(layout) - table_bytes - buffers
    if not size or left_bytes <= 0:
        return 0
    return min(8 * left_bytes * _VALUES * WHOLE_SHARE // (_BITS * size), WHOLE_SHARE)
