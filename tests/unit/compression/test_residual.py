import numpy as np
import pytest

from compression import add, encode, scaled, subtract
from fedfreeze.errors import LayoutError
from tests.unit.compression.sample_layouts import heavy_update, mixed


def test_absent_tensors_are_zero_on_either_side():
    one = {"a": np.float32([1, 2])}
    assert add({}, one)["a"].tolist() == add(one, {})["a"].tolist() == [1, 2]
    assert subtract({}, one)["a"].tolist() == [-1, -2]
    assert subtract(one, {})["a"].tolist() == [1, 2]


def test_scalars_stay_arrays():
    total = add({"a": np.array(1, np.float32)}, {"a": np.array(2, np.float32)})["a"]
    assert isinstance(total, np.ndarray)
    assert (total.shape, total.dtype, float(total)) == ((), np.float32, 3.0)


def test_inputs_are_left_as_they_were():
    residual, delta = {"a": np.ones(3, np.float32)}, {"a": np.ones(3, np.float32)}
    add(residual, delta)["a"][:] = 9
    add(residual, {})["a"][:] = 9
    assert residual["a"].tolist() == delta["a"].tolist() == [1, 1, 1]


def test_another_shape_is_refused():
    with pytest.raises(LayoutError) as error:
        add({"a": np.zeros((2, 1), np.float32)}, {"a": np.zeros(2, np.float32)})
    assert str(error.value) == (
        "tensor 'a': expected shape [2, 1] as in the residual or update, got [2]; "
        "a residual belongs to one model"
    )


def test_a_factor_multiplies_one_leaves_as_it_is_and_zero_leaves_out():
    residual = {name: np.float32([3, -1]) for name in ("half", "one", "none", "unnamed")}
    left = scaled(residual, {"half": 0.5, "one": 1.0, "none": 0.0})
    assert {name: array.tolist() for name, array in left.items()} == {
        "half": [1.5, -0.5],
        "one": [3, -1],
        "unnamed": [3, -1],
    }
    assert left["half"].dtype == np.float32
    assert residual["half"].tolist() == [3, -1]


def test_a_factor_too_small_for_float32_is_zero():
    assert scaled({"w": np.float32([1e30])}, {"w": 0.5**400}) == {}


@pytest.mark.parametrize("budget_bytes", [0, 60, 250, 2000])
def test_what_was_sent_and_the_residual_add_up_to_all_updates(budget_bytes):
    layout, residual = mixed(), {}
    names = [t.name for t in layout.tensors.values() if t.is_float]
    ledger = {name: np.zeros(layout.tensors[name].shape) for name in names}
    rounding = {name: np.zeros(layout.tensors[name].shape) for name in names}
    for number in range(20):
        # The stem is frozen in every third round; its residual must wait unharmed.
        layers = ["stem", "body", "head"] if number % 3 else ["body", "head"]
        of_layers = {t.name for layer in layers for t in layout[layer].tensors}
        delta = heavy_update(layout, number, scale=10.0 ** (number % 5 - 2))
        delta = {name: array for name, array in delta.items() if name in of_layers}
        update = add(residual, delta)
        sent = encode(update, layout, layers, budget_bytes=budget_bytes, round_number=number)
        residual = subtract(update, sent.decoded)
        for name in update:
            ledger[name] += delta.get(name, 0)
            ledger[name] -= sent.decoded.get(name, 0)
            rounding[name] += np.abs(update[name]) + np.abs(residual[name])
    for name in names:
        off = np.abs(ledger[name] - residual[name].astype(np.float64))
        # The float64 ledger itself rounds 2^29 times finer.
        assert (off <= 2.0**-24 * rounding[name] * (1 + 1e-6)).all()
