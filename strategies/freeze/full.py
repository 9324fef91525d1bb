"""``full``: every layer trains in every round; what FedAvg does.

The planner may still freeze layers that a board cannot afford.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from fedfreeze import settings
from strategies.freeze.policy import Advice, ClientView, FreezePolicy, RoundView


class FullSettings(settings.Settings):
    """``[freeze]`` of policy ``full``: no keys of its own."""

    policy: Literal["full"] = "full"


class Full(FreezePolicy):
    """Freezes nothing."""

    name: ClassVar[str] = "full"
    Settings: ClassVar[type[settings.Settings]] = FullSettings

    def advise(self, view: RoundView, client: ClientView) -> Advice:
        """All layers, each worth the same."""
        del view, client
        return Advice(frozen={}, values=dict.fromkeys(self.layout.names, 1.0))
