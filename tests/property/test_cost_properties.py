"""Costs for every layout: what freezing can and cannot save."""

from hypothesis import given
from hypothesis import strategies as st

from device_profiles.cost import training_flops, training_memory_bytes
from fedfreeze.layout import Layer, LayerCosts, Layout, TensorSpec

costs = st.builds(LayerCosts, *[st.integers(0, 10**9).map(float)] * 4)


@st.composite
def layouts(draw):
    names = [f"l{place}" for place in range(draw(st.integers(1, 8)))]
    return Layout(
        "any",
        tuple(
            Layer(
                name,
                (TensorSpec(f"{name}.w", (draw(st.integers(1, 10**6)),), "float32"),),
                draw(costs),
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
    assert training_memory_bytes(layout, fewer, batch, slots) <= training_memory_bytes(
        layout, more, batch, slots
    )


@given(nested_sets())
def test_the_forward_pass_is_always_paid(case):
    layout, trained, _ = case
    assert training_flops(layout, trained, 1) >= sum(layer.costs.forward_flops for layer in layout)


@given(layouts(), st.integers(1, 256))
def test_freezing_above_the_shallowest_trained_layer_spares_no_activations(layout, batch):
    def activations(trained):
        return training_memory_bytes(layout, trained, batch, 0) - training_memory_bytes(
            layout, trained, 0, 0
        )

    # The difference of two sums of up to 1e13 is exact to about 0.01.
    assert abs(activations(layout.names[:1]) - activations(layout.names)) < 0.05
