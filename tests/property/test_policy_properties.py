"""What the policy fedfreeze keeps, whatever it is told."""

import json
import math

from hypothesis import given, settings
from hypothesis import strategies as st

from fedfreeze.layout import Layer, Layout, TensorSpec
from fedfreeze.plan import Plan, Reason, Stage
from strategies.freeze.fedfreeze import FedFreeze, FedFreezeSettings
from strategies.freeze.policy import ClientOutcome, RoundOutcome, RoundView
from strategies.local_step import LayerMeasures
from tests.unit.strategies.samples import client_of

DEVICES = ("A", "B", "C")

# What a reply may claim: see strategies.replies.
measured = st.just(0.0) | st.floats(0, 1e29)
losses = st.none() | st.floats(0, 1e6) | st.sampled_from([math.nan, math.inf, 0.0])

policy_settings = st.builds(
    FedFreezeSettings,
    threshold=st.floats(0, 1),
    warm_up_rounds=st.integers(0, 3),
    ramp_rounds=st.integers(1, 4),
    max_frozen_share=st.floats(0, 1),
    max_window=st.integers(1, 5),
    history=st.integers(1, 4),
    keep=st.floats(0, 1),
    loss_lag=st.integers(1, 3),
    patience=st.floats(0, 1),
    stability_weight=st.floats(0, 2),
    importance_weight=st.floats(0, 2),
    affinity_weight=st.floats(0, 2),
    gain_weight=st.floats(0, 2),
)


@st.composite
def layouts(draw):
    sizes = draw(st.lists(st.integers(1, 1000), min_size=2, max_size=6))
    return Layout(
        "any",
        tuple(
            Layer(f"l{place}", (TensorSpec(f"l{place}.w", (size,), "float32"),))
            for place, size in enumerate(sizes)
        ),
    )


def viewed(policy, layout, number, device_id, unaffordable):
    able = {name: name not in unaffordable for name in layout.names}
    client = client_of(layout, device_id, feasible=able)
    return policy.advise(RoundView(number, 99, 0.1), client)


@st.composite
def rounds(draw, policy, layout, number):
    """A round in which clients follow the advice, and may be short of memory for some layers."""
    clients, names = {}, st.sampled_from(layout.names)
    for device_id in draw(st.sets(st.sampled_from(DEVICES), min_size=1)):
        short = draw(st.sets(names, max_size=len(layout) - 1))
        advice = viewed(policy, layout, number, device_id, short)
        trained = tuple(n for n in layout.names if n not in advice.frozen and n not in short)
        frozen = {n: Reason("memory", "short") for n in short} | dict(advice.frozen)
        clients[device_id] = ClientOutcome(
            Plan((Stage(1.0, trained),) if trained else (), 1, 1, 44, frozen),
            float(draw(st.integers(1, 1000))),
            {n: LayerMeasures(draw(measured), draw(measured)) for n in trained},
        )
    moved = sorted({name for client in clients.values() for name in client.plan.trained})
    return RoundOutcome(
        number=number,
        learning_rate=draw(st.sampled_from([0.0, 1e-9, 0.1, 10.0])),
        clients=clients,
        movement={name: draw(measured) for name in moved},
        step_norm={name: draw(measured) for name in moved},
        validation_loss=draw(losses),
    )


def check(advice, policy, layout, number, trained_so_far):
    share = sum(layout[name].parameter_count for name in advice.frozen) / layout.parameter_count
    after_warm_up = max(0, number - policy.settings.warm_up_rounds)
    ramp = min(1.0, after_warm_up / policy.settings.ramp_rounds)
    assert share <= policy.settings.max_frozen_share * ramp + 1e-12
    assert layout.names[-1] not in advice.frozen
    for name, reason in advice.frozen.items():
        assert name in trained_so_far
        assert number - trained_so_far[name] <= policy.settings.max_window, "starved"
        assert reason.code in {"score", "window"}
    for name in layout.names:
        numbers = [n for n in advice.inputs[name].values() if n is not None]
        assert all(math.isfinite(n) for n in [*numbers, advice.values[name]])
        assert 1 <= advice.inputs[name]["window"] <= policy.settings.max_window


@settings(deadline=None)
@given(st.data())
def test_every_guard_holds_in_every_round_and_a_restored_policy_agrees(data):
    layout = data.draw(layouts())
    table = data.draw(policy_settings)
    policy = FedFreeze(table, layout)
    trained_so_far = {}
    for number in range(1, data.draw(st.integers(2, 12))):
        outcome = data.draw(rounds(policy, layout, number))
        for device_id in (*DEVICES, "never seen"):
            check(
                viewed(policy, layout, number, device_id, ()),
                policy,
                layout,
                number,
                trained_so_far,
            )
        policy.observe(outcome)
        trained_so_far |= dict.fromkeys(outcome.movement, number)
    state = json.dumps(policy.state(), allow_nan=False)
    restored = FedFreeze(table, layout)
    restored.restore(json.loads(state))
    for device_id in (*DEVICES, "never seen"):
        arguments = (layout, 20, device_id, layout.names[:1])
        assert viewed(restored, *arguments) == viewed(policy, *arguments)
    assert json.dumps(policy.state()) == state
