"""Bars in characters by hand."""

import numpy as np
import pytest

from cli.class_keys import COLOURS, class_keys, grouped
from cli.division_bars import apportioned, bars, legend


def plain(lines):
    return [line.plain for line in lines]


def test_a_bar_is_as_long_as_its_client_is_large_and_as_mixed():
    held = np.array([[10, 10], [5, 0]])
    keys = class_keys(held, ["cat", "dog"])
    drawn = plain(bars(held, keys, ["20", "5"], width=34, rows=5))
    # 34 columns less "client 0", three gaps' worth of blanks and the note leave 20.
    assert drawn == [
        f"client 0  {'a' * 10}{'b' * 10}  20",
        f"client 1  {'a' * 5}{' ' * 15}   5",
    ]


def test_no_client_is_without_a_bar_and_no_row_wider_than_asked():
    held = np.array([[100_000, 0], [1, 1]])
    drawn = plain(bars(held, class_keys(held, ["cat", "dog"]), ["a", "b"], width=60, rows=5))
    assert drawn[1].count("a") == 1
    assert max(map(len, drawn)) == 60


def test_letters_carry_their_colour():
    held = np.array([[1, 1]])
    (line,) = bars(held, class_keys(held, ["cat", "dog"]), ["2"], width=40, rows=1)
    assert [span.style.bgcolor.name for span in line.spans] == list(COLOURS[:2])


@pytest.mark.parametrize(("clients", "rows", "shown"), [(5, 5, 5), (6, 5, 4), (500, 3, 2)])
def test_clients_that_do_not_fit_are_counted(clients, rows, shown):
    held = np.ones((clients, 1), np.int64)
    drawn = plain(bars(held, class_keys(held, ["x"]), [""] * clients, width=40, rows=rows))
    assert len(drawn) == min(rows, clients)
    assert (drawn[-1] == f"and {clients - shown} more clients") == (shown < clients)


def test_cells_are_shared_by_largest_remainders():
    """Quotas of 10 cells: 4.7, 3.3, 2.0; the 4.7 has the largest remainder."""
    assert apportioned(np.array([47, 33, 20]), 10) == [5, 3, 2]
    assert apportioned(np.array([0, 9]), 3) == [0, 3]


def test_the_legend_breaks_its_lines_at_the_width():
    keys = class_keys(np.ones((1, 3), np.int64), ["alpha", "beta", "gamma"])
    assert plain(legend(keys, width=16)) == ["a alpha  b beta", "c gamma"]


def test_a_long_name_is_cut():
    keys = class_keys(np.ones((1, 1), np.int64), ["n" * 40])
    assert plain(legend(keys, width=60)) == [f"a {'n' * 23}…"]


def test_of_more_classes_than_letters_the_largest_have_one():
    held = np.arange(30)[None, :] + 1
    keys = class_keys(held, [str(number) for number in range(30)])
    assert [key.letter for key in keys] == [*"abcdefghijklmnopqrstuvwxy", "."]
    assert [key.name for key in keys][:2] == ["5", "6"]
    assert keys[-1].name == "5 other classes"
    assert grouped(held, keys)[0, -1] == 1 + 2 + 3 + 4 + 5
    assert grouped(held, keys).sum() == held.sum()


def test_a_name_that_would_break_the_drawing_is_escaped():
    keys = class_keys(np.ones((1, 1), np.int64), ["a\x1b[31m\nb"])
    assert keys[0].name == "a\\x1b[31m\\nb"


def luminance(colour):
    """Relative luminance of WCAG 2.2."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("colour", COLOURS)
def test_black_letters_can_be_read_on_every_colour(colour):
    """Contrast of 4.5 to 1, level AA."""
    assert (luminance(colour) + 0.05) / 0.05 >= 4.5
