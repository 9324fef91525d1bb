"""What the last messages tell of a board's downlink."""

import pytest

from client_app.link_log import FILE, Arrival, Link, downlink_bytes_per_s, link_of, remember

SMALL = Arrival(5_000, 4.0)


def test_the_rate_is_what_a_large_message_has_more_over_the_time_it_takes_longer():
    assert downlink_bytes_per_s([SMALL, Arrival(1_005_000, 24.0)]) == 50_000.0


@pytest.mark.parametrize("behind_s", [-3600.0, 0.0, 86_400.0])
def test_it_does_not_matter_how_far_the_boards_clock_is_off(behind_s):
    off = [Arrival(5_000, 4.0 - behind_s), Arrival(1_005_000, 24.0 - behind_s)]
    assert downlink_bytes_per_s(off) == 50_000.0


def test_a_message_that_waited_for_another_reason_does_not_lower_the_rate():
    stuck = [Arrival(1_005_000, 300.0), Arrival(5_000, 60.0)]
    assert downlink_bytes_per_s([SMALL, *stuck, Arrival(1_005_000, 24.0)]) == 50_000.0


@pytest.mark.parametrize(
    "arrivals",
    [
        [],
        [SMALL],
        [Arrival(1_005_000, 24.0)],
        [SMALL, Arrival(1_005_000, 13.9)],
        [SMALL, Arrival(40_000, 60.0)],
        [SMALL, Arrival(1_005_000, 1.0)],
    ],
    ids=["none", "one", "only large", "too quick", "not larger", "faster than a small one"],
)
def test_what_does_not_tell_a_transfer_from_polling_tells_nothing(arrivals):
    assert downlink_bytes_per_s(arrivals) is None


def test_messages_are_remembered_and_the_oldest_forgotten(tmp_path):
    folder = tmp_path / "new"
    remember(folder, SMALL)
    remember(folder, Arrival(1_005_000, 24.0))
    assert link_of(folder) == Link(downlink_bytes_per_s=50_000.0)
    for _ in range(32):
        remember(folder, SMALL)
    assert link_of(folder) == Link()
    assert [path.name for path in folder.iterdir()] == [FILE]


def test_lines_that_are_none_are_passed_over(tmp_path):
    remember(tmp_path, SMALL)
    remember(tmp_path, Arrival(1_005_000, 24.0))
    good = (tmp_path / FILE).read_text()
    bad = ["", "{", "[1]", "[1, 2, 3]", '["a", 1]', "[true, 1]", "[1, NaN]", "[1e99, 1]", "[-5, 1]"]
    (tmp_path / FILE).write_bytes("\n".join([*bad, "[" * 99_999, good]).encode() + b"\n\xff")
    assert link_of(tmp_path) == Link(downlink_bytes_per_s=50_000.0)


def test_a_folder_that_cannot_be_written_is_no_trouble(tmp_path):
    (tmp_path / "file").write_text("")
    remember(tmp_path / "file", SMALL)
    assert link_of(tmp_path / "file") == Link()
