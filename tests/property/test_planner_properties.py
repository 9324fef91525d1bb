"""What a plan keeps for every layout, board and advice."""

from dataclasses import replace

from hypothesis import assume, given
from hypothesis import strategies as st

from device_profiles.cost import training_memory_bytes
from fedfreeze.capacity import Capacity, Known
from fedfreeze.errors import PlanError
from fedfreeze.layout import Layer, LayerCosts, Layout, TensorSpec
from fedfreeze.plan import Plan, Reason
from strategies.freeze.policy import Advice, StageAdvice
from strategies.planner import Limits, Load, as_advice, fit

LIMIT_NAMES = {"memory", "uplink", "downlink", "compute", "policy"}
OPS = st.integers(0, 10**7).map(float)


@st.composite
def layouts(draw):
    layers = []
    for place in range(draw(st.integers(1, 7))):
        name = f"l{place}"
        costs = LayerCosts(draw(OPS), draw(OPS), draw(OPS), float(draw(st.integers(0, 10**6))))
        layers.append(
            Layer(
                name, (TensorSpec(f"{name}.w", (draw(st.integers(1, 5_000)),), "float32"),), costs
            )
        )
    return Layout("any", tuple(layers))


@st.composite
def advices(draw, layout, *, staged=True):
    names = st.sampled_from(layout.names)
    frozen = draw(st.sets(names, max_size=len(layout) - 1))
    values = {name: draw(st.floats(0, 1)) for name in layout.names}
    stages = ()
    if staged and draw(st.booleans()):
        weights = draw(st.lists(st.integers(1, 9), min_size=1, max_size=4))
        stages = tuple(
            StageAdvice(weight / sum(weights), tuple(sorted(draw(st.sets(names, min_size=1)))))
            for weight in weights
        )
    return Advice(
        frozen={name: Reason("score", "settled") for name in sorted(frozen)},
        values=values,
        must_train=tuple(sorted(draw(st.sets(names, max_size=2)))),
        stages=stages,
    )


def known(low, high):
    return st.floats(low, high).map(lambda value: Known(value, "profile"))


# From boards that hold nothing to boards that hold everything: 24 MB go before the first layer.
CAPACITIES = st.builds(
    Capacity, known(1e5, 1e10), known(20e6, 120e6), known(1e2, 1e6), known(1e2, 1e6)
)
LOADS = st.builds(Load, st.integers(1, 500), st.integers(0, 50_000), st.integers(0, 3_000))
LIMITS = st.builds(
    Limits,
    epochs=st.integers(1, 4),
    batch_size=st.integers(1, 16),
    optimizer_slots=st.integers(0, 2),
    upload_time_s=st.floats(0.1, 20),
    full_upload_bytes=st.integers(44, 20_000),
    dense_bits=st.sampled_from([None, None, 8, 32]),
    deadline_s=st.floats(0.5, 100),
    smallest_packet_bytes=st.just(44),
)


@st.composite
def cases(draw, **options):
    layout = draw(layouts())
    return {
        "advice": draw(advices(layout, **options)),
        "layout": layout,
        "capacity": draw(CAPACITIES),
        "limits": draw(LIMITS),
        "load": draw(LOADS),
    }


def planned(case, **changes) -> Plan | None:
    """The plan, or None where none fits."""
    arguments = {**case, **changes}
    try:
        return fit(arguments.pop("advice"), **arguments)
    except PlanError as error:
        if error.limit not in LIMIT_NAMES:
            raise
        return None


def feasible_plan(case, **changes) -> Plan:
    plan = planned(case, **changes)
    assume(plan is not None)
    return plan


def frozen_parameters(layout, plan):
    return sum(layout[name].parameter_count for name in plan.frozen)


@given(cases())
def test_a_plan_never_exceeds_what_the_board_has(case):
    plan = feasible_plan(case)
    layout, capacity, limits = case["layout"], case["capacity"], case["limits"]
    needs = training_memory_bytes(layout, plan.trained, plan.batch_size, limits.optimizer_slots)
    assert needs <= capacity.memory_bytes.value
    assert plan.cost.modelled_memory_bytes == needs
    assert plan.cost.modelled_total_s <= limits.deadline_s
    assert 44 <= plan.upload_budget_bytes <= limits.full_upload_bytes
    sent = plan.upload_budget_bytes + case["load"].envelope_bytes
    assert sent <= capacity.uplink_bytes_per_s.value * limits.upload_time_s


@given(cases())
def test_a_plan_covers_the_layout_and_trains_only_what_the_advice_allows(case):
    plan = feasible_plan(case)
    plan.check(case["layout"])
    assert not set(plan.trained) & set(case["advice"].frozen)
    assert all(reason.detail for reason in plan.frozen.values())
    assert 1 <= plan.epochs <= case["limits"].epochs
    allowed = {
        name: [stage for stage in case["advice"].stages if name in stage.layers]
        for name in plan.trained
    }
    assert not case["advice"].stages or all(allowed.values())


@given(cases())
def test_the_clients_own_fit_of_a_suggestion_with_the_same_capacity_changes_nothing(case):
    suggestion = feasible_plan(case)
    limits = replace(case["limits"], epochs=suggestion.epochs)
    assert planned(case, advice=as_advice(suggestion), limits=limits) == suggestion


@given(cases(), CAPACITIES, LOADS)
def test_the_clients_own_fit_only_shrinks_a_suggestion(case, capacity, load):
    suggestion = feasible_plan(case)
    own = feasible_plan(
        case,
        advice=as_advice(suggestion),
        capacity=capacity,
        limits=replace(case["limits"], epochs=suggestion.epochs),
        load=load,
    )
    assert set(own.trained) <= set(suggestion.trained)
    assert own.epochs <= suggestion.epochs
    assert {name: own.frozen[name] for name in suggestion.frozen} == suggestion.frozen


@given(cases(staged=False), st.floats(0.5, 1))
def test_with_an_ample_uplink_less_memory_never_freezes_fewer_parameters(case, share):
    """A thin uplink breaks this, as the unit tests show: its greedy fills what is left of room."""
    capacity, load = case["capacity"], case["load"]
    ample = case["limits"].full_upload_bytes + load.envelope_bytes + 1
    limits = replace(case["limits"], upload_time_s=ample / capacity.uplink_bytes_per_s.value)
    much = feasible_plan(case, limits=limits)
    assume(much.upload_budget_bytes == limits.full_upload_bytes)
    less = Known(capacity.memory_bytes.value * share, "profile")
    little = feasible_plan(case, limits=limits, capacity=replace(capacity, memory_bytes=less))
    assert set(little.trained) <= set(much.trained)
    assert frozen_parameters(case["layout"], little) >= frozen_parameters(case["layout"], much)


@given(cases())
def test_more_of_everything_never_makes_a_plan_impossible(case):
    feasible_plan(case)
    generous = Capacity(*[Known(1e12, "profile")] * 4)
    assert planned(case, capacity=generous) is not None


@given(cases())
def test_a_thin_sparse_uplink_never_takes_the_last_layer_that_must_train(case):
    plan = feasible_plan(case)
    must_train = set(case["advice"].must_train)
    codes = {name: reason.code for name, reason in plan.frozen.items()}
    given_up = {name for name in must_train if codes.get(name) == "uplink"}
    if given_up and case["limits"].dense_bits is None:
        # The uplink is looked at before the time, which may have taken the others later.
        assert {name for name in must_train if codes.get(name) in {None, "compute"}}
