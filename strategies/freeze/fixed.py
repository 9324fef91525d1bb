"""``fixed``: the same layers are frozen in every round, from the first to the last.

The control of every freezing system, and by what it freezes the name of several: the last layer
(FedBABU without its fine-tuning, Oh et al. 2022; "fixing the last layer" in FedBug's ablation), the
last two, the embeddings and first blocks of a BERT (FreezeBERT, Lee et al. 2019, where the last
quarter of the layers reaches nine tenths of the quality).

Frozen layers stay as they were initialised or pretrained, and are never sent up.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from fedfreeze import settings
from fedfreeze.errors import ConfigError
from fedfreeze.layout import Layout
from fedfreeze.plan import Reason
from strategies.freeze.modules import layers_called
from strategies.freeze.policy import Advice, ClientView, FreezePolicy, RoundView


class FixedSettings(settings.Settings):
    """``[freeze]`` of policy ``fixed``."""

    policy: Literal["fixed"] = "fixed"
    frozen: list[str] = Field([], description="globs over the names of layers that never train")
    first: settings.Natural = Field(0, description="so many of the first layers do not either")
    last: settings.Natural = Field(0, description="so many of the last layers do not either")


class Fixed(FreezePolicy):
    """See the module's docstring."""

    name: ClassVar[str] = "fixed"
    Settings: ClassVar[type[settings.Settings]] = FixedSettings
    settings: FixedSettings

    def __init__(self, settings: Any, layout: Layout) -> None:
        super().__init__(settings, layout)
        trainable = [layer.name for layer in layout if layer.parameters]
        frozen = {*layers_called(layout, settings.frozen, key="freeze.frozen")}
        frozen |= {*trainable[: settings.first]}
        frozen |= {*trainable[max(0, len(trainable) - settings.last) :]}
        if frozen >= set(trainable):
            raise ConfigError(
                f"freeze: expected a layer that trains, these keys freeze all of "
                f"{', '.join(trainable)}; freeze fewer"
            )
        self._frozen = tuple(name for name in layout.names if name in frozen)

    def advise(self, view: RoundView, client: ClientView) -> Advice:
        """The same for everybody, always."""
        del view, client
        return Advice(
            frozen={name: Reason("fixed", "the strategy never trains it") for name in self._frozen},
            values=dict.fromkeys(self.layout.names, 1.0),
        )
