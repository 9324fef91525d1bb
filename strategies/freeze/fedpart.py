"""``fedpart``: after some full rounds, train one module in each round, shallow to deep, in cycles.

Source: Wang et al., "Why Go Full? Elevating Federated Learning Through Partial Network Updates"
(FedPart, NeurIPS 2024). Averaging all layers at once leaves them out of step with each other; a
layer that trains while all others stand still fits in with them. With M modules in forward order
and r rounds for each (``rounds-per-module``),

    rounds 1 ... F                full     F = ``full-rounds``
    then, in cycles of M r + B    module floor(c / r) in round c = 0 ... M r - 1 of the cycle,
                                  then B full rounds    B = ``full-rounds-between``

All clients train the same module. Deep modules are cheap; the shallow ones need the whole backward
pass, and a board that cannot afford it sits out their rounds.

The paper's idea is that of its abstract; how many rounds of which kind are best is for the user.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from fedfreeze import settings
from fedfreeze.layout import Layout
from fedfreeze.plan import Reason
from strategies.freeze.modules import modules_of
from strategies.freeze.policy import Advice, ClientView, FreezePolicy, RoundView


class FedPartSettings(settings.Settings):
    """``[freeze]`` of policy ``fedpart``."""

    policy: Literal["fedpart"] = "fedpart"
    full_rounds: settings.Natural = Field(5, description="F: rounds of all layers at the beginning")
    full_rounds_between: settings.Natural = Field(
        0, description="B: rounds of all layers after each cycle"
    )
    rounds_per_module: settings.PositiveInt = Field(
        1, description="r: rounds in which a module trains before the next one does"
    )
    modules: list[list[str]] | None = Field(
        None,
        min_length=1,
        description="globs over layer names for each module, bottom first; a module of each layer "
        "when absent",
    )


class FedPart(FreezePolicy):
    """See the module's docstring."""

    name: ClassVar[str] = "fedpart"
    Settings: ClassVar[type[settings.Settings]] = FedPartSettings
    settings: FedPartSettings

    def __init__(self, settings: Any, layout: Layout) -> None:
        super().__init__(settings, layout)
        self._modules = modules_of(layout, settings.modules)

    def advise(self, view: RoundView, client: ClientView) -> Advice:
        """The module whose turn it is, or all of them."""
        del client
        at = self._module_of(view.number)
        chosen = self.layout.names if at is None else self._modules[at]
        return Advice(
            frozen={
                name: Reason("fixed", f"round {view.number} trains {', '.join(chosen)}")
                for name in self.layout.names
                if name not in chosen
            },
            values=dict.fromkeys(self.layout.names, 1.0),
        )

    def _module_of(self, number: int) -> int | None:
        """Of a round that trains one alone; None of a full one."""
        after = number - 1 - self.settings.full_rounds
        if after < 0:
            return None
        turns = len(self._modules) * self.settings.rounds_per_module
        in_cycle = after % (turns + self.settings.full_rounds_between)
        return None if in_cycle >= turns else in_cycle // self.settings.rounds_per_module
