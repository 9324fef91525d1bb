"""Any model of timm by its name there, with its own preprocessing and published weights."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import cache, partial
from pathlib import Path
from typing import Any, get_args

import timm
import torch
from timm.data.config import resolve_data_config
from timm.models import PretrainedCfg, get_pretrained_cfg, is_model
from torch import nn

from fedfreeze.errors import ConfigError
from fedfreeze.toml_faults import did_you_mean
from tasks.inputs import Inputs
from tasks.models.image_inputs import images_for
from tasks.models.spec import ModelSpec
from tasks.preparation.images import Interpolation, ResizeAndNormalise
from tasks.preparation.seams import Preprocessing
from tasks.pretrained import HUB, Tensors, described, fill, fits, named_file, read_weights

# Fetches the published weights of a configuration, once, and says where the file is.
Fetch = Callable[[PretrainedCfg], Path]

_COLOURS = 3
_HUB_FILES = ("model.safetensors", "pytorch_model.bin")
# What timm's constructors raise for arguments that they cannot use.
_UNBUILDABLE = (TypeError, ValueError, RuntimeError, AssertionError, KeyError, AttributeError)


def hub_file(config: PretrainedCfg) -> Path:
    """The published weights, from the Hugging Face hub or their address, kept as those do.

    Raises:
        ConfigError: there are none, or they cannot be reached.
    """
    name = f"{config.architecture}.{config.tag}" if config.tag else str(config.architecture)
    if not config.hf_hub_id and not config.url:
        raise ConfigError(
            f'model.pretrained: timm publishes no weights of {name}; give a file instead of "{HUB}"'
        )
    address = (
        f"https://huggingface.co/{config.hf_hub_id}/resolve/main/{_HUB_FILES[0]}"
        if config.hf_hub_id
        else str(config.url)
    )
    try:
        return _from_hub(config) if config.hf_hub_id else _from_address(str(config.url))
    except Exception as error:  # each client of the network raises kinds of its own
        raise ConfigError(
            f"model.pretrained: the weights of {name} cannot be fetched from {address}: "
            f"{type(error).__name__}; connect to the internet, or fetch that file by other means "
            "and give its path"
        ) from error


def _from_hub(config: PretrainedCfg) -> Path:
    from huggingface_hub import (  # noqa: PLC0415  # wanted by few runs
        hf_hub_download,
        try_to_load_from_cache,
    )
    from huggingface_hub.errors import (  # noqa: PLC0415
        EntryNotFoundError,
        LocalEntryNotFoundError,
    )

    names = [str(config.hf_hub_filename)] if config.hf_hub_filename else list(_HUB_FILES)
    for name in names:  # without the half minute that asking after a newer one takes offline
        if isinstance(kept := try_to_load_from_cache(str(config.hf_hub_id), name), str):
            return Path(kept)
    *first, last = names
    for name in first:
        try:
            return Path(hf_hub_download(str(config.hf_hub_id), name))
        except LocalEntryNotFoundError:  # the hub cannot be reached
            raise
        except EntryNotFoundError:
            continue
    return Path(hf_hub_download(str(config.hf_hub_id), last))


def _from_address(url: str) -> Path:
    folder = Path(torch.hub.get_dir()) / "checkpoints"
    path = folder / url.rpartition("/")[2]
    if not path.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        torch.hub.download_url_to_file(url, str(path), progress=False)
    return path


def timm_spec(name: str, fetch: Fetch = hub_file) -> ModelSpec:
    """The model of that name in timm.

    Grey images become colour ones in the preprocessing, so that one model serves both and the
    published weights fit. Small images are enlarged: see :func:`working_side`.

    Args:
        name: as timm has it, as "resnet18" or "resnet18.a1_in1k".
        fetch: gets the published weights.

    Raises:
        ConfigError: timm has no such model.
    """
    config = _config(name)
    return ModelSpec(
        build=partial(_build, name),
        preprocessing=partial(_preprocessing, name),
        load_pretrained=partial(_load, config, fetch),
    )


def working_side(own: int, side: int) -> int:
    """To how many pixels images are resized for a model that was trained at ``own``.

    Half of its own side is a quarter of its time and memory, which small boards can bear, and
    leaves the network enough of its depth to work on: 112 for the usual 224. Images larger than
    that keep their side, up to the model's own.

    >>> [working_side(224, side) for side in (28, 64, 160, 500)]
    [112, 112, 160, 224]
    """
    return min(own, max(own // 2, side))


def _config(name: str) -> PretrainedCfg:
    architecture = name.partition(".")[0]
    if ":" not in name and is_model(architecture):
        known = timm.list_models(f"{architecture}.*", pretrained=True)
        if name == architecture or name in known:
            config = get_pretrained_cfg(name)
            return config or PretrainedCfg(architecture=architecture)
    else:
        known = timm.list_models()
    raise ConfigError(
        f'model.name: timm {timm.__version__} has no model "{name}"'
        f"{did_you_mean(name, known) or '; timm.list_models() lists them'}"
    )


@cache
def _side(name: str, side: int) -> int:
    """The side that the model works at: its own if it can be built for no other."""
    config = _config(name)
    own = int(config.input_size[-1])
    wanted = working_side(own, side)
    if wanted == own or not config.fixed_input_size:
        return wanted
    # Only the model knows: window and patch sizes must divide it. Nothing is computed here.
    with torch.random.fork_rng(devices=[]), torch.device("meta"), torch.no_grad():
        try:
            model = timm.create_model(name, img_size=wanted)
            model.eval()(torch.empty(1, _COLOURS, wanted, wanted))
        except _UNBUILDABLE:
            return own
    return wanted


def _build(name: str, inputs: Inputs, outputs: int) -> nn.Module:
    images = images_for(f"timm:{name}", inputs)
    config, side = _config(name), _side(name, images.side)
    channels = _COLOURS if images.channels == 1 else images.channels
    sized = config.fixed_input_size and side != int(config.input_size[-1])
    settings: dict[str, Any] = {"img_size": side} if sized else {}
    try:
        model: nn.Module = timm.create_model(
            name,
            num_classes=outputs,
            in_chans=channels,
            **settings,
        )
    except _UNBUILDABLE as error:
        raise ConfigError(
            f"model.name: timm:{name} cannot be built for {outputs} outputs of {channels} channels "
            f"at {side} pixels: {error}; choose another model"
        ) from error
    return model


def _preprocessing(name: str, inputs: Inputs) -> Preprocessing:
    images = images_for(f"timm:{name}", inputs)
    settings: dict[str, Any] = resolve_data_config(  # type: ignore[no-untyped-call]
        pretrained_cfg=asdict(_config(name))
    )
    mean, std = tuple(settings["mean"]), tuple(settings["std"])
    if images.channels not in {1, _COLOURS}:  # no camera's: what its colours have on average
        mean, std = ((sum(of) / len(of),) * images.channels for of in (mean, std))
    method = settings["interpolation"]
    return ResizeAndNormalise(
        side=_side(name, images.side),
        mean=mean,
        std=std,
        interpolation=method if method in get_args(Interpolation) else "bicubic",
    )


def _load(config: PretrainedCfg, fetch: Fetch, model: nn.Module, origin: str) -> str:
    if origin == HUB:
        path = fetch(config)
        where = f"timm's published weights of {config.architecture}.{config.tag}"
    else:
        path = named_file(origin)
        where = str(path)
    heads = heads_of(config)
    fill(model, adapted(model, read_weights(path), heads), heads, where)
    return described(path, where)


def heads_of(config: PretrainedCfg) -> tuple[str, ...]:
    """The modules that make a model's logits; some have two of them."""
    heads: Any = config.classifier or ()
    return (heads,) if isinstance(heads, str) else tuple(heads)


def adapted(model: nn.Module, tensors: Tensors, heads: tuple[str, ...]) -> Tensors:
    """The tensors as this model of timm has them, where timm knows how.

    Position embeddings are resampled to another image size and names of older versions changed, by
    the function that the model's own file has for it. What it cannot adapt stays as it is.
    """
    change = getattr(sys.modules[type(model).__module__], "checkpoint_filter_fn", None)
    if change is None or fits(model, tensors, heads):
        return tensors
    try:
        changed: Tensors = change(dict(tensors), model)
    except _UNBUILDABLE:
        return tensors
    return changed
