import numpy as np
import pytest

from compression import CodecSettings, encode
from compression.quantise import MAX_CELL, cells_of, offsets_of, zero_points
from fedfreeze.layout import Layer, Layout, TensorSpec
from tests.unit.compression.sample_layouts import line


def floats(*values):
    return np.array(values, np.float32)


def no(count):
    return np.zeros(count, np.bool_)


def test_cells_begin_at_the_dead_zone_and_are_a_step_wide():
    kept = floats(1.5, -1.5, 2.25, 2.5, -9.0)
    cells, places = cells_of(kept, np.full(5, 96), floats(*[0] * 5), no(5), 1.0)
    assert cells.tolist() == [0, 0, 0, 1, 7]
    assert places.tolist() == [0, 0, 0.75, 0, 0.5]


def test_values_inside_the_dead_zone_are_in_cell_0_at_a_place_below_it():
    cells, places = cells_of(floats(0.25), np.array([64]), floats(0), no(1), 1.0)
    assert (cells.tolist(), places.tolist()) == ([0], [-0.75])


def test_cells_end_where_the_format_ends_them():
    cells, _ = cells_of(floats(1e30), np.array([0]), floats(0), no(1), 1e-6)
    assert cells.tolist() == [MAX_CELL]


def test_affine_cells_are_counted_from_the_smallest_value():
    kept = floats(-2, -1.25, 0.5)
    points = zero_points(kept, np.array([3]), np.array([True]))
    cells, places = cells_of(kept, np.zeros(3, np.int64), points[[0] * 3], ~no(3), 0.5)
    assert points.tolist() == [-2]
    assert cells.tolist() == [0, 1, 5]
    assert places.tolist() == [0, 0.5, 0]


def test_zero_points_are_those_of_affine_units_alone():
    kept = floats(5, 3, -1, 2)
    found = zero_points(kept, np.array([2, 0, 2]), np.array([True, True, False]))
    assert found.tolist() == [3, 0, 0]


def test_offsets_are_mean_places_in_256ths_of_the_first_cell_or_of_all_affine_ones():
    cells, places = np.array([0, 0, 3, 0, 2]), np.array([0.25, 0.5, 0.9, 0.1, 0.5])
    unit, affine = np.array([0, 0, 0, 1, 1]), np.array([False, True])
    assert offsets_of(cells, places, unit, affine).tolist() == [96, round(0.3 * 256)]


def sent(values, **options):
    """What arrives of a vector at a fixed step, and the step."""
    layout = line(len(values))
    found = encode(
        {"w": floats(*values)}, layout, ["all"], budget_bytes=10_000, round_number=0, **options
    )
    return found.decoded["w"], found.step


def test_the_mean_of_cell_0_arrives_for_its_values_and_the_middle_for_those_of_others():
    rng = np.random.default_rng(0)
    values = rng.laplace(size=2000).astype(np.float32)
    received, step = sent(values, step=0.75)
    kept = received != 0
    low = np.abs(received) == np.abs(received[kept]).min()
    assert np.abs(received[low]).mean() == pytest.approx(np.abs(values[low]).mean(), abs=step / 256)
    assert np.abs(received - values)[kept & ~low].max() <= step / 2 * (1 + 1e-6)


def test_a_finer_step_by_a_gain_divides_the_error():
    layout = Layout(
        "m",
        tuple(Layer(name, (TensorSpec(name, (3000,), "float32"),)) for name in ("loud", "quiet")),
    )
    rng = np.random.default_rng(3)
    update = {name: rng.laplace(size=3000).astype(np.float32) for name in ("loud", "quiet")}

    def error(name, **options):
        found = encode(
            update, layout, layout.names, budget_bytes=20_000, round_number=0, step=1.0, **options
        )
        return float(np.abs(found.decoded[name] - update[name]).max())

    # A weight of 64 is a step finer by 8.
    assert error("quiet", importance={"quiet": 64.0}) == pytest.approx(error("quiet") / 8, rel=0.35)
    assert error("loud", importance={"quiet": 64.0}) == pytest.approx(error("loud"), rel=0.05)


def test_the_largest_float_does_not_overflow():
    largest = float(np.finfo(np.float32).max)
    received, _ = sent([largest, -largest, 1.0], settings=CodecSettings(affine=False))
    assert np.isfinite(received).all()
    assert received[0] == pytest.approx(largest, rel=1e-5)
