"""The default task: a small CNN without norms on Fashion-MNIST, light enough for every board."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from fedfreeze.errors import ConfigError
from fedfreeze.layout import Layout
from tasks.fashion_data import FashionData, fashion_data
from tasks.partition import Split
from tasks.task import Examples
from tasks.trace import trace

# Mean and standard deviation of Fashion-MNIST's training pixels, scaled to 0 ... 1.
_MEAN, _STD = 0.2860, 0.3530


class FashionNet(nn.Module):
    """Four convolutions and two linear layers: 102,970 parameters, 1.05 M multiply-adds forward.

    Takes ``float32[n, 1, 28, 28]`` and gives logits ``float32[n, 10]``.
    """

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, 16, 5, stride=2, padding=2)
        self.conv2 = nn.Conv2d(16, 32, 3, stride=2, padding=1)
        self.conv3 = nn.Conv2d(32, 32, 3, padding=1)
        self.conv4 = nn.Conv2d(32, 48, 3, stride=2, padding=1)
        self.fc = nn.Linear(48 * 4 * 4, 96)
        self.head = nn.Linear(96, 10)

    def forward(self, images: Tensor) -> Tensor:
        """Logits of a batch."""
        hidden = images
        for convolution in (self.stem, self.conv2, self.conv3, self.conv4):
            hidden = functional.relu(convolution(hidden))
        logits: Tensor = self.head(functional.relu(self.fc(hidden.flatten(1))))
        return logits


@cache
def _layout() -> Layout:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return trace(FashionNet(), torch.rand(2, 1, 28, 28), FashionCnn.name)


class FashionCnn:
    """Ten kinds of clothing in 28x28 grey images."""

    name = "fashion-cnn"
    metric = "accuracy"

    def build(self) -> nn.Module:
        """A fresh :class:`FashionNet` from torch's current random state."""
        return FashionNet()

    def layout(self) -> Layout:
        """Six layers: stem, conv2, conv3, conv4, fc, head."""
        return _layout()

    def client_examples(
        self,
        client: int,
        clients: int,
        *,
        partition: str,
        alpha: float,
        validation_share: float,
        seed: int,
        data_dir: str | None,
    ) -> Examples:
        """What one client trains on.

        Raises:
            ConfigError: the split is out of range, or there is no such client or data.
        """
        if not 0 <= client < clients:
            raise ConfigError(f"client {client} is not one of {clients} clients, counted from 0")
        split = Split(partition, alpha, validation_share, seed)
        data = fashion_data(data_dir)
        return _training_examples(data, split.clients(data.train_labels, clients)[client])

    def validation(
        self,
        *,
        partition: str,
        alpha: float,
        validation_share: float,
        seed: int,
        data_dir: str | None,
    ) -> Examples:
        """The server's share of the training set.

        Raises:
            ConfigError: the split is out of range, or there is no such data.
        """
        split = Split(partition, alpha, validation_share, seed)
        data = fashion_data(data_dir)
        return _training_examples(data, split.validation(data.train_labels))

    def test(self, data_dir: str | None) -> Examples:
        """The whole test set."""
        data = fashion_data(data_dir)
        return _examples(data.test_images, data.test_labels)

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Mean cross-entropy."""
        return functional.cross_entropy(outputs, targets)

    def score(self, outputs: Tensor, targets: Tensor) -> float:
        """Number of images whose largest logit is their class."""
        return float((outputs.argmax(1) == targets).sum())

    def data_source(self, data_dir: str | None) -> str:
        """The folder, or the embedded subset."""
        return fashion_data(data_dir).source


def _training_examples(data: FashionData, positions: NDArray[np.int64]) -> Examples:
    return _examples(data.train_images[positions], data.train_labels[positions])


def _examples(images: NDArray[np.uint8], labels: NDArray[np.uint8]) -> Examples:
    pixels = torch.from_numpy(images.astype(np.float32)).unsqueeze(1)
    return Examples(
        inputs=(pixels / 255.0 - _MEAN) / _STD,
        targets=torch.from_numpy(labels.astype(np.int64)),
    )


task = FashionCnn()
