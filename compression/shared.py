"""Positions that both ends derive by themselves, so that no index travels."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from compression.packet import refusal
from compression.segments import Ints, Segments


def flat_positions(positions: Mapping[str, NDArray[np.int64]], segments: Segments) -> Ints:
    """The positions as ascending indices into the flat vector of all parameters.

    Args:
        positions: ascending flat indices for each parameter tensor; a covered tensor that is
            absent has none, and tensors of other layers are passed over.
        segments: the covered layers.

    Raises:
        PacketError: not ascending whole numbers inside the tensor.
    """
    parts, at = [np.zeros(0, np.int64)], 0
    for spec in segments.parameters:
        chosen = np.asarray(positions.get(spec.name, parts[0]))
        if not (
            chosen.ndim == 1
            and np.issubdtype(chosen.dtype, np.integer)
            and (chosen[1:] > chosen[:-1]).all()
            and (chosen[:1] >= 0).all()
            and (chosen[-1:] < spec.size).all()
        ):
            raise refusal(
                f"ascending shared positions below {spec.size} for tensor {spec.name!r}",
                f"{chosen.dtype}{list(chosen.shape)} that are not",
                "sort them, drop repeated ones, and count from 0 within the tensor",
            )
        parts.append(chosen.astype(np.int64) + at)
        at += spec.size
    return np.concatenate(parts)
