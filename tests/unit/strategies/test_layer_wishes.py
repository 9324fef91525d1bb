import math

import numpy as np
import pytest

from fedfreeze.errors import ConfigError
from fedfreeze.layout import Layer, Layout, TensorSpec
from strategies.layer_wishes import MAX_WEIGHT, floors_of, importance_of, measured_weights, rows_of

LAYOUT = Layout(
    "m",
    (
        Layer(
            "stem",
            (
                TensorSpec("stem.weight", (50, 40), "float32"),
                TensorSpec("stem.mean", (50,), "float32", "buffer"),
            ),
        ),
        Layer("block.0", (TensorSpec("block.0.weight", (100, 100), "float32"),)),
        Layer(
            "head",
            (
                TensorSpec("head.weight", (10, 500), "float32"),
                TensorSpec("head.bias", (10,), "float32"),
            ),
        ),
    ),
)


def test_by_default_the_last_layer_keeps_eight_values_or_a_thousandth():
    assert floors_of(LAYOUT, None) == {"head": 8}
    large = Layout("m", (Layer("head", (TensorSpec("w", (200, 100), "float32"),)),))
    assert floors_of(large, None) == {"head": 20}


def test_a_layer_with_fewer_values_than_the_least_has_them_all_as_its_floor():
    small = Layout("m", (Layer("head", (TensorSpec("w", (3,), "float32"),)),))
    assert floors_of(small, None) == {"head": 3}


def test_floors_are_shares_of_the_layers_that_a_glob_names():
    assert floors_of(LAYOUT, {"b*": 0.05, "*": 0.01}) == {"stem": 20, "block.0": 500, "head": 51}
    assert floors_of(LAYOUT, {"head": 0.0}) == floors_of(LAYOUT, {}) == {}


def test_weights_are_of_layers_or_else_of_tensors():
    assert importance_of(LAYOUT, {"head": 4.0}) == {"head.weight": 4.0, "head.bias": 4.0}
    assert importance_of(LAYOUT, {"*.bias": 16.0}) == {"head.bias": 16.0}
    assert importance_of(LAYOUT, {"*": 4.0, "stem": 16.0})["stem.weight"] == 16.0
    assert "stem.mean" not in importance_of(LAYOUT, {"stem": 4.0})


def test_rows_have_weights_of_their_own():
    weights = importance_of(LAYOUT, {"head.weight[0:3]": 16.0, "head.weight[9]": 4.0, "head": 2.0})
    assert weights["head.weight"].tolist() == [16.0] * 3 + [2.0] * 6 + [4.0]
    assert weights["head.bias"] == 2.0


def test_a_weight_below_1_counts_as_little_as_it_says():
    weights = importance_of(LAYOUT, {"stem": 0.25, "head.weight[2:4]": 0.5})
    assert weights.pop("head.weight").tolist() == [1.0] * 2 + [0.5] * 2 + [1.0] * 6
    assert weights == {"stem.weight": 0.25}


def test_of_several_globs_the_highest_weight_counts_even_below_1():
    assert importance_of(LAYOUT, {"*": 0.25, "stem": 0.5})["stem.weight"] == 0.5
    rows = importance_of(LAYOUT, {"head.weight[0:3]": 0.25, "head.weight[2]": 0.5, "head": 0.125})
    assert rows["head.weight"].tolist() == [0.25] * 2 + [0.5] + [0.125] * 7


# Of three layers the stem's 2e-6 is the median: weights of 1, a half and 32.
MEAN_SQUARES = {"stem": 2e-6, "block.0": 1e-6, "head": 64e-6}


def test_measured_weights_are_mean_squared_gradients_over_their_median():
    assert measured_weights(MEAN_SQUARES) == {"stem": 1.0, "block.0": 0.5, "head": 32.0}


def test_between_two_layers_the_median_is_their_mean():
    assert measured_weights({"stem": 1.0, "head": 3.0}) == {"stem": 0.5, "head": 1.5}


def test_measured_weights_stay_within_what_the_codec_tells_apart():
    assert measured_weights({"stem": 0.0, "block.0": 1.0, "head": math.inf}) == {
        "stem": 1 / MAX_WEIGHT,
        "block.0": 1.0,
        "head": MAX_WEIGHT,
    }
    assert measured_weights({"stem": 1e-9, "block.0": 1.0, "head": 1e9}) == {
        "stem": 1 / MAX_WEIGHT,
        "block.0": 1.0,
        "head": MAX_WEIGHT,
    }


def test_without_a_gradient_nothing_counts_more():
    assert measured_weights({"stem": 0.0, "head": 0.0}) == measured_weights({}) == {}


def test_a_layer_gives_its_measured_weight_to_its_parameters_but_not_to_its_buffers():
    assert importance_of(LAYOUT, None, MEAN_SQUARES) == {
        "stem.weight": 1.0,
        "block.0.weight": 0.5,
        "head.weight": 32.0,
        "head.bias": 32.0,
    }


def test_globs_multiply_what_was_measured():
    weights = importance_of(
        LAYOUT, {"block*": 16.0, "head.weight[0:3]": 4.0, "head.bias": 4.0}, MEAN_SQUARES
    )
    assert weights.pop("head.weight").tolist() == [128.0] * 3 + [32.0] * 7
    assert weights == {"stem.weight": 1.0, "block.0.weight": 8.0, "head.bias": 128.0}


def test_a_layer_that_was_not_measured_keeps_the_weight_of_its_globs():
    assert importance_of(LAYOUT, {"head": 4.0}, {"stem": 1.0}) == {
        "stem.weight": 1.0,
        "head.weight": 4.0,
        "head.bias": 4.0,
    }


def test_what_the_model_has_not_is_refused():
    for key, call in (
        ("floors", lambda: floors_of(LAYOUT, {"tail": 0.1})),
        ("boost", lambda: importance_of(LAYOUT, {"tail": 4.0})),
    ):
        with pytest.raises(ConfigError) as caught:
            call()
        assert str(caught.value).startswith(
            f'compression.{key}: nothing is called "tail"; the names are stem, block.0, head'
        )
    with pytest.raises(ConfigError) as caught:
        importance_of(LAYOUT, {"head.weight[8:12]": 4.0})
    assert str(caught.value) == (
        'compression.boost: "head.weight[8:12]": head.weight has 10 rows, counted from 0; '
        "name some of these"
    )


@pytest.mark.parametrize("pattern", ["head[]", "head[x]", "head[1:]", "[3]"])
def test_brackets_without_rows_are_refused(pattern):
    with pytest.raises(ValueError, match="expected rows as in") as caught:
        rows_of(pattern)
    assert str(caught.value) == (
        f'expected rows as in "head.weight[3]" or "head.weight[0:4]", got "{pattern}"'
    )


def test_an_empty_range_of_rows_is_refused():
    with pytest.raises(ValueError, match="not empty") as caught:
        rows_of("head[4:4]")
    assert str(caught.value) == '"head[4:4]": expected a range of rows that is not empty'


def test_weights_fit_the_codec():
    assert np.log2(4.0**7) / 2 == 7  # the largest gain
