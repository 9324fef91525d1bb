"""Fused attention split into query, key and value: identical outputs, same weights, same masks."""

import copy
import logging

import pytest
import timm
import torch
import torchvision
from torch import nn

from tasks.tracing import split_attention
from tasks.tracing.multihead import SplitMultiheadAttention
from tasks.tracing.projections import SplitProjection
from tests.unit.tasks.tracing.small_nets import Net


def shaken(model):
    """The model with no parameter left at a special value, such as a bias of zeros."""
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def both(model):
    """The model and a copy of it that is split."""
    shaken(model)
    return model, split_attention(copy.deepcopy(model))


def assert_alike(model, split, *inputs, **named):
    """Equal outputs and gradients of the input: in eval and, from one seed, in train mode."""
    for training in (False, True):
        results = []
        for net in (model, split):
            torch.manual_seed(1)
            given = inputs[0].clone()
            if given.is_floating_point():
                given.requires_grad_()
            output = net.train(training)(given, *inputs[1:], **named)
            output.square().mean().backward()
            results.append((output, given.grad))
        torch.testing.assert_close(results[1], results[0], rtol=1e-5, atol=1e-6)


TIMM = {
    "vit_tiny_patch16_224": {"depth": 1},
    "vit_base_patch16_rope_224": {"depth": 1, "embed_dim": 48, "num_heads": 2},
    "deit_tiny_distilled_patch16_224": {"depth": 1},
    "deit3_small_patch16_224": {"depth": 1},
    "beit_base_patch16_224": {"depth": 1, "embed_dim": 48, "num_heads": 2},
    "eva02_tiny_patch14_224": {"depth": 1, "img_size": 28},
    "swin_tiny_patch4_window7_224": {"depths": (2, 1), "num_heads": (2, 2), "embed_dim": 24},
    "swinv2_tiny_window8_256": {"depths": (2, 1), "num_heads": (2, 2), "embed_dim": 24},
    "cait_xxs24_224": {"depth": 1},
    "xcit_nano_12_p16_224": {"depth": 1},
}


@pytest.mark.parametrize("name", sorted(TIMM))
@pytest.mark.parametrize("fused_kernel", [True, False])
def test_timms_attentions_give_the_same_when_split(name, fused_kernel):
    kwargs = {"img_size": 64 if "swin" in name else 32, "num_classes": 3} | TIMM[name]
    model = (
        timm.create_model(name, proj_drop_rate=0.1, attn_drop_rate=0.1, **kwargs)
        if ("xcit" not in name)
        else timm.create_model(name, **kwargs)
    )
    for module in model.modules():
        if hasattr(module, "fused_attn"):
            module.fused_attn = fused_kernel
    model, split = both(model)
    assert not [key for key in split.state_dict() if key.endswith("qkv.weight")]
    side = kwargs["img_size"]
    assert_alike(model, split, torch.rand(2, 3, side, side))


def test_rows_of_the_fused_projection_are_query_key_and_value_in_this_order():
    model = shaken(timm.layers.Attention(6, num_heads=2, qkv_bias=True))
    weight, bias = model.qkv.weight.clone(), model.qkv.bias.clone()
    split = split_attention(model)
    assert split is model
    assert isinstance(split.qkv, SplitProjection)
    for at, part in enumerate((split.qkv.q, split.qkv.k, split.qkv.v)):
        assert torch.equal(part.weight, weight[6 * at : 6 * at + 6])
        assert torch.equal(part.bias, bias[6 * at : 6 * at + 6])


def test_the_thirds_are_what_their_names_say():
    # Without values nothing comes out; without queries (or keys) all tokens weigh the same.
    split = split_attention(shaken(timm.layers.Attention(6, num_heads=2, qkv_bias=True))).eval()
    tokens = torch.rand(1, 4, 6)
    with torch.no_grad():
        for part in (split.qkv.q.weight, split.qkv.q.bias):
            part.zero_()
        values = split.qkv.v(tokens).mean(dim=1, keepdim=True)
        expected = split.proj(values).expand(1, 4, 6)
        torch.testing.assert_close(split(tokens), expected)


MULTIHEAD = [
    {},
    {"bias": False},
    {"batch_first": True},
    {"dropout": 0.2},
    {"kdim": 5, "vdim": 7},
    {"kdim": 5, "vdim": 7, "bias": False, "batch_first": True},
    {"add_bias_kv": True},
    {"add_zero_attn": True},
    {"add_bias_kv": True, "add_zero_attn": True, "dropout": 0.2, "batch_first": True},
]


def padding(n, length):
    mask = torch.zeros(n, length, dtype=torch.bool)
    mask[0, -2:] = True
    return mask


CALLS = {
    "plain": {},
    "no weights": {"need_weights": False},
    "weights by head": {"average_attn_weights": False},
    "padding": {"key_padding_mask": padding(3, 5)},
    "padding, no weights": {"key_padding_mask": padding(3, 5), "need_weights": False},
    "mask of truths": {"attn_mask": torch.ones(4, 5).triu(1).bool()},
    "mask of numbers": {"attn_mask": torch.randn(4, 5), "need_weights": False},
    "mask by head": {"attn_mask": torch.randn(3 * 2, 4, 5)},
    "both masks": {
        "attn_mask": torch.randn(4, 5),
        "key_padding_mask": padding(3, 5).float() * -3,
        "need_weights": False,
    },
    "causal": {
        "attn_mask": torch.ones(4, 5).triu(1).bool(),
        "is_causal": True,
        "key_padding_mask": padding(3, 5),
    },
}


@pytest.mark.parametrize("call", sorted(CALLS))
@pytest.mark.parametrize("options", MULTIHEAD, ids=str)
def test_torchs_attention_gives_the_same_output_and_weights_when_split(options, call):
    model, split = both(nn.MultiheadAttention(6, 2, **options))
    assert isinstance(split, SplitMultiheadAttention)
    query = torch.rand(3, 4, 6)
    key, value = torch.rand(3, 5, options.get("kdim", 6)), torch.rand(3, 5, options.get("vdim", 6))
    if not options.get("batch_first"):
        query, key, value = (tensor.transpose(0, 1) for tensor in (query, key, value))
    for training in (False, True):
        results = []
        for net in (model, split):
            torch.manual_seed(1)
            results.append(net.train(training)(query, key, value, **CALLS[call]))
        torch.testing.assert_close(results[1], results[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("need_weights", [True, False])
def test_torchs_attention_takes_a_sequence_without_a_batch(need_weights):
    model, split = both(nn.MultiheadAttention(6, 2))
    sequence = torch.rand(4, 6)
    mask = torch.tensor([False, False, False, True])
    found, expected = (
        net(sequence, sequence, sequence, key_padding_mask=mask, need_weights=need_weights)
        for net in (split, model)
    )
    torch.testing.assert_close(found, expected)


def test_a_causal_hint_without_a_mask_is_refused_as_torch_does():
    tokens = torch.rand(3, 4, 6)
    split = split_attention(nn.MultiheadAttention(6, 2))
    with pytest.raises(RuntimeError) as caught:
        split(tokens, tokens, tokens, is_causal=True)
    assert str(caught.value) == "is_causal is a hint about attn_mask: expected a mask, got None"


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
def test_torchs_encoder_gives_the_same_when_split(norm_first, batch_first):
    layer = nn.TransformerEncoderLayer(
        8, 2, 16, dropout=0.1, batch_first=batch_first, norm_first=norm_first
    )
    model, split = both(nn.TransformerEncoder(layer, 2, enable_nested_tensor=False))
    assert_alike(model, split, torch.rand(5, 5, 8), src_key_padding_mask=padding(5, 5))
    mask = nn.Transformer.generate_square_subsequent_mask(5)
    assert_alike(model, split, torch.rand(5, 5, 8), mask=mask, is_causal=True)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
def test_torchs_encoder_leaves_its_short_cut_when_split():
    # In eval mode without gradients torch would hand the fused weights to one kernel.
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model, split = both(nn.TransformerEncoder(layer, 2))
    model.eval(), split.eval()
    batch, mask = torch.rand(3, 5, 8), padding(3, 5)
    with torch.no_grad():
        found = split(batch, src_key_padding_mask=mask)
        expected = model(batch, src_key_padding_mask=mask)
    # The short cut leaves zeros where the padding is; nobody may read these.
    torch.testing.assert_close(found[~mask], expected[~mask], rtol=1e-5, atol=1e-6)


def test_torchvisions_vision_transformer_gives_the_same_when_split():
    model = torchvision.models.VisionTransformer(
        image_size=32,
        patch_size=16,
        num_layers=2,
        num_heads=2,
        hidden_dim=8,
        mlp_dim=16,
        num_classes=3,
        dropout=0.1,
        attention_dropout=0.1,
    )
    model, split = both(model)
    assert_alike(model, split, torch.rand(2, 3, 32, 32))


# A map that fills its windows, one that is padded, and one that a single window covers.
@pytest.mark.parametrize(("height", "width"), [(32, 32), (40, 28), (16, 16), (32, 12)])
@pytest.mark.parametrize("version", ["", "V2"])
def test_torchvisions_swin_gives_the_same_when_split(version, height, width):
    swin = torchvision.models.swin_transformer
    model = swin.SwinTransformer(
        patch_size=[4, 4],
        embed_dim=12,
        depths=[2, 2],
        num_heads=[2, 3],
        window_size=[4, 4],
        num_classes=3,
        dropout=0.1,
        attention_dropout=0.1,
        block=getattr(swin, f"SwinTransformerBlock{version}"),
        downsample_layer=getattr(swin, f"PatchMerging{version}"),
    )
    model, split = both(model)
    assert_alike(model, split, torch.rand(2, 3, height, width))


def test_a_split_model_can_be_copied_and_keeps_its_mode_and_flags():
    model = timm.create_model("vit_tiny_patch16_224", img_size=32, depth=1, num_classes=3).eval()
    model.blocks[0].attn.qkv.weight.requires_grad_(False)
    split = copy.deepcopy(split_attention(model))
    assert not any(module.training for module in split.modules())
    qkv = split.blocks[0].attn.qkv
    assert not any(part.weight.requires_grad for part in (qkv.q, qkv.k, qkv.v))
    assert all(part.bias.requires_grad for part in (qkv.q, qkv.k, qkv.v))


def test_an_attention_under_two_names_is_split_once():
    attention = nn.MultiheadAttention(6, 2)
    net = split_attention(Net(None, a=attention, b=attention))
    assert isinstance(net.a, SplitMultiheadAttention)
    assert net.a is net.b


def test_a_model_without_fused_attention_is_left_as_it_is():
    net = nn.Sequential(nn.Linear(4, 4))
    assert split_attention(net) is net
    assert type(net[0]) is nn.Linear


def test_what_cannot_be_split_stays_whole_and_the_log_says_why(caplog):
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.to_qkv = nn.Linear(6, 18)

    class Changed(nn.MultiheadAttention):
        def forward(self, *args, **kwargs):
            return super().forward(*args, **kwargs)

    net = Net(None, first=Own(), second=Own(), third=Changed(6, 2))
    with caplog.at_level(logging.INFO, logger="tasks.tracing.attention"):
        split_attention(net)
    first, second = (record.getMessage() for record in caplog.records)
    assert first == (
        "attention of class Own is not split into query, key and value, because it is not known "
        'how "to_qkv" is laid out; it freezes as a whole: first, second'
    )
    assert second == (
        "attention of class Changed is not split into query, key and value, because the class "
        "changes what torch's MultiheadAttention computes; it freezes as a whole: third"
    )
    assert type(net.third) is Changed


def test_a_split_attention_is_not_reported(caplog):
    model = timm.create_model("vit_tiny_patch16_224", img_size=32, depth=1, num_classes=3)
    with caplog.at_level(logging.INFO, logger="tasks.tracing.attention"):
        split_attention(split_attention(model))
    assert not caplog.records
