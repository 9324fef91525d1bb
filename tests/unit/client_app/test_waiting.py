"""What becomes of a residual that waits, rule by rule."""

import numpy as np
import pytest

from client_app.store import BoardState, History
from client_app.waiting import adopted, missed_rounds, waited
from compression import halved
from fedfreeze.layout import Layer, Layout, TensorSpec
from strategies.tables import Residual


def layout(**layers):
    """Layers of one parameter ``NAME.w`` each."""
    return Layout(
        "m",
        tuple(
            Layer(name, (TensorSpec(f"{name}.w", (size,), "float32"),))
            for name, size in layers.items()
        ),
    )


LAYOUT = layout(a=2, b=2)
RESIDUAL = {"a.w": np.float32([8, -8]), "b.w": np.float32([16, 0])}


def left(*, rounds=0, **rules):
    """Where ``a`` trains, ``b`` is frozen, and so many rounds were missed."""
    found = waited(RESIDUAL, LAYOUT, Residual(**rules), trained=("a",), missed=rounds)
    return {name: array.tolist() for name, array in found.items()}


def test_by_default_everything_waits_unchanged_however_long():
    assert waited(RESIDUAL, LAYOUT, Residual(), trained=(), missed=99) is RESIDUAL


@pytest.mark.parametrize(
    ("rules", "rounds", "expected"),
    [
        ({"frozen": "decay", "decay": 0.5}, 3, {"a.w": [8, -8], "b.w": [8, 0]}),
        ({"frozen": "drop"}, 3, {"a.w": [8, -8]}),
        ({"missed": "decay", "decay": 0.5}, 0, {"a.w": [8, -8], "b.w": [16, 0]}),
        ({"missed": "decay", "decay": 0.5}, 3, {"a.w": [1, -1], "b.w": [2, 0]}),
        ({"missed": "drop"}, 0, {"a.w": [8, -8], "b.w": [16, 0]}),
        ({"missed": "drop"}, 1, {}),
        ({"frozen": "decay", "missed": "decay", "decay": 0.5}, 2, {"a.w": [2, -2], "b.w": [2, 0]}),
        ({"frozen": "drop", "missed": "decay", "decay": 0.5}, 2, {"a.w": [2, -2]}),
    ],
)
def test_frozen_layers_and_missed_rounds_go_by_their_own_rules(rules, rounds, expected):
    assert left(rounds=rounds, **rules) == expected


def test_a_million_missed_rounds_leave_nothing():
    assert left(missed="decay", decay=0.999, rounds=1_000_000) == {}


@pytest.mark.parametrize(
    ("last", "number", "missed"), [(None, 9, 0), (8, 9, 0), (4, 9, 4), (9, 9, 0), (12, 9, 0)]
)
def test_missed_rounds_lie_between_the_last_one_trained_and_this_one(last, number, missed):
    assert missed_rounds(History(last), number) == missed


# ---- another layout

HISTORY = History(5, {"a": 5, "b": 3, "gone": 1})
OTHER = BoardState(
    residual={**RESIDUAL, "gone.w": np.float32([1])}, model_version=4, history=HISTORY
)


def taken_over(new, state=OTHER, **rules):
    found = adopted(state, new, Residual(**rules))
    assert (found.pending, found.model_version, found.model) == (None, None, {})
    return {name: array.tolist() for name, array in found.residual.items()}, found.history


def test_tensors_of_the_same_name_and_shape_are_kept_and_others_dropped():
    grown = layout(a=2, b=3, new=1)
    assert taken_over(grown, layout_change="keep") == ({"a.w": [8, -8]}, History(5, {"a": 5}))


def test_a_change_of_layout_decays_by_one_round():
    assert taken_over(layout(b=2), layout_change="decay", decay=0.5) == (
        {"b.w": [8, 0]},
        History(5, {"b": 3}),
    )


def test_by_default_a_change_of_layout_drops_everything():
    assert taken_over(LAYOUT) == ({}, History(5))


def test_a_tensor_in_a_layer_of_another_name_is_kept_with_an_unknown_age():
    regrouped = Layout(
        "m",
        (Layer("ab", tuple(t for layer in LAYOUT for t in layer.tensors)),),
    )
    residual, history = taken_over(regrouped, layout_change="keep")
    assert residual == {"a.w": [8, -8], "b.w": [16, 0]}
    assert history == History(5)


def test_what_does_not_travel_under_the_new_layout_is_dropped():
    fixed = Layout("m", (Layer("a", (TensorSpec("a.w", (2,), "float32", "constant"),)),))
    assert taken_over(fixed, layout_change="keep") == ({}, History(5))


def test_a_residual_in_float16_is_taken_over_as_well():
    kept, _ = halved(RESIDUAL)
    state = BoardState(residual=kept, history=HISTORY)
    assert taken_over(LAYOUT, state, layout_change="keep")[0] == {
        "a.w": [8, -8],
        "b.w": [16, 0],
    }
