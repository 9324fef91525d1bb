import struct
import zlib

import numpy as np
import pytest

from compression import CodecSettings, decode, encode
from fedfreeze.errors import PacketError
from tests.unit.compression.sample_layouts import heavy_update, line, mixed


def test_shared_positions_save_the_bytes_of_the_indices():
    layout = line(20_000)
    update = heavy_update(layout, 0)
    mask = {"w": np.sort(np.argsort(-np.abs(update["w"]))[:1000])}
    size = {"budget_bytes": 20_000, "round_number": 0, "step": float(np.abs(update["w"]).max())}
    shared = encode(update, layout, ["all"], positions=mask, **size)
    # One sign bit for each value, no magnitude and no index: a step beyond all values.
    assert shared.kept == 1000
    assert len(shared.packet) < 1000 / 8 + 60


def test_values_at_shared_positions_arrive_within_half_a_step_even_when_small():
    layout = line(500)
    update = heavy_update(layout, 3)
    mask = {"w": np.arange(0, 500, 7)}
    sent = encode(
        update, layout, ["all"], budget_bytes=5000, round_number=0, positions=mask, step=0.01
    )
    error = np.abs(sent.decoded["w"] - update["w"])[mask["w"]]
    beyond_first = np.abs(update["w"][mask["w"]]) >= 0.01
    assert (error[beyond_first] <= 0.005 * (1 + 1e-3)).all()
    assert (error[~beyond_first] < 0.01).all()


def test_a_budget_below_one_bit_for_each_shared_position_gives_the_empty_packet():
    layout = line(500)
    sent = encode(
        heavy_update(layout, 0),
        layout,
        ["all"],
        budget_bytes=80,
        round_number=0,
        positions={"w": np.arange(500)},
    )
    assert sent.empty
    assert sent.decoded == {}


@pytest.mark.parametrize("wrong", [[3, 3], [4, 2], [-1], [500], [[1]], [0.5]])
def test_positions_that_are_no_subset_are_refused(wrong):
    layout, chosen = line(500), np.array(wrong)
    with pytest.raises(PacketError) as error:
        encode(
            heavy_update(layout, 0),
            layout,
            ["all"],
            budget_bytes=800,
            round_number=0,
            positions={"w": chosen},
        )
    assert str(error.value) == (
        "packet: expected ascending shared positions below 500 for tensor 'w', "
        f"got {chosen.dtype}{list(chosen.shape)} that are not; "
        "sort them, drop repeated ones, and count from 0 within the tensor"
    )


def sent_over(mask):
    layout = mixed()
    update = heavy_update(layout, 0)
    return layout, encode(
        update, layout, ["body"], budget_bytes=900, round_number=0, positions=mask
    )


def test_a_receiver_with_another_mask_notices():
    theirs, ours = (zlib.crc32(struct.pack("<3q", 1, 2, last)) for last in (3, 4))
    layout, sent = sent_over({"body.weight": np.array([1, 2, 3])})
    with pytest.raises(PacketError) as error:
        decode(sent.packet, layout, max_bytes=900, positions={"body.weight": np.array([1, 2, 4])})
    assert str(error.value) == (
        f"packet: expected shared positions with checksum {ours:08x}, got {theirs:08x}; "
        "both ends must derive the same mask; compare its round and seed"
    )


def test_a_receiver_without_the_mask_notices():
    layout, sent = sent_over({"body.weight": np.array([1, 2, 3])})
    with pytest.raises(PacketError) as error:
        decode(sent.packet, layout, max_bytes=900)
    assert str(error.value) == (
        "packet: expected positions of its own, got kind SHARED; "
        "both ends must agree on whether positions are shared"
    )


def test_a_packet_cannot_leave_the_mask_that_its_receiver_demands():
    layout, sent = sent_over(None)
    with pytest.raises(PacketError) as error:
        decode(sent.packet, layout, max_bytes=900, positions={"body.weight": np.array([1])})
    assert str(error.value) == (
        "packet: expected shared positions, got kind SPARSE; "
        "both ends must agree on whether positions are shared"
    )


def test_a_density_beside_shared_positions_is_refused():
    layout = line(500)
    with pytest.raises(PacketError) as error:
        encode(
            heavy_update(layout, 0),
            layout,
            ["all"],
            budget_bytes=800,
            round_number=0,
            positions={"w": np.arange(90)},
            settings=CodecSettings(density=0.1),
        )
    assert str(error.value) == (
        "packet: expected shared positions or a density, got both; "
        "all shared positions are sent: leave it out"
    )


def test_a_mask_of_no_position_gives_the_empty_packet():
    layout = line(500)
    size = {"budget_bytes": 800, "round_number": 0}
    assert encode(heavy_update(layout, 0), layout, ["all"], positions={}, **size).empty
    # Of zeros nothing is held back, so the layer is covered.
    zeros = {"w": np.zeros(500, np.float32)}
    assert not encode(zeros, layout, ["all"], positions={}, **size).empty


@pytest.mark.parametrize("bits", [1, 2, 3, 6])
def test_shared_positions_with_fixed_bits_have_the_best_step_for_their_cells(bits):
    layout = line(20_000)
    update = heavy_update(layout, 4)
    own = np.arange(0, 20_000, 9)
    sent = encode(
        update,
        layout,
        ["all"],
        budget_bytes=20_000,
        round_number=0,
        positions={"w": own},
        settings=CodecSettings(value_bits=bits),
    )
    sizes, cells = np.abs(update["w"][own].astype(float)), 2 ** (bits - 1)
    assert sent.kept == len(own)
    assert len(np.unique(np.abs(sent.decoded["w"][own]))) <= cells
    least = np.inf
    for step in np.linspace(0, sizes.max() / cells, 3000)[1:]:
        cell = np.minimum(sizes // step, cells - 1)
        restored = (cell + 0.5) * step
        restored[cell == 0] = np.clip(sizes[cell == 0].mean(), 0, step)
        least = min(least, float(((sizes - restored) ** 2).sum()))
    error = float(((update["w"] - sent.decoded["w"])[own].astype(float) ** 2).sum())
    assert error <= 1.05 * least
