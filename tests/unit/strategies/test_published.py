import numpy as np
import pytest
from safetensors.numpy import load

from fedfreeze.errors import LayoutError, RunError
from strategies.published import Published
from tests.unit.strategies.samples import constant, stack, with_buffers

LAYOUT = stack(a=2, b=3, c=4)


def published(value=10.0, layout=LAYOUT):
    return Published(layout, constant(layout, value))


def stepped(model, **steps):
    model.advance(
        {
            name: {t.name: np.full(t.shape, step) for t in model.layout[name].tensors}
            for name, step in steps.items()
        }
    )
    return model


def test_a_step_is_added_and_a_layer_without_one_stays_bit_identical():
    model = published(0.1)
    before = {name: array.tobytes() for name, array in model.arrays.items()}
    stepped(model, b=1.0)
    assert model.arrays["b.w"].tolist() == pytest.approx([1.1] * 3)
    assert model.arrays["a.w"].tobytes() == before["a.w"]
    assert model.arrays["c.w"].tobytes() == before["c.w"]
    assert set(model.arrays) == set(LAYOUT.tensors)


def test_the_sum_is_rounded_once():
    """In float32 the step would become 1 first, and the tie then go to the even neighbour."""
    model = Published(stack(a=1), {"a.w": np.array([2**24], np.float32)})
    model.advance({"a": {"a.w": np.array([1 + 2**-26])}})
    assert model.arrays["a.w"].tolist() == [2**24 + 2]


def test_every_tensor_keeps_its_dtype_and_shape():
    layout = with_buffers()
    model = published(1.0, layout)
    floats = {t.name: np.asarray(0.5) for t in layout.tensors.values() if t.is_float}
    model.advance(
        {
            layer.name: {t.name: floats[t.name] for t in layer.tensors if t.name in floats}
            for layer in layout
        }
    )
    layout.check(model.arrays)
    assert all(isinstance(array, np.ndarray) for array in model.arrays.values())
    assert model.arrays["norm.scale"].tolist() == 1.5
    assert model.arrays["norm.batches"].tolist() == 1
    layout.check(load(model.blob(layout.names)))


def test_the_given_arrays_are_copied():
    given = constant(LAYOUT, 1.0)
    model = Published(LAYOUT, given)
    given["a.w"][:] = 9
    assert model.arrays["a.w"].tolist() == [1, 1]


def test_a_client_lacks_what_changed_after_the_version_that_it_holds():
    model = stepped(stepped(published(), a=1.0, b=1.0), b=1.0)
    assert model.version == 2
    assert model.lacking(0) == ("a", "b")
    assert model.lacking(1) == ("b",)
    assert model.lacking(2) == ()


@pytest.mark.parametrize("held", [None, 3])
def test_a_client_with_nothing_or_with_a_version_from_the_future_lacks_everything(held):
    assert stepped(published(), a=1.0).lacking(held) == ("a", "b", "c")


def test_a_blob_holds_the_layers_asked_for_and_is_made_once():
    model = published()
    blob = model.blob(("a", "c"))
    assert model.blob(("a", "c")) is blob
    assert {name: array.tolist() for name, array in load(blob).items()} == {
        "a.w": [10] * 2,
        "c.w": [10] * 4,
    }
    assert load(model.blob(())) == {}


def test_a_blob_of_the_version_before_is_not_sent_again():
    model = published()
    model.blob(("a",))
    stepped(model, a=1.0)
    assert load(model.blob(("a",)))["a.w"].tolist() == [11, 11]


def test_arrays_of_another_model_are_refused():
    with pytest.raises(LayoutError) as caught:
        Published(LAYOUT, constant(stack(a=2, b=3, c=5), 0.0))
    assert str(caught.value) == "tensor 'c.w': expected float32[4], got float32[5]"


def test_a_step_out_of_the_finite_numbers_is_refused_and_nothing_of_it_is_published():
    model = published(1.0)
    with pytest.raises(RunError) as raised:
        stepped(model, a=1.0, c=1e300)
    name = LAYOUT["c"].tensors[0].name
    assert str(raised.value) == (
        f"the merged step takes {name!r} out of the finite numbers; lower "
        "method.server-learning-rate or local.learning-rate"
    )
    assert model.version == 0
    for tensor, array in constant(LAYOUT, 1.0).items():
        assert np.array_equal(model.arrays[tensor], array)
