from dataclasses import replace

import pytest

from fedfreeze.plan import Reason
from strategies.assignment import Reach, assigned
from strategies.coverage import Coverage, Wanted, covering, reach_of, untrainable
from strategies.freeze.policy import Advice, StageAdvice
from strategies.planner import fit
from tests.unit.strategies.samples import LIMITS, LOAD, board, stack

LAYOUT = stack()
NAMES = LAYOUT.names
EVERYTHING = Advice(frozen={}, values=dict.fromkeys(NAMES, 1.0))
# Enough to train from tail on, and not from body on; see the planner's tests.
WEAK, STRONG = board(memory=50e6), board()


def wanted(capacity=STRONG, advice=EVERYTHING):
    return Wanted(capacity, advice, LOAD)


def coverage(q_min=2, rounds=3):
    return Coverage(LAYOUT, LIMITS, q_min=q_min, rounds=rounds)


def weak(*layers, planned=()):
    return Reach(layers, roomy=False, planned=frozenset(planned))


# ---- who is asked


def test_weak_boards_that_would_all_train_the_head_are_spread():
    cohort = {f"b{n}": weak(*NAMES, planned=["head"]) for n in range(5)}
    asked = assigned(cohort, {}, q_min=0, rounds_left=1)
    assert sorted(asked[f"b{n}"][0] for n in range(4)) == sorted(NAMES)


def test_a_board_is_asked_for_another_layer_in_each_round_of_a_block():
    trained = {}
    for number in range(4):
        asked = assigned({"b0": weak(*NAMES)}, trained, q_min=0, rounds_left=4 - number)
        trained[asked["b0"][0]] = frozenset({"b0"})
    assert set(trained) == set(NAMES)


def test_the_one_board_that_reaches_the_stem_is_kept_for_it():
    """All three could do the head; the first one is needed elsewhere."""
    cohort = {"b0": weak("stem", "head"), "b1": weak("head"), "b2": weak("head")}
    asked = assigned(cohort, {}, q_min=1, rounds_left=1)
    assert asked == {"b0": ("stem",), "b1": ("head",), "b2": ("head",)}


def test_a_board_is_first_asked_for_what_few_others_reach():
    """It may not come again in this block, and the head can wait for anybody."""
    cohort = {"b0": weak("stem", "head"), "b1": weak("head")}
    assert assigned(cohort, {}, q_min=2, rounds_left=3)["b0"] == ("stem",)


def test_a_board_with_room_for_all_it_reaches_is_asked_for_several_layers():
    roomy = Reach(NAMES, roomy=True, planned=frozenset({"head"}), settled=frozenset(NAMES[:3]))
    assert assigned({"b0": roomy}, {}, q_min=1, rounds_left=1) == {"b0": NAMES}


def test_who_has_trained_a_layer_in_this_block_does_not_count_twice():
    cohort = {"b0": weak("head"), "b1": weak("tail", "head")}
    trained = {"head": frozenset({"b0"})}
    asked = assigned(cohort, trained, q_min=2, rounds_left=2)
    assert asked["b1"] == ("tail",)
    trained = {"head": frozenset({"b0"}), "tail": frozenset({"b0", "b1"})}
    assert assigned(cohort, trained, q_min=2, rounds_left=1)["b1"] == ("head",)


def test_a_board_that_would_train_all_it_reaches_anyway_is_left_alone():
    cohort = {"b0": weak("tail", "head", planned=["tail", "head"])}
    assert assigned(cohort, {}, q_min=0, rounds_left=1) == {}


# ---- what a client could do


def test_a_board_reaches_the_layers_that_it_can_train_alone():
    assert reach_of(wanted(WEAK), LAYOUT, LIMITS) == Reach(
        ("tail", "head"), roomy=True, planned=frozenset({"tail", "head"})
    )


def test_a_board_on_which_two_layers_fit_alone_but_not_together_has_no_room():
    thin = board(uplink=1_180.0)  # 180 bytes of 300 serve 450 parameters
    reach = reach_of(wanted(thin), LAYOUT, LIMITS)
    assert (reach.layers, reach.roomy) == (NAMES, False)


def test_what_is_frozen_as_settled_is_within_reach_and_what_is_fixed_is_not():
    frozen = {"stem": Reason("fixed", "never"), "body": Reason("window", "held")}
    reach = reach_of(wanted(advice=replace(EVERYTHING, frozen=frozen)), LAYOUT, LIMITS)
    assert reach == Reach(
        ("body", "tail", "head"),
        roomy=True,
        planned=frozenset({"tail", "head"}),
        settled=frozenset({"body"}),
    )


def test_a_layer_of_no_stage_is_not_within_reach():
    advice = replace(EVERYTHING, stages=(StageAdvice(1.0, ("tail", "head")),))
    assert reach_of(wanted(advice=advice), LAYOUT, LIMITS).layers == ("tail", "head")


def test_a_board_on_which_nothing_fits_reaches_nothing():
    reach = reach_of(wanted(board(memory=1e6)), LAYOUT, LIMITS)
    assert (reach.layers, reach.planned) == ((), frozenset())


def test_a_layer_that_was_asked_for_is_thawed_and_trains_before_all_others():
    settled = replace(EVERYTHING, frozen={"stem": Reason("score", "settled")}, must_train=("head",))
    advice = covering(settled, ("stem",))
    thin = board(uplink=1_120.0)  # 120 bytes of 300 serve 300 parameters
    arguments = {"layout": LAYOUT, "capacity": thin, "limits": LIMITS, "load": LOAD}
    assert fit(settled, **arguments).trained == ("body", "head")
    assert fit(advice, **arguments).trained == ("stem", "head")
    assert covering(settled, ()) is settled


# ---- over the rounds


def test_what_was_trained_counts_until_the_block_ends():
    found = coverage(q_min=1, rounds=2)
    assert found.cover(1, {"b0": wanted()}).asked == {"b0": NAMES}
    found.observe(1, {"b0": NAMES[:3]})
    assert found.cover(2, {"b0": wanted()}).asked == {"b0": ("head",)}
    found.observe(2, {"b0": NAMES})
    assert found.cover(3, {"b0": wanted()}).asked == {"b0": NAMES}


def test_a_coverage_that_was_restored_goes_on_as_the_other():
    first = coverage()
    first.observe(1, {"b0": NAMES[:2], "b1": NAMES[:1]})
    second = coverage()
    second.restore(first.state())
    cohort = {f"b{n}": wanted(WEAK if n else STRONG) for n in range(3)}
    assert second.cover(2, cohort) == first.cover(2, cohort)
    assert second.cover(2, cohort).trained == {
        "stem": frozenset({"b0", "b1"}),
        "body": frozenset({"b0"}),
    }


@pytest.mark.parametrize(
    ("memories", "expected"),
    [
        ([50e6, 1e9], {}),
        ([50e6, 40e6], {"stem": "memory", "body": "memory"}),
        ([30e6], dict.fromkeys(NAMES, "memory")),
    ],
)
def test_layers_that_no_board_can_train_are_named_with_the_limit(memories, expected):
    boards = [(board(memory=memory), LOAD) for memory in memories]
    assert untrainable(LAYOUT, LIMITS, boards) == expected
