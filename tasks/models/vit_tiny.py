"""ViT-Tiny (Touvron et al., 2021: DeiT-Ti) for images of 28 to 64 pixels, trained from scratch."""

from __future__ import annotations

from timm.models.vision_transformer import VisionTransformer
from torch import nn

from tasks.inputs import Inputs
from tasks.models.image_inputs import images_for, impossible_side
from tasks.models.spec import ModelSpec
from tasks.pretrained import from_file

_NAME = "vit-tiny"
_WIDTH, _DEPTH, _HEADS = 192, 12, 3
# Attention grows with the fourth power of the side: at 96 pixels there are 577 tokens.
_SMALLEST, _LARGEST = 8, 96


def _build(inputs: Inputs, outputs: int) -> nn.Module:
    images = images_for(_NAME, inputs)
    # Sixteen tokens for MNIST's digits; 49 of 4x4 pixels would cost three times as much.
    patch = 7 if images.side == 28 else 4
    if images.side % patch or not _SMALLEST <= images.side <= _LARGEST:
        raise impossible_side(
            _NAME, images.side, f"from {_SMALLEST} to {_LARGEST} pixels that 4 divides"
        )
    model: nn.Module = VisionTransformer(
        img_size=images.side,
        patch_size=patch,
        in_chans=images.channels,
        num_classes=outputs,
        embed_dim=_WIDTH,
        depth=_DEPTH,
        num_heads=_HEADS,
    )
    return model


# 5.4 million parameters.
VIT_TINY = ModelSpec(build=_build, load_pretrained=from_file(heads=("head",)))
