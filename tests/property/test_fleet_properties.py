"""Boards of simulated clients, for every size of fleet and number of clients."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from device_profiles.board import load_board
from device_profiles.fleet import Fleet

BOARD = load_board("laptop")


def places(size, clients):
    """Which entries the clients stand for; the entries differ by name only."""
    entries = tuple(BOARD.model_copy(update={"name": str(place)}) for place in range(size))
    fleet = Fleet("any", entries)
    return [int(fleet.board(index, clients).name) for index in range(clients)]


@given(st.integers(2, 30), st.data())
def test_fewer_clients_are_evenly_spread_boards_from_the_first_to_the_last(size, data):
    clients = data.draw(st.integers(2, size))
    taken = places(size, clients)
    assert (taken[0], taken[-1]) == (0, size - 1)
    gaps = [after - before for before, after in pairwise(taken)]
    assert min(gaps) >= 1
    assert max(gaps) - min(gaps) <= 1


@given(st.integers(1, 30), st.integers(0, 60))
def test_more_clients_repeat_the_fleet(size, extra):
    assert places(size, size + extra) == [index % size for index in range(size + extra)]
