"""What is done about few examples is between the codec and the merge; no plan sees it."""

from dataclasses import replace

from hypothesis import assume, given
from hypothesis import strategies as st

from fedfreeze.errors import PlanError
from strategies.few_examples import MOST_FINENESS, FewExamples
from strategies.orders import limits
from strategies.planner import Load, as_advice, fit
from strategies.tables import Clients, Compression, Local
from tests.property.test_planner_properties import CAPACITIES, advices, layouts

EXAMPLES = st.integers(1, 500)
N_MIN = st.integers(1, 500)
TREATMENTS = st.sampled_from(["plain", "finer-step", "damped-weight"])


def compression(treatment, n_min):
    given_n_min = {} if treatment == "plain" else {"n_min": n_min}
    return Compression(compression_ratio=1.0, few_examples=treatment, **given_n_min)


@given(st.data(), TREATMENTS, N_MIN, EXAMPLES, EXAMPLES)
def test_board_and_server_agree_on_the_plan_whatever_is_done_about_few_examples(
    data, treatment, n_min, believed, examples
):
    """The server plans with the examples it last heard of; the board then has others."""
    layout = data.draw(layouts())
    advice, capacity = data.draw(advices(layout)), data.draw(CAPACITIES)
    assume(sum(t.nbytes for t in layout.tensors.values()) >= 64)
    plain, treated = (
        limits(layout, Clients(), compression(name, n_min), Local())
        for name in ("plain", treatment)
    )
    assert treated == plain
    plans = []
    for asked in (plain, treated):
        try:
            load = Load(believed, 5_000, 1_000)
            suggestion = fit(advice, layout=layout, capacity=capacity, limits=asked, load=load)
            own = fit(
                as_advice(suggestion),
                layout=layout,
                capacity=capacity,
                limits=replace(asked, epochs=suggestion.epochs),
                load=replace(load, examples=examples),
            )
        except PlanError as error:
            plans.append(str(error))
            continue
        plans.append((suggestion, own))
        if believed == examples:
            assert own == suggestion
    assert plans[0] == plans[1]


@given(N_MIN, EXAMPLES, EXAMPLES)
def test_more_examples_never_weigh_less_nor_go_more_finely(n_min, few, many):
    few, many = sorted((few, many))
    damped, finer = FewExamples("damped-weight", n_min), FewExamples("finer-step", n_min)
    assert damped.weight(few) <= damped.weight(many) <= many
    assert 1 <= finer.fineness(many) <= finer.fineness(few) <= MOST_FINENESS


@given(N_MIN, EXAMPLES)
def test_whoever_has_enough_is_as_everybody(n_min, examples):
    assume(examples >= n_min)
    for treatment in ("plain", "finer-step", "damped-weight"):
        rule = FewExamples(treatment, n_min)
        assert (rule.weight(examples), rule.fineness(examples)) == (examples, 1)
