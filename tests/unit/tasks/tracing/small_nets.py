"""Small models that the tests of this folder share."""

import torch
from torch import nn


class Net(nn.Module):
    """Children (and parameters) by keyword; ``steps(net, inputs)`` runs them."""

    def __init__(self, steps, **parts):
        super().__init__()
        self.steps = steps
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, inputs):
        return self.steps(self, inputs)


class Residual(nn.Module):
    """Two convolutions and the way around them, without norms."""

    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, maps):
        return torch.relu(maps + self.conv2(torch.relu(self.conv1(maps))))


def residual_net():
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1),
        Residual(4),
        Residual(4),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(4, 2),
    )


def six():
    layers = [module for _ in range(6) for module in (nn.Linear(256, 256), nn.ReLU())]
    return nn.Sequential(*layers)


def kept_bytes(model, batch):
    """What one forward pass really keeps, each storage once and the model's own tensors apart."""
    own = {t.untyped_storage().data_ptr() for t in [*model.parameters(), *model.buffers()]}
    kept = {}

    def keep(tensor):
        kept[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        output = model(batch)
    assert output.shape
    return sum(t.untyped_storage().nbytes() for at, t in kept.items() if at not in own)


def freeze_below(model, layout, shallowest):
    """Only layers from ``shallowest`` on train."""
    for name, parameter in model.named_parameters():
        place = layout.names.index(layout.layer_of[name])
        parameter.requires_grad_(place >= shallowest)
