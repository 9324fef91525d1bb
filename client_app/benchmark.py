"""A training step in small, to time: one convolution and one dense layer, forward and backward.

Run as a program it prints what torch can do here as one line of JSON. ``fedfreeze doctor`` starts
it in a process of its own, because a torch build that uses instructions which the processor lacks
ends its process (SIGILL) where it should raise an error.
"""

from __future__ import annotations

import json
import sys

import torch
from torch import nn

from client_app.speed import rate
from client_app.training import chosen_device
from fedfreeze.errors import ConfigError
from fedfreeze.wall_clock import SystemClock

# Inputs, channels and pixels of the convolution; width of the dense layer. Sized after the small
# models of the catalogue, and for less than 3 MB in all: the weakest board has a few tens.
_CPU = (8, 16, 16, 256)
# A GPU needs more at once to be busy.
_CUDA = (64, 64, 32, 1024)
_KERNEL = 3


class TrainingStep:
    """Forward and backward pass of a convolution and a dense layer.

    ``flops`` counts two for each multiply-add, and three passes: the output, the gradient of the
    inputs, the gradient of the weights.
    """

    def __init__(self, device: torch.device) -> None:
        batch, channels, pixels, width = _CUDA if device.type == "cuda" else _CPU
        self._device = device
        image = (batch, channels, pixels, pixels)
        self._image = torch.ones(image, device=device, requires_grad=True)
        self._rows = torch.ones((width, width), device=device, requires_grad=True)
        self._convolution = nn.Conv2d(
            channels, channels, _KERNEL, padding="same", bias=False, device=device
        )
        self._dense = nn.Linear(width, width, bias=False, device=device)
        outputs = batch * channels * pixels * pixels
        multiply_adds = outputs * channels * _KERNEL**2 + width**3
        self.flops = 3 * 2.0 * multiply_adds

    def run(self) -> None:
        """One step; gradients are thrown away."""
        loss = self._convolution(self._image).sum() + self._dense(self._rows).sum()
        loss.backward()
        for tensor in (self._image, self._rows, *self._convolution.parameters()):
            tensor.grad = None
        self._dense.weight.grad = None
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)


def measured_flops_per_s(device: torch.device) -> float:
    """Median FLOP/s of :class:`TrainingStep`, over about a second."""
    return rate(TrainingStep(device), SystemClock())


def main(wanted: str) -> None:
    """Print torch's version, the device, its speed, and the CUDA version torch was built for."""
    try:
        device = chosen_device(wanted)
    except ConfigError as error:
        print(json.dumps({"error": str(error)}))  # noqa: T201  # read by whoever started it
        return
    report = {
        "torch": torch.__version__,
        "cuda_build": torch.version.cuda,
        "device": device.type,
        "threads": torch.get_num_threads(),
        "flops_per_s": measured_flops_per_s(device),
    }
    print(json.dumps(report))  # noqa: T201  # read by whoever started it


if __name__ == "__main__":
    main(*sys.argv[1:2] or ["auto"])
