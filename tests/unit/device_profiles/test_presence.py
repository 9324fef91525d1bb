"""When a board of a fleet is there."""

import hashlib
import math
import os
import subprocess
import sys
from fractions import Fraction

import pytest

from device_profiles.presence import ALWAYS, Presence, available, leaves_s, opens_s

ASKED = {"seed": 3, "device_id": "cam-07", "round_number": 1, "now_s": 0.0}


def there(presence, **changes):
    return available(presence, **{**ASKED, **changes})


def test_a_board_of_which_nothing_is_said_is_always_there():
    assert all(there(ALWAYS, round_number=number, now_s=1e9) for number in range(1, 1000))


def test_a_board_of_probability_0_never_is():
    assert not any(there(Presence(0.0), round_number=number) for number in range(1, 1000))


def test_a_board_is_there_as_often_as_its_probability_says():
    # 4,000 independent draws: the share lies within 5 standard errors.
    for probability in (0.1, 0.5, 0.9):
        drawn = [there(Presence(probability), round_number=number) for number in range(4000)]
        error = (probability * (1 - probability) / 4000) ** 0.5
        assert abs(sum(drawn) / 4000 - probability) < 5 * error


@pytest.mark.parametrize("changes", [{"seed": 4}, {"device_id": "cam-08"}], ids=str)
def test_another_seed_or_device_draws_apart(changes):
    ours, theirs = (
        [there(Presence(0.5), round_number=n, **change) for n in range(64)]
        for change in ({}, changes)
    )
    assert ours != theirs


def test_the_time_is_nothing_to_a_probability_nor_the_round_to_a_trace():
    half, trace = Presence(0.5), Presence(((5.0, 6.0),))
    assert len({there(half, now_s=now_s) for now_s in (0.0, 1e3, 1e6)}) == 1
    assert len({there(trace, round_number=number, now_s=5.0) for number in range(50)}) == 1


def test_a_window_begins_with_its_first_second_and_ends_before_its_last():
    trace = Presence(((10.0, 20.0), (20.0, 30.0), (40.0, 50.0)))
    times = (0.0, 9.9, 10.0, 20.0, 29.9, 30.0, 40.0, 49.9, 50.0, 1e9)
    expected = [False, False, True, True, True, False, True, True, False, False]
    assert [there(trace, now_s=now_s) for now_s in times] == expected


def test_the_draw_is_the_first_64_bits_of_a_digest_below_the_probability():
    # Written apart from the code, in exact fractions: what every platform must come to.
    for number in range(200):
        key = f"12:availability1:36:cam-07{len(str(number))}:{number}"
        digest = hashlib.sha256(key.encode()).digest()
        below = Fraction(int.from_bytes(digest[:8], "big"), 2**64) < Fraction(0.3)
        assert there(Presence(0.3), round_number=number) == below


def test_another_process_draws_the_same_and_loads_no_torch():
    code = (
        "from device_profiles.presence import Presence, available\n"
        "import sys\n"
        "draws = [available(Presence(0.5), seed=3, device_id='cam-07', round_number=n, now_s=0.0)\n"
        "         for n in range(99)]\n"
        "print(draws)\n"
        "assert 'torch' not in sys.modules, 'this room must not import torch'\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": "99", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    ours = [there(Presence(0.5), round_number=number) for number in range(99)]
    assert result.stdout.strip() == str(ours)


# ---- until when, and when again

TRACE = Presence(((10.0, 20.0), (20.0, 30.0), (40.0, 50.0)))


@pytest.mark.parametrize(
    ("now_s", "opens"),
    [(0.0, 10.0), (10.0, 20.0), (20.0, 40.0), (35.0, 40.0), (40.0, math.inf), (1e9, math.inf)],
)
def test_the_next_window_opens_after_now(now_s, opens):
    assert opens_s(TRACE, now_s) == opens


@pytest.mark.parametrize(
    ("now_s", "leaves"), [(10.0, 30.0), (19.9, 30.0), (20.0, 30.0), (49.0, 50)]
)
def test_a_board_stays_until_its_window_closes_and_windows_that_touch_are_one(now_s, leaves):
    assert leaves_s(TRACE, now_s) == leaves


def test_a_board_that_is_not_there_has_left():
    assert leaves_s(TRACE, 35.0) == 35.0
    assert leaves_s(TRACE, 5.0) == 5.0


@pytest.mark.parametrize("presence", [ALWAYS, Presence(0.5)])
def test_a_board_without_windows_has_none_to_wait_for_and_does_not_leave(presence):
    assert opens_s(presence, 7.0) == math.inf
    assert leaves_s(presence, 7.0) == math.inf


def test_each_look_draws_anew_and_the_first_draws_as_ever():
    half = Presence(0.5)
    first, second = ([there(half, round_number=n, look=k) for n in range(64)] for k in (0, 1))
    assert first == [there(half, round_number=n) for n in range(64)]
    assert first != second


def test_a_later_look_draws_from_a_digest_of_its_own():
    key = b"12:availability1:36:cam-071:51:2"
    draw = int.from_bytes(hashlib.sha256(key).digest()[:8], "big")
    edge = Fraction(draw, 2**64)
    below, above = (Presence(float(edge) + step) for step in (-1e-9, 1e-9))
    assert not there(below, round_number=5, look=2)
    assert there(above, round_number=5, look=2)
