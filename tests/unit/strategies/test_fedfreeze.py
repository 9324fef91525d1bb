import json
from dataclasses import replace

import pytest

from fedfreeze.layout import Layout
from fedfreeze.plan import Plan, Reason, Stage
from strategies.freeze.fedfreeze import FedFreeze, FedFreezeSettings
from strategies.freeze.policy import ClientOutcome, RoundOutcome, RoundView
from strategies.local_step import LayerMeasures
from tests.unit.strategies.samples import client_of, stack

LAYOUT = stack(stem=100, body=200, tail=300, head=400)
NAMES = LAYOUT.names

# Settled and unimportant first: scores 0.8, 0.6, 0.4 and 0.2 when nothing else differs (G: 0.5 of
# its 0.2 for all, and nothing for R).
MEASURES = {name: LayerMeasures(0.1 * at, 0.01 * at) for at, name in enumerate(NAMES)}


def policy(**keys):
    return FedFreeze(FedFreezeSettings(**{"warm_up_rounds": 0, "ramp_rounds": 1, **keys}), LAYOUT)


def view(number):
    return RoundView(number, 30, 0.1)


def client(device_id="A", feasible=()):
    able = {name: name not in feasible for name in NAMES}
    return client_of(LAYOUT, device_id, feasible=able)


def plan(**frozen):
    """A plan that freezes the given layers, each for the given reason."""
    trained = tuple(name for name in NAMES if name not in frozen)
    reasons = {name: Reason(code, "because") for name, code in frozen.items()}
    return Plan((Stage(1.0, trained),), 1, 10, 300, reasons)


def outcome(number, *, loss=None, measures=MEASURES, rate=1.0, plans=None, movement=None):
    plans = plans or {"A": plan()}
    trained = {name for p in plans.values() for name in p.trained}
    moved = {n: m.movement for n, m in measures.items() if n in trained}
    return RoundOutcome(
        number=number,
        learning_rate=rate,
        clients={
            i: ClientOutcome(p, 10.0, {n: m for n, m in measures.items() if n in p.trained})
            for i, p in plans.items()
        },
        movement=moved if movement is None else movement,
        step_norm=dict.fromkeys(moved, 1.0),
        validation_loss=loss,
    )


def after(policy_, *outcomes):
    for one in outcomes:
        policy_.observe(one)
    return policy_


def frozen(policy_, number, who=None):
    return {
        name: reason.code
        for name, reason in policy_.advise(view(number), who or client()).frozen.items()
    }


def inputs(policy_, number=2, name="stem", who=None):
    return policy_.advise(view(number), who or client()).inputs[name]


def test_before_anything_was_observed_nothing_is_frozen_and_nothing_is_claimed():
    advice = policy().advise(view(1), client())
    assert advice.frozen == {}
    assert advice.values == dict.fromkeys(NAMES, 1.0)
    assert advice.inputs["stem"] == {
        "stability": None,
        "importance": None,
        "affinity": 1,
        "gain": None,
        "score": None,
        "window": 1,
    }


def test_the_most_settled_and_least_important_layers_are_frozen():
    settled = after(policy(threshold=0.5), outcome(1))
    advice = settled.advise(view(2), client())
    assert advice.frozen == {
        "stem": Reason("score", "score 0.700 above 0.5, frozen for 1 round(s)"),
    }
    assert advice.values == pytest.approx({"stem": 0.3, "body": 0.5, "tail": 0.7, "head": 0.9})
    assert advice.must_train == ("head",)


def test_the_score_is_that_of_the_text():
    """S = 0, 1/3, 2/3, 1 and I = 0, 1/3, 2/3, 1 of their ranges, R = 1, and N(G) = 0.5."""
    settled = after(policy(), outcome(1))
    for at, name in enumerate(NAMES):
        expected = 0.6 * (1 - at / 3) + 0.2 * 0.5
        assert inputs(settled, name=name)["score"] == pytest.approx(expected)


def test_a_layer_that_the_board_cannot_afford_scores_higher():
    settled = after(policy(), outcome(1))
    poor = client(feasible=("body",))
    gap = inputs(settled, name="body", who=poor)["score"] - inputs(settled, name="body")["score"]
    assert gap == pytest.approx(0.2)
    assert inputs(settled, name="body", who=poor)["affinity"] == 0


def test_nothing_is_frozen_by_score_during_the_warm_up():
    warming = after(policy(threshold=0.0, max_frozen_share=1.0, warm_up_rounds=3), outcome(1))
    assert [sorted(frozen(warming, number)) for number in (1, 2, 3)] == [[], [], []]
    assert frozen(warming, 4) != {}


def test_the_frozen_share_ramps_up_to_its_maximum():
    """Of 1000 parameters: 140, 280, 420, 560 and 700 from round 3 on."""
    ramping = after(policy(threshold=0.0, warm_up_rounds=2, ramp_rounds=5), outcome(1))
    sizes = [
        sum(LAYOUT[name].parameter_count for name in frozen(ramping, number))
        for number in range(2, 10)
    ]
    # By falling score what fits: stem; stem; stem, body; ...; stem, body, tail.
    assert sizes == [0, 100, 100, 300, 300, 600, 600, 600]


def test_the_head_is_never_frozen():
    assert "head" not in frozen(after(policy(threshold=0.0, max_frozen_share=1.0), outcome(1)), 2)


def test_a_layer_that_was_never_observed_is_not_frozen():
    measures = {name: MEASURES[name] for name in ("body", "head")}
    partly = after(policy(threshold=0.0, max_frozen_share=1.0), outcome(1, measures=measures))
    assert set(frozen(partly, 2)) == {"body"}


def test_a_frozen_layer_keeps_the_stability_of_the_rounds_in_which_it_trained():
    """Zeros for the frozen rounds would give (0.2 + 0.2 + 0 + 0 + 0) / 5 = 0.08."""
    moving = {name: LayerMeasures(1.0, 0.2) for name in NAMES}
    training = [outcome(number, measures=moving) for number in (1, 2)]
    resting = [
        outcome(number, measures=moving, plans={"A": plan(stem="score")}) for number in (3, 4, 5)
    ]
    assert inputs(after(policy(), *training, *resting), number=6)["stability"] == pytest.approx(0.2)


def test_stability_is_the_mean_of_the_last_observations_over_the_learning_rate():
    history = [
        outcome(number, measures={"stem": LayerMeasures(1.0, moved)}, rate=rate)
        for number, moved, rate in [(1, 9.0, 1.0), (2, 0.2, 0.1), (3, 0.4, 0.1)]
    ]
    assert inputs(after(policy(history=2), *history))["stability"] == pytest.approx(3.0)


def test_a_round_at_rate_zero_is_no_observation():
    """A cosine schedule may end at 0; nothing moved, and nothing was learned of the layers."""
    settled = after(policy(), outcome(1))
    before = settled.state()["movement"]
    assert after(settled, outcome(2, rate=0.0)).state()["movement"] == before


def test_a_clients_own_numbers_go_before_the_fleets():
    measures = {"A": 0.2, "B": 0.6}
    plans = {i: plan() for i in measures}
    round_1 = outcome(1, plans=plans, movement={"stem": 0.4})
    clients = {
        i: ClientOutcome(plans[i], 10.0, {"stem": LayerMeasures(1.0, moved)})
        for i, moved in measures.items()
    }
    learned = after(policy(), RoundOutcome(**{**vars(round_1), "clients": clients}))
    assert inputs(learned, who=client("A"))["stability"] == pytest.approx(0.2)
    assert inputs(learned, who=client("B"))["stability"] == pytest.approx(0.6)
    assert inputs(learned, who=client("new"))["stability"] == pytest.approx(0.4)


def test_importance_is_a_moving_average_of_the_gradient_norm():
    rounds = [
        outcome(number, measures={"stem": LayerMeasures(norm, 0.1)})
        for number, norm in [(1, 1.0), (2, 2.0)]
    ]
    assert inputs(after(policy(keep=0.75), *rounds))["importance"] == pytest.approx(1.25)


def test_the_fall_of_the_loss_is_shared_among_the_layers_that_moved():
    plans = {"A": plan(), "B": plan(stem="score")}
    learned = after(
        policy(keep=0.5), outcome(1, loss=2.0, plans=plans), outcome(2, loss=1.6, plans=plans)
    )
    # dF = 0.4; half the weight trained the stem; four layers share the step equally.
    assert inputs(learned)["gain"] == pytest.approx(0.5 * 0.4 * 0.5 / 4)
    assert inputs(learned, name="head")["gain"] == pytest.approx(0.5 * 0.4 / 4)


def restored(window, **keys):
    learned = after(policy(threshold=0.5, **keys), outcome(1))
    state = learned.state()
    state["window"]["stem"] = window
    learned.restore(state)
    return learned


def test_a_window_counts_the_round_in_which_it_began():
    held = after(restored(3), outcome(2, plans={"A": plan(stem="score")}))
    assert [frozen(held, number).get("stem") for number in (3, 4, 5)] == [
        "window",
        "window",
        "score",
    ]
    assert held.advise(view(3), client()).frozen["stem"].detail == "frozen through round 4"


def test_a_window_of_one_is_judged_again_in_the_next_round():
    assert frozen(after(restored(1), outcome(2, plans={"A": plan(stem="score")})), 3) == {
        "stem": "score"
    }


def test_a_running_window_is_not_begun_again():
    held = after(
        restored(3),
        outcome(2, plans={"A": plan(stem="score")}),
        outcome(3, plans={"A": plan(stem="window")}),
    )
    assert held.state()["frozen_until"]["A"] == {"stem": 4}


def test_what_a_window_holds_counts_towards_the_frozen_share():
    """Of 450 parameters the tail takes 300; the stem fits beside it, the body does not."""
    held = after(policy(threshold=0.0, max_frozen_share=0.45), outcome(1))
    state = held.state()
    state["frozen_until"] = {"A": {"tail": 9}}
    held.restore(state)
    assert frozen(held, 2) == {"tail": "window", "stem": "score"}


def test_a_window_is_the_clients_own():
    held = after(restored(3), outcome(2, plans={"A": plan(stem="score"), "B": plan()}))
    assert frozen(held, 3, client("A")) == {"stem": "window"}
    assert frozen(held, 3, client("B")) == {"stem": "score"}


def windows(losses, code="score"):
    learned = policy(loss_lag=1)
    plans = {"A": plan(stem=code), "B": plan()}
    for number, loss in enumerate(losses, start=1):
        learned.observe(outcome(number, loss=loss, plans=plans))
    return learned.state()["window"]


def test_the_window_grows_while_the_loss_keeps_falling_and_is_halved_when_it_stalls():
    assert windows([16, 8, 4, 2])["stem"] == 4
    assert windows([16, 8, 4, 2, 2])["stem"] == 2
    assert windows([16, 8, 4, 2, 2])["body"] == 1


@pytest.mark.parametrize("code", ["memory", "compute", "uplink"])
def test_a_layer_that_one_board_cannot_afford_moves_no_window(code):
    assert windows([16, 8, 4, 2], code)["stem"] == 1


def test_a_window_never_exceeds_its_maximum():
    learned = policy(loss_lag=1, max_window=3)
    for number in range(1, 9):
        learned.observe(outcome(number, loss=2.0**-number, plans={"A": plan(stem="score")}))
    assert learned.state()["window"]["stem"] == 3


def test_a_layer_that_nobody_trained_for_the_longest_window_is_thawed_everywhere():
    starving = policy(max_window=4, threshold=0.5, max_frozen_share=1.0)
    starving.observe(outcome(1))
    for number in range(2, 6):
        starving.observe(outcome(number, plans={"A": plan(stem="score")}))
    state = starving.state()
    state["frozen_until"] = {"A": {"stem": 99}}
    starving.restore(state)
    assert frozen(starving, 5) == {"stem": "window"}
    assert frozen(starving, 6) == {}
    starving.observe(outcome(6))
    assert frozen(starving, 7) == {"stem": "score"}, "judged anew: its window ended early"


def test_a_window_that_ended_early_holds_no_room_beside_what_was_frozen_in_its_place():
    """Stem and body are a tenth and a fifth of the parameters; the allowed share is a fifth."""
    tight = after(policy(max_window=4, threshold=0.5, max_frozen_share=0.2), outcome(1))
    state = tight.state()
    state["frozen_until"] = {"A": {"stem": 99}}
    state["window"] = dict.fromkeys(NAMES, 4)
    tight.restore(state)
    tight.observe(outcome(2, plans={"A": plan(body="score")}))
    held = frozen(tight, 3)
    assert held["body"] == "window"
    assert sum(LAYOUT[name].parameter_count for name in held) <= 0.2 * LAYOUT.parameter_count


def test_a_loss_that_is_not_a_number_teaches_nothing():
    learned = after(policy(loss_lag=1), outcome(1, loss=2.0), outcome(2, loss=1.0))
    before = {key: learned.state()[key] for key in ("gain", "losses", "usual_fall", "window")}
    for number, loss in enumerate([float("nan"), float("inf"), None], start=3):
        learned.observe(outcome(number, loss=loss))
    assert {key: learned.state()[key] for key in before} == before


def history():
    return after(
        policy(threshold=0.4, loss_lag=1),
        outcome(1, loss=3.0),
        outcome(2, loss=2.1, plans={"A": plan(stem="score"), "B": plan()}),
        outcome(3, loss=1.7, plans={"A": plan(stem="window"), "B": plan(body="score")}),
    )


def test_a_policy_restored_from_json_gives_the_same_advice_for_ever_after():
    original, copy = history(), policy(threshold=0.4, loss_lag=1)
    copy.restore(json.loads(json.dumps(original.state())))
    for number in range(4, 9):
        for who in ("A", "B", "new"):
            assert copy.advise(view(number), client(who)) == original.advise(
                view(number), client(who)
            )
        for one in (original, copy):
            one.observe(outcome(number, loss=1.7 - 0.1 * number, plans={"A": plan(body="score")}))
    assert copy.state() == original.state()


def test_advice_does_not_change_the_state():
    learned = history()
    before = json.dumps(learned.state())
    first = learned.advise(view(4), client())
    assert learned.advise(view(4), client()) == first
    learned.advise(view(9), client("never seen"))
    assert json.dumps(learned.state()) == before


def test_a_state_is_not_changed_by_later_rounds():
    learned = history()
    state = learned.state()
    before = json.dumps(state)
    learned.observe(outcome(4, loss=1.0, plans={"A": plan(tail="score")}))
    assert json.dumps(state) == before
    assert json.dumps(learned.state()) != before


def test_the_last_layer_that_can_train_always_does_though_a_constant_one_stands_behind():
    layers = list(LAYOUT.layers)
    fixed = tuple(replace(tensor, kind="constant") for tensor in layers[-1].tensors)
    layout = Layout("stack", (*layers[:-1], replace(layers[-1], tensors=fixed)))
    settings = FedFreezeSettings(
        warm_up_rounds=0, ramp_rounds=1, threshold=0.0, max_frozen_share=1.0
    )
    policy_ = after(FedFreeze(settings, layout), outcome(1))
    advice = policy_.advise(view(2), client())
    assert advice.must_train == ("tail",)
    assert "tail" not in advice.frozen
    assert {"stem", "body"} <= set(advice.frozen)
