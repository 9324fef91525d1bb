"""``fedbug``: in each round, train the first module alone and unfreeze upwards, one by one.

Source: Kao and Wang, "FedBug: A Bottom-Up Gradual Unfreezing Framework for Federated Learning"
(arXiv 2307.10317). A frozen upper module is the same on all clients, so that the lower ones learn
features for a common target before the clients drift apart. With the model split into M modules
in forward order, K local steps and the share g (``unfreezing-share``),

    P = floor(g K / M)
    module m trains from step m P on        m = 0 ... M - 1

afresh in each round. The server merges as ever: by the end of a round every module has trained, so
that nothing is saved on the wire. Frozen upper modules save their weight gradients alone.

Where text and authors' code differ: the text speaks of freezing the whole model first, but with it
as in the code the first module trains from the first step on. The code divides by zero where P is
0; here such a round trains all modules from the start, and the board logs it. Any aggregation goes
with it. Modules are the layers of the model, or groups of them: a ResNet by residual block as it
comes, or by its four modules with ``modules``.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from fedfreeze import settings
from fedfreeze.layout import Layout
from strategies.freeze.modules import modules_of
from strategies.freeze.policy import Advice, ClientView, FreezePolicy, RoundView
from strategies.freeze.unfreezing import Unfreezing, unfrozen_in_turn
from strategies.local_step import LocalStep


class FedBugSettings(settings.Settings):
    """``[freeze]`` of policy ``fedbug``."""

    policy: Literal["fedbug"] = "fedbug"
    unfreezing_share: settings.Share = Field(
        0.2, description="g: share of the local steps in which modules are unfrozen one by one"
    )
    modules: list[list[str]] | None = Field(
        None,
        min_length=1,
        description="globs over layer names for each module, bottom first; a module of each layer "
        "when absent",
    )


class FedBug(FreezePolicy):
    """See the module's docstring."""

    name: ClassVar[str] = "fedbug"
    Settings: ClassVar[type[settings.Settings]] = FedBugSettings
    settings: FedBugSettings

    def __init__(self, settings: Any, layout: Layout) -> None:
        super().__init__(settings, layout)
        self._modules = modules_of(layout, settings.modules)

    def advise(self, view: RoundView, client: ClientView) -> Advice:
        """All layers, in as many stages as there are modules."""
        del view, client
        share, count = self.settings.unfreezing_share, len(self._modules)
        return Advice(
            frozen={},
            values=dict.fromkeys(self.layout.names, 1.0),
            stages=unfrozen_in_turn(share, self._modules),
            inputs={
                name: {"module": at, "frozen_share": at * share / count}
                for at, module in enumerate(self._modules)
                for name in module
            },
        )

    def watch(self, view: RoundView) -> LocalStep:
        """The client half: the exact step at which each module is unfrozen."""
        del view
        return Unfreezing(self.settings.unfreezing_share, self._modules)
