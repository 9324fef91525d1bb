"""Digests that name a layer's values."""

import hashlib

import numpy as np
import pytest

from fedfreeze.errors import LayoutError
from fedfreeze.layer_digest import layer_digests, model_digest
from fedfreeze.layout import Layer, Layout, TensorSpec

LAYOUT = Layout(
    "m",
    (
        Layer("a", (TensorSpec("a.w", (2,), "float32"),)),
        Layer("b", (TensorSpec("b.w", (1,), "float32"), TensorSpec("b.n", (), "int64", "buffer"))),
    ),
)


def arrays(**changed):
    values = {
        "a.w": np.array([1.0, 2.0], np.float32),
        "b.w": np.array([3.0], np.float32),
        "b.n": np.array(7),
    }
    return {**values, **{name.replace("_", "."): value for name, value in changed.items()}}


def test_a_digest_is_sha256_over_names_types_shapes_and_little_endian_bytes():
    expected = hashlib.sha256(b"a.w\0float32[2]\0" + np.array([1, 2], "<f4").tobytes())
    assert layer_digests(LAYOUT, arrays())["a"] == expected.hexdigest()[:32]


@pytest.mark.parametrize(
    ("changed", "layer"),
    [
        ({"a_w": np.array([1.0, 2.0000002], np.float32)}, "a"),
        ({"a_w": np.array([-0.0, 2.0], np.float32)}, "a"),
        ({"b_n": np.array(8)}, "b"),
    ],
)
def test_a_changed_bit_changes_the_digest_of_its_layer_alone(changed, layer):
    before, after = layer_digests(LAYOUT, arrays()), layer_digests(LAYOUT, arrays(**changed))
    assert [name for name in before if before[name] != after[name]] == [layer]


def test_how_an_array_lies_in_memory_does_not_matter():
    strided = np.array([1.0, 9.0, 2.0, 9.0], np.float32)[::2]
    assert layer_digests(LAYOUT, arrays(a_w=strided)) == layer_digests(LAYOUT, arrays())


def test_arrays_of_another_layout_are_refused():
    with pytest.raises(LayoutError) as caught:
        layer_digests(LAYOUT, {"a.w": np.zeros(2, np.float32)})
    assert str(caught.value) == "expected tensor 'b.w', got none of that name"


def test_the_digest_of_a_model_is_that_of_its_layers_digests():
    both = "".join(layer_digests(LAYOUT, arrays()).values())
    assert model_digest(LAYOUT, arrays()) == hashlib.sha256(both.encode()).hexdigest()[:32]
