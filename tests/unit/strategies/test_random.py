import pytest

from strategies.freeze.policy import RoundView
from strategies.freeze.random import Random, RandomSettings
from tests.unit.strategies.samples import client_of, stack

LAYOUT = stack(**{f"l{n}": 10 * (n + 1) for n in range(8)})


def trained(share, number=1, device="b0", seed=0):
    policy = Random(RandomSettings(trained_share=share), LAYOUT)
    advice = policy.advise(RoundView(number, 9, 0.1, seed), client_of(LAYOUT, device))
    return set(LAYOUT.names) - set(advice.frozen)


def test_the_trained_share_of_the_parameters_is_the_one_asked_for_on_average():
    shares = [
        sum(LAYOUT[name].parameter_count for name in trained(0.6, number)) / LAYOUT.parameter_count
        for number in range(1, 2001)
    ]
    # A round's share has a standard deviation of .19: the mean of 2,000 is within .02 of it.
    assert sum(shares) / len(shares) == pytest.approx(0.6, abs=0.02)


def test_draws_differ_by_round_client_and_seed_and_are_the_same_again():
    draws = [trained(0.5), trained(0.5, number=2), trained(0.5, device="b1"), trained(0.5, seed=1)]
    assert len({frozenset(draw) for draw in draws}) == 4
    assert trained(0.5) == draws[0]


def test_shares_may_be_given_round_by_round_and_the_last_one_holds():
    shares = [1.0, 0.0]
    assert trained(shares, number=1) == set(LAYOUT.names)
    assert len(trained(shares, number=2)) == len(trained(shares, number=7)) == 1


def test_one_layer_trains_at_least():
    assert all(len(trained(0.0, number)) == 1 for number in range(1, 50))
    assert len({frozenset(trained(0.0, number)) for number in range(1, 50)}) > 1
