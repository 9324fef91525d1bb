import pytest

from strategies.freeze.scores import Weights, fused, gain, normalised, stability

LAYERS = {
    "stability": {"a": 0.01, "b": 0.05, "c": 0.20},
    "importance": {"a": 0.1, "b": 0.4, "c": 1.0},
    "affinity": {"a": True, "b": True, "c": False},
    "gain": {"a": 0.02, "b": 0.10, "c": 0.05},
}


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        # By hand: N(S) = 0, 4/19, 1; N(I) = 0, 1/3, 1; 1 - R = 0, 0, 1; N(G) = 0, 1, 3/8.
        (Weights(1, 0, 0, 0), {"a": 1.0, "b": 15 / 19, "c": 0.0}),
        (Weights(0, 1, 0, 0), {"a": 1.0, "b": 2 / 3, "c": 0.0}),
        (Weights(0, 0, 1, 0), {"a": 0.0, "b": 0.0, "c": 1.0}),
        (Weights(0, 0, 0, 1), {"a": 1.0, "b": 0.0, "c": 5 / 8}),
        (Weights(), {"a": 0.8, "b": 0.3 * 15 / 19 + 0.2, "c": 0.2 + 0.2 * 5 / 8}),
    ],
)
def test_the_fused_score_weighs_its_four_terms(weights, expected):
    assert fused(**LAYERS, weights=weights) == pytest.approx(expected, abs=1e-12)


def test_layers_that_do_not_differ_are_neither_high_nor_low():
    assert normalised({"a": 0.0, "b": 0.0}) == {"a": 0.5, "b": 0.5}
    assert normalised({"a": 3.0}) == {"a": 0.5}
    assert normalised({}) == {}


def test_nothing_observed_is_unknown_and_not_zero():
    assert stability([]) is None
    assert stability([0.0]) == 0.0


def test_the_gain_of_a_layer_is_its_share_of_the_fall():
    arguments = {"loss_fall": 0.5, "trained_share": 0.5, "step_share": 0.4, "keep": 0.9}
    assert gain(0.2, **arguments) == pytest.approx(0.9 * 0.2 + 0.1 * 0.1)


@pytest.mark.parametrize(("loss_fall", "expected"), [(7.0, 1.0), (-7.0, -1.0)])
def test_one_wild_round_moves_the_gain_by_at_most_one(loss_fall, expected):
    moved = gain(0.0, loss_fall=loss_fall, trained_share=1.0, step_share=1.0, keep=0.0)
    assert moved == expected
