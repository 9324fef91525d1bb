import struct

import numpy as np
import pytest

from compression import CodecSettings, encode
from fedfreeze.errors import LayoutError, PacketError, ProtocolError
from strategies.chain import MOST_PACKETS, Chain, caught_up, joined, parted
from tests.unit.strategies.samples import constant, stack

LAYOUT = stack(a=2, b=3)


def packet(version, value=1.0, layers=("a", "b"), layout=LAYOUT):
    """Moves every value of some layers by ``value``, exactly."""
    update = {name: array.astype(np.float32) for name, array in constant(layout, value).items()}
    return encode(
        update,
        layout,
        layers,
        budget_bytes=1000,
        round_number=version,
        settings=CodecSettings("dense", 32),
    ).packet


def refusal(error, call, *args, **keys):
    with pytest.raises(error) as caught:
        call(*args, **keys)
    return str(caught.value)


def test_a_chain_leads_from_any_version_that_it_still_has_the_packets_of():
    chain = Chain(most_bytes=100)
    for version, one in enumerate((b"one", b"two", b"three"), start=1):
        chain.append(version, one)
    assert chain.since(0, 3) == (b"one", b"two", b"three")
    assert chain.since(2, 3) == (b"three",)
    assert chain.since(3, 3) == ()


@pytest.mark.parametrize(("held", "version"), [(-1, 2), (2, 3), (3, 2)])
def test_nothing_leads_from_before_its_beginning_or_beyond_its_end(held, version):
    chain = Chain(most_bytes=100)
    chain.append(1, b"one")
    chain.append(2, b"two")
    assert chain.since(held, version) is None


def test_the_oldest_packets_are_dropped_when_all_of_them_are_larger_than_the_model():
    """Each takes 4 bytes for its length beside its own."""
    chain = Chain(most_bytes=30)
    for version in range(1, 5):
        chain.append(version, bytes(6))
    assert list(chain.packets) == [2, 3, 4]
    chain.append(5, bytes(26))
    assert list(chain.packets) == [5]
    chain.append(6, bytes(27))
    assert list(chain.packets) == []


def test_no_more_packets_are_kept_than_a_client_takes():
    chain = Chain(most_bytes=10**6)
    for version in range(1, MOST_PACKETS + 6):
        chain.append(version, b"")
    assert list(chain.packets) == list(range(6, MOST_PACKETS + 6))


def test_packets_that_were_joined_are_parted_again():
    packets = [b"one", b"", b"three"]
    assert parted(joined(packets), 3, max_bytes=5) == packets


@pytest.mark.parametrize("count", [-1, 0, MOST_PACKETS + 1, 2**70])
def test_a_number_of_packets_that_no_chain_has_is_refused_before_any_work(count):
    assert refusal(ProtocolError, parted, b"", count, max_bytes=9) == (
        f"expected from 1 to {MOST_PACKETS} packets to reach the server's version, got {count}"
    )


def test_a_packet_that_is_missing_is_refused():
    assert refusal(ProtocolError, parted, joined([b"one"]), 2, max_bytes=9) == (
        "expected 2 packets of the model, got 1"
    )


def test_a_packet_too_many_is_refused():
    assert refusal(ProtocolError, parted, joined([b"one", b"two"]), 1, max_bytes=9) == (
        "expected 1 packets of the model, got 7 bytes behind them"
    )


def test_a_torn_packet_is_refused():
    assert refusal(ProtocolError, parted, joined([b"one", b"two"])[:-1], 2, max_bytes=9) == (
        "packet 2 of 2 of the model: expected 3 bytes, got 2"
    )


def test_a_packet_over_the_budget_is_refused_by_its_length_alone():
    data = struct.pack("<I", 2**32 - 1)
    assert refusal(ProtocolError, parted, data, 1, max_bytes=9) == (
        "packet 1 of 1 of the model: expected at most 9 bytes, its length says 4294967295"
    )


def test_packets_are_added_one_after_another_and_the_model_before_stays():
    model = constant(LAYOUT, 1.0)
    packets = [packet(4, 0.5), packet(5, 0.25, ("b",))]
    after = caught_up(model, packets, 3, LAYOUT, max_bytes=1000)
    assert {name: array.tolist() for name, array in after.items()} == {
        "a.w": [1.5] * 2,
        "b.w": [1.75] * 3,
    }
    assert model["a.w"].tolist() == [1, 1]


def test_the_packet_of_another_version_is_refused():
    packets = [packet(4), packet(6)]
    assert refusal(
        ProtocolError, caught_up, constant(LAYOUT, 1.0), packets, 3, LAYOUT, max_bytes=1000
    ) == ("expected the packet of version 5 of the model, got that of version 6")


def test_a_packet_that_leads_out_of_the_finite_numbers_is_refused():
    model = constant(LAYOUT, 3e38)
    assert refusal(
        ProtocolError, caught_up, model, [packet(1, 3e38)], 0, LAYOUT, max_bytes=1000
    ) == ("the packet of version 1 takes 'a.w' out of the finite numbers")


def test_damage_is_found_by_the_codec():
    damaged = bytearray(packet(1))
    damaged[-1] ^= 1
    with pytest.raises(PacketError):
        caught_up(constant(LAYOUT, 1.0), [bytes(damaged)], 0, LAYOUT, max_bytes=1000)


def test_a_packet_of_another_model_is_refused():
    other = packet(1, layout=stack(a=2, b=4))
    with pytest.raises(PacketError):
        caught_up(constant(LAYOUT, 1.0), [other], 0, LAYOUT, max_bytes=1000)


def test_a_stored_model_that_lacks_a_tensor_is_refused():
    part = {"a.w": np.zeros(2, np.float32)}
    assert refusal(LayoutError, caught_up, part, [packet(1)], 0, LAYOUT, max_bytes=1000) == (
        "expected tensor 'b.w', got none of that name"
    )
