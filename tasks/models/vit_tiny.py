"""Vision transformers for images of 28 to 64 pixels, trained from scratch.

``vit-tiny`` is ViT-Tiny (Touvron et al., 2021: DeiT-Ti). ``vit-nano`` is of the same make, so small
that a laptop trains a fleet of it in a minute.
"""

from __future__ import annotations

from collections.abc import Callable

from timm.models.vision_transformer import VisionTransformer
from torch import nn

from tasks.inputs import Inputs
from tasks.models.image_inputs import images_for, impossible_side
from tasks.models.spec import ModelSpec
from tasks.pretrained import from_file

# Attention grows with the fourth power of the side: at 96 pixels there are 577 tokens.
_SMALLEST, _LARGEST = 8, 96


def _builder(
    name: str, *, width: int, depth: int, heads: int
) -> Callable[[Inputs, int], nn.Module]:
    def build(inputs: Inputs, outputs: int) -> nn.Module:
        images = images_for(name, inputs)
        # Sixteen tokens for MNIST's digits; 49 of 4x4 pixels would cost three times as much.
        patch = 7 if images.side == 28 else 4
        if images.side % patch or not _SMALLEST <= images.side <= _LARGEST:
            raise impossible_side(
                name, images.side, f"from {_SMALLEST} to {_LARGEST} pixels that 4 divides"
            )
        model: nn.Module = VisionTransformer(
            img_size=images.side,
            patch_size=patch,
            in_chans=images.channels,
            num_classes=outputs,
            embed_dim=width,
            depth=depth,
            num_heads=heads,
        )
        return model

    return build


# 5.4 million parameters.
VIT_TINY = ModelSpec(
    build=_builder("vit-tiny", width=192, depth=12, heads=3),
    load_pretrained=from_file(heads=("head",)),
)
# 0.2 million.
VIT_NANO = ModelSpec(
    build=_builder("vit-nano", width=64, depth=4, heads=2),
    load_pretrained=from_file(heads=("head",)),
)
