"""Coverage: what an assignment can reach at all is reached."""

from collections import deque

from hypothesis import given
from hypothesis import strategies as st

from strategies.assignment import Reach, assigned, matched

LAYERS = ("stem", "body", "tail", "neck", "head")


@st.composite
def cohorts(draw):
    """Up to six clients, some of which can train all they reach at once."""
    cohort = {}
    for number in range(draw(st.integers(1, 6))):
        layers = tuple(name for name in LAYERS if draw(st.booleans()))
        settled = frozenset(name for name in layers if draw(st.booleans()))
        roomy = draw(st.booleans())
        planned = {name for name in layers if roomy or draw(st.booleans())} - settled
        cohort[f"b{number}"] = Reach(layers, roomy, frozenset(planned), settled)
    return cohort


def greatest_flow(cohort, q_min, rounds):
    """Greatest flow from layers (q_min each) over who reaches them to clients (rounds each)."""
    room = {}
    for name in LAYERS:
        room["source", name] = q_min
        for device_id, reach in cohort.items():
            if name in reach.layers:
                room[name, device_id] = 1
    for device_id, reach in cohort.items():
        room[device_id, "sink"] = len(LAYERS) if reach.roomy else rounds
    flow = 0
    while path := _path(room):
        for begin, end in path:
            room[begin, end] -= 1
            room[end, begin] = room.get((end, begin), 0) + 1
        flow += 1
    return flow


def _path(room):
    came, queue = {"source": None}, deque(["source"])
    while queue:
        here = queue.popleft()
        for (begin, end), left in room.items():
            if begin == here and left > 0 and end not in came:
                came[end] = here
                queue.append(end)
    if "sink" not in came:
        return None
    path, here = [], "sink"
    while came[here] is not None:
        path.append((came[here], here))
        here = came[here]
    return path


def covered_after(cohort, q_min, rounds):
    """Who has trained what when boards with little room train only what they were asked for."""
    trained = {}
    for played in range(rounds):
        before = {name: frozenset(clients) for name, clients in trained.items()}
        asked = assigned(cohort, before, q_min=q_min, rounds_left=rounds - played)
        for device_id, reach in cohort.items():
            layers = set(asked.get(device_id, ()))
            assert layers <= set(reach.layers)
            assert reach.roomy or len(layers) <= 1
            for name in layers | (reach.planned if reach.roomy else set()):
                trained.setdefault(name, set()).add(device_id)
    return trained


@given(cohorts(), st.integers(1, 3), st.integers(1, 4))
def test_whenever_it_is_possible_every_layer_has_enough_clients_after_a_block(
    cohort, q_min, rounds
):
    if greatest_flow(cohort, q_min, rounds) == q_min * len(LAYERS):
        trained = covered_after(cohort, q_min, rounds)
        assert all(len(trained.get(name, ())) >= q_min for name in LAYERS)


@given(cohorts(), st.integers(1, 3), st.integers(1, 4))
def test_as_many_layers_are_given_out_as_the_greatest_flow_allows(cohort, q_min, rounds):
    given_out = matched(cohort, {}, q_min=q_min, rounds_left=rounds)
    for device_id, layers in given_out.items():
        assert cohort[device_id].roomy or len(layers) <= rounds
        assert set(layers) <= set(cohort[device_id].layers)
    counts = [sum(name in layers for layers in given_out.values()) for name in LAYERS]
    assert max(counts) <= q_min
    assert sum(counts) == greatest_flow(cohort, q_min, rounds)


@given(cohorts(), st.integers(1, 3), st.integers(1, 4))
def test_the_order_of_the_clients_changes_nothing(cohort, q_min, rounds):
    turned = dict(reversed(cohort.items()))
    assert assigned(turned, {}, q_min=q_min, rounds_left=rounds) == assigned(
        cohort, {}, q_min=q_min, rounds_left=rounds
    )


@given(cohorts())
def test_a_layer_that_the_policy_has_settled_is_not_thawed_unless_it_is_needed(cohort):
    asked = assigned(cohort, {}, q_min=0, rounds_left=1)
    for device_id, layers in asked.items():
        assert not set(layers) & cohort[device_id].settled
