"""What a plan keeps for every layout, board and advice."""

from dataclasses import fields, replace

from hypothesis import assume, given
from hypothesis import strategies as st

from device_profiles.board import load_board
from device_profiles.cost import modelled_energy_j, training_memory_bytes
from fedfreeze.capacity import Capacity, Known
from fedfreeze.errors import PlanError
from fedfreeze.layout import Layer, LayerCosts, Layout, TensorSpec
from fedfreeze.plan import Plan, Reason
from strategies.freeze.policy import Advice, StageAdvice
from strategies.planner import Limits, Load, as_advice, fit, reachable
from strategies.worth import worth_of

LIMIT_NAMES = {"memory", "uplink", "downlink", "compute", "policy", "upload", "flops", "energy"}
RESOURCES = ("flops_per_s", "memory_bytes", "uplink_bytes_per_s", "downlink_bytes_per_s")
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


# From boards that hold nothing to boards that hold everything: 21 MB go before the first layer.
CAPACITIES = st.builds(
    Capacity, known(1e6, 1e10), known(22e6, 120e6), known(1e2, 1e6), known(1e2, 1e6)
)
BOARD = load_board("rpi-4b-4gb")
LOADS = st.builds(
    Load, st.integers(1, 500), st.integers(0, 50_000), st.integers(0, 3_000), st.just(BOARD)
)
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
    splits=st.sampled_from([(1,), (1, 2, 4)]),
    flops_per_round=st.none() | st.floats(1e7, 1e11),
    upload_bytes_per_round=st.none() | st.integers(50, 20_000),
    energy_j_per_round=st.none() | st.floats(1, 1e3),
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


def worth(plan, case):
    """What plans are compared by first: layers that must train, then the sum of values."""
    advice = case["advice"]
    staged = {name for stage in advice.stages for name in stage.layers} or set(case["layout"].names)
    free = [n for n in case["layout"].names if n in staged and n not in advice.frozen]
    whole = worth_of(advice, free).whole
    return sum(value for name, value in zip(free, whole, strict=True) if name in plan.trained)


@given(cases())
def test_a_plan_never_exceeds_what_the_board_has(case):
    plan = feasible_plan(case)
    layout, capacity, limits = case["layout"], case["capacity"], case["limits"]
    slots = limits.optimizer_slots
    needs = training_memory_bytes(layout, plan.trained, plan.micro_batch_size, slots)
    assert needs <= capacity.memory_bytes.value
    assert plan.cost.modelled_memory_bytes == needs
    assert plan.cost.modelled_total_s <= limits.deadline_s
    assert 44 <= plan.upload_budget_bytes <= limits.full_upload_bytes
    sent = plan.upload_budget_bytes + case["load"].envelope_bytes
    assert sent <= capacity.uplink_bytes_per_s.value * limits.upload_time_s
    assert sent <= (limits.upload_bytes_per_round or sent)
    flops = plan.cost.modelled_compute_s * capacity.flops_per_s.value
    assert flops <= (limits.flops_per_round or flops) * (1 + 1e-9)
    joules = modelled_energy_j(BOARD, plan.cost, 0.0)
    assert joules <= (limits.energy_j_per_round or joules) * (1 + 1e-9)


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


@given(cases(), st.lists(st.floats(0.5, 4), min_size=4, max_size=4), LOADS)
def test_the_clients_own_fit_only_shrinks_a_suggestion(case, factors, load):
    suggestion = feasible_plan(case)
    believed = case["capacity"]
    capacity = Capacity(
        *(
            Known(getattr(believed, field.name).value * factor, "measured")
            for field, factor in zip(fields(Capacity), factors, strict=True)
        )
    )
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


@given(cases(), st.sampled_from(RESOURCES), st.floats(1, 4))
def test_a_board_with_more_of_one_resource_never_gets_a_plan_of_less_worth(case, resource, factor):
    plan = feasible_plan(case)
    has = getattr(case["capacity"], resource).value
    richer = replace(case["capacity"], **{resource: Known(has * factor, "profile")})
    better = planned(case, capacity=richer)
    assert worth(better, case) >= worth(plan, case)


@given(cases())
def test_more_of_everything_never_makes_a_plan_impossible(case):
    feasible_plan(case)
    generous = Capacity(*[Known(1e12, "profile")] * 4)
    assert planned(case, capacity=generous) is not None


@given(cases())
def test_some_layer_that_must_train_does_where_the_board_can_train_any_of_them(case):
    plan = feasible_plan(case)
    short = reachable(*[case[of] for of in ("layout", "capacity", "limits", "load")])
    frozen = set(plan.frozen) - {n for n, r in plan.frozen.items() if r.code in LIMIT_NAMES}
    could = {n for n in case["advice"].must_train if n not in frozen and short[n] is None}
    assert not could or could & set(plan.trained)
