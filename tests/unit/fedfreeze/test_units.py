"""Quantities with their units, read and written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedfreeze.units import EXAMPLES, UNITS, Dimension, exact, parse, written

BYTES, RATE, SECONDS = Dimension.BYTES, Dimension.BYTES_PER_S, Dimension.SECONDS


@pytest.mark.parametrize(
    ("text", "dimension", "value"),
    [
        ("4 MB", BYTES, 4e6),
        ("4 MiB", BYTES, 4 * 1024**2),
        ("4MB", BYTES, 4e6),
        ("  0 B ", BYTES, 0.0),
        ("1_000 kB", BYTES, 1e6),
        ("2.5e3 B", BYTES, 2500.0),
        ("+1 GiB", BYTES, 2.0**30),
        ("250 kbit/s", RATE, 31_250.0),
        ("8 bit/s", RATE, 1.0),
        ("1 MB/s", RATE, 1e6),
        ("1.5 h", SECONDS, 5_400.0),
        ("10 ms", SECONDS, 0.01),
        ("2 min", SECONDS, 120.0),
        ("3.2 GFLOP/s", Dimension.FLOPS_PER_S, 3.2e9),
        ("500 mW", Dimension.WATTS, 0.5),
        ("10 Wh", Dimension.JOULES, 36_000.0),
        ("5 kJ", Dimension.JOULES, 5_000.0),
        ("1.5 GHz", Dimension.HERTZ, 1.5e9),
    ],
)
def test_a_quantity_is_read_in_its_base_unit(text, dimension, value):
    assert parse(text, dimension) == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize(
    "text",
    ["", "4", "MB", "4 4 MB", "four MB", ".5 MB", "1__0 B", "1_ B", "nan s", "inf s", "4,5 B"],
)
def test_what_is_no_number_with_a_unit_is_refused_with_an_example(text):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole message is asserted
        parse(text, BYTES)
    assert str(caught.value) == f'expected a quantity such as "2 MB", got "{text}"'


def test_an_unknown_unit_is_refused_with_all_known_ones():
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole message is asserted
        parse("512 MX", BYTES)
    assert str(caught.value) == (
        '"512 MX": unknown unit "MX"; use one of B, kB, MB, GB, TB, KiB, MiB, GiB'
    )


@pytest.mark.parametrize(
    ("text", "dimension"), [("4 mb", BYTES), ("4 KB", BYTES), ("4 Mbit/s", BYTES), ("4 MB", RATE)]
)
def test_case_and_dimension_of_a_unit_count(text, dimension):
    with pytest.raises(ValueError, match="unknown unit"):
        parse(text, dimension)


@pytest.mark.parametrize("text", ["-1 s", "1e400 s", "1e306 h"])
def test_a_quantity_is_finite_and_not_below_0(text):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole message is asserted
        parse(text, SECONDS)
    assert str(caught.value) == f'expected a quantity of 0 or more, got "{text}"'


@pytest.mark.parametrize("dimension", Dimension)
def test_the_example_of_each_dimension_can_be_read(dimension):
    assert parse(EXAMPLES[dimension], dimension) > 0
    assert UNITS[dimension][dimension.value] == 1.0


@pytest.mark.parametrize(
    ("value", "dimension", "text"),
    [
        (0.0, BYTES, "0 B"),
        (999, BYTES, "999 B"),
        (999.9, BYTES, "1 kB"),
        (999_999, BYTES, "1 MB"),
        (6_270, BYTES, "6.27 kB"),
        (31_250, RATE, "31.2 kB/s"),
        (3.2e9, Dimension.FLOPS_PER_S, "3.2 GFLOP/s"),
        (999.4, SECONDS, "999 s"),
        (3_600, SECONDS, "1 h"),
        (0.05, SECONDS, "0.05 s"),
    ],
)
def test_a_quantity_is_written_for_people_with_three_digits(value, dimension, text):
    assert written(value, dimension) == text


def units_of(dimension):
    """Of writing: every decimal prefix, for any dimension."""
    prefixes = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
    return {f"{p}{dimension.value}": f for p, f in prefixes.items()} | {"h": 3600.0}


@given(st.floats(0, 1e14), st.sampled_from(Dimension))
def test_what_is_written_for_people_is_right_to_three_digits_and_has_no_exponent(value, dimension):
    text = written(value, dimension)
    if value >= 1e-4 and (dimension is not SECONDS or value < 3.59e6):
        assert "e" not in text
        number, unit = text.split(" ")
        factor = units_of(dimension)[unit]
        assert float(number) * factor == pytest.approx(value, rel=0.0051)


@given(st.floats(0, 1e300), st.sampled_from(Dimension))
def test_what_is_written_for_files_is_read_back_to_the_last_bit(value, dimension):
    assert parse(exact(value, dimension), dimension) == value
