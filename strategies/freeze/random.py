"""``random``: each client trains layers drawn anew in each round; the control of every score.

A layer trains with the probability s (``trained-share``), each by a coin of its own, so that on
average the share s of the parameters trains, whatever the sizes of the layers. To compare with
another policy, give the shares that it trained, round by round: 1 - ``frozen_share`` of its
``rounds.jsonl``. Where every coin says no, the layer whose coin came closest trains.

Coins depend on the seed of the run, the client and the round alone.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from fedfreeze import settings
from fedfreeze.plan import Reason
from fedfreeze.seeded import DRAWS, draw
from strategies.freeze.policy import Advice, ClientView, FreezePolicy, RoundView


class RandomSettings(settings.Settings):
    """``[freeze]`` of policy ``random``."""

    policy: Literal["random"] = "random"
    trained_share: settings.Share | Annotated[list[settings.Share], Field(min_length=1)] = Field(
        0.5,
        description="share of the parameters that trains, on average; or one for each round, of "
        "which the last one holds from then on",
    )


class Random(FreezePolicy):
    """See the module's docstring."""

    name: ClassVar[str] = "random"
    Settings: ClassVar[type[settings.Settings]] = RandomSettings
    settings: RandomSettings

    def advise(self, view: RoundView, client: ClientView) -> Advice:
        """Freeze where the coin says so."""
        share = self._share(view.number)
        coins = {
            layer.name: draw(view.seed, client.device_id, view.number, layer.name)
            for layer in self.layout
            if layer.parameters
        }
        closest = min(coins, key=lambda name: coins[name])
        drawn = {name for name, coin in coins.items() if coin < share * DRAWS} | {closest}
        return Advice(
            frozen={
                name: Reason("fixed", f"not drawn in round {view.number}")
                for name in self.layout.names
                if name in coins and name not in drawn
            },
            values=dict.fromkeys(self.layout.names, 1.0),
        )

    def _share(self, number: int) -> float:
        shares: Any = self.settings.trained_share
        return float(shares[min(number, len(shares)) - 1] if isinstance(shares, list) else shares)
