"""Draws that are the same everywhere."""

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from fedfreeze.seeded import DRAWS, draw

PURPOSES = st.lists(st.text(max_size=4) | st.integers(0, 99), max_size=4).map(tuple)


def test_a_draw_is_the_head_of_a_digest_of_its_purpose():
    digest = hashlib.sha256(b"1:06:cam-071:1").digest()
    assert draw(0, "cam-07", 1) == int.from_bytes(digest[:8], "big")


@given(PURPOSES, PURPOSES)
def test_other_purposes_have_other_draws(first, second):
    same = [str(part) for part in first] == [str(part) for part in second]
    assert (draw(*first) == draw(*second)) == same


def test_a_third_of_the_draws_are_in_the_first_third():
    below = sum(draw("test", number) < DRAWS // 3 for number in range(3_000))
    assert abs(below - 1_000) < 4 * (3_000 * 2 / 9) ** 0.5
