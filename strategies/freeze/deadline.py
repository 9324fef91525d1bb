"""``deadline``: each board freezes the shortest prefix with which it meets a soft deadline.

Source: the idea of FreezeFL (Chou et al., "Efficient Federated Learning with Freezing under a soft
deadline"): a slow board freezes the first layers, by which it saves their backward pass, rather
than being late or left out. With T(p) the modelled seconds of a round that trains layers p ... L,

    p = min { p : T(p) <= D }        D = ``soft-deadline``

or the last layer alone, if no prefix is long enough. The round's own deadline still drops what is
late; a soft one well below it leaves room for what the model does not know.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from fedfreeze import settings
from fedfreeze.plan import Reason
from fedfreeze.units import Dimension, written
from strategies.freeze.policy import Advice, ClientView, FreezePolicy, RoundView


class DeadlineSettings(settings.Settings):
    """``[freeze]`` of policy ``deadline``."""

    policy: Literal["deadline"] = "deadline"
    soft_deadline: Annotated[settings.Seconds, Field(gt=0)] = Field(
        30.0, description="simulated time that a board's round should take at most"
    )


class Deadline(FreezePolicy):
    """See the module's docstring."""

    name: ClassVar[str] = "deadline"
    Settings: ClassVar[type[settings.Settings]] = DeadlineSettings
    settings: DeadlineSettings

    def advise(self, view: RoundView, client: ClientView) -> Advice:
        """All layers above the prefix."""
        del view
        trainable = [layer.name for layer in self.layout if layer.parameters]
        limit_s = self.settings.soft_deadline
        seconds = [client.outlook.seconds(trainable[at:]) for at in range(len(trainable))]
        in_time = (at for at, needed_s in enumerate(seconds) if needed_s <= limit_s)
        first = next(in_time, len(trainable) - 1)
        detail = (
            f"from here on a round takes {written(seconds[max(0, first - 1)], Dimension.SECONDS)} "
            f"or more, the soft deadline is {written(limit_s, Dimension.SECONDS)}"
        )
        return Advice(
            frozen={name: Reason("compute", detail) for name in trainable[:first]},
            values=dict.fromkeys(self.layout.names, 1.0),
            inputs={
                name: {"seconds_from_here": needed_s}
                for name, needed_s in zip(trainable, seconds, strict=True)
            },
        )
