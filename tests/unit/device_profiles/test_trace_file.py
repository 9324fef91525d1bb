"""Traces of availability in files."""

import pytest

from device_profiles.trace_file import read_trace


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("day.csv", "from_s,to_s\n0,60\n90,120.5\n"),
        ("day.csv", "\ufefffrom_s, to_s\r\n\r\n0, 60\r\n90, 120.5"),
        ("day.json", "[[0, 60], [90, 120.5]]\n"),
    ],
)
def test_windows_are_read_in_seconds(tmp_path, name, text):
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert read_trace(tmp_path / name) == ((0.0, 60.0), (90.0, 120.5))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "", "expected the header from_s,to_s, got ''"),
        ("a.csv", "0,60\n", "expected the header from_s,to_s, got '0,60'"),
        ("a.csv", "from_s,to_s\n", "expected 1 to 10000 windows [from, to], got 0"),
        ("a.csv", "from_s,to_s\n1,two\n", "expected seconds, got 'two'"),
        (
            "a.csv",
            "from_s,to_s\n1,2,3\n",
            "window 1: expected [from, to] in seconds, 0 <= from < to, got [1.0, 2.0, 3.0]",
        ),
        (
            "a.csv",
            "from_s,to_s\nnan,2\n",
            "window 1: expected [from, to] in seconds, 0 <= from < to, got [nan, 2.0]",
        ),
        ("a.json", '{"from": 1}', 'expected an array of [from, to], got {"from": 1}'),
        ("a.json", "[[1, 2]", "Expecting ',' delimiter: line 1 column 8 (char 7)"),
    ],
)
def test_a_file_that_is_no_trace_is_refused_by_its_name(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole message is asserted
        read_trace(tmp_path / name)
    assert str(caught.value) == f"{tmp_path / name}: {message}"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "from_s,to_s\n0," + "1" * 200_000, "field larger than field limit (131072)"),
        (
            "a.json",
            f"[[0, {'9' * 400}]]",
            f"window 1: expected [from, to] in seconds, 0 <= from < to, got [0, {'9' * 400}]",
        ),
    ],
    ids=["a field without end", "beyond every float"],
)
def test_numbers_that_nobody_can_hold_are_refused(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole message is asserted
        read_trace(tmp_path / name)
    assert str(caught.value) == f"{tmp_path / name}: {message}"
