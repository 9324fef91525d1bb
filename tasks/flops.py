"""Floating-point operations of the modules that own parameters.

A multiplication and an addition count as two operations. Biases, and functions without parameters
(ReLU, pooling), are left out: they are a few per cent at most. A convolution or a linear layer
needs as many operations for the gradient of its input, and again for that of its weights, as for
its forward pass.
"""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor, nn

from fedfreeze.errors import LayoutError

_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
_NORMS = (nn.modules.batchnorm._BatchNorm, nn.GroupNorm, nn.LayerNorm)  # noqa: SLF001 - the common base


def forward_flops(module: nn.Module, name: str, output: Any) -> float:
    """Operations of one forward pass that gave ``output`` (the whole batch).

    Raises:
        LayoutError: there is no formula for the module, whose place in the model is ``name``.

    >>> import torch
    >>> forward_flops(nn.Linear(3, 5), "head", torch.zeros(2, 5))
    60.0
    """
    if isinstance(output, Tensor):
        if isinstance(module, _CONVOLUTIONS):
            taps = math.prod(module.kernel_size) * module.in_channels // module.groups
            return 2.0 * output.numel() * taps
        if isinstance(module, nn.Linear):
            return 2.0 * output.numel() * module.in_features
        if isinstance(module, _NORMS):
            return 8.0 * output.numel()  # mean 1, variance 3, normalise 2, scale and shift 2
    raise LayoutError(
        f'layer "{name}": no formula for the cost of {type(module).__name__}; '
        f"use convolutions, linear layers and norms, or add one to tasks/flops.py"
    )


def weight_grad_flops(module: nn.Module, name: str, output: Any) -> float:
    """Operations of the gradient of the module's own parameters (the whole batch).

    Raises:
        LayoutError: as :func:`forward_flops`.
    """
    if isinstance(module, _NORMS) and isinstance(output, Tensor):
        return 3.0 * output.numel()  # multiply and add for the scale, add for the shift
    return forward_flops(module, name, output)
