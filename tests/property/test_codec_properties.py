"""What holds for every update, layout and budget."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from compression import EMPTY_PACKET_BYTES, CodecSettings, decode, encode
from fedfreeze.errors import PacketError
from fedfreeze.layout import Layer, Layout, TensorSpec
from tests.unit.compression import reference_decoder

SHAPES = st.one_of(
    st.just(()), st.tuples(st.integers(0, 60)), st.tuples(st.integers(0, 9), st.integers(0, 30))
)


@st.composite
def updates(draw):
    """A layout, some of its layers, and finite values of any size, with many ties."""
    layers, update = [], {}
    for index in range(draw(st.integers(1, 4))):
        specs = []
        for place in range(draw(st.integers(1, 3))):
            kind = draw(st.sampled_from(["parameter", "parameter", "parameter", "buffer"]))
            spec = TensorSpec(f"{index}.{place}", draw(SHAPES), "float32", kind)
            specs.append(spec)
            elements = draw(
                st.sampled_from(
                    [
                        st.floats(-1, 1, width=32),
                        st.floats(width=32, allow_nan=False, allow_infinity=False),
                        st.sampled_from([0.0, -0.0, 1.0, -1.0, 3e38, 1e-45]),
                    ]
                )
            )
            update[spec.name] = draw(hnp.arrays(np.float32, spec.shape, elements=elements))
        layers.append(Layer(str(index), tuple(specs)))
    layout = Layout("drawn", tuple(layers))
    return layout, draw(st.sets(st.sampled_from(layout.names))), update


def assert_same(ours, reference):
    assert set(ours) == set(reference)
    for name, array in ours.items():
        expected = np.array(reference[name], np.float32).reshape(array.shape)
        assert array.tobytes() == expected.tobytes()


@settings(max_examples=400, deadline=None)
@given(updates(), st.integers(0, 700), st.none() | st.sampled_from([1e-30, 0.01, 0.4, 5.0]))
def test_sparse_packets_keep_their_budget_and_decode_as_the_reference_does(drawn, budget, step):
    layout, layers, update = drawn
    sent = encode(
        update, layout, sorted(layers), budget_bytes=budget, round_number=budget, step=step
    )
    assert len(sent.packet) <= max(budget, EMPTY_PACKET_BYTES)
    received = decode(sent.packet, layout, max_bytes=len(sent.packet))
    expected_layers, expected_round, expected = reference_decoder.decode(sent.packet, layout)
    assert received.layers == expected_layers == (() if sent.empty else layout.ordered(layers))
    assert received.round_number == expected_round == budget
    assert_same(received.update, expected)
    assert_same(sent.decoded, expected)
    for name, array in received.update.items():
        assert np.isfinite(array).all()
        assert array.shape == update[name].shape
        if layout.tensors[name].kind == "buffer":
            assert array.tobytes() == update[name].tobytes()
        elif sent.step is not None:  # what is not kept is 0, the rest within a step or clipped
            away = np.abs(array.astype(np.float64) - update[name])[array != 0]
            size = np.abs(update[name].astype(np.float64))[array != 0]
            assert ((away <= 1.01 * sent.step) | (size > 2.0**20 * sent.step)).all()


@settings(max_examples=150, deadline=None)
@given(updates(), st.integers(30, 700), st.integers(0, 2**32 - 1))
def test_shared_positions_are_all_sent_or_none_is(drawn, budget, seed):
    rng = np.random.default_rng(seed)
    layout, layers, update = drawn
    positions = {t.name: np.flatnonzero(rng.random(t.size) < 0.3) for t in layout.tensors.values()}
    sent = encode(
        update, layout, sorted(layers), budget_bytes=budget, round_number=1, positions=positions
    )
    assert len(sent.packet) <= budget
    received = decode(sent.packet, layout, max_bytes=budget, positions=positions)
    assert_same(received.update, reference_decoder.decode(sent.packet, layout, positions)[2])
    names = [t.name for n in sorted(layers) for t in layout[n].parameters]
    assert sent.kept == (0 if sent.empty else sum(len(positions[name]) for name in names))
    for name in names if not sent.empty else []:
        unsent = np.delete(received.update[name].reshape(-1), positions[name])
        assert not unsent.any()


@settings(max_examples=150, deadline=None)
@given(updates(), st.sampled_from([8, 16, 32]))
def test_dense_packets_stay_within_half_a_step_and_32_bits_are_exact(drawn, bits):
    layout, layers, update = drawn
    sent = encode(
        update,
        layout,
        sorted(layers),
        budget_bytes=10**6,
        round_number=3,
        settings=CodecSettings("dense", bits),
    )
    assert_same(sent.decoded, reference_decoder.decode(sent.packet, layout)[2])
    for name, array in sent.decoded.items():
        if bits == 32 or layout.tensors[name].kind == "buffer":
            assert array.tobytes() == update[name].tobytes()
            continue
        exact = update[name].astype(np.float64)
        largest = np.abs(exact).max(initial=0)
        # Half a step, and what rounding the scale and the result to float32 adds.
        bound = max(largest / (2 ** (bits - 1) - 1), 1.2e-38) / 2 + largest * 2.0**-22
        assert (np.abs(array - exact) <= bound).all()


@settings(max_examples=150, deadline=None)
@given(updates(), st.binary(max_size=80), st.integers(0, 200))
def test_arbitrary_bytes_are_refused(drawn, noise, max_bytes):
    layout, _, _ = drawn
    with pytest.raises(PacketError):
        decode(noise, layout, max_bytes=max_bytes)
