"""ResNet-18 and ResNet-34 (He et al., 2016) with GroupNorm of two groups, as FedBug trains them.

Batch statistics of clients with different data do not mix; GroupNorm (Wu and He, 2018) has none.
"""

from __future__ import annotations

from functools import partial

from torch import nn
from torchvision.models.resnet import BasicBlock, ResNet

from tasks.inputs import Inputs
from tasks.models.image_inputs import images_for
from tasks.models.spec import Groups, ModelSpec
from tasks.pretrained import from_file

_NORM_GROUPS = 2
# Up to this side the stem keeps every pixel: ImageNet's would leave 8x8 of CIFAR's 32x32.
_SMALL_SIDE = 64


def _build(name: str, blocks: tuple[int, ...], inputs: Inputs, outputs: int) -> nn.Module:
    images = images_for(name, inputs)
    model: nn.Module = ResNet(
        BasicBlock,
        list(blocks),
        num_classes=outputs,
        norm_layer=partial(nn.GroupNorm, _NORM_GROUPS),
    )
    if images.side <= _SMALL_SIDE:
        stem = nn.Conv2d(images.channels, 64, 3, padding=1, bias=False)
        model.maxpool = nn.Identity()
    else:
        stem = nn.Conv2d(images.channels, 64, 7, stride=2, padding=3, bias=False)
    # As the class initialises the convolutions that it makes itself.
    nn.init.kaiming_normal_(stem.weight, mode="fan_out", nonlinearity="relu")
    model.conv1 = stem
    return model


def _groupings(blocks: tuple[int, ...]) -> dict[str, Groups]:
    """FedBug's two divisions: by stage, and by residual block.

    The stem goes with what follows it, the classifier with what comes before it.
    """
    names = [f"layer{stage + 1}.{block}" for stage, n in enumerate(blocks) for block in range(n)]
    return {"modules": _joined([f"layer{n + 1}" for n in range(4)]), "blocks": _joined(names)}


def _joined(names: list[str]) -> Groups:
    first, *middle, last = names
    return {
        f"stem_{first}": ("conv1.*", "bn1.*", f"{first}.*"),
        **{name: (f"{name}.*",) for name in middle},
        f"{last}_fc": (f"{last}.*", "fc.*"),
    }


def _spec(name: str, blocks: tuple[int, ...]) -> ModelSpec:
    return ModelSpec(
        build=partial(_build, name, blocks),
        groupings=_groupings(blocks),
        load_pretrained=from_file(heads=("fc",)),
    )


# 11.2 million parameters with ten classes.
RESNET18_GN = _spec("resnet18-gn", (2, 2, 2, 2))

# 21.3 million parameters with ten classes.
RESNET34_GN = _spec("resnet34-gn", (3, 4, 6, 3))
