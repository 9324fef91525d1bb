"""Float16 with a power of two for each tensor, against exact fractions."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from compression import Half, halved
from fedfreeze.errors import PacketError

LARGEST = float(np.finfo(np.float32).max)
FLOATS = hnp.arrays(
    np.float32,
    hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=5),
    elements=st.floats(width=32, allow_nan=False, allow_infinity=False),
)


def nearest(value, top):
    """The value of 11 bits, or of float16's smallest step, that is nearest; ties to even."""
    if top == 0:
        return Fraction(0)
    scale = Fraction(2) ** (math.frexp(top)[1] - 16)
    x = Fraction(value)
    own = Fraction(2) ** (math.frexp(value)[1] - 11) if value else Fraction(1)
    quantum = max(own, scale * Fraction(1, 2**24))
    rounded = round(x / quantum) * quantum  # Python rounds fractions half to even
    most = 65504 * scale
    return min(max(rounded, -most), most)


@given(FLOATS)
@example(np.array([LARGEST, -LARGEST, 1e-38, 1.0], np.float32))
@example(np.array([1e-45, -3e-45, 1e-42], np.float32))
@example(np.array([65519.9, 65520, 65535.9, 1 / 3], np.float32))
def test_every_value_is_the_nearest_one_that_float16_has_at_the_tensors_scale(array):
    back = Half.of(array).floats()
    top = float(np.max(np.abs(array), initial=0))
    assert back.shape == array.shape
    assert back.dtype == np.float32
    for came, value in zip(back.ravel().tolist(), array.ravel().tolist(), strict=True):
        assert Fraction(came) == nearest(value, top)


@given(FLOATS)
@example(np.array([LARGEST, 1.0], np.float32))
def test_the_loss_is_within_half_a_unit_of_11_bits_and_a_speck_of_the_largest(array):
    """2^-11 is float16's unit roundoff; a speck is half its smallest step, under its top binade."""
    back = Half.of(array).floats().astype(np.float64)
    exact = array.astype(np.float64)
    top = np.max(np.abs(exact), initial=0)
    assert (np.abs(back - exact) <= 2.0**-11 * np.abs(exact) + 2.0**-40 * top).all()
    _, lost = halved({"w": array})
    norm = float(np.linalg.norm(exact.ravel()))
    assert lost <= (2.0**-11 * norm + 2.0**-40 * math.sqrt(exact.size) * top) * (1 + 1e-12)


@given(FLOATS)
def test_rounding_again_changes_no_bit(array):
    once = Half.of(array)
    again = Half.of(once.floats())
    assert again.exponent == once.exponent or not once.values.any()
    assert again.values.tobytes() == once.values.tobytes()


def test_values_that_plain_float16_makes_infinite_or_zero_survive():
    for scale in (1e30, 1e-30):
        array = np.array([3, -2, 1], np.float32) * np.float32(scale)
        back = Half.of(array).floats()
        assert np.abs(back / array - 1).max() <= 2.0**-11


def test_the_norm_of_what_was_lost_is_over_all_tensors():
    """Halfway between 1 and the next value of 11 bits, 1 + 2^-10, ties go to the even one."""
    kept, lost = halved(
        {"a": np.array([1, 1 + 3 * 2**-12], np.float32), "b": np.array([1 + 2**-11], np.float32)}
    )
    assert kept["a"].tolist() == [1, 1 + 2**-10]
    assert kept["b"].tolist() == [1]
    assert lost == pytest.approx(math.hypot(2**-12, 2**-11), rel=1e-12)


def test_a_tensor_takes_two_bytes_a_value_and_reads_as_float32():
    kept, _ = halved({"w": np.ones((3, 4), np.float32), "s": np.float32(2.5).reshape(())})
    assert kept.tensors["w"].values.nbytes == 24
    assert list(kept) == ["s", "w"]
    assert len(kept) == 2
    assert (kept["s"].shape, kept["s"].dtype, kept["s"].item()) == ((), np.float32, 2.5)


def test_the_order_of_tensors_changes_no_bit_of_the_norm():
    rng = np.random.default_rng(0)
    arrays = {str(at): rng.normal(size=9).astype(np.float32) for at in range(9)}
    turned = dict(reversed(arrays.items()))
    assert halved(arrays)[1] == halved(turned)[1]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_refused_by_name(value):
    with pytest.raises(PacketError) as caught:
        halved({"w": np.array([1, value], np.float32)})
    assert str(caught.value) == (
        "tensor 'w' of the residual: expected finite values, got NaN or infinity; "
        "training has diverged: lower the learning rate or clip gradients"
    )
