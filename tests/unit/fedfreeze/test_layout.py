"""The layout: order, identity, and the check of everything that arrives."""

import json

import numpy as np
import pytest

from fedfreeze.errors import LayoutError
from fedfreeze.layout import Layer, LayerCosts, Layout, TensorSpec

STEM = Layer(
    "stem",
    (
        TensorSpec("stem.w", (2, 3), "float32"),
        TensorSpec("stem.mean", (3,), "float32", "buffer"),
        TensorSpec("stem.count", (), "int64", "buffer"),
    ),
    LayerCosts(1.0, 2.0, 3.0, 4.0, 1.5),
    cut_bytes=12.0,
)
HEAD = Layer("head", (TensorSpec("head.w", (5,), "float32"),))
LAYOUT = Layout("m", (STEM, HEAD))
ARRAYS = {
    "stem.w": np.zeros((2, 3), np.float32),
    "stem.mean": np.zeros(3, np.float32),
    "stem.count": np.zeros((), np.int64),
    "head.w": np.zeros(5, np.float32),
}


def refusal(function, *args, **kwargs):
    with pytest.raises(LayoutError) as caught:
        function(*args, **kwargs)
    return str(caught.value)


def test_sizes_are_those_of_the_tensors():
    assert [(t.size, t.nbytes, t.is_float) for t in STEM.tensors] == [
        (6, 24, True),
        (3, 12, True),
        (1, 8, False),
    ]
    assert (STEM.parameter_count, STEM.parameter_bytes) == (6, 24)
    assert (LAYOUT.parameter_count, LAYOUT.parameter_bytes) == (11, 44)


def test_tensors_know_their_layer_and_stand_in_layer_order():
    assert list(LAYOUT.tensors) == list(ARRAYS)
    assert LAYOUT.layer_of["stem.count"] == "stem"
    assert LAYOUT["head"] is HEAD
    assert [layer.name for layer in LAYOUT] == list(LAYOUT.names) == ["stem", "head"]
    assert len(LAYOUT) == 2


def test_layers_are_put_in_forward_order_each_once():
    assert LAYOUT.ordered(["head", "stem", "head"]) == ("stem", "head")
    assert LAYOUT.ordered([]) == ()


def test_an_unknown_layer_is_refused_with_the_known_ones():
    assert refusal(LAYOUT.ordered, ["stem", "neck", "body"]) == (
        "no layer 'body', 'neck'; the layers are stem, head"
    )
    assert refusal(LAYOUT.__getitem__, "neck") == 'no layer "neck"; the layers are stem, head'


def test_a_model_without_layers_is_refused():
    assert refusal(Layout, "m", ()) == 'model "m" has no layer: it needs at least one parameter'


@pytest.mark.parametrize(
    ("layers", "what", "name"),
    [
        ((HEAD, Layer("head", ())), "layer", "'head'"),
        ((HEAD, Layer("tail", HEAD.tensors)), "tensor", "'head.w'"),
        ((Layer("", ()),), "layer", "''"),
    ],
)
def test_every_layer_and_tensor_needs_a_name_of_its_own(layers, what, name):
    assert refusal(Layout, "m", layers) == (
        f'model "m": every {what} needs a name of its own, got {name} more than once or empty'
    )


def test_an_update_holds_float_parameters_and_buffers_but_no_constants_and_no_integers():
    kinds = ("parameter", "buffer", "constant")
    for dtype, expected in (("float32", [True, True, False]), ("int64", [False, False, False])):
        assert [TensorSpec("w", (2,), dtype, kind).travels for kind in kinds] == expected


def test_a_constant_is_no_parameter_but_part_of_the_layer_and_of_the_fingerprint():
    body = Layer("body", (TensorSpec("b.w", (2,), "float32", "constant"), *HEAD.tensors))
    assert body.parameters == HEAD.tensors
    assert (body.parameter_count, body.parameter_bytes) == (5, 20)
    plain = Layer("body", (TensorSpec("b.w", (2,), "float32"), *HEAD.tensors))
    assert Layout("m", (body,)).fingerprint != Layout("m", (plain,)).fingerprint


def test_the_fingerprint_is_of_names_shapes_dtypes_and_kinds_but_not_of_costs_or_the_models_name():
    same = Layout("other", (Layer("stem", STEM.tensors), HEAD))
    assert same.fingerprint == LAYOUT.fingerprint
    assert len(LAYOUT.fingerprint) == 16
    changed = [
        TensorSpec("head.v", (5,), "float32"),
        TensorSpec("head.w", (5, 1), "float32"),
        TensorSpec("head.w", (5,), "float16"),
        TensorSpec("head.w", (5,), "float32", "buffer"),
    ]
    others = {Layout("m", (STEM, Layer("head", (t,)))).fingerprint for t in changed}
    others.add(Layout("m", (HEAD, STEM)).fingerprint)
    assert len(others - {LAYOUT.fingerprint}) == 5


def test_a_layout_comes_back_from_its_json():
    assert Layout.from_json(json.loads(json.dumps(LAYOUT.to_json()))) == LAYOUT


def test_a_layout_that_knows_no_cuts_comes_back_without_them():
    data = json.loads(json.dumps(LAYOUT.to_json()))
    for layer in data["layers"]:
        del layer["cut_bytes"]
        del layer["costs"]["inner_grad_flops"]
    layout = Layout.from_json(data)
    assert [layer.cut_bytes for layer in layout] == [None, None]
    assert layout["stem"].costs == LayerCosts(1.0, 2.0, 3.0, 4.0)
    assert layout.fingerprint == LAYOUT.fingerprint


def test_exactly_the_tensors_pass():
    LAYOUT.check(ARRAYS)
    LAYOUT.check({"head.w": ARRAYS["head.w"]}, ["head"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"stem.mean": None}, "expected tensor 'stem.mean', node 7 sent none of that name"),
        (
            {"more": np.zeros(1)},
            "node 7 sent tensor 'more', which the layout does not expect",
        ),
        (
            {"stem.w": np.zeros((2, 1), np.float32)},  # numpy would broadcast it without a word
            "tensor 'stem.w': expected float32[2, 3], node 7 sent float32[2, 1]",
        ),
        (
            {"stem.count": np.zeros((), np.float64)},
            "tensor 'stem.count': expected int64[], node 7 sent float64[]",
        ),
        (
            {"head.w": np.zeros(5, ">f4")},
            "tensor 'head.w': expected float32[5], node 7 sent >f4[5]",
        ),
    ],
)
def test_any_other_tensor_is_refused_by_name_with_both_shapes(changes, message):
    arrays = {n: a for n, a in (ARRAYS | changes).items() if a is not None}
    assert refusal(LAYOUT.check, arrays, sender="node 7") == message


def test_without_a_sender_the_message_names_none():
    assert refusal(LAYOUT.check, {}, ["head"]) == (
        "expected tensor 'head.w', got none of that name"
    )


def test_a_tensor_of_a_layer_that_was_not_asked_for_is_refused():
    assert refusal(LAYOUT.check, ARRAYS, ["stem"]) == (
        "got tensor 'head.w', which the layout does not expect"
    )
