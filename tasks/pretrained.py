"""Filling a model with weights that were trained before, from one file.

Everything but the head is loaded, and all of it: a tensor that is missing, left over or of another
shape is an error, so that no part of a "pretrained" model is silently random. The head keeps its
fresh initialisation, as it belongs to the task.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from fedfreeze.errors import ConfigError, StateError
from fedfreeze.messages import printable
from tasks.download import file_digest

HUB = "hub"

Tensors = dict[str, Tensor]
Loader = Callable[[nn.Module, str], str]

# Under these keys a training script may have put the weights beside its optimizer's state.
_WRAPPERS = ("state_dict", "model_state_dict", "model")
_MOST_NAMED = 3
_MOST_TEXT = 120

# One matrix for query, key and value: timm's name of it, and that of nn.MultiheadAttention.
_FUSED = re.compile(
    r"(?P<module>(?:.*\.)?)(?:qkv\.(?P<kind>weight|bias)|in_proj_(?P<torch_kind>weight|bias))"
)


def from_file(heads: tuple[str, ...]) -> Loader:
    """The loader of a model whose weights nobody publishes: from a file only.

    Args:
        heads: modules that keep their fresh weights, by name.
    """

    def load(model: nn.Module, origin: str) -> str:
        if origin == HUB:
            raise ConfigError(
                'model.pretrained: "hub" has no weights of this model; give a file, such as the '
                "model.safetensors of an earlier run, or remove the key"
            )
        path = named_file(origin)
        fill(model, read_weights(path), heads, str(path))
        return described(path, str(path))

    return load


def named_file(origin: str) -> Path:
    """The file of that name.

    Raises:
        ConfigError: there is none.
    """
    try:
        path = Path(origin).expanduser()
        is_file = path.is_file()
    except (OSError, RuntimeError, ValueError):  # no name that a file could have, or no such home
        path, is_file = Path(origin), False
    if not is_file:
        raise ConfigError(
            f'model.pretrained: expected "{HUB}" or a file, there is no file '
            f"{printable(str(path))}; give its whole path"
        )
    return path


def described(path: Path, where: str) -> str:
    """Where weights came from, and which they were: for the record of a run."""
    return f"{where} (sha256 {file_digest(path)[:16]})"


def read_weights(path: Path) -> Tensors:
    """The tensors of a safetensors file, or of a torch file that holds nothing else.

    Raises:
        StateError: it is torn, or holds more than tensors by name.
    """
    try:
        if path.suffix == ".safetensors":
            return load_file(path, device="cpu")
        # Only tensors and plain containers are unpickled: no code of the file runs.
        content: Any = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        # torch's own text says how to run the code that the file holds.
        raise StateError(
            f"{path}: expected a safetensors file or a torch file of tensors only: it is torn or "
            "holds objects, whose code is not run; save the model's state_dict()"
        ) from error
    except Exception as error:  # a torn file makes the readers raise errors of any kind
        reason = str(error).partition("\n")[0].partition(". ")[0] or "it ends too early"
        raise StateError(
            f"{path}: expected a safetensors file or a torch file of tensors only: "
            f"{type(error).__name__}: {printable(reason, _MOST_TEXT)}"
        ) from error
    for wrapper in _WRAPPERS:
        if isinstance(content, Mapping) and isinstance(content.get(wrapper), Mapping):
            content = content[wrapper]
    if not isinstance(content, Mapping) or not all(
        isinstance(name, str) and _is_plain(value) for name, value in content.items()
    ):
        raise StateError(
            f"{path}: expected a table of dense tensors by name, got something else; "
            "save the model's state_dict()"
        )
    # Data-parallel training puts the model into a module of this name.
    prefix = "module." if all(name.startswith("module.") for name in content) else ""
    return {name.removeprefix(prefix): value for name, value in content.items()}


def fill(model: nn.Module, tensors: Tensors, heads: Iterable[str], where: str) -> None:
    """Copy the tensors into the model, all but its heads.

    Args:
        model: changed in place.
        tensors: by the model's own names, or by those of the model with its attention split.
        heads: modules that keep their weights.
        where: the tensors are from, for messages.

    Raises:
        ConfigError: they are of another model.
        StateError: one is not finite.
    """
    state = model.state_dict()
    body = {name: value for name, value in state.items() if not _in(name, heads)}
    given = {name: value for name, value in tensors.items() if not _in(name, heads)}
    given = fused(given, body)
    misfits = _misfits(body, given)
    if misfits:
        raise ConfigError(
            f"model.pretrained: {where} does not fit this model: {'; '.join(misfits)}; "
            "give weights of the same model, or remove the key"
        )
    # As the model has them: a number of 64 bits may be none of 32.
    cast = {name: value.to(body[name].dtype) for name, value in given.items()}
    for name, value in cast.items():
        if value.is_floating_point() and not bool(torch.isfinite(value).all()):
            raise StateError(f"{where}: {name} holds numbers that are not finite")
    with torch.no_grad():
        for name, value in cast.items():
            body[name].copy_(value)


def fits(model: nn.Module, tensors: Tensors, heads: Iterable[str]) -> bool:
    """Whether :func:`fill` would take the tensors as they are."""
    body = {name: value for name, value in model.state_dict().items() if not _in(name, heads)}
    given = {name: value for name, value in tensors.items() if not _in(name, heads)}
    return not _misfits(body, fused(given, body))


def fused(given: Tensors, body: Mapping[str, Tensor]) -> Tensors:
    """The same tensors with query, key and value joined where the model has them as one.

    A run's own file holds them apart, as :func:`tasks.tracing.split_attention` named them.

    >>> parts = {f"attn.qkv.{part}.weight": torch.full((1, 2), i) for i, part in enumerate("qkv")}
    >>> fused(parts, {"attn.qkv.weight": torch.zeros(3, 2)})["attn.qkv.weight"].tolist()
    [[0, 0], [1, 1], [2, 2]]
    """
    joined = dict(given)
    for name in body:
        if name in joined or (match := _FUSED.fullmatch(name)) is None:
            continue
        kind = match["kind"] or match["torch_kind"]
        pattern = "{}qkv.{}.{}" if match["kind"] else "{}{}_proj.{}"  # torch's own attention
        parts = [pattern.format(match["module"], part, kind) for part in "qkv"]
        if all(part in joined for part in parts):
            joined[name] = torch.cat([joined.pop(part) for part in parts])
    return joined


def _in(name: str, modules: Iterable[str]) -> bool:
    return any(name == module or name.startswith(f"{module}.") for module in modules)


def _misfits(body: Mapping[str, Tensor], given: Mapping[str, Tensor]) -> list[str]:
    # A tied tensor has several names in the model, and a file may hold it under one of them.
    held = {body[name].data_ptr() for name in given if name in body}
    missing = [n for n, v in body.items() if n not in given and v.data_ptr() not in held]
    unknown = [name for name in given if name not in body]
    other = [
        f"{name} is {tuple(given[name].shape)} instead of {tuple(value.shape)}"
        for name, value in body.items()
        if name in given and given[name].shape != value.shape
    ]
    # Counters are whole numbers in a model, and not in every file.
    kinds = [
        f"{name} is {str(given[name].dtype).removeprefix('torch.')}"
        for name, value in body.items()
        if name in given
        and (
            given[name].is_complex() or value.is_floating_point() > given[name].is_floating_point()
        )
    ]
    return [
        f"{text} {_shortened(names)}"
        for text, names in (
            ("it lacks", missing),
            ("it has what the model does not:", unknown),
            ("of another shape:", other),
            ("no real numbers:", kinds),
        )
        if names
    ]


def _is_plain(value: Any) -> bool:
    """A tensor with numbers of its own: not sparse, quantised, or without memory."""
    return (
        isinstance(value, Tensor)
        and value.layout is torch.strided
        and value.device.type == "cpu"
        and not value.is_quantized
    )


def _shortened(names: list[str]) -> str:
    more = len(names) - _MOST_NAMED
    shown = [printable(name, _MOST_TEXT) for name in names[:_MOST_NAMED]]
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")
