"""The tracer's own layers of well-known vision models: list, order and cuts.

The lists are written from the architectures. A mark behind a name says that a single tensor leaves
the layer. Attention is divided into ``.v`` (which begins with the norm that feeds it), ``.qk`` and
``.out``; its input goes around them, so the block can be cut behind ``.out`` and ``.mlp`` alone.
"""

import pytest
import timm
import torch
import torchvision
from torch import nn

from tasks.tracing import split_attention, trace


def layers(model, side=32):
    layout = trace(split_attention(model), torch.rand(2, 3, side, side), "model")
    every = [spec.name for layer in layout for spec in layer.tensors]
    assert sorted(every) == sorted(model.state_dict())
    return layout


def marked(layout):
    return [layer.name + ("" if layer.cut_bytes is None else " |") for layer in layout]


def cut_everywhere(*names):
    return [f"{name} |" for name in names[:-1]] + [names[-1]]


def block(path, *, norm_first=True, attention="attn"):
    first, second = ("v", "qk") if norm_first else ("qk", "v")
    at = f"{path}.{attention}"
    return [f"{at}.{first}", f"{at}.{second}", f"{at}.out |", f"{path}.mlp |"]


def stages(path, *depths, first=0):
    return [
        path.format(stage, at)
        for stage, depth in enumerate(depths, start=first)
        for at in range(depth)
    ]


@pytest.mark.parametrize("library", ["torchvision", "timm"])
@pytest.mark.parametrize(
    ("name", "depths"), [("resnet18", (2, 2, 2, 2)), ("resnet34", (3, 4, 6, 3))]
)
def test_a_resnet_is_its_stem_its_residual_blocks_and_its_head(library, name, depths):
    build = getattr(torchvision.models, name) if library == "torchvision" else timm.create_model
    model = build(num_classes=3) if library == "torchvision" else build(name, num_classes=3)
    layout = layers(model)
    blocks = stages("layer{}.{}", *depths, first=1)
    assert marked(layout) == cut_everywhere("conv1", *blocks, "fc")
    assert {spec.name.rpartition(".")[0] for spec in layout["conv1"].tensors} == {"conv1", "bn1"}
    # 32 px: the stem halves twice, each later stage once; the head reads 512 means.
    assert layout["conv1"].cut_bytes == 4 * 64 * 8 * 8
    assert layout["layer2.0"].cut_bytes == 4 * 128 * 4 * 4
    assert layout.layers[-2].cut_bytes == 4 * 512


def test_torchvisions_mobilenet_v3():
    model = torchvision.models.mobilenet_v3_small(num_classes=3)
    features = [f"features.{at}" for at in range(13)]
    assert marked(layers(model)) == cut_everywhere(*features, "classifier.0", "classifier.3")


def test_timms_mobilenet_v3():
    model = timm.create_model("mobilenetv3_small_050", num_classes=3)
    blocks = stages("blocks.{}.{}", 1, 2, 3, 2, 3, 1)
    assert marked(layers(model)) == cut_everywhere("conv_stem", *blocks, "conv_head", "classifier")


def test_torchvisions_efficientnet():
    model = torchvision.models.efficientnet_b0(num_classes=3)
    blocks = stages("features.{}.{}", 1, 2, 2, 3, 3, 4, 1, first=1)
    expected = cut_everywhere("features.0", *blocks, "features.8", "classifier.1")
    assert marked(layers(model)) == expected


@pytest.mark.parametrize("name", ["efficientnet_lite0", "tf_efficientnet_lite0", "efficientnet_b0"])
def test_timms_efficientnets(name):
    model = timm.create_model(name, num_classes=3)
    blocks = stages("blocks.{}.{}", 1, 2, 2, 3, 3, 4, 1)
    layout = layers(model)
    assert marked(layout) == cut_everywhere("conv_stem", *blocks, "conv_head", "classifier")
    owners = {spec.name.rpartition(".")[0] for spec in layout["conv_head"].tensors}
    assert owners == {"conv_head", "bn2"}


def test_timms_convnext():
    model = timm.create_model("convnext_nano", depths=(1, 1, 2, 1), num_classes=3)
    expected = cut_everywhere(
        "stem",
        "stages.0.blocks.0",
        "stages.1.downsample",
        "stages.1.blocks.0",
        "stages.2.downsample",
        "stages.2.blocks.0",
        "stages.2.blocks.1",
        "stages.3.downsample",
        "stages.3.blocks.0",
        "head",
    )
    assert marked(layers(model)) == expected


def test_torchvisions_convnext():
    setting = torchvision.models.convnext.CNBlockConfig
    model = torchvision.models.ConvNeXt(
        [setting(8, 16, 1), setting(16, 24, 2), setting(24, None, 1)], num_classes=3
    )
    names = ["features.0", "features.1.0", "features.2", "features.3.0", "features.3.1"]
    names += ["features.4", "features.5.0", "classifier"]
    assert marked(layers(model)) == cut_everywhere(*names)


@pytest.mark.parametrize("name", ["vit_tiny_patch16_224", "deit_tiny_patch16_224"])
def test_timms_vision_transformers(name):
    model = timm.create_model(name, img_size=32, depth=2, num_classes=3)
    layout = layers(model)
    assert marked(layout) == ["patch_embed |", *block("blocks.0"), *block("blocks.1"), "head"]
    tensors = {layer.name: [spec.name for spec in layer.tensors] for layer in layout}
    assert tensors["patch_embed"] == [
        "cls_token",
        "pos_embed",
        "patch_embed.proj.weight",
        "patch_embed.proj.bias",
    ]
    assert tensors["blocks.0.attn.qk"] == [
        "blocks.0.attn.qkv.q.weight",
        "blocks.0.attn.qkv.q.bias",
        "blocks.0.attn.qkv.k.weight",
        "blocks.0.attn.qkv.k.bias",
    ]
    assert tensors["blocks.0.attn.v"] == [
        "blocks.0.norm1.weight",
        "blocks.0.norm1.bias",
        "blocks.0.attn.qkv.v.weight",
        "blocks.0.attn.qkv.v.bias",
    ]
    assert tensors["blocks.0.attn.out"] == ["blocks.0.attn.proj.weight", "blocks.0.attn.proj.bias"]
    assert tensors["head"] == ["norm.weight", "norm.bias", "head.weight", "head.bias"]
    # 2 x 2 patches and the class token, 192 wide.
    assert layout["patch_embed"].cut_bytes == 4 * 5 * 192


def test_a_distilled_deit_has_two_heads_that_stand_last():
    model = timm.create_model(
        "deit_tiny_distilled_patch16_224", img_size=32, depth=1, num_classes=3
    )
    assert marked(layers(model)) == ["patch_embed |", *block("blocks.0"), "head", "head_dist"]


def test_norms_and_scales_of_an_attention_stand_with_what_they_shape():
    model = timm.create_model(
        "vit_tiny_patch16_224", img_size=32, depth=1, num_classes=3, qk_norm=True, init_values=1e-5
    )
    layout = layers(model)
    assert {spec.name for spec in layout["blocks.0.attn.qk"].tensors} >= {
        "blocks.0.attn.q_norm.weight",
        "blocks.0.attn.k_norm.bias",
    }
    assert {spec.name for spec in layout["blocks.0.attn.out"].tensors} == {
        "blocks.0.attn.proj.weight",
        "blocks.0.attn.proj.bias",
        "blocks.0.ls1.gamma",
    }
    assert {spec.name for spec in layout["blocks.0.mlp"].tensors} >= {
        "blocks.0.norm2.weight",
        "blocks.0.ls2.gamma",
    }


def test_torchvisions_vision_transformer():
    model = torchvision.models.VisionTransformer(
        image_size=32,
        patch_size=16,
        num_layers=2,
        num_heads=2,
        hidden_dim=8,
        mlp_dim=16,
        num_classes=3,
    )
    at = "encoder.layers.encoder_layer_{}"
    assert marked(layers(model)) == [
        "conv_proj |",
        *block(at.format(0), attention="self_attention"),
        *block(at.format(1), attention="self_attention"),
        "heads.head",
    ]


def test_timms_swin():
    model = timm.create_model(
        "swin_tiny_patch4_window7_224", img_size=56, depths=(1, 2, 1, 1), num_classes=3
    )
    layout = layers(model, 56)
    assert marked(layout) == [
        "patch_embed |",
        *block("layers.0.blocks.0"),
        "layers.1.downsample |",
        *block("layers.1.blocks.0"),
        *block("layers.1.blocks.1"),
        "layers.2.downsample |",
        *block("layers.2.blocks.0"),
        "layers.3.downsample |",
        *block("layers.3.blocks.0"),
        "head",
    ]
    bias = "layers.1.blocks.0.attn.relative_position_bias_table"
    assert layout.layer_of[bias] == "layers.1.blocks.0.attn.qk"


@pytest.mark.parametrize("version", [1, 2])
def test_torchvisions_swin(version):
    swin = torchvision.models.swin_transformer
    kinds = {
        1: (swin.SwinTransformerBlock, swin.PatchMerging),
        2: (swin.SwinTransformerBlockV2, swin.PatchMergingV2),
    }
    kind, merging = kinds[version]
    model = swin.SwinTransformer(
        patch_size=[4, 4],
        embed_dim=12,
        depths=[2, 1],
        num_heads=[2, 2],
        window_size=[4, 4],
        num_classes=3,
        block=kind,
        downsample_layer=merging,
    )
    layout = layers(model)
    # Version 2 has its norms behind, and its bias from a small network.
    expected = [
        "features.0 |",
        *block("features.1.0", norm_first=version == 1),
        *block("features.1.1", norm_first=version == 1),
        "features.2 |",
        *block("features.3.0", norm_first=version == 1),
        "head",
    ]
    assert marked(layout) == expected
    kernel = {
        spec.name.removeprefix("features.1.0.attn.")
        for spec in layout["features.1.0.attn.qk"].tensors
    }
    shared = {"q.weight", "q.bias", "k.weight", "relative_position_index"}
    own = {
        1: {"k.bias", "relative_position_bias_table"},
        2: {
            "logit_scale",
            "relative_coords_table",
            "cpb_mlp.0.weight",
            "cpb_mlp.0.bias",
            "cpb_mlp.2.weight",
        },
    }
    assert kernel == shared | own[version]
    norm = layout.layer_of["features.1.0.norm1.weight"]
    assert norm == ("features.1.0.attn.v" if version == 1 else "features.1.0.attn.out")


def test_a_model_inside_another_is_looked_into():
    class Wrapped(nn.Module):
        def __init__(self):
            super().__init__()
            self.backbone = torchvision.models.mobilenet_v3_small(num_classes=8)
            self.head = nn.Linear(8, 2)

        def forward(self, images):
            return self.head(self.backbone(images))

    names = layers(Wrapped()).names
    assert names[:2] == ("backbone.features.0", "backbone.features.1")
    assert names[-2:] == ("backbone.classifier.3", "head")


def test_a_plain_stack_of_convolutions_inside_another_model_is_looked_into():
    class Body(nn.Module):
        def __init__(self):
            super().__init__()
            for at in range(5):
                setattr(self, f"conv{at}", nn.Conv2d(3, 3, 3, padding=1))

        def forward(self, maps):
            for at in range(5):
                maps = torch.relu(getattr(self, f"conv{at}")(maps))
            return maps.mean((2, 3))

    class Whole(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.head = Body(), nn.Linear(3, 2)

        def forward(self, images):
            return self.head(self.body(images))

    assert layers(Whole(), 8).names == (*(f"body.conv{at}" for at in range(5)), "head")


def test_dense_connections_can_only_be_cut_where_they_end():
    model = torchvision.models.DenseNet(4, (2, 2), 8, num_classes=3)
    assert marked(layers(model)) == [
        "features.conv0 |",
        "features.denseblock1.denselayer1",
        "features.denseblock1.denselayer2 |",
        "features.transition1 |",
        "features.denseblock2.denselayer1",
        "features.denseblock2.denselayer2 |",
        "classifier",
    ]


def test_an_attention_of_unknown_layout_leaves_its_block_whole():
    model = timm.create_model("hiera_tiny_224", img_size=(64, 64), num_classes=3)
    names = layers(model, 64).names
    assert names == ("patch_embed", *(f"blocks.{at}" for at in range(12)), "head")
