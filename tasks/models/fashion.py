"""The default model: a small CNN without norms, light enough for every board."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

from tasks.inputs import Inputs
from tasks.models.image_inputs import images_for
from tasks.models.spec import ModelSpec
from tasks.pretrained import from_file


class FashionNet(nn.Module):
    """Four convolutions and two linear layers.

    Takes ``float32[n, channels, side, side]`` and gives logits ``float32[n, outputs]``. For 28x28
    grey images of ten classes: 102,970 parameters, 1.05 M multiply-adds forward.
    """

    def __init__(self, channels: int = 1, side: int = 28, outputs: int = 10) -> None:
        super().__init__()
        self.stem = nn.Conv2d(channels, 16, 5, stride=2, padding=2)
        self.conv2 = nn.Conv2d(16, 32, 3, stride=2, padding=1)
        self.conv3 = nn.Conv2d(32, 32, 3, padding=1)
        self.conv4 = nn.Conv2d(32, 48, 3, stride=2, padding=1)
        final = -(-side // 8)  # halved three times, rounded up
        self.fc = nn.Linear(48 * final * final, 96)
        self.head = nn.Linear(96, outputs)

    def forward(self, images: Tensor) -> Tensor:
        """Logits of a batch."""
        hidden = images
        for convolution in (self.stem, self.conv2, self.conv3, self.conv4):
            hidden = functional.relu(convolution(hidden))
        logits: Tensor = self.head(functional.relu(self.fc(hidden.flatten(1))))
        return logits


def _build(inputs: Inputs, outputs: int) -> nn.Module:
    images = images_for("fashion-cnn", inputs)
    return FashionNet(images.channels, images.side, outputs)


FASHION_CNN = ModelSpec(build=_build, load_pretrained=from_file(heads=("head",)))
