import json
from dataclasses import replace

import pytest
from flwr.app import Message, MessageType

from compression import EMPTY_PACKET_BYTES, CodecSettings
from device_profiles.board import load_board
from fedfreeze.errors import ConfigError
from fedfreeze.layout import Layer, Layout, TensorSpec
from fedfreeze.messages import MODEL_FORMAT, NO_ROUND, NO_TEXT, PACKETS_FORMAT, unpacked
from fedfreeze.plan import Plan, Stage
from strategies.bounds import board_for
from strategies.clients import Client
from strategies.downlink import PacketRule
from strategies.orders import Desk, Parcels, Shipment, limits
from strategies.published import Published
from strategies.tables import Clients, Compression, Local, RoundLimits
from tests.unit.strategies.samples import board, constant, stack, with_buffers

LAYOUT = stack()
PLAN = Plan((Stage(1.0, LAYOUT.names),), 1, 10, 300)


def asked(compression=None, local=None, layout=LAYOUT):
    return limits(layout, Clients(), compression or Compression(), local or Local())


def client(**fields):
    return Client("b0", "fake", board(), 10, 1, **fields)


def desk(downlink="delta"):
    return Desk("run", "{}", "-", "-", "-", downlink)


def published(rule=None):
    """At version 2: the head changed last, the body before it."""
    model = Published(LAYOUT, constant(LAYOUT, 0.0), rule=rule)
    for name, size in (("body", 200), ("head", 50)):
        model.advance({name: {f"{name}.w": constant(stack(x=size), 1.0)["x.w"]}})
    return model


def test_a_sparse_packet_is_the_dense_update_over_the_ratio():
    found = asked(Compression(compression_ratio=10.0, upload_time=2.0))
    assert (found.full_upload_bytes, found.dense_bits) == (300, None)
    assert found.smallest_packet_bytes == EMPTY_PACKET_BYTES + 16
    assert (found.upload_time_s, found.deadline_s) == (2.0, 60.0)


def test_a_ratio_that_leaves_no_packet_is_refused_before_anything_starts():
    with pytest.raises(ConfigError) as caught:
        asked(Compression(compression_ratio=100.0))
    assert str(caught.value) == (
        "compression.compression-ratio: 100 leaves 30 of the 3000 bytes of a dense update; a "
        f"packet that carries a value has {EMPTY_PACKET_BYTES + 16} or more; lower the ratio"
    )


@pytest.mark.parametrize(("bits", "full"), [(32, 3000), (16, 1500), (8, 750)])
def test_a_dense_packet_holds_every_value_at_its_bits(bits, full):
    found = asked(Compression(mode="dense", bits=bits))
    assert found.full_upload_bytes - found.smallest_packet_bytes == full
    assert found.dense_bits == bits


def test_float_buffers_are_32_bits_wide_in_every_dense_packet_and_integers_stay_behind():
    """Parameters: 5 + 3 values. Buffers: 2 floats, and one integer that never travels."""
    found = asked(Compression(mode="dense", bits=8), layout=with_buffers())
    assert found.full_upload_bytes - found.smallest_packet_bytes == 8 + 2 * 4


@pytest.mark.parametrize(
    ("keys", "slots"),
    [
        ({"optimizer": "sgd"}, 0),
        ({"optimizer": "sgd", "momentum": 0.9}, 1),
        ({"optimizer": "adam"}, 2),
        ({"optimizer": "adamw"}, 2),
    ],
)
def test_an_optimizer_takes_its_slots_of_memory(keys, slots):
    ratio = Compression(compression_ratio=1.0)
    assert asked(ratio, local=Local(**keys)).optimizer_slots == slots


@pytest.mark.parametrize(
    ("held", "layers", "base"),
    [
        (None, LAYOUT.names, NO_ROUND),
        (0, ("body", "head"), 0),
        (1, ("head",), 1),
        (2, (), 2),
        (7, LAYOUT.names, NO_ROUND),
    ],
)
def test_a_client_is_sent_what_it_lacks(held, layers, base):
    assert desk().shipment(client(held_version=held), published()) == Shipment(layers, base)


def test_with_a_dense_downlink_everybody_is_sent_everything():
    expected = Shipment(LAYOUT.names)
    assert desk("dense").shipment(client(held_version=2), published()) == expected


def test_an_order_says_what_was_accepted_last():
    accepted = client(accepted=(4, "digest"), envelope_bytes=777)
    order = desk().order(accepted, PLAN, published(), 5, Shipment(("head",), 1))
    assert (order.accepted_round, order.accepted_digest) == (4, "digest")
    assert (order.round_number, order.device_id, order.envelope_bytes) == (5, "b0", 777)
    assert (order.model_version, order.base_version) == (2, 1)
    assert order.fingerprint == LAYOUT.fingerprint
    assert Plan.from_json(json.loads(order.plan)) == PLAN


def test_an_order_to_a_client_of_which_nothing_was_accepted_says_so():
    order = desk().order(client(), PLAN, published(), 1, Shipment(LAYOUT.names))
    assert (order.accepted_round, order.accepted_digest) == (NO_ROUND, NO_TEXT)


def test_clients_that_lack_the_same_layers_share_one_array_but_no_order():
    model = published()
    parcels = Parcels(model)
    contents = [
        parcels.content(
            desk().order(client(), PLAN, model, number, Shipment(LAYOUT.names)), Shipment(layers)
        )
        for number, layers in [(1, ("body",)), (2, ("body",)), (3, ("head",))]
    ]
    first, second, third = contents
    assert first["model"] is second["model"]
    assert first["model"] is not third["model"]
    assert first["order"] is not second["order"]
    first["order"]["round_number"] = 99
    assert second["order"]["round_number"] == 2
    message = Message(third, 1, MessageType.TRAIN)
    assert unpacked(message.content, "model", MODEL_FORMAT) == model.blob(("head",))
    assert parcels.model_bytes(Shipment(("head",))) == len(model.blob(("head",)))


# ---- packets


@pytest.mark.parametrize(
    ("held", "shipment"),
    [
        (None, Shipment(LAYOUT.names)),
        (0, Shipment((), 0, by_packets=True)),
        (1, Shipment((), 1, by_packets=True)),
        (2, Shipment((), 2)),
        (7, Shipment(LAYOUT.names)),
    ],
)
def test_a_client_is_sent_the_packets_that_it_lacks(held, shipment):
    """8-bit packets of 200 and 50 values, where the layers would have 1,000 bytes."""
    model = published(PacketRule(CodecSettings("dense", 8), 2_000, flushes=False))
    assert desk("quantised").shipment(client(held_version=held), model) == shipment


def test_a_client_is_sent_the_layers_where_its_packets_are_larger():
    """32-bit packets are the layers with a header."""
    model = published(PacketRule(CodecSettings("dense", 32), 4_000, flushes=False))
    assert desk("quantised").shipment(client(held_version=0), model) == Shipment(
        ("body", "head"), 0
    )


def test_clients_that_lack_the_same_packets_share_one_array():
    model = published(PacketRule(CodecSettings("dense", 8), 2_000, flushes=False))
    parcels = Parcels(model)
    from_0, from_1 = (Shipment((), held, by_packets=True) for held in (0, 1))
    contents = [
        parcels.content(desk().order(client(), PLAN, model, 3, shipment), shipment)
        for shipment in (from_0, from_0, from_1)
    ]
    assert contents[0]["packets"] is contents[1]["packets"]
    assert contents[0]["packets"] is not contents[2]["packets"]
    assert "model" not in contents[0]
    message = Message(contents[2], 1, MessageType.TRAIN)
    assert unpacked(message.content, "packets", PACKETS_FORMAT) == model.packets(1)
    assert parcels.model_bytes(from_1) == len(model.packets(1))


def test_packets_and_layers_do_not_get_mixed_up():
    model = published(PacketRule(CodecSettings("dense", 8), 2_000, flushes=False))
    parcels = Parcels(model)
    by_packets, by_layers = Shipment((), 1, by_packets=True), Shipment((), 1)
    order = desk().order(client(), PLAN, model, 3, by_packets)
    assert set(parcels.content(order, by_packets)) == {"order", "packets"}
    assert set(parcels.content(order, by_layers)) == {"order", "model"}


def test_an_order_names_the_model_that_the_client_must_come_to_unless_it_brings_all_of_it():
    model = published()
    orders = [
        desk().order(client(), PLAN, model, 3, shipment)
        for shipment in (Shipment(LAYOUT.names), Shipment(("head",), 1))
    ]
    assert [order.model_digest for order in orders] == [NO_TEXT, model.digest]


# ---- what bounds a round


def test_a_ratio_that_leaves_no_room_for_the_float_buffers_is_refused():
    """1,000 parameters and 300 floats of buffers: 1,200 bytes of them, in every packet."""
    layer = Layer(
        "norm",
        (
            TensorSpec("norm.weight", (1000,), "float32"),
            TensorSpec("norm.mean", (300,), "float32", "buffer"),
        ),
    )
    smallest = EMPTY_PACKET_BYTES + 16
    with pytest.raises(ConfigError) as caught:
        asked(Compression(compression_ratio=5.0), layout=Layout("buffered", (layer,)))
    assert str(caught.value) == (
        "compression.compression-ratio: 5 leaves 1040 of the 5200 bytes of a dense update; float "
        f"buffers travel whole, so a packet of all layers has {1200 + smallest} or more; lower the "
        "ratio"
    )
    assert asked(Compression(compression_ratio=4.0), layout=Layout("buffered", (layer,)))


@pytest.mark.parametrize(
    ("wanted", "plain", "buffered"),
    [
        ("never", (1,), (1,)),
        ("without-batch-norm", (1, 2, 4, 8, 10), (1,)),
        ("always", (1, 2, 4, 8, 10), (1, 2, 4, 5)),
    ],
)
def test_batches_may_be_split_where_the_strategy_allows_it(wanted, plain, buffered):
    """Statistics of a single example would be none, so parts have two where there are any."""
    local = Local(batch_size=10, micro_batches=wanted)
    ratio = Compression(compression_ratio=1.0)
    assert asked(ratio, local).splits == plain
    assert asked(Compression(mode="dense"), local, with_buffers()).splits == buffered


def test_limits_of_a_round_are_absent_unless_they_are_set():
    found = limits(LAYOUT, Clients(), Compression(compression_ratio=1.0), Local())
    assert (found.flops_per_round, found.upload_bytes_per_round) == (None, None)
    assert found.energy_j_per_round is None
    per_round = RoundLimits(flops_per_round=1e9, upload_bytes_per_round=500, energy_j_per_round=2.0)
    found = limits(LAYOUT, Clients(), Compression(compression_ratio=1.0), Local(), per_round)
    assert (found.flops_per_round, found.upload_bytes_per_round) == (1e9, 500)
    assert found.energy_j_per_round == 2.0


def test_watts_are_looked_up_only_where_joules_are_limited_and_the_profile_ships():
    none = asked(Compression(compression_ratio=1.0))
    joules = replace(none, energy_j_per_round=1.0)
    assert board_for(none, "rpi-4b-4gb") is None
    assert board_for(joules, "rpi-4b-4gb") == load_board("rpi-4b-4gb")
    assert board_for(joules, "../../etc/passwd") is None
