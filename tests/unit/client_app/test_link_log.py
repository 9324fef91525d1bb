"""What the last messages tell of a board's downlink."""

import pytest

from client_app.link_log import (
    FILE,
    Arrival,
    Link,
    downlink_bytes_per_s,
    link_of,
    remember,
    transfer_in,
    transfer_s,
)

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


@pytest.mark.parametrize("set_s", [-20.0, 3600.0])
def test_messages_from_before_and_after_the_clock_was_set_are_not_compared(set_s):
    """A board without a battery for its clock starts in the past, and is set by a time server."""
    before = [Arrival(5_000, 4.0, clock_s=100.0), Arrival(1_005_000, 24.0, clock_s=100.0)]
    after = [Arrival(a.bytes, a.waited_s + set_s, clock_s=100.0 + set_s) for a in before]
    assert downlink_bytes_per_s([before[0], after[1]]) is None
    assert downlink_bytes_per_s([before[1], after[0]]) is None
    assert downlink_bytes_per_s([*before, *after]) == 50_000.0


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
    bad = [
        "",
        "{",
        "[1]",
        "[1, 2]",
        "[1, 2, 3, 4]",
        '["a", 1, 0]',
        "[true, 1, 0]",
        "[1, NaN, 0]",
        "[1e99, 1, 0]",
        "[-5, 1, 0]",
    ]
    (tmp_path / FILE).write_bytes("\n".join([*bad, "[" * 99_999, good]).encode() + b"\n\xff")
    assert link_of(tmp_path) == Link(downlink_bytes_per_s=50_000.0)


def test_a_folder_that_cannot_be_written_is_no_trouble(tmp_path):
    (tmp_path / "file").write_text("")
    remember(tmp_path / "file", SMALL)
    assert link_of(tmp_path / "file") == Link()


# ---- how long one message was on its way

LARGE = Arrival(1_005_000, 24.0)


def test_a_message_took_what_it_waited_longer_than_a_small_one_by_its_share_of_the_bytes():
    """A million bytes more took 20 s, so 1,005,000 bytes took 20.1 s."""
    assert transfer_s(LARGE, [SMALL, LARGE], most_s=60.0) == pytest.approx(20.1)


@pytest.mark.parametrize("behind_s", [-3600.0, 86_400.0])
def test_a_clock_that_is_off_does_not_change_how_long_it_took(behind_s):
    large, small = (Arrival(a.bytes, a.waited_s - behind_s) for a in (LARGE, SMALL))
    assert transfer_s(large, [small], most_s=60.0) == pytest.approx(20.1)


def test_a_message_that_took_longer_than_messages_live_tells_of_a_clock_that_was_set():
    before = Arrival(5_000, 4.0 - 1.7e9)
    assert transfer_s(LARGE, [before], most_s=600.0) is None


@pytest.mark.parametrize(
    "others",
    [[], [LARGE], [Arrival(200_000, 1.0)], [Arrival(5_000, 14.1)]],
    ids=["none", "itself", "not small", "too quick"],
)
def test_without_a_small_message_that_came_much_sooner_nobody_knows(others):
    assert transfer_s(LARGE, others, most_s=600.0) is None


def test_how_long_a_message_took_follows_from_those_that_were_remembered(tmp_path):
    assert transfer_in(tmp_path, LARGE, 60.0) is None
    remember(tmp_path, SMALL)
    remember(tmp_path, LARGE)
    assert transfer_in(tmp_path, LARGE, 60.0) == pytest.approx(20.1)
