"""Hooks into local training: the door through which policies and methods reach a board.

They get the trained parameters by name and call tensor methods on them; this module and its users
import no torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fedfreeze.plan import Stage

Parameters = Mapping[str, Any]


@dataclass(frozen=True)
class LayerMeasures:
    """What a board measured of one trained layer in one round.

    Attributes:
        gradient_norm: mean over steps of the gradient's l2 norm, over the root of the number of
            parameters, so that wide layers do not dominate.
        movement: l2 norm of the local update over the norm of the layer before it.
    """

    gradient_norm: float
    movement: float


class LocalStep:
    """Does nothing; override what is needed."""

    def stage_starts(self, stages: Sequence[Stage], steps: int) -> tuple[int, ...] | None:
        """The step at which each stage of the plan begins, the first at 0.

        Args:
            stages: of the plan.
            steps: that the round has.

        Returns:
            None to go by the shares of the stages.
        """
        del stages, steps
        return None

    def rate_scales(self, at: int, steps: int) -> Mapping[str, float]:
        """What multiplies the learning rate of each layer in step ``at`` of ``steps``.

        Every layer that some stage trains must be there, in all steps or in none; none leaves the
        rate alone.
        """
        del at, steps
        return {}

    def begin(self, parameters: Parameters) -> None:
        """Called once, before the first step, with every parameter that some stage trains."""

    def after_backward(self, parameters: Parameters) -> None:
        """Called in each step after backward, before gradients are clipped; may change them."""


class Chain(LocalStep):
    """Several hooks as one, in the order given."""

    def __init__(self, steps: Iterable[LocalStep]) -> None:
        self.steps: Sequence[LocalStep] = tuple(steps)

    def stage_starts(self, stages: Sequence[Stage], steps: int) -> tuple[int, ...] | None:
        """Those of the first that says any."""
        said = (step.stage_starts(stages, steps) for step in self.steps)
        return next((starts for starts in said if starts is not None), None)

    def rate_scales(self, at: int, steps: int) -> Mapping[str, float]:
        """The products of all."""
        product: dict[str, float] = {}
        for step in self.steps:
            for layer, scale in step.rate_scales(at, steps).items():
                product[layer] = product.get(layer, 1.0) * scale
        return product

    def begin(self, parameters: Parameters) -> None:
        """Begin each."""
        for step in self.steps:
            step.begin(parameters)

    def after_backward(self, parameters: Parameters) -> None:
        """Run each."""
        for step in self.steps:
            step.after_backward(parameters)


class GradientNorms(LocalStep):
    """Accumulates each layer's gradient norm over the steps in which it trains.

    The per-layer value is the mean of ``||grad_l||_2 / sqrt(n_l)``: the importance I of FedFreeze,
    estimated on the mini-batches that are trained anyway; beside it stands the mean of its square.
    """

    def __init__(self, layer_of: Mapping[str, str]) -> None:
        self._layer_of = layer_of
        self._sums: dict[str, float] = {}
        self._square_sums: dict[str, float] = {}
        self._steps: dict[str, int] = {}

    def after_backward(self, parameters: Parameters) -> None:
        """Add this step's gradients."""
        squares: dict[str, float] = {}
        sizes: dict[str, int] = {}
        for name, parameter in parameters.items():
            if parameter.grad is None:
                continue
            layer = self._layer_of[name]
            squares[layer] = squares.get(layer, 0.0) + float(parameter.grad.square().sum())
            sizes[layer] = sizes.get(layer, 0) + int(parameter.grad.numel())
        for layer, square in squares.items():
            mean = square / sizes[layer]
            self._sums[layer] = self._sums.get(layer, 0.0) + mean**0.5
            self._square_sums[layer] = self._square_sums.get(layer, 0.0) + mean
            self._steps[layer] = self._steps.get(layer, 0) + 1

    def means(self) -> dict[str, float]:
        """Mean over steps, for each layer that had a gradient."""
        return {layer: total / self._steps[layer] for layer, total in self._sums.items()}

    def mean_squares(self) -> dict[str, float]:
        """Mean squared gradient of a parameter over the steps, for each layer that had a gradient.

        Not the square of :meth:`means`: steps with large gradients count more.
        """
        return {layer: total / self._steps[layer] for layer, total in self._square_sums.items()}
