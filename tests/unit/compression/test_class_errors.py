import numpy as np
import pytest

from compression import CodecSettings, encode
from compression.class_errors import too_far_off
from compression.placement import place
from compression.segments import Segments
from compression.units import Units
from fedfreeze.layout import Layer, Layout, TensorSpec
from tests.unit.compression.test_encode import error_share

ROWS, COLUMNS = 40, 100
LAYOUT = Layout("m", (Layer("all", (TensorSpec("w", (ROWS, COLUMNS), "float32"),)),))


def crowded():
    """All of the first row is kept, and one value in each of the others."""
    return np.array([*range(COLUMNS), *range(COLUMNS, ROWS * COLUMNS, COLUMNS)])


def off(distances, flags=1):
    """Whether the classes of rows put values at these distances, in steps, too far off."""
    units = Units.of(Segments.of(LAYOUT, ["all"]), np.array([False]))
    counts, indices = np.array([len(distances)]), crowded()
    placement = place(units, counts, indices, np.array([flags]))
    zones = np.array([32])  # half a step in the densest group
    return too_far_off(placement, units.sizes, counts, zones, distances.astype(np.float32)) == [0]


def test_values_above_the_zones_of_their_groups_are_not_off():
    assert not off(np.full(COLUMNS + ROWS - 1, 2.0))


def test_values_far_below_the_zones_of_their_groups_are_off():
    # All positions of the first row are taken; in others log2(100) = 6.6 bits for each make the
    # zone sqrt(.25 + .1155 x 6.6) = 1.01 steps. Values of 0.3 are restored at 1.01 instead of 0.5,
    # with 39 x (0.71^2 - 0.2^2) = 18 squares of a step more error. Classes save some 550 bits,
    # worth 64 of them.
    loud, quiet = np.full(COLUMNS, 2.0), np.full(ROWS - 1, 0.3)
    assert not off(np.concatenate([loud, quiet]))
    # In a step four times as large all is below its zone, and 39 x 1.01^2 = 39 are nearly as many
    # as 100 x 0.5^2 + 39 x .075^2 = 25 which all values are worth.
    assert off(np.concatenate([loud, quiet]) / 4)


def test_units_without_classes_are_not_asked():
    assert not off(np.full(COLUMNS + ROWS - 1, 0.01), flags=0)


@pytest.mark.parametrize("budget_bytes", [60, 90, 130])
def test_a_density_that_the_budget_hardly_holds_leaves_no_more_error_than_nothing(budget_bytes):
    rng = np.random.default_rng(3)
    loud = np.exp(rng.normal(0, 1.5, (ROWS, 1))) * np.exp(rng.normal(0, 1.5, (1, COLUMNS)))
    update = {"w": (rng.laplace(size=(ROWS, COLUMNS)) * loud).astype(np.float32)}
    sent = encode(
        update,
        LAYOUT,
        ["all"],
        budget_bytes=budget_bytes,
        round_number=0,
        settings=CodecSettings(density=0.05),
    )
    assert not sent.empty
    assert error_share(update, sent.decoded) < 1
