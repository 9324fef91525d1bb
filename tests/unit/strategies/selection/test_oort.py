"""Right values are those of algorithm 1 of the paper, written out by hand."""

import math
from collections import Counter

import pytest

from strategies.selection.draws import Draws
from strategies.selection.oort import Oort, clipped
from tests.unit.strategies.selection.fake_fleet import FakeFleet, offer, seats, used, vain

# Statistical utilities 50, 125, 200 and 500; the last is clipped to 200.
LEARNT = {
    "b": (3, {"examples": 50, "train_loss_rms": 1.0}),
    "c": (2, {"examples": 100, "train_loss_rms": 1.25}),
    "a": (1, {"examples": 100, "train_loss_rms": 2.0}),
    "d": (3, {"examples": 125, "train_loss_rms": 4.0}),
}


def taught(learnt=LEARNT):
    rule = Oort(seats())
    for number in (1, 2, 3):
        rule.observe(
            used(device_id, number, **fields)
            for device_id, (when, fields) in learnt.items()
            if when == number
        )
    return rule


def test_scores_are_those_of_the_papers_algorithm():
    found = taught().scores(offer(4, {"a": 10.0, "b": 20.0, "c": 40.0, "d": 80.0}))
    assert found.figures == {"preferred_s": 20.0}
    bonus = {last: math.sqrt(0.1 * math.log(4) / last) for last in (1, 2, 3)}
    assert found.of == pytest.approx(
        {
            "a": 1 + bonus[1],
            "b": 0 + bonus[3],
            "c": (0.5 + bonus[2]) * (20 / 40) ** 2,
            "d": (1 + bonus[3]) * (20 / 80) ** 2,
        }
    )
    assert found.of["a"] == pytest.approx(1.372330, abs=1e-6)


def test_a_client_without_a_plan_or_an_update_has_no_score():
    found = taught().scores(offer(4, {"a": 10.0, "b": None, "new": 10.0}))
    assert set(found.of) == {"a"}


def test_a_client_that_fails_counts_for_less():
    rule = taught()
    rule.observe([vain("a", 4)])
    calm = taught().scores(offer(5, {"a": 10.0, "b": 10.0})).of
    assert rule.scores(offer(5, {"a": 10.0, "b": 10.0})).of["a"] == pytest.approx(calm["a"] * 2 / 3)


@pytest.mark.parametrize("loss", [10.0, 1e30, 1.7e308])
@pytest.mark.parametrize("examples", [125, 2**63 - 1])
def test_a_claim_beyond_all_others_is_worth_as_much_as_the_best_of_the_others(loss, examples):
    honest = {**LEARNT, "d": (3, {"examples": 200, "train_loss_rms": 1.0})}
    hostile = {**LEARNT, "d": (3, {"examples": examples, "train_loss_rms": loss})}
    asked = offer(4, dict.fromkeys("abcd", 10.0))
    assert taught(hostile).scores(asked).of == taught(honest).scores(asked).of
    assert math.isfinite(sum(taught(hostile).state()["pacer"]["utilities"]))


def test_claims_that_no_float_holds_leave_finite_scores_even_of_several_clients():
    claim = {"examples": 2**63 - 1, "train_loss_rms": 1.7e308}
    found = taught({**LEARNT, "c": (2, claim), "d": (3, claim)})
    scores = found.scores(offer(4, dict.fromkeys("abcd", 10.0))).of
    assert all(math.isfinite(score) for score in scores.values())
    assert math.isfinite(sum(found.state()["pacer"]["utilities"]))


def test_one_hostile_client_takes_one_seat():
    fleet = FakeFleet(tuple("abcdef"), losses={"d": 1e300}, examples={"d": 2**63 - 1})
    cohorts = [set(chosen.cohort) for chosen in fleet.play(Oort(seats()), range(1, 61))]
    asked = Counter(i for cohort in cohorts for i in cohort)
    assert all(len(cohort) == 3 for cohort in cohorts)
    assert min(asked.values()) >= 10


def test_losses_that_nobody_reported_teach_nothing():
    rule = Oort(seats())
    rule.observe([used("a", 1, examples=100)])
    assert rule.scores(offer(2, {"a": 10.0})).of == {}


def test_of_equal_utilities_each_is_worth_a_half():
    learnt = {i: (1, {"examples": 10, "train_loss_rms": 1.0}) for i in "ab"}
    found = taught(learnt).scores(offer(1, dict.fromkeys("ab", 10.0))).of
    assert found == {"a": 0.5, "b": 0.5}


@pytest.mark.parametrize(
    ("values", "most"),
    [([1, 2], 1), ([1, 2, 3], 2), (range(1, 22), 20), (range(1, 102), 96)],
)
def test_utilities_are_clipped_at_the_95th_percentile(values, most):
    named = {f"b{value}": float(value) for value in values}
    assert max(clipped(named).values()) == most
    assert clipped({}) == {}


def test_exploration_begins_at_nine_tenths_and_ends_at_the_tables_share():
    rule = Oort(seats(exploration=0.3))
    assert rule.exploration(1) == 0.9
    assert rule.exploration(2) == pytest.approx(0.9 * 0.98)
    assert rule.exploration(54) == pytest.approx(0.9 * 0.98**53)
    assert rule.exploration(56) == 0.3
    assert rule.exploration(10_000) == 0.3


def test_those_near_the_cut_off_are_drawn_in_proportion_and_those_below_never():
    """Two are asked; 0.96 is within 95 percent of the second best, 0.9 is not."""
    scores = {"a": 2.0, "b": 1.0, "c": 0.96, "d": 0.9}
    rule = Oort(seats())
    drawn = Counter()
    for number in range(1_000):
        pair = rule.best(scores, 2, Draws(0, number))
        assert len(set(pair)) == 2
        drawn[pair[0]] += 1
    assert set(drawn) == {"a", "b", "c"}
    for device_id, count in drawn.items():
        share = scores[device_id] / 3.96
        assert abs(count - 1_000 * share) < 4 * math.sqrt(1_000 * share * (1 - share))


def test_the_best_of_nobody_is_nobody():
    assert Oort(seats()).best({}, 2, Draws(0, 1)) == []
    assert Oort(seats()).best({"a": 1.0}, 0, Draws(0, 1)) == []
    assert Oort(seats()).best({"a": 0.0, "b": 0.0}, 5, Draws(0, 1)) in (["a", "b"], ["b", "a"])
