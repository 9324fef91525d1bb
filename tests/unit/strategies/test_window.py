import pytest

from strategies.freeze.window import next_window, relative_fall


@pytest.mark.parametrize(
    ("window", "grow", "expected"),
    [(1, True, 2), (7, True, 8), (8, True, 8), (8, False, 4), (3, False, 1), (1, False, 1)],
)
def test_a_window_grows_by_one_and_shrinks_by_half(window, grow, expected):
    assert next_window(window, grow=grow, largest=8) == expected


def test_the_fall_is_relative_to_the_loss_so_many_rounds_ago():
    assert relative_fall([9.0, 2.0, 1.5, 1.0], lag=2) == 0.5
    assert relative_fall([1.0, 2.0], lag=1) == -1.0


def test_the_fall_is_unknown_while_too_few_losses_are():
    assert relative_fall([], lag=1) is None
    assert relative_fall([1.0, 2.0, 3.0], lag=3) is None


def test_a_loss_of_zero_does_not_divide():
    assert relative_fall([0.0, 0.0], lag=1) == 0.0
