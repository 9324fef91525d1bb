"""What the freezer does to flags, gradients and modes, without any training around it."""

import pytest
import torch
from torch import nn

from client_app.freezing import Freezer
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
