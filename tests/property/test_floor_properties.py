"""What holds for floors, however small or large a layer is beside the others."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from compression import CodecSettings, encode
from tests.unit.compression.sample_layouts import crowded_update, heavy_update, network

LAYOUT = network()


def values_of(tensors, layer):
    return np.concatenate([tensors[t.name].reshape(-1) for t in LAYOUT[layer].parameters])


def demands(update, floors):
    """By layer with a floor, how many values it demands and how large the smallest of them is."""
    found = {}
    for layer, least in floors.items():
        sizes = np.sort(np.abs(values_of(update, layer)))[::-1]
        count = min(least, int(np.count_nonzero(sizes)))
        if count:
            found[layer] = count, float(sizes[count - 1])
    return found


OPTIONS = {
    "thorough": {},
    "fast": {"settings": CodecSettings(effort="fast")},
    "density": {"settings": CodecSettings(density=0.05)},
    "bits": {"settings": CodecSettings(value_bits=3)},
    "step": {"step": 0.5},
}
UPDATES = {"crowded": crowded_update, "heavy": heavy_update}
CASES = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(sorted(UPDATES)),
        "seed": st.integers(0, 999),
        "layer": st.sampled_from(LAYOUT.names),
        "scale": st.floats(-6, 6),
        "floors": st.dictionaries(
            st.sampled_from(LAYOUT.names), st.sampled_from([1, 8, 60, 400, 10**6]), min_size=1
        ),
        "budget_bytes": st.sampled_from([70, 150, 400, 1000, 3000, 9000]),
        "option": st.sampled_from(sorted(OPTIONS)),
    }
)


def sent(case):
    """An update of which one layer is far smaller or larger, and what was made of it."""
    update = UPDATES[case["kind"]](LAYOUT, case["seed"])
    for tensor in LAYOUT[case["layer"]].parameters:
        update[tensor.name] *= np.float32(10 ** case["scale"])
    size = {"budget_bytes": case["budget_bytes"], "round_number": 0, "floors": case["floors"]}
    return update, encode(update, LAYOUT, LAYOUT.names, **size, **OPTIONS[case["option"]])


@settings(max_examples=150, deadline=None)
@given(CASES)
def test_a_floor_is_met_by_values_that_arrive_or_is_reported(case):
    update, found = sent(case)
    floors, asked = case["floors"], demands(update, case["floors"])
    if found.empty:
        assert set(found.unmet_floors) == set(floors)
        return
    assert len(found.packet) <= case["budget_bytes"]
    arrived = {layer: np.abs(values_of(found.decoded, layer)) > 0 for layer in LAYOUT.names}
    short = {layer for layer, (count, _) in asked.items() if arrived[layer].sum() < count}
    assert set(found.unmet_floors) == short
    for layer in short if case["option"] in {"thorough", "fast"} else ():
        # Values below a 64th of the step may arrive as 0. For others only bytes can be wanting,
        # and then they are spent on nothing but what floors demand.
        if asked[layer][1] >= found.step / 64:
            for other in LAYOUT.names:
                limit = asked.get(other, (0, np.inf))[1]
                assert (np.abs(values_of(update, other))[arrived[other]] >= limit).all()


@settings(max_examples=150, deadline=None)
@given(CASES)
def test_no_layer_is_further_off_for_its_floor_than_if_nothing_of_it_were_sent(case):
    # Where the caller fixes density, bits or step, the step may be too coarse for a quiet layer.
    case |= {"option": "fast" if case["seed"] % 2 else "thorough"}
    update, found = sent(case)
    for layer in LAYOUT.names if not found.empty else ():
        exact = values_of(update, layer).astype(np.float64)
        off = exact - values_of(found.decoded, layer)
        assert (off**2).sum() <= (exact**2).sum() * (1 + 1e-6), layer
