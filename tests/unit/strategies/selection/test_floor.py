import itertools

import pytest

from strategies.selection.floor import due, window


def possible(slacks, size):
    """By trying: whether every client can be asked before its slack is used up."""
    rounds = max(slacks, default=0) + 1
    for cohorts in itertools.product(range(rounds), repeat=len(slacks)):
        # In which round each client is asked.
        if all(cohorts.count(number) <= size for number in range(rounds)) and all(
            number <= slack for number, slack in zip(cohorts, slacks, strict=True)
        ):
            return True
    return False


@pytest.mark.parametrize("size", [1, 2])
def test_as_many_are_due_as_must_be_asked_now_for_the_others_to_be_asked_in_time(size):
    """Held against trying out every order, for all that can be kept of up to four clients."""
    for slacks in itertools.combinations_with_replacement(range(4), 4):
        if not possible(slacks, size):
            continue
        least = next(
            count
            for count in range(size + 1)
            if all(slack > 0 for slack in slacks[count:])
            and possible([slack - 1 for slack in slacks[count:]], size)
        )
        assert due(slacks, size) == least, slacks


def test_nobody_is_due_where_nobody_is():
    assert due([], 3) == 0


def test_of_more_than_there_are_seats_for_a_cohort_full_is_due():
    assert due([0, 0, 0, -5], 2) == 2


@pytest.mark.parametrize(
    ("rounds", "clients", "size", "expected"), [(20, 10, 3, 20), (2, 10, 3, 4), (1, 4, 4, 1)]
)
def test_the_window_is_the_one_promised_or_the_least_possible(rounds, clients, size, expected):
    assert window(rounds, clients, size) == expected
