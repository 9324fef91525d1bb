"""Bytes of the model on its way down, against the library that writes it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save

from fedfreeze.errors import LayoutError
from fedfreeze.layout import Layer, Layout, TensorSpec
from strategies.model_bytes import blob_bytes

DTYPES = ["bool", "int8", "uint8", "int16", "uint16", "float16", "int32", "uint32"]
DTYPES += ["float32", "int64", "uint64", "float64", "complex64"]

shapes = st.lists(st.integers(0, 30), max_size=3).map(tuple)
names = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12)
tensors = st.dictionaries(names, st.tuples(shapes, st.sampled_from(DTYPES)), min_size=1)


@given(tensors)
def test_a_blob_is_as_long_as_safetensors_writes_it(tensors):
    specs = tuple(TensorSpec(name, *rest) for name, rest in tensors.items())
    layout = Layout("any", tuple(Layer(f"layer {spec.name}", (spec,)) for spec in specs))
    arrays = {spec.name: np.zeros(spec.shape, spec.dtype) for spec in specs}
    assert blob_bytes(layout, layout.names) == len(save(arrays))
    first = layout.names[0]
    assert blob_bytes(layout, [first]) == len(save({specs[0].name: arrays[specs[0].name]}))


def test_no_layers_are_an_empty_file():
    layout = Layout("any", (Layer("all", (TensorSpec("w", (3,), "float32"),)),))
    assert blob_bytes(layout, ()) == len(save({})) == 16


def test_a_layer_that_there_is_not_is_refused():
    layout = Layout("any", (Layer("all", (TensorSpec("w", (3,), "float32"),)),))
    with pytest.raises(LayoutError, match=r"^no layer 'other'; the layers are all$"):
        blob_bytes(layout, ["other"])
