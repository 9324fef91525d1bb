"""Sound as the logarithm of its energy in mel bands: what speech models are given.

Needs torch alone, no audio library.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

# Of int16 samples.
_FULL_SCALE = 32768.0


@dataclass(frozen=True)
class LogMel:
    """``int16[n, samples]`` to ``float32[n, frames, bands]``.

    Frames of ``window`` samples under a Hann window, ``hop`` apart, the last ones dropped if they
    do not fit; power spectrum; :func:`mel_filters`; ``(ln(energy + floor) - mean) / std``.

    Attributes:
        rate: samples a second.
        window, hop: in samples.
        bands: mel bands from ``lowest`` to ``highest`` Hz.
        floor: what silence counts as, for samples from -1 to 1.
        mean, std: of the logarithms; these are those of the spoken digits' training half.
    """

    rate: int = 8000
    window: int = 256
    hop: int = 128
    bands: int = 32
    lowest: float = 60.0
    highest: float = 4000.0
    floor: float = 1e-5
    mean: float = -8.5
    std: float = 4.2

    def __call__(self, inputs: Tensor) -> Tensor:
        """The prepared batch."""
        spectrum = torch.stft(
            inputs.float() / _FULL_SCALE,
            n_fft=self.window,
            hop_length=self.hop,
            window=torch.hann_window(self.window, device=inputs.device),
            center=False,
            return_complex=True,
        )
        power = spectrum.real.square() + spectrum.imag.square()
        filters = _filters(self.rate, self.window, self.bands, self.lowest, self.highest)
        energy = power.transpose(1, 2) @ filters.to(inputs.device).T
        return ((energy + self.floor).log() - self.mean) / self.std

    def frames(self, samples: int) -> int:
        """How many frames a sound of that many samples has.

        >>> LogMel().frames(8000)
        61
        """
        return 1 + (samples - self.window) // self.hop

    def describe(self) -> dict[str, Any]:
        """All settings, and the names of the scale and the window."""
        return {"kind": "log_mel", "scale": "htk", "window_shape": "hann", **asdict(self)}


def mel(hertz: float) -> float:
    """Pitch on the mel scale of HTK: 2595 log10(1 + f / 700) (O'Shaughnessy, 1987).

    >>> round(mel(1000.0), 1)
    1000.0
    """
    return float(2595.0 * np.log10(1.0 + hertz / 700.0))


def mel_filters(
    rate: int, window: int, bands: int, lowest: float, highest: float
) -> NDArray[np.float64]:
    """Weights of the frequencies of a spectrum in each band: ``[bands, window // 2 + 1]``.

    The centres are evenly spaced in mel. Each band is a triangle over frequency that rises from the
    centre of the band below to 1 at its own and falls to 0 at the one above, so neighbours add up
    to 1. Bands narrower than the spectrum's steps may have no weight: choose fewer bands.
    """
    pitches = np.linspace(mel(lowest), mel(highest), bands + 2)
    edges = 700.0 * (10.0 ** (pitches / 2595.0) - 1.0)
    frequencies = np.arange(window // 2 + 1) * rate / window
    below, centre, above = (edges[start : start + bands, None] for start in range(3))
    rising = (frequencies - below) / (centre - below)
    falling = (above - frequencies) / (above - centre)
    return np.maximum(0.0, np.minimum(rising, falling))


@lru_cache(maxsize=8)
def _filters(rate: int, window: int, bands: int, lowest: float, highest: float) -> Tensor:
    return torch.from_numpy(mel_filters(rate, window, bands, lowest, highest)).float()
