"""What the encoder writes its own decoder reads, whatever the encoder is asked for."""

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compression import EMPTY_PACKET_BYTES, add, decode, encode, subtract
from fedfreeze.errors import PacketError
from tests.unit.compression import reference_decoder
from tests.unit.compression.random_cases import case

# `make fuzz` asks for many more.
CASES = int(os.environ.get("FEDFREEZE_CASES", "300"))


def bits(arrays):
    return {name: array.tobytes() for name, array in arrays.items()}


def sent(drawn):
    """What became of a case; None where it was refused as the documentation says."""
    documented = []
    if drawn.options["settings"].mode == "dense":
        documented.append("dense packet: expected at most")
    if "importance" in drawn.options:
        documented.append("packet: expected values of '")
    try:
        return encode(drawn.update, drawn.layout, drawn.layers, **drawn.options)
    except PacketError as error:
        if not str(error).startswith(tuple(documented)):
            raise
        return None


@settings(max_examples=CASES, deadline=None)
@given(st.integers(0, 2**63 - 1))
def test_a_packet_is_within_its_budget_and_decodes_to_what_its_sender_says(seed):
    drawn = case(seed)
    before = bits(drawn.update)
    found = sent(drawn)
    assert bits(drawn.update) == before
    if found is None:
        return
    assert len(found.packet) <= max(drawn.options["budget_bytes"], EMPTY_PACKET_BYTES)
    assert sent(drawn).packet == found.packet

    positions = drawn.options.get("positions")
    most = len(found.packet)
    received = decode(found.packet, drawn.layout, max_bytes=most, positions=positions)
    assert bits(received.update) == bits(found.decoded)
    layers, number, expected = reference_decoder.decode(found.packet, drawn.layout, positions)
    assert received.layers == layers == (() if found.empty else drawn.layout.ordered(drawn.layers))
    assert received.round_number == number == drawn.options["round_number"]
    for name, array in received.update.items():
        exact = np.array(expected[name], np.float32).reshape(array.shape)
        assert array.tobytes() == exact.tobytes(), name


@settings(max_examples=CASES, deadline=None)
@given(st.integers(0, 2**63 - 1))
def test_what_arrives_and_what_is_left_are_the_update(seed):
    drawn = case(seed)
    found = sent(drawn)
    if found is None:
        return
    covered = [t.name for n in drawn.layers for t in drawn.layout[n].tensors if t.travels]
    update = {name: drawn.update[name] for name in covered}
    left = subtract(update, found.decoded)
    total = add(found.decoded, left)
    for name, array in update.items():
        exact = array.astype(np.float64)
        away = np.abs(exact - found.decoded.get(name, 0))
        # Half a unit in the last place of the difference, then of the sum.
        bound = 2.0**-24 * (away + np.abs(exact)) * (1 + 1e-6) + 2.0**-149
        assert (np.abs(total[name] - exact) <= bound).all(), name


@pytest.mark.parametrize("seed", range(3))
def test_a_case_is_made_of_its_seed_alone(seed):
    one, other = case(seed), case(seed)
    assert bits(one.update) == bits(other.update)
    assert repr(one.options) == repr(other.options)
