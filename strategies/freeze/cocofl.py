"""``cocofl``: each board trains one contiguous block of layers that it affords, drawn anew.

Source: Pfeiffer et al., "CoCoFL: Communication- and Computation-Aware Federated Learning via
Partial NN Freezing and Quantization" (TMLR 2023). Every device holds the whole model. Of all blocks
of neighbouring layers that fit its memory, its time and its uplink, those within another one that
fits are left out, and one of the rest is drawn with equal probability. A board that affords all
layers trains all of them.

What differs from the paper: frozen layers run in float32 here, not in int8 with their normalisation
folded in, so that they save no forward time; draws depend on the run's seed, the client and the
round alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from fedfreeze import settings
from fedfreeze.plan import Reason
from fedfreeze.seeded import draw
from strategies.freeze.policy import Advice, ClientView, FreezePolicy, RoundView

if TYPE_CHECKING:
    from strategies.outlook import Outlook


class CoCoFLSettings(settings.Settings):
    """``[freeze]`` of policy ``cocofl``: no keys of its own."""

    policy: Literal["cocofl"] = "cocofl"


class CoCoFL(FreezePolicy):
    """See the module's docstring."""

    name: ClassVar[str] = "cocofl"
    Settings: ClassVar[type[settings.Settings]] = CoCoFLSettings

    def advise(self, view: RoundView, client: ClientView) -> Advice:
        """The drawn block; everything where no block fits, for the planner to say why."""
        trainable = [layer.name for layer in self.layout if layer.parameters]
        blocks = largest_blocks(trainable, client.outlook)
        block: Sequence[str] = trainable
        if blocks:
            drawn = draw("cocofl", view.seed, client.device_id, view.number)
            block = blocks[drawn % len(blocks)]
        detail = f"round {view.number} trains {block[0]} to {block[-1]}, one of {len(blocks)}"
        return Advice(
            frozen={name: Reason("fixed", detail) for name in trainable if name not in block},
            values=dict.fromkeys(self.layout.names, 1.0),
        )


def largest_blocks(layers: Sequence[str], outlook: Outlook) -> list[tuple[str, ...]]:
    """Contiguous blocks that fit, none within another; by their first layer."""
    found: list[tuple[str, ...]] = []
    reached = 0
    for first in range(len(layers)):
        for end in range(len(layers), max(first, reached), -1):
            block = tuple(layers[first:end])
            if outlook.affords(block):
                found.append(block)
                reached = end
                break
    return found
