import numpy as np
import pytest

from compression import EMPTY_PACKET_BYTES, decode, encode
from compression.shared_mask import WHOLE_SHARE
from strategies.mask_rule import MaskRule
from tests.unit.compression.sample_layouts import heavy_update, line, mixed, network

AMPLE = 10**6


def test_with_an_ample_budget_the_share_is_the_density():
    layout = network()
    for density in (1.0, 0.25, 1e-6):
        share = MaskRule(0, density).mask(layout, layout.names, AMPLE, 1).share
        assert share == round(density * WHOLE_SHARE)
    assert MaskRule(0, 1e-12).mask(layout, layout.names, AMPLE, 1).share == 1


def test_without_a_density_an_ample_budget_takes_every_value():
    assert MaskRule(0, None).mask(line(50), ["all"], AMPLE, 1).share == WHOLE_SHARE


@pytest.mark.parametrize("density", [None, 0.9])
def test_a_small_budget_holds_two_values_in_three_bits(density):
    # A frame of 24 bytes, one of layers, a step and a checksum, one byte and five for the tensor:
    # 99 bytes are left of 138, for 528 values.
    found = MaskRule(0, density).mask(line(1000), ["all"], 138, 1)
    assert found.share == WHOLE_SHARE * 528 // 1000


def test_float_buffers_travel_whole_and_leave_less():
    # A body of 3000 values in one tensor; a stem of 1001 in two, and stem.mean of eight.
    without = MaskRule(0, None).mask(mixed(), ["body"], 250, 1).share
    with_ = MaskRule(0, None).mask(mixed(), ["stem"], 250, 1).share
    assert without * 3000 // WHOLE_SHARE == (250 - 25 - 14) * 16 // 3
    assert with_ * 1001 // WHOLE_SHARE == (250 - 25 - 19 - 32) * 16 // 3 - 1


@pytest.mark.parametrize("budget_bytes", [0, EMPTY_PACKET_BYTES, 39])
def test_a_budget_without_room_for_a_value_has_no_mask(budget_bytes):
    assert MaskRule(0, 0.5).mask(line(1000), ["all"], budget_bytes, 1).share == 0


def test_seed_and_round_go_into_the_mask():
    found = MaskRule(7, 0.5).mask(line(9), ["all"], AMPLE, 12)
    assert (found.seed, found.round_number) == (7, 12)


@pytest.mark.parametrize(
    "layout", [mixed(), network(), line(5000)], ids=["mixed", "network", "line"]
)
@pytest.mark.parametrize("density", [None, 0.02])
def test_what_the_rule_lets_in_fits_the_budget(layout, density):
    update = heavy_update(layout, 0)
    positions_sent = 0
    for budget_bytes in range(EMPTY_PACKET_BYTES, 1500, 7):
        mask = MaskRule(3, density).mask(layout, layout.names, budget_bytes, budget_bytes)
        positions = mask.positions(layout, layout.names)
        sent = encode(
            update,
            layout,
            layout.names,
            budget_bytes=budget_bytes,
            round_number=budget_bytes,
            positions=positions,
        )
        count = sum(len(own) for own in positions.values())
        assert sent.kept == count, budget_bytes
        assert sent.empty == (count == 0)
        assert len(sent.packet) <= budget_bytes
        received = decode(sent.packet, layout, max_bytes=budget_bytes, positions=positions)
        for name, array in received.update.items():
            if layout.tensors[name].kind == "parameter":
                assert not np.delete(array.reshape(-1), positions[name]).any()
        positions_sent += count
    assert positions_sent
