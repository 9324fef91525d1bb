"""What merging keeps for every set of updates."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fedfreeze.layout import Layer, Layout, TensorSpec
from strategies.aggregation.mean import Update, weighted_means

LAYOUT = Layout(
    "merged",
    tuple(
        Layer(name, (TensorSpec(f"{name}.w", shape, "float32"),))
        for name, shape in [("a", (3,)), ("b", ()), ("c", (2, 2))]
    ),
)
values = st.floats(-1e6, 1e6, width=32)


@st.composite
def updates(draw):
    names = draw(st.lists(st.text("xyz", min_size=1, max_size=4), unique=True, max_size=5))
    found = []
    for device_id in names:
        layers = LAYOUT.ordered(draw(st.sets(st.sampled_from(LAYOUT.names))))
        deltas = {
            t.name: draw(hnp.arrays(np.float32, t.shape, elements=values))
            for name in layers
            for t in LAYOUT[name].tensors
        }
        found.append(Update(device_id, float(draw(st.integers(1, 10_000))), layers, deltas))
    return found


def means(merged):
    return {
        name: mean
        for _, tensors in weighted_means(LAYOUT, merged)
        for name, mean in tensors.items()
    }


def tolerance(merged):
    """A few rounding errors of the largest value in sight."""
    largest = max((np.abs(d).max(initial=0) for u in merged for d in u.deltas.values()), default=0)
    return 1e-14 * float(largest)


@given(updates().flatmap(lambda u: st.tuples(st.just(u), st.permutations(u))))
def test_the_order_of_arrival_changes_no_bit(pair):
    first, second = (means(merged) for merged in pair)
    assert {n: m.tobytes() for n, m in first.items()} == {n: m.tobytes() for n, m in second.items()}


@given(updates())
def test_the_mean_is_numpys_average_over_those_who_trained_the_layer(merged):
    found = means(merged)
    for layer in LAYOUT.names:
        trainers = [u for u in merged if layer in u.layers]
        assert (f"{layer}.w" in found) == bool(trainers)
        if trainers:
            stack = np.stack([u.deltas[f"{layer}.w"].astype(np.float64) for u in trainers])
            expected = np.average(stack, axis=0, weights=[u.weight for u in trainers])
            np.testing.assert_allclose(found[f"{layer}.w"], expected, atol=tolerance(merged))


@given(updates(), st.sampled_from(LAYOUT.names))
def test_a_layer_does_not_depend_on_clients_that_did_not_train_it(merged, layer):
    alone = means([u for u in merged if layer in u.layers])
    everybody = means(merged)
    name = f"{layer}.w"
    assert (name in alone) == (name in everybody)
    assert name not in alone or alone[name].tobytes() == everybody[name].tobytes()


@given(updates(), st.sampled_from([-4.0, 2.0, 1024.0]))
def test_scaling_every_update_by_a_power_of_two_scales_the_mean_exactly(merged, factor):
    scaled = [
        Update(
            u.device_id,
            u.weight,
            u.layers,
            {n: d * np.float32(factor) for n, d in u.deltas.items()},
        )
        for u in merged
    ]
    before, after = means(merged), means(scaled)
    assert set(before) == set(after)
    for name, mean in before.items():
        np.testing.assert_array_equal(after[name], factor * mean)


@given(updates(), st.integers(0, 2**32 - 1))
def test_the_mean_of_a_sum_is_the_sum_of_the_means(merged, seed):
    rng = np.random.default_rng(seed)
    others = [
        Update(
            u.device_id,
            u.weight,
            u.layers,
            {n: np.asarray(rng.integers(-9, 9, d.shape), np.float64) for n, d in u.deltas.items()},
        )
        for u in merged
    ]
    sums = [
        Update(u.device_id, u.weight, u.layers, {n: d + o.deltas[n] for n, d in u.deltas.items()})
        for u, o in zip(merged, others, strict=True)
    ]
    first, second, both = means(merged), means(others), means(sums)
    for name, mean in both.items():
        np.testing.assert_allclose(mean, first[name] + second[name], atol=tolerance(merged) + 1e-12)


@given(updates(), st.integers(2, 9))
def test_only_the_proportions_of_weights_matter(merged, factor):
    heavier = [Update(u.device_id, u.weight * factor, u.layers, u.deltas) for u in merged]
    before, after = means(merged), means(heavier)
    for name, mean in before.items():
        np.testing.assert_allclose(after[name], mean, atol=tolerance(merged))
