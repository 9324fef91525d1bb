import numpy as np
import pytest

from compression import CodecSettings, encode
from compression.affine import affine_units
from tests.unit.compression.sample_layouts import line
from tests.unit.compression.test_encode import error_share


def affine(*parts, zone=40, step=1.0):
    kept = np.concatenate(parts).astype(np.float32)
    zones = np.full(len(kept), zone)
    return affine_units(kept, np.array([len(part) for part in parts]), zones, step).tolist()


def one_sign(count=500, seed=0):
    return 3 + np.random.default_rng(seed).random(count)


def test_a_unit_of_one_sign_needs_no_signs():
    assert affine(one_sign()) == [True]
    assert affine(-one_sign()) == [True]


def test_a_unit_of_both_signs_keeps_them():
    values = one_sign()
    values[::2] *= -1
    assert affine(values) == [False]


def test_few_values_cannot_pay_for_a_zero_point():
    assert affine(one_sign(63), one_sign(64)) == [False, True]


def test_units_are_judged_one_by_one():
    both = one_sign()
    both[::2] *= -1
    assert affine(one_sign(), both, one_sign(seed=1)) == [True, False, True]


def test_one_value_of_the_other_sign_far_away_makes_cells_dearer_than_signs():
    values = np.append(one_sign(100), -200_000.0)
    assert affine(values) == [False]


def test_values_that_cells_from_a_zero_point_do_not_reach_keep_their_signs():
    # 2^20 cells below and one value beyond them, which would arrive wrong.
    values = np.append(np.full(65, -10486.0), 1.0)
    assert affine(values, step=0.01) == [False]
    assert affine(values, step=0.0101) == [True]


def test_no_units_are_none():
    assert (
        affine_units(np.zeros(0, np.float32), np.zeros(0, np.int64), np.zeros(0), 1.0).tolist()
        == []
    )


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("budget_bytes", [300, 900, 2500])
def test_a_zero_point_lowers_the_error_of_skewed_values_at_equal_bytes(sign, budget_bytes):
    rng = np.random.default_rng(4)
    update = {"w": (sign * (2 + 0.5 * rng.normal(size=4000))).astype(np.float32)}
    errors = [
        error_share(
            update,
            encode(
                update,
                line(4000),
                ["all"],
                budget_bytes=budget_bytes,
                round_number=0,
                settings=CodecSettings(affine=may),
            ).decoded,
        )
        for may in (True, False)
    ]
    assert errors[0] < 0.96 * errors[1]


@pytest.mark.parametrize("share", [0.0, 0.05, 0.3])
def test_a_zero_point_is_never_worse_than_a_hundredth_where_it_may_be_had(share):
    rng = np.random.default_rng(5)
    values = rng.laplace(size=5000) ** 3
    values = np.abs(values) * np.where(rng.random(5000) < share, -1, 1)
    update = {"w": values.astype(np.float32)}
    with_, without = (
        error_share(
            update,
            encode(
                update,
                line(5000),
                ["all"],
                budget_bytes=1200,
                round_number=0,
                settings=CodecSettings(affine=may),
            ).decoded,
        )
        for may in (True, False)
    )
    assert with_ <= 1.01 * without
