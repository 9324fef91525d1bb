import numpy as np

from compression.quantise import MAX_CELL, quantise, restore


def quantised(values, zone=64, step=1.0):
    values = np.array(values, np.float32)
    indices = np.arange(len(values))
    return quantise(values, indices, np.array([len(values)]), np.array([zone]), step)


def test_cells_start_at_the_dead_zone_and_are_one_step_wide():
    assert quantised([1.0, 1.99, -2.0, 3.5]).cells.tolist() == [0, 0, 1, 2]


def test_the_first_cell_is_restored_at_its_mean_and_others_at_their_middle():
    assert restore(quantised([1.25, -1.75, 2.1, -3.9])).tolist() == [1.5, -1.5, 2.5, -3.5]


def test_cells_that_float32_cannot_hold_are_restored_at_the_largest_float():
    largest = float(np.finfo(np.float32).max)
    assert restore(quantised([largest, -largest], step=largest)).tolist() == [largest, -largest]


def test_values_far_beyond_the_step_stop_at_the_last_cell():
    assert quantised([3e38], step=1.2e-38).cells.tolist() == [MAX_CELL]
