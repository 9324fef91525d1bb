"""Plans: what must hold for a layout, and what is refused when they arrive."""

import json
import math
from dataclasses import replace

import pytest

from fedfreeze.errors import ProtocolError
from fedfreeze.layout import Layer, Layout, TensorSpec
from fedfreeze.plan import Plan, PlanCost, Reason, Stage

LAYOUT = Layout("m", tuple(Layer(n, (TensorSpec(f"{n}.w", (1,), "float32"),)) for n in "abc"))
PLAN = Plan(
    stages=(Stage(0.25, ("b",)), Stage(0.75, ("c", "b"))),
    epochs=2,
    batch_size=8,
    upload_budget_bytes=100,
    frozen={"a": Reason("memory", "needs 9 MB")},
    binding="memory",
    cost=PlanCost(1.0, 2.0, 3.5, 4.0),
)


def refusal(function, *args):
    with pytest.raises(ProtocolError) as caught:
        function(*args)
    return str(caught.value)


def test_the_trained_layers_are_those_of_all_stages_in_order_of_first_training():
    assert PLAN.trained == ("b", "c")


def test_the_modelled_time_is_that_of_three_things_one_after_another():
    assert PLAN.cost.modelled_total_s == 6.5


def test_a_plan_that_covers_the_layout_passes():
    PLAN.check(LAYOUT)


def test_shares_need_add_up_to_1_only_within_rounding():
    stages = tuple(Stage(0.1, ("b", "c")) for _ in range(10))
    assert sum(stage.share for stage in stages) != 1.0
    replace(PLAN, stages=stages).check(LAYOUT)


@pytest.mark.parametrize(
    "stages", [(), (Stage(1.0, ()),), (Stage(0.5, ("b", "c")), Stage(0.5, ()))]
)
def test_a_plan_that_trains_nothing_at_some_time_is_refused(stages):
    assert refusal(replace(PLAN, stages=stages).check, LAYOUT) == (
        "a plan needs at least one stage, and every stage a layer"
    )


@pytest.mark.parametrize(
    "shares", [[0.5], [0.5, 0.6], [0.0, 1.0], [-0.5, 1.5], [math.nan, 0.5], [2.0]]
)
def test_shares_that_do_not_add_up_are_refused(shares):
    stages = tuple(Stage(share, ("b", "c")) for share in shares)
    assert refusal(replace(PLAN, stages=stages).check, LAYOUT) == (
        f"the shares of a plan's stages must add up to 1, got {shares}"
    )


@pytest.mark.parametrize(
    ("trained", "frozen"),
    [("b", "a"), ("bc", ""), ("abc", "a"), ("bcd", "a"), ("bc", "ad")],
)
def test_each_layer_is_trained_or_frozen_and_no_other_is(trained, frozen):
    plan = replace(
        PLAN,
        stages=(Stage(1.0, tuple(trained)),),
        frozen={name: Reason("score", "") for name in frozen},
    )
    assert refusal(plan.check, LAYOUT) == (
        f"a plan must train or freeze each of a, b, c; it trains {', '.join(trained)} and freezes "
        f"{', '.join(frozen)}"
    )


@pytest.mark.parametrize(
    ("changes", "numbers"),
    [
        ({"epochs": 0}, "0, 8, 100"),
        ({"batch_size": 0}, "2, 0, 100"),
        ({"upload_budget_bytes": -1}, "2, 8, -1"),
    ],
)
def test_counts_out_of_range_are_refused(changes, numbers):
    assert refusal(replace(PLAN, **changes).check, LAYOUT) == (
        f"epochs and batch size must be 1 or more and the budget 0 or more, got {numbers}"
    )


@pytest.mark.parametrize("parts", [0, 9])
def test_a_batch_has_as_many_parts_as_examples_at_most(parts):
    assert refusal(replace(PLAN, micro_batches=parts).check, LAYOUT) == (
        f"expected 1 to 8 parts of a batch of 8, got {parts}"
    )


@pytest.mark.parametrize(("parts", "examples"), [(1, 8), (2, 4), (3, 3), (8, 1)])
def test_the_largest_part_of_a_batch_is_what_is_computed_at_once(parts, examples):
    assert replace(PLAN, micro_batches=parts).micro_batch_size == examples


def test_a_plan_covers_only_what_it_trains():
    replace(PLAN, covers=("b", "c")).check(LAYOUT)
    assert refusal(replace(PLAN, covers=("a", "b")).check, LAYOUT) == (
        "a plan covers layers that it trains; it does not train a"
    )


def test_a_plan_that_covers_nothing_says_nothing_about_it():
    assert "covers" not in PLAN.to_json()
    covering = replace(PLAN, covers=("b",))
    assert Plan.from_json(json.loads(json.dumps(covering.to_json()))) == covering


def test_a_plan_that_splits_no_batch_says_nothing_about_parts():
    assert "micro_batches" not in PLAN.to_json()
    assert replace(PLAN, micro_batches=2).to_json()["micro_batches"] == 2


FULL_COST = PlanCost(1.0, 2.0, 3.5, 4.0, modelled_upload_bytes=5.5, modelled_energy_j=6.0)


@pytest.mark.parametrize(
    "plan",
    [
        PLAN,
        replace(PLAN, binding=None, cost=None),
        replace(PLAN, cost=FULL_COST),
        replace(PLAN, micro_batches=4),
    ],
)
def test_a_plan_comes_back_from_its_json(plan):
    assert Plan.from_json(json.loads(json.dumps(plan.to_json()))) == plan


def test_a_cost_that_is_not_known_is_absent_and_never_null():
    assert set(PLAN.to_json()["cost"]) == {
        "modelled_download_s",
        "modelled_compute_s",
        "modelled_upload_s",
        "modelled_memory_bytes",
    }
    full = replace(PLAN, cost=FULL_COST).to_json()["cost"]
    assert full["modelled_upload_bytes"] == 5.5
    assert full["modelled_energy_j"] == 6.0


def without(key):
    data = PLAN.to_json()
    del data[key]
    return data


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (None, "TypeError(\"'NoneType' object is not subscriptable\")"),
        ([], "TypeError('list indices must be integers or slices, not str')"),
        (without("stages"), "KeyError('stages')"),
        (without("binding"), "KeyError('binding')"),
        (PLAN.to_json() | {"epochs": True}, "TypeError('expected a whole number, got True')"),
        (PLAN.to_json() | {"epochs": 2.0}, "TypeError('expected a whole number, got 2.0')"),
        (PLAN.to_json() | {"batch_size": "8"}, "TypeError(\"expected a whole number, got '8'\")"),
        (PLAN.to_json() | {"binding": 7}, "TypeError('expected text, got 7')"),
        (
            PLAN.to_json() | {"stages": [{"share": "1", "layers": ["b"]}]},
            "TypeError(\"expected a number, got '1'\")",
        ),
        (
            PLAN.to_json() | {"stages": [{"share": 1.0, "layers": [7]}]},
            "TypeError('expected text, got 7')",
        ),
        (
            PLAN.to_json() | {"frozen": {"a": {"code": "whim", "detail": ""}}},
            "ValueError(\"unknown reason 'whim'\")",
        ),
        (
            PLAN.to_json() | {"frozen": {"a": {"code": "score", "detail": None}}},
            "TypeError('expected text, got None')",
        ),
        (
            PLAN.to_json() | {"cost": PLAN.to_json()["cost"] | {"modelled_upload_s": "3"}},
            "TypeError(\"expected a number, got '3'\")",
        ),
    ],
)
def test_anything_else_is_refused_with_what_is_wrong(data, problem):
    assert refusal(Plan.from_json, data) == f"not a plan: {problem}"


def test_a_cost_with_other_fields_is_refused():
    data = PLAN.to_json() | {"cost": {"modelled_memory_bytes": 1.0, "energy": 1.0}}
    assert refusal(Plan.from_json, data).startswith("not a plan: TypeError(")
