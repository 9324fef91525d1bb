"""Whoever misses which rounds, every client holds the bits that the server published."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load

from compression import decode
from fedfreeze.errors import PacketError, ProtocolError
from fedfreeze.layout import Layer, Layout, TensorSpec
from fedfreeze.messages import NO_ROUND
from strategies.chain import caught_up, parted
from strategies.clients import Client
from strategies.downlink import packet_rule
from strategies.orders import Desk, Parcels
from strategies.published import Published
from strategies.tables import Compression
from tests.unit.strategies.samples import board

LAYOUT = Layout(
    "m",
    (
        Layer(
            "a",
            (
                TensorSpec("a.w", (6, 7), "float32"),
                TensorSpec("a.mean", (3,), "float32", "buffer"),
                TensorSpec("a.count", (), "int64", "buffer"),
            ),
        ),
        Layer("b", (TensorSpec("b.w", (30,), "float32"), TensorSpec("b.k", (2,), "float16"))),
        Layer("c", (TensorSpec("c.scale", (), "float32"), TensorSpec("c.w", (40,), "float64"))),
    ),
)
TABLES = {
    "delta": Compression(downlink="delta"),
    "quantised": Compression(downlink="quantised"),
    "sparse": Compression(downlink="sparse", downlink_ratio=3),
}
CLIENTS = 3
ROUNDS = st.lists(
    st.tuples(
        st.sets(st.sampled_from(LAYOUT.names)),  # trained by somebody
        st.sets(st.integers(0, CLIENTS - 1)),  # who is there
        st.sets(st.integers(0, CLIENTS - 1)),  # who lost its disk before
        st.sampled_from([1e-6, 1.0, 3e2]),  # size of the step
    ),
    min_size=1,
    max_size=14,
)


def begin(rng):
    return {
        t.name: rng.normal(size=t.shape).astype(t.dtype) if t.is_float else np.array(7)
        for t in LAYOUT.tensors.values()
    }


def steps_of(layers, size, rng):
    return {
        layer: {t.name: size * rng.normal(size=t.shape) for t in LAYOUT[layer].tensors if t.travels}
        for layer in LAYOUT.ordered(layers)
    }


class Held:
    """One client's model, brought up to date by what the server would send it."""

    def __init__(self, index):
        self.client = Client(f"b{index}", "fake", board(), 10)
        self.model = {}

    def lose(self):
        self.client.held_version, self.model = None, {}

    def update(self, published, rule):
        shipment = Desk("run", "{}", "-", "-", "-", "sparse").shipment(self.client, published)
        content = Parcels(published)._data(shipment)
        if shipment.by_packets:
            held = self.client.held_version
            packets = parted(content, published.version - held, max_bytes=rule.budget_bytes)
            self.model = caught_up(self.model, packets, held, LAYOUT, max_bytes=rule.budget_bytes)
        else:
            base = {} if shipment.base_version == NO_ROUND else self.model
            self.model = {**base, **load(content)}
        self.client.held_version = published.version


def bits(arrays):
    return {name: np.asarray(array).tobytes() for name, array in sorted(arrays.items())}


@settings(max_examples=150, deadline=None)
@given(ROUNDS, st.integers(0, 2**32 - 1), st.sampled_from(sorted(TABLES)))
def test_a_client_that_is_there_holds_the_published_bits(rounds, seed, kind):
    rng = np.random.default_rng(seed)
    rule = packet_rule(LAYOUT, TABLES[kind])
    published = Published(LAYOUT, begin(rng), rule=rule)
    clients = [Held(index) for index in range(CLIENTS)]
    for trained, present, lost, size in rounds:
        for index in lost:
            clients[index].lose()
        for index in present:
            clients[index].update(published, rule)
            assert bits(clients[index].model) == bits(published.arrays)
        published.advance(steps_of(trained, size, rng))


@settings(max_examples=100, deadline=None)
@given(ROUNDS, st.integers(0, 2**32 - 1), st.sampled_from(["quantised", "sparse"]))
def test_what_was_sent_and_what_is_left_add_up_to_the_steps(rounds, seed, kind):
    """u and the residual are each rounded once to float32: half a unit in the last place each."""
    rng = np.random.default_rng(seed)
    rule = packet_rule(LAYOUT, TABLES[kind])
    published = Published(LAYOUT, begin(rng), rule=rule)
    floats = [t for t in LAYOUT.tensors.values() if t.travels]
    meant, sent, rounding = ({t.name: np.zeros(t.shape) for t in floats} for _ in range(3))
    for trained, _, _, size in rounds:
        steps = steps_of(trained, size, rng)
        before = {name: array.copy() for name, array in published.residual.items()}
        published.advance(steps)
        (packet,) = parted(published.packets(published.version - 1), 1, max_bytes=10**6)
        assert len(packet) <= rule.budget_bytes
        for name, array in decode(packet, LAYOUT, max_bytes=10**6).update.items():
            sent[name] += array
        for tensors in steps.values():
            for name, step in tensors.items():
                meant[name] += step
                rounding[name] += np.abs(step + before.get(name, 0))
        for tensor in floats:
            rounding[tensor.name] += np.abs(published.residual.get(tensor.name, 0))
    for tensor in floats:
        name = tensor.name
        error = np.abs(sent[name] + published.residual.get(name, 0) - meant[name])
        bound = 2.0**-24 * rounding[name] * (1 + 1e-6) + 1e-12 * np.abs(meant[name])
        assert (error <= bound + 1e-44).all(), name


@settings(max_examples=40, deadline=None)
@given(ROUNDS, st.integers(0, 2**32 - 1), st.sampled_from(["quantised", "sparse"]))
def test_a_server_that_is_taken_up_again_sends_the_same_bytes(rounds, seed, kind):
    rule = packet_rule(LAYOUT, TABLES[kind])

    def final(*, stops):
        rng = np.random.default_rng(seed)
        published = Published(LAYOUT, begin(rng), rule=rule)
        for trained, _, _, size in rounds:
            published.advance(steps_of(trained, size, rng))
            if stops:
                memory, changed_at = published.memory(), dict(published.changed_at)
                published = Published(LAYOUT, published.arrays, published.version, rule)
                published.changed_at = changed_at
                published.recall(memory)
        return published.digest, published.changed_at, bits(published.memory())

    assert final(stops=True) == final(stops=False)


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(["quantised", "sparse"]),
    st.lists(st.tuples(st.sampled_from("xid"), st.integers(0, 2**16), st.integers(1, 255))),
    st.integers(-1, 5),
)
def test_whatever_comes_as_packets_is_the_model_or_a_named_error(kind, edits, count):
    """Bytes are flipped, inserted and deleted, and the number of packets may be another one."""
    rng = np.random.default_rng(0)
    rule = packet_rule(LAYOUT, TABLES[kind])
    published = Published(LAYOUT, begin(rng), rule=rule)
    model = {name: array.copy() for name, array in published.arrays.items()}
    for _ in range(2):
        published.advance(steps_of(LAYOUT.names, 1.0, rng))
    data = bytearray(published.packets(0))
    for edit, at, value in edits:
        place = at % (len(data) or 1)
        if edit == "i":
            data.insert(place, value)
        elif edit == "x" and data:
            data[place] ^= value
        elif data:
            del data[place]
    before = bits(model)
    try:
        packets = parted(bytes(data), count, max_bytes=rule.budget_bytes)
        after = caught_up(model, packets, 0, LAYOUT, max_bytes=rule.budget_bytes)
    except (PacketError, ProtocolError):
        assert bits(model) == before
        return
    LAYOUT.check(after)
    assert count == 2
    assert bits(after) == bits(published.arrays)


@pytest.mark.parametrize("kind", ["quantised", "sparse"])
def test_chains_of_packets_are_really_walked(kind):
    """The first test would also hold if everybody were always sent dense layers."""
    rng = np.random.default_rng(0)
    rule = packet_rule(LAYOUT, TABLES[kind])
    published = Published(LAYOUT, begin(rng), rule=rule)
    for _ in range(3):
        published.advance(steps_of(LAYOUT.names, 1.0, rng))
    assert published.has_smaller_packets(2)
