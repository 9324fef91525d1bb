import numpy as np
import pytest

from compression import EMPTY_PACKET_BYTES, CodecSettings
from fedfreeze.errors import ConfigError
from fedfreeze.layout import Layer, Layout, TensorSpec
from strategies.downlink import PacketRule, added, packet_rule
from strategies.tables import Compression
from tests.unit.strategies.samples import stack, with_buffers

LAYOUT = stack()  # 750 values in 4 layers


@pytest.mark.parametrize("downlink", ["dense", "delta"])
def test_dense_layers_need_no_rule(downlink):
    assert packet_rule(LAYOUT, Compression(downlink=downlink)) is None


def test_a_sparse_packet_is_the_dense_model_over_the_ratio():
    rule = packet_rule(LAYOUT, Compression(downlink="sparse", downlink_ratio=10))
    assert rule == PacketRule(CodecSettings("sparse"), 300, flushes=True)


def test_a_quantised_packet_has_a_byte_a_parameter_and_room_for_its_header_and_scales():
    rule = packet_rule(LAYOUT, Compression(downlink="quantised"))
    assert rule == PacketRule(CodecSettings("dense", 8), 750 + 1024 + 4 * 16, flushes=False)


def test_buffers_are_32_bits_wide_in_a_quantised_packet():
    """8 parameters, 2 values of a running mean, and a counter that never travels."""
    rule = packet_rule(with_buffers(), Compression(downlink="quantised"))
    assert rule.budget_bytes == 8 + 2 * 4 + 1024 + 4 * 16


def test_a_ratio_that_leaves_no_packet_is_refused_with_the_fix():
    with pytest.raises(ConfigError) as caught:
        packet_rule(LAYOUT, Compression(downlink="sparse", downlink_ratio=75))
    assert str(caught.value) == (
        "compression.downlink-ratio: 75 leaves 40 of the 3000 bytes of the dense model; a packet "
        f"that carries a value has {EMPTY_PACKET_BYTES + 16 + 4} or more; lower the ratio"
    )


def test_a_ratio_that_leaves_no_room_for_running_statistics_is_refused():
    """They travel whole, so the packet would be empty in every round and no board would learn."""
    layout = Layout(
        "norm",
        (
            Layer(
                "norm",
                (
                    TensorSpec("weight", (500,), "float32"),
                    TensorSpec("mean", (500,), "float32", "buffer"),
                ),
            ),
        ),
    )
    with pytest.raises(ConfigError) as caught:
        packet_rule(layout, Compression(downlink="sparse", downlink_ratio=2))
    assert str(caught.value) == (
        "compression.downlink-ratio: 2 leaves 2000 of the 4000 bytes of the dense model; a packet "
        f"that carries a value has {EMPTY_PACKET_BYTES + 16 + 2000 + 1} or more; lower the ratio"
    )


def test_the_sum_is_rounded_in_float32():
    """2^24 + 1 lies between two floats; the tie goes to the even one."""
    after = added(np.array([2**24, 1], np.float32), np.array([1, 0.5], np.float32))
    assert after.dtype == np.float32
    assert after.tolist() == [2**24, 1.5]


def test_a_tensor_keeps_its_dtype_and_a_scalar_stays_an_array():
    half = added(np.array(1, np.float16), np.array(2**-10, np.float32))
    assert (half.dtype, half.shape, half.tolist()) == (np.float16, (), 1 + 2**-10)
    double = added(np.array([1.0]), np.array([2**-40], np.float32))
    assert (double.dtype, double.tolist()) == (np.float64, [1 + 2**-40])
    assert isinstance(half, np.ndarray)
