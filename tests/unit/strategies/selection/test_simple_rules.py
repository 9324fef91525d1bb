import hashlib
import math
from collections import Counter

import pytest

from strategies.selection import RULES, Offer, Seats

IDS = [f"board-{number:03d}" for number in range(100)]


def choose(rule, ids, *, share, seed, number):
    chosen = RULES[rule](Seats(share, 0.2, 20, seed)).cohort(Offer(number, tuple(ids)))
    assert (chosen.rule, chosen.why, chosen.scores) == (None, {}, {})
    return chosen.cohort


def rounds(rule, share, ids=IDS, seed=0, count=50):
    return [choose(rule, ids, share=share, seed=seed, number=n) for n in range(1, count + 1)]


def test_all_are_asked_in_device_id_order():
    assert choose("all", ["c", "a", "b"], share=0.1, seed=0, number=1) == ("a", "b", "c")


@pytest.mark.parametrize("rule", ["all", "uniform", "bernoulli"])
def test_of_nobody_nobody_is_chosen(rule):
    assert choose(rule, [], share=0.5, seed=0, number=1) == ()


@pytest.mark.parametrize("rule", ["uniform", "bernoulli"])
def test_the_same_seed_and_round_choose_the_same_in_any_order(rule):
    forward = rounds(rule, 0.3)
    assert forward == rounds(rule, 0.3, list(reversed(IDS)))
    assert forward != rounds(rule, 0.3, seed=1)
    assert len(set(forward)) == 50
    assert all(list(cohort) == sorted(set(cohort)) for cohort in forward)


@pytest.mark.parametrize(
    ("share", "clients", "size"),
    [(0.3, 10, 3), (0.31, 10, 4), (0.01, 10, 1), (1.0, 10, 10), (0.5, 1, 1), (1e-12, 5, 1)],
)
def test_uniform_asks_exactly_the_share_rounded_up(share, clients, size):
    for cohort in rounds("uniform", share, IDS[:clients], count=5):
        assert len(cohort) == size


@pytest.mark.parametrize(("share", "clients"), [(0.07, 100), (0.28, 25), (0.14, 50), (0.55, 100)])
def test_a_share_of_whole_clients_is_not_rounded_up_by_floating_point(share, clients):
    assert share * clients > round(share * clients)
    (cohort,) = rounds("uniform", share, IDS[:clients], count=1)
    assert len(cohort) == round(share * clients)


def test_uniform_asks_everybody_equally_often():
    counts = Counter(i for cohort in rounds("uniform", 0.3, IDS[:20], count=400) for i in cohort)
    sigma = math.sqrt(400 * 0.3 * 0.7)
    assert set(counts) == set(IDS[:20])
    assert all(abs(count - 120) < 4 * sigma for count in counts.values())


def test_bernoulli_asks_the_share_on_average_and_cohorts_vary_in_size():
    cohorts = rounds("bernoulli", 0.3)
    sizes = [len(cohort) for cohort in cohorts]
    assert abs(sum(sizes) - 1500) < 4 * math.sqrt(50 * 100 * 0.3 * 0.7)
    variance = sum((size - 30) ** 2 for size in sizes) / 50
    # Of a binomial: 21, and its estimate from 50 draws scatters by about 2/sqrt(100) of that.
    assert abs(variance - 21) < 4 * 21 * 0.2


def test_a_clients_coin_does_not_depend_on_who_else_is_online():
    for everybody, half in zip(
        rounds("bernoulli", 0.3), rounds("bernoulli", 0.3, IDS[::2]), strict=True
    ):
        assert set(half) == set(everybody) & set(IDS[::2])


def test_bernoulli_throws_again_while_nobody_is_in():
    cohorts = rounds("bernoulli", 0.05, IDS[:3], count=200)
    assert all(cohorts)
    # Given that one of three is in, each is in with 0.05 / (1 - 0.95 ** 3).
    expected = 200 * 0.05 / (1 - 0.95**3)
    for name, count in Counter(i for cohort in cohorts for i in cohort).items():
        assert abs(count - expected) < 4 * math.sqrt(expected), name


@pytest.mark.parametrize(
    ("rule", "expected"),
    [("uniform", "e8ccc13a2ad1d9ba"), ("bernoulli", "02da6522df3b8960")],
)
def test_a_seed_draws_the_cohorts_that_it_always_drew(rule, expected):
    """A run that is taken up again, or told of elsewhere, must be the same run."""
    text = repr(rounds(rule, 0.3, seed=7))
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == expected
