"""The convolutional networks of FedBug (Kao et al., 2023), as its code builds them.

Convolutions of 5x5 with 64 channels, each followed by ReLU and max-pooling by 2, then three linear
layers. The paper counts each of them as one module, so 5 and 6.
"""

from __future__ import annotations

from itertools import pairwise

from torch import Tensor, nn
from torch.nn import functional

from tasks.inputs import Inputs
from tasks.models.image_inputs import images_for
from tasks.models.spec import Groups, ModelSpec
from tasks.pretrained import from_file

_CHANNELS, _KERNEL, _POOL = 64, 5, 2


class FedBugNet(nn.Module):
    """``convolutions`` of them, then linear layers of the ``hidden`` widths and the classifier.

    Takes ``float32[n, channels, side, side]`` and gives logits ``float32[n, outputs]``.
    """

    def __init__(
        self, convolutions: int, hidden: tuple[int, int], channels: int, side: int, outputs: int
    ) -> None:
        super().__init__()
        self.convolutions = [f"conv{number + 1}" for number in range(convolutions)]
        for name in self.convolutions:
            self.add_module(name, nn.Conv2d(channels, _CHANNELS, _KERNEL))
            channels, side = _CHANNELS, (side - _KERNEL + 1) // _POOL
        self.linears = [f"fc{number + 1}" for number in range(len(hidden) + 1)]
        widths = (_CHANNELS * side * side, *hidden, outputs)
        for name, (narrow, wide) in zip(self.linears, pairwise(widths), strict=True):
            self.add_module(name, nn.Linear(narrow, wide))

    def forward(self, images: Tensor) -> Tensor:
        """Logits of a batch."""
        values = images
        for name in self.convolutions:
            values = functional.max_pool2d(functional.relu(self.get_submodule(name)(values)), _POOL)
        values = values.flatten(1)
        *hidden, classifier = self.linears
        for name in hidden:
            values = functional.relu(self.get_submodule(name)(values))
        logits: Tensor = self.get_submodule(classifier)(values)
        return logits


def _spec(name: str, convolutions: int, hidden: tuple[int, int]) -> ModelSpec:
    smallest = 1  # of what the last pooling leaves, then backwards
    for _ in range(convolutions):
        smallest = smallest * _POOL + _KERNEL - 1

    def build(inputs: Inputs, outputs: int) -> nn.Module:
        images = images_for(name, inputs, smallest)
        return FedBugNet(convolutions, hidden, images.channels, images.side, outputs)

    parts = [f"conv{n + 1}" for n in range(convolutions)] + ["fc1", "fc2", "fc3"]
    modules: Groups = {part: (f"{part}.*",) for part in parts}
    return ModelSpec(
        build=build, groupings={"modules": modules}, load_pretrained=from_file(heads=("fc3",))
    )


# For CIFAR: 797,962 parameters with ten classes.
FEDBUG_CNN = _spec("fedbug-cnn", 2, (384, 192))

# For Tiny-ImageNet: 530,888 parameters with two hundred classes.
FEDBUG_CNN_6 = _spec("fedbug-cnn-6", 3, (256, 128))
