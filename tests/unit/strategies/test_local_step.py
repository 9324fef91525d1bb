from types import SimpleNamespace

import numpy as np
import pytest

from strategies.local_step import Chain, GradientNorms, LocalStep


class Tensor:
    """As much of a tensor as the hooks ask for."""

    def __init__(self, *values):
        self._values = np.array(values)

    def square(self):
        return Tensor(*np.square(self._values))

    def sum(self):
        return self._values.sum()

    def numel(self):
        return self._values.size


def parameters(**gradients):
    return {
        name: SimpleNamespace(grad=None if values is None else Tensor(*values))
        for name, values in gradients.items()
    }


LAYER_OF = {"w": "a", "b": "a", "v": "c"}


def test_a_layers_gradient_norm_is_over_the_root_of_its_size():
    norms = GradientNorms(LAYER_OF)
    norms.after_backward(parameters(w=(3.0, 0.0, 0.0), b=(4.0,), v=(2.0,)))
    # ||(3, 0, 0, 4)|| = 5, over the root of 4 values.
    assert norms.means() == pytest.approx({"a": 2.5, "c": 2.0})


def test_the_mean_is_over_the_steps_in_which_a_layer_trained():
    norms = GradientNorms(LAYER_OF)
    norms.after_backward(parameters(w=None, b=None, v=(1.0,)))
    norms.after_backward(parameters(w=(1.0,), b=(1.0,), v=(3.0,)))
    assert norms.means() == pytest.approx({"a": 1.0, "c": 2.0})


def test_mean_squares_are_over_parameters_and_over_steps():
    """(9 + 16) / 4 in the first step and 1 / 4 in the second; 4 and 16 for the other layer."""
    norms = GradientNorms(LAYER_OF)
    norms.after_backward(parameters(w=(3.0, 0.0, 0.0), b=(4.0,), v=(2.0,)))
    norms.after_backward(parameters(w=(0.0, 1.0, 0.0), b=(0.0,), v=(4.0,)))
    assert norms.mean_squares() == pytest.approx({"a": (6.25 + 0.25) / 2, "c": 10.0})


def test_a_layer_without_a_gradient_has_no_norm():
    norms = GradientNorms(LAYER_OF)
    norms.after_backward(parameters(w=None))
    assert norms.means() == norms.mean_squares() == {}


def test_a_chain_runs_its_hooks_in_order():
    calls = []

    class Noted(LocalStep):
        def __init__(self, name):
            self.name = name

        def begin(self, parameters):
            calls.append((self.name, "begin", parameters))

        def after_backward(self, parameters):
            calls.append((self.name, "step", parameters))

    chain = Chain([Noted("first"), LocalStep(), Noted("second")])
    chain.begin({"a": 1})
    chain.after_backward({"a": 2})
    assert calls == [
        ("first", "begin", {"a": 1}),
        ("second", "begin", {"a": 1}),
        ("first", "step", {"a": 2}),
        ("second", "step", {"a": 2}),
    ]


def test_of_a_chain_the_first_that_knows_says_when_stages_begin():
    class Starts(LocalStep):
        def __init__(self, starts):
            self.starts = starts

        def stage_starts(self, stages, steps):
            return self.starts

    assert Chain([LocalStep(), Starts((0, 3)), Starts((0, 4))]).stage_starts((), 9) == (0, 3)
    assert Chain([LocalStep()]).stage_starts((), 9) is None


def test_a_chain_multiplies_the_scales_of_rates():
    class Scales(LocalStep):
        def __init__(self, **scales):
            self.scales = scales

        def rate_scales(self, at, steps):
            return self.scales

    chain = Chain([LocalStep(), Scales(stem=0.5, head=2.0), Scales(stem=0.5, head=1.0)])
    assert chain.rate_scales(0, 9) == {"stem": 0.25, "head": 2.0}
    assert Chain([LocalStep()]).rate_scales(0, 9) == {}
