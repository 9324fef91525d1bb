import numpy as np
import pytest

from compression import CodecSettings, encode
from tests.unit.compression.sample_layouts import line


def sent(values, budget_bytes=100_000, **settings):
    return encode(
        {"w": values.astype(np.float32)},
        line(len(values)),
        ["all"],
        budget_bytes=budget_bytes,
        round_number=0,
        settings=CodecSettings(**settings),
    )


def laplace(size=5000, seed=0):
    return np.random.default_rng(seed).laplace(size=size).astype(np.float32)


@pytest.mark.parametrize("density", [1e-6, 0.001, 0.02, 0.5, 1.0])
def test_exactly_the_share_of_largest_values_is_kept(density):
    values = laplace()
    found = sent(values, density=density)
    count = max(1, round(density * 5000))
    assert found.kept == count
    assert set(np.flatnonzero(found.decoded["w"])) <= set(np.argsort(-np.abs(values))[:count])


@pytest.mark.parametrize("bits", [None, 2])
def test_of_equal_values_the_first_make_up_the_share(bits):
    values = np.where(np.arange(1000) % 3, 0.5, 2.0)
    found = sent(values, density=0.4, value_bits=bits)
    # 334 values of 2, then the first 66 of the others.
    others = np.flatnonzero(values == 0.5)[:66]
    assert found.kept == 400
    assert np.flatnonzero(found.decoded["w"]).tolist() == sorted([*range(0, 1000, 3), *others])


def test_zeros_never_make_up_the_share():
    values = np.where(np.arange(1000) < 30, laplace(1000), 0)
    assert sent(values, density=0.5).kept == 30


def test_a_budget_below_the_share_keeps_as_many_as_it_can():
    found = sent(laplace(), budget_bytes=200, density=0.5)
    assert 0 < found.kept < 2500
    assert 0.95 * 200 <= len(found.packet) <= 200


@pytest.mark.parametrize("bits", range(1, 9))
def test_kept_values_have_no_more_cells_than_their_bits_allow(bits):
    found = sent(laplace() ** 3, density=0.1, value_bits=bits)
    assert len(np.unique(np.abs(found.decoded["w"][found.decoded["w"] != 0]))) <= 2 ** (bits - 1)


def least_error(sizes, cells):
    """Squared error of the best uniform cells from the smallest size on, tried one by one.

    The first cell is restored at its mean, others at their middle, the last takes what is beyond.
    """
    sizes = sizes.astype(float)
    low, best = sizes.min(), np.inf
    for clip in np.linspace(low, sizes.max(), 2000)[1:]:
        step = (clip - low) / cells
        cell = np.minimum((sizes - low) // step, cells - 1)
        restored = low + (cell + 0.5) * step
        restored[cell == 0] = sizes[cell == 0].mean()
        best = min(best, float(((sizes - restored) ** 2).sum()))
    return best


@pytest.mark.parametrize("power", [1, 3])
@pytest.mark.parametrize("bits", [1, 2, 3, 4, 6])
def test_the_error_of_fixed_bits_is_that_of_the_best_uniform_cells(bits, power):
    values = laplace(seed=3) ** power
    found = sent(values, density=0.1, value_bits=bits)
    kept = np.flatnonzero(found.decoded["w"])
    error = float(((values - found.decoded["w"])[kept].astype(float) ** 2).sum())
    assert error <= 1.05 * least_error(np.abs(values[kept]), 2 ** (bits - 1))


@pytest.mark.parametrize("budget_bytes", [300, 900])
def test_fixed_bits_alone_keep_as_many_values_as_fit(budget_bytes):
    found = sent(laplace(), budget_bytes=budget_bytes, value_bits=2)
    assert 0.97 * budget_bytes <= len(found.packet) <= budget_bytes


@pytest.mark.parametrize("budget_bytes", [200, 300, 600, 1200, 1800, 2500])
def test_shared_positions_are_sent_as_finely_as_the_budget_allows(budget_bytes):
    values, layout = laplace(), line(5000)
    found = encode(
        {"w": values},
        layout,
        ["all"],
        budget_bytes=budget_bytes,
        round_number=0,
        positions={"w": np.arange(0, 5000, 5)},
    )
    assert found.kept == 1000
    # Wider tails are a jump of up to a bit for each value.
    assert budget_bytes - 125 <= len(found.packet) <= budget_bytes


def test_shared_positions_that_the_coarsest_step_lets_in_are_never_left_out():
    # A sign for each of 1,000 values, and some 50 bytes around them.
    rng = np.random.default_rng(7)
    for budget_bytes in range(180, 3000, 97):
        values = rng.laplace(size=5000) ** int(rng.integers(1, 8))
        found = encode(
            {"w": values.astype(np.float32)},
            line(5000),
            ["all"],
            budget_bytes=budget_bytes,
            round_number=0,
            positions={"w": np.arange(0, 5000, 5)},
        )
        assert found.kept == 1000, budget_bytes


def test_more_fineness_keeps_fewer_values_each_nearer_to_what_it_was():
    values = laplace()
    usual, finer = sent(values, budget_bytes=700), sent(values, budget_bytes=700, fineness=3.0)

    def error_each(found):
        kept = found.decoded["w"] != 0
        return float(((values - found.decoded["w"])[kept] ** 2).mean())

    assert finer.kept < 0.9 * usual.kept
    assert error_each(finer) < 0.5 * error_each(usual)
