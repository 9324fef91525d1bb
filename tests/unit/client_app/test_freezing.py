"""What the freezer does to flags, gradients and modes, without any training around it."""

import pytest
import timm
import torch
from torch import nn

from client_app.freezing import Freezer
from tasks.tracing import split_attention, trace
from tests.tiny_task import TinyNet, layout_of


@pytest.fixture
def model():
    torch.manual_seed(0)
    return TinyNet()


def training(model):
    return {name for name, module in model.named_modules() if module.training}


def trainable(model):
    return {name for name, p in model.named_parameters() if p.requires_grad}


def of(model, *layers):
    return {n for n, _ in model.named_parameters() if n.partition(".")[0] in layers}


def forward_and_backward(model):
    model(torch.randn(6, 1, 6, 6)).square().sum().backward()


def test_only_the_trained_layers_get_flags_and_training_mode(model):
    Freezer(model, layout_of(model)).train(["body", "head"])
    assert trainable(model) == of(model, "body", "head")
    assert training(model) == {
        name
        for name, _ in model.named_modules()
        if name == "" or name.partition(".")[0] in {"body", "head"}
    }


def test_a_change_of_layers_leaves_no_stale_gradient(model):
    freezer = Freezer(model, layout_of(model))
    freezer.train(["body"])
    forward_and_backward(model)
    assert all(p.grad is not None for n, p in model.named_parameters() if n in of(model, "body"))
    freezer.train(["head"])
    assert all(p.grad is None for p in model.parameters())


def test_the_dropout_of_a_frozen_layer_draws_no_mask(model):
    Freezer(model, layout_of(model)).train(["stem"])
    model.stem.eval()
    images = torch.randn(6, 1, 6, 6)
    assert torch.equal(model(images), model(images))


def test_a_frozen_batch_norm_normalises_with_its_running_statistics(model):
    Freezer(model, layout_of(model)).train(["head"])
    before = {name: value.clone() for name, value in model.norm.state_dict().items()}
    values = torch.randn(8, 4, 1, 1) * 3 + 1
    expected = (values - before["running_mean"].view(1, 4, 1, 1)) / torch.sqrt(
        before["running_var"].view(1, 4, 1, 1) + model.norm.eps
    )
    torch.testing.assert_close(model.norm(values), expected)
    assert all(torch.equal(model.norm.state_dict()[name], value) for name, value in before.items())


def test_what_the_user_froze_within_a_trained_layer_stays_frozen(model):
    model.norm.bias.requires_grad_(False)
    Freezer(model, layout_of(model)).train(["norm", "head"])
    assert trainable(model) == of(model, "norm", "head") - {"norm.bias"}
    assert model.norm.training


def test_a_norm_that_the_user_froze_keeps_its_statistics_too(model):
    model.norm.requires_grad_(False)
    Freezer(model, layout_of(model)).train(["norm", "head"])
    assert trainable(model) == of(model, "head")
    assert not model.norm.training


def test_restoring_gives_back_flags_and_modes_and_drops_gradients(model):
    model.body[0].weight.requires_grad_(False)
    model.norm.eval()
    flags, modes = trainable(model), training(model)
    freezer = Freezer(model, layout_of(model))
    freezer.train(["head"])
    forward_and_backward(model)
    freezer.restore()
    assert trainable(model) == flags
    assert training(model) == modes
    assert all(p.grad is None for p in model.parameters())


def test_modules_that_belong_to_no_layer_stay_in_training_mode(model):
    model.between = nn.Dropout(0.5)
    layout = layout_of(TinyNet())
    Freezer(model, layout).train(["head"])
    assert model.between.training
    assert not model.body[3].training


def test_a_layer_name_that_begins_like_another_is_not_taken_for_it(model):
    model.header = nn.Sequential(nn.Dropout(0.5))
    Freezer(model, layout_of(TinyNet())).train(["stem"])
    assert not model.head.training
    assert model.header.training


# ---- layers that are no modules


@pytest.fixture
def vit():
    model = timm.create_model(
        "vit_tiny_patch16_224",
        img_size=32,
        depth=2,
        embed_dim=12,
        num_heads=2,
        num_classes=3,
        attn_drop_rate=0.2,
    )
    return split_attention(model)


def in_eval(model):
    return {name for name, module in model.named_modules() if not module.training}


def test_a_frozen_attention_kernel_leaves_the_rest_of_the_attention_training(vit):
    layout = trace(vit, torch.rand(2, 3, 32, 32), "vit")
    kernels = {name for name in layout.names if name.endswith(".qk")}
    assert kernels == {"blocks.0.attn.qk", "blocks.1.attn.qk"}
    Freezer(vit, layout).train(set(layout.names) - kernels)
    frozen = {
        f"blocks.{block}.attn.qkv.{part}.{what}"
        for block in (0, 1)
        for part in "qk"
        for what in ("weight", "bias")
    }
    assert trainable(vit) == {name for name, _ in vit.named_parameters()} - frozen
    # The dropout of the attention weights shapes what value and output learn from.
    assert in_eval(vit) == {f"blocks.{block}.attn.qkv.{part}" for block in (0, 1) for part in "qk"}


def test_what_has_no_tensors_freezes_with_the_nearest_module_around_it_that_has_some(vit):
    layout = trace(vit, torch.rand(2, 3, 32, 32), "vit")
    Freezer(vit, layout).train(["blocks.1.mlp", "head"])
    modes = {name: module.training for name, module in vit.named_modules()}
    assert not modes["blocks.0.attn.attn_drop"]
    assert not modes["blocks.0.drop_path1"]
    assert not modes["blocks.1.attn.attn_drop"]
    assert modes["blocks.1.drop_path1"]  # the block's own, which in part trains
    assert modes["blocks.1.mlp.act"]
    assert modes[""]


def test_a_module_whose_tensors_lie_in_several_layers_trains_if_one_of_them_does():
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 2))
    groups = {"biases": ["*.bias"], "rest": ["*.weight", "1.r*", "1.n*"]}
    layout = trace(model, torch.rand(3, 4), "net", groups)
    Freezer(model, layout).train(["biases"])
    assert trainable(model) == {"0.bias", "1.bias", "3.bias"}
    assert model[0].training
    assert model[2].training


def test_running_statistics_stay_still_though_a_parameter_of_their_module_trains():
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
    groups = {"biases": ["*.bias"], "rest": ["*.weight", "1.r*", "1.n*"]}
    layout = trace(model, torch.rand(3, 4), "net", groups)
    Freezer(model, layout).train(["biases"])
    before = {name: value.clone() for name, value in model[1].named_buffers()}
    model(torch.rand(3, 4))
    assert all(torch.equal(before[name], value) for name, value in model[1].named_buffers())


def test_both_modules_of_a_tied_weight_freeze_together():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.mid, self.down = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)
            self.down.weight = self.up.weight
            self.down.bias = self.up.bias

        def forward(self, x):
            return self.down(self.mid(self.up(x)))

    model = Tied()
    layout = trace(model, torch.rand(3, 4), "net")
    assert layout.names == ("up", "mid")
    Freezer(model, layout).train(["mid"])
    assert trainable(model) == {"mid.weight", "mid.bias"}
    assert in_eval(model) == {"up", "down"}


def test_a_frozen_table_on_a_module_leaves_the_mode_of_what_lies_below_alone(vit):
    vit.pos_embed.requires_grad_(False)
    vit.cls_token.requires_grad_(False)
    layout = trace(vit, torch.rand(2, 3, 32, 32), "vit")
    Freezer(vit, layout).train(layout.names)
    assert trainable(vit) == {n for n, _ in vit.named_parameters()} - {"pos_embed", "cls_token"}
    assert in_eval(vit) == set()


def test_a_module_with_a_frozen_buffer_rests_while_what_lies_below_it_trains():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(4, 4)
            self.register_buffer("seen", torch.zeros(()))

        def forward(self, x):
            if self.training:
                self.seen += len(x)
            return self.inner(x)

    model = nn.Sequential(Counting(), nn.Linear(4, 2))
    groups = {"count": ["0.seen"], "rest": ["0.inner.*", "1.*"]}
    layout = trace(model, torch.rand(3, 4), "net", groups)
    Freezer(model, layout).train(["rest"])
    assert in_eval(model) == {"0"}
    model(torch.rand(3, 4))
    assert model[0].seen == 0
