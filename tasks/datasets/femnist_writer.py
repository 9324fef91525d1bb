"""What each of FEMNIST's two forms is read to: the images of one writer."""

from __future__ import annotations

import string
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# The ten digits, then the capital and the small letters.
LABELS = tuple(string.digits + string.ascii_uppercase + string.ascii_lowercase)
SIDE = 28
HALVES = ("train", "test")


@dataclass(frozen=True)
class Writer:
    """``uint8[n, 784]`` images, 255 for paper, and ``int64[n]`` classes of one person."""

    name: str
    images: NDArray[np.uint8]
    labels: NDArray[np.int64]
