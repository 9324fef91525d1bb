"""``fedfrozen``: train everything for a while, then freeze the attention kernel and train the rest.

Source: Du et al., "FedFrozen" (arXiv 2605.06446). What attention looks at, the kernel block
Phi = (W^Q, W^K) with all that shapes it, is where clients drift apart; what it carries, the value
block theta = W^V, is easy to agree on once the kernel stands. With T rounds in all,

    rounds 1 ... T_warm           Phi and theta train on f_k(Phi, theta)
    rounds T_warm + 1 ... T       Phi is frozen everywhere, theta trains on

        f_k(Phi_bar, theta) + (lambda / 2) ||theta||^2

The penalty is on the value block alone, not on what else trains. T_warm is ``warm-up-share`` of T,
rounded. The paper's theory trains the value block alone (``active = "value-only"``), its
transformers everything but the kernel (``"all-but-kernel"``): values, outputs, MLPs, norms,
embeddings and head. A client that joins later gets the kernel with the model, like anybody.

Needs queries and keys in layers of their own, as this project divides attention. Freezing the
kernel saves its bytes and its weight gradients, a sixth of a block's; the backward pass is as long
as before.
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
from strategies.local_step import LocalStep, Parameters

_HINT = '; fedfrozen is for models with attention, such as model.name = "vit-nano"'


class FedFrozenSettings(settings.Settings):
    """``[freeze]`` of policy ``fedfrozen``."""

    policy: Literal["fedfrozen"] = "fedfrozen"
    warm_up_share: settings.Share = Field(
        0.3, description="T_warm over T: share of the rounds in which everything trains"
    )
    kernel: list[str] = Field(
        ["*.qk"], min_length=1, description="globs over layer names: what is frozen afterwards"
    )
    value: list[str] = Field(
        ["*.v"], min_length=1, description="globs over layer names: the value block"
    )
    active: Literal["all-but-kernel", "value-only"] = Field(
        "all-but-kernel", description="what trains afterwards"
    )
    penalty: settings.NonNegative = Field(
        1e-4, description="lambda: weight of the squared norm of the value block"
    )
    penalty_from: Literal["freeze", "start"] = Field(
        "freeze", description="whether the penalty waits until the kernel is frozen"
    )


class FedFrozen(FreezePolicy):
    """See the module's docstring."""

    name: ClassVar[str] = "fedfrozen"
    Settings: ClassVar[type[settings.Settings]] = FedFrozenSettings
    settings: FedFrozenSettings

    def __init__(self, settings: Any, layout: Layout) -> None:
        super().__init__(settings, layout)
        self._kernel = layers_called(layout, settings.kernel, key="freeze.kernel", hint=_HINT)
        self._value = layers_called(layout, settings.value, key="freeze.value", hint=_HINT)
        if both := [name for name in self._value if name in self._kernel]:
            raise ConfigError(
                f"freeze: expected kernel and value to be different layers, {', '.join(both)} "
                "is in both; narrow their globs"
            )

    def advise(self, view: RoundView, client: ClientView) -> Advice:
        """Everything until T_warm, then the active block."""
        del client
        warm_up = round(self.settings.warm_up_share * view.rounds)
        frozen: dict[str, Reason] = {}
        if self._is_frozen(view):
            detail = f"the kernel is frozen since round {warm_up + 1}"
            frozen = {name: Reason("phase", detail) for name in self._kernel}
            if self.settings.active == "value-only":
                detail = f"only the value block trains since round {warm_up + 1}"
                others = (name for name in self.layout.names if name not in self._value)
                frozen |= {name: Reason("phase", detail) for name in others if name not in frozen}
        return Advice(frozen=frozen, values=dict.fromkeys(self.layout.names, 1.0))

    def watch(self, view: RoundView) -> LocalStep:
        """The client half: the penalty on the value block."""
        if self.settings.penalty_from == "freeze" and not self._is_frozen(view):
            return LocalStep()
        layer_of = self.layout.layer_of
        return _Penalty(
            self.settings.penalty,
            frozenset(name for name, layer in layer_of.items() if layer in self._value),
        )

    def _is_frozen(self, view: RoundView) -> bool:
        return view.number > round(self.settings.warm_up_share * view.rounds)


class _Penalty(LocalStep):
    """Adds ``lambda theta`` to the gradient of these tensors."""

    def __init__(self, weight: float, tensors: frozenset[str]) -> None:
        self._weight = weight
        self._tensors = tensors

    def after_backward(self, parameters: Parameters) -> None:
        """In each step, to what has a gradient in it."""
        for name in self._tensors & set(parameters):
            parameter = parameters[name]
            if parameter.grad is not None:
                parameter.grad.add_(parameter.detach(), alpha=self._weight)
