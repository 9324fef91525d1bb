from collections import Counter

import pytest

from strategies.selection.draws import Draws

IDS = [f"b{number}" for number in range(8)]


def test_who_of_two_comes_first_does_not_depend_on_who_else_is_there():
    whole = Draws(3, 5).shuffled(IDS, "ties")
    half = Draws(3, 5).shuffled(IDS[::2], "ties")
    assert half == [device_id for device_id in whole if device_id in IDS[::2]]
    assert whole != IDS


def test_every_client_comes_first_equally_often():
    firsts = Counter(Draws(0, number).shuffled(IDS, "ties")[0] for number in range(800))
    assert all(abs(firsts[i] - 100) < 4 * (800 * 1 / 8 * 7 / 8) ** 0.5 for i in IDS)


def test_a_share_that_is_no_whole_number_is_met_on_average():
    found = [Draws(0, number).rounded(1.3, "seats") for number in range(1, 1_001)]
    assert set(found) == {1, 2}
    assert abs(sum(found) - 1_300) < 4 * (1_000 * 0.3 * 0.7) ** 0.5


@pytest.mark.parametrize(("value", "expected"), [(0.0, 0), (0.2 * 5, 1), (0.07 * 100, 7), (3, 3)])
def test_a_whole_number_stays_as_it_is(value, expected):
    assert {Draws(seed, 1).rounded(value, "seats") for seed in range(50)} == {expected}


def test_of_one_purpose_a_larger_share_never_gives_fewer():
    shares = [0.1, 0.25, 0.9, 1.0, 1.4, 1.75]
    for seed in range(50):
        found = [Draws(seed, 1).rounded(share, "seats") for share in shares]
        assert found == sorted(found)


def test_clients_are_drawn_in_proportion_to_their_weights():
    weights = {"a": 1, "b": 2, "c": 7}
    firsts = Counter(Draws(0, n).weighted(weights, 1, "new")[0] for n in range(1_000))
    for device_id, weight in weights.items():
        share = weight / 10
        assert abs(firsts[device_id] - 1_000 * share) < 4 * (1_000 * share * (1 - share)) ** 0.5


def test_a_draw_takes_nobody_twice_and_not_more_than_there_are():
    weights = dict.fromkeys(IDS, 1)
    assert sorted(Draws(0, 1).weighted(weights, 20, "new")) == IDS
    assert len(set(Draws(0, 1).weighted(weights, 5, "new"))) == 5
    assert Draws(0, 1).weighted({}, 2, "new") == []
    assert Draws(0, 1).weighted(weights, 0, "new") == []


def test_the_order_of_the_weights_changes_nothing():
    weights = {device_id: at + 1 for at, device_id in enumerate(IDS)}
    turned = dict(reversed(weights.items()))
    assert Draws(0, 1).weighted(turned, 4, "new") == Draws(0, 1).weighted(weights, 4, "new")
