"""What a model's modules and tensors must be, so that its layers can be frozen and sent alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from fedfreeze.errors import LayoutError
from tasks.tracing.globs import listed


def check_modules(model: nn.Module, name: str) -> None:
    """Refuse a module that torch has compiled, exported or not yet given its sizes.

    Raises:
        LayoutError: it is one.
    """
    if any(isinstance(module, torch.jit.ScriptModule) for module in model.modules()):
        raise LayoutError(
            f'model "{name}" is compiled by TorchScript, which hides what its layers do; give the '
            "module that it was made from"
        )
    modes = {module: module.training for module in model.modules()}
    try:
        model.train()
    except Exception as error:  # a graph from torch.export has no modes
        raise LayoutError(
            f'model "{name}" cannot be put into training mode: {type(error).__name__}: {error}; '
            "give the module that it was made from"
        ) from error
    finally:
        for module, mode in modes.items():
            module.training = mode
    if lazy := [
        key
        for key, tensor in [*model.named_parameters(), *model.named_buffers()]
        if is_lazy(tensor)
    ]:
        raise LayoutError(
            f'model "{name}": {listed(lazy)} has no shape before the first batch; build the layer '
            "with its sizes, such as nn.Linear(64, 10) in place of nn.LazyLinear(10)"
        )


def check_tensors(model: nn.Module, state: Mapping[str, Tensor], name: str) -> None:
    """Refuse tensors that could not be sent, or not be kept still by themselves.

    Raises:
        LayoutError: says which, and what to do about it; or nothing at all could be trained.
    """
    parameters = dict(model.named_parameters())
    if not any(parameter.requires_grad for parameter in parameters.values()):
        raise LayoutError(
            f'model "{name}" has no trainable parameter: it has '
            f"{len(parameters)} parameter(s), none with requires_grad; nothing could be trained"
        )
    for key, parameter in parameters.items():
        if parameter.requires_grad and not parameter.is_floating_point():
            dtype = str(parameter.dtype).removeprefix("torch.")
            raise LayoutError(
                f'model "{name}": parameter "{key}" is {dtype}; only real numbers can be sent, so '
                "keep its real and imaginary parts as two parameters"
            )
    held = {id(tensor) for tensor in state.values()}
    if lost := [key for key, parameter in parameters.items() if id(parameter) not in held]:
        raise LayoutError(
            f'model "{name}": the parameters {listed(lost)} are not in its state_dict(), so they '
            "could not be sent; do not override state_dict()"
        )
    for key, tensor in state.items():
        dtype = str(tensor.dtype).removeprefix("torch.")
        try:
            np.dtype(dtype)
        except TypeError as error:
            raise LayoutError(
                f'model "{name}": tensor "{key}" is {dtype}, which numpy does not have; convert '
                "the model with .float()"
            ) from error
        if tensor.layout is not torch.strided or tensor.device.type != "cpu":
            layout = str(tensor.layout).removeprefix("torch.")
            raise LayoutError(
                f'model "{name}": expected dense tensors on the CPU, "{key}" is {layout} on '
                f"{tensor.device}; build the model so (boards move it to their device themselves)"
            )
    _check_memory(state, name)


def _check_memory(state: Mapping[str, Tensor], name: str) -> None:
    """Tensors that share memory without being tied would change each other while frozen."""
    distinct = {id(tensor): key for key, tensor in state.items() if tensor.numel()}
    begins = sorted((state[key].data_ptr(), key) for key in distinct.values())
    beyond, last = 0, ""
    for begin, key in begins:
        tensor = state[key]
        if any(stride == 0 < size - 1 for size, stride in _steps(tensor)):
            raise LayoutError(
                f'model "{name}": values of tensor "{key}" share memory with each other (it was '
                "made by expand()); make a tensor of its own of it with .clone()"
            )
        if begin < beyond:
            raise LayoutError(
                f'model "{name}": tensors "{last}" and "{key}" share memory without being the same '
                "tensor, so one would change while it is frozen; make it of its own with .clone(), "
                "or tie the whole tensor"
            )
        reach = sum((size - 1) * stride for size, stride in _steps(tensor))
        beyond, last = begin + (reach + 1) * tensor.element_size(), key


def _steps(tensor: Tensor) -> Iterable[tuple[int, int]]:
    return zip(tensor.shape, tensor.stride(), strict=True)


def check_sizes_stay(before: Mapping[str, Tensor], after: Mapping[str, Tensor], name: str) -> None:
    """Refuse tensors that a step gives another shape: a layout says how large each one is.

    Raises:
        LayoutError: names the first one.
    """
    for key, tensor in before.items():
        now = after.get(key)
        if now is None or now.shape != tensor.shape or now.dtype != tensor.dtype:
            came = "gone" if now is None else f"{list(now.shape)} of {now.dtype}"
            raise LayoutError(
                f'model "{name}": tensor "{key}" was {list(tensor.shape)} of {tensor.dtype} and is '
                f"{came} after one step; clients could not agree on it, so keep its size, or "
                "register it with persistent=False"
            )
