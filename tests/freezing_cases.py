"""Tasks whose layers are no modules, or hold what must never move."""

import timm
import torch
from torch import nn

from tasks.dataset import Dataset, Examples
from tasks.inputs import Values
from tasks.task import Task


def _examples(*shape):
    generator = torch.Generator().manual_seed(0)
    inputs = torch.rand(30, *shape, generator=generator)
    return Examples(inputs, torch.arange(30) % 3)


def _task(name, model, *shape, layers="auto"):
    examples = _examples(*shape)
    task = Task(
        name=name,
        inputs=Values(shape),
        read=lambda place: Dataset(examples, examples, "random numbers"),
        model=model,
        labels=("a", "b", "c"),
        layers=layers,
    )
    return task, examples


def _vit():
    return timm.create_model(
        "vit_tiny_patch16_224",
        img_size=16,
        patch_size=8,
        embed_dim=12,
        depth=1,
        num_heads=2,
        num_classes=3,
        qk_norm=True,
        proj_drop_rate=0.1,
        attn_drop_rate=0.1,
    )


def _normed():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.Dropout(0.2),
        nn.Conv2d(4, 4, 3),
        nn.BatchNorm2d(4),
        nn.Flatten(),
        nn.Linear(16, 3),
    )


def _partly_constant():
    model = _normed()
    model[0].requires_grad_(False)
    model[1].requires_grad_(False)
    model[4].bias.requires_grad_(False)
    return model


_LAYERS = (
    ("weights", ("[0-5].weight", "1.running_*", "1.num_*")),
    ("biases", ("[0-5].bias", "5.running_mean")),
    ("head", ("7.*", "5.running_var", "5.num_*")),
)

# By name: the task and the examples to train on.
CASES = {
    "attention": _task("attention", _vit, 3, 16, 16),
    "globs": _task("globs", _normed, 1, 6, 6, layers=_LAYERS),
    "constants": _task("constants", _partly_constant, 1, 6, 6),
}

# Named ``tests.freezing_cases`` in a strategy.
task = CASES["constants"][0]
