"""Costs for every layout: what freezing can and cannot save."""

from hypothesis import given
from hypothesis import strategies as st

from device_profiles.cost import training_flops, training_memory_bytes
from device_profiles.memory import ACTIVATION_FACTOR, round_phases, training_phases
from fedfreeze.layout import Layer, LayerCosts, Layout, TensorSpec

numbers = st.integers(0, 10**9).map(float)


@st.composite
def costs(draw):
    forward, inputs, weights, kept, inner = (draw(numbers) for _ in range(5))
    spared = draw(st.floats(0, 1)) * kept
    return LayerCosts(
        forward, inputs, weights, kept, min(inner, inputs), spared, draw(numbers), draw(numbers)
    )


@st.composite
def layouts(draw):
    names = [f"l{place}" for place in range(draw(st.integers(1, 8)))]
    return Layout(
        "any",
        tuple(
            Layer(
                name,
                (TensorSpec(f"{name}.w", (draw(st.integers(1, 10**6)),), "float32"),),
                draw(costs()),
            )
            for name in names
        ),
    )


@st.composite
def nested_sets(draw):
    """A layout, some trained layers, and some of those."""
    layout = draw(layouts())
    more = draw(st.sets(st.sampled_from(layout.names)))
    fewer = draw(st.sets(st.sampled_from(sorted(more)))) if more else set()
    return layout, more, fewer


@given(nested_sets(), st.integers(0, 1000))
def test_freezing_more_never_costs_more_operations(case, examples):
    layout, more, fewer = case
    assert training_flops(layout, fewer, examples) <= training_flops(layout, more, examples)


@given(nested_sets(), st.integers(0, 256), st.integers(0, 2))
def test_freezing_more_never_needs_more_memory(case, batch, slots):
    layout, more, fewer = case
    needed = training_memory_bytes(layout, more, batch, slots)
    # Sums of up to 1e13 are exact to about 0.01.
    assert training_memory_bytes(layout, fewer, batch, slots) <= needed + 0.05


@given(nested_sets(), st.integers(0, 256), st.integers(0, 2))
def test_a_round_needs_at_least_what_its_training_does(case, batch, slots):
    layout, trained, _ = case
    places = [layout.names.index(name) for name in trained]
    shallowest = min(places, default=len(layout))
    step = max(p.bytes_of(places) for p in training_phases(layout, shallowest, batch, slots))
    whole = max(p.bytes_of(places) for p in round_phases(layout, shallowest, batch, slots))
    assert step <= whole < training_memory_bytes(layout, trained, batch, slots)


@given(nested_sets())
def test_the_forward_pass_is_always_paid(case):
    layout, trained, _ = case
    assert training_flops(layout, trained, 1) >= sum(layer.costs.forward_flops for layer in layout)


@given(layouts(), st.integers(1, 256))
def test_freezing_above_the_shallowest_trained_layer_spares_only_what_its_own_weights_need(
    layout, batch
):
    (step,) = (p for p in training_phases(layout, 0, batch, 0) if p.name == "step")
    (empty,) = (p for p in training_phases(layout, 0, 0, 0) if p.name == "step")

    def activations(places):
        return step.bytes_of(places) - empty.bytes_of(places)

    above = range(1, len(layout))
    spared = sum(layout.layers[place].costs.spared_bytes for place in above)
    difference = activations([0, *above]) - activations([0])
    assert abs(difference - ACTIVATION_FACTOR * batch * spared) < 0.05 + 1e-12 * batch * spared
