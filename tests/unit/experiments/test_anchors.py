"""The codecs that ours is compared with, against packets written bit by bit."""

import importlib.util
import math
from pathlib import Path

import numpy as np
import pytest

PATH = Path(__file__).parents[3] / "experiments" / "codec" / "anchors.py"
_spec = importlib.util.spec_from_file_location("anchors", PATH)
anchors = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(anchors)


def golomb_string(positions, size):
    """Sattler et al. (2019), algorithm 3: distances of 1 or more, a bit for each sign."""
    p = len(positions) / size
    golden = (math.sqrt(5) + 1) / 2
    b = 1 + math.floor(math.log2(math.log(golden - 1) / math.log(1 - p)))
    bits, last = "", -1
    for position in positions:
        quotient, remainder = divmod(position - last - 1, 2**b)
        bits += "1" * quotient + "0" + format(remainder, f"0{b}b") + "+"
        last = position
    return bits


def leb128_string(positions):
    out, last = b"", -1
    for position in positions:
        gap, last = position - last - 1, position
        while gap > 0x7F:
            out += bytes([gap & 0x7F | 0x80])
            gap >>= 7
        out += bytes([gap, 0])  # and a value
    return out


@pytest.mark.parametrize(("size", "kept"), [(1000, 10), (40_000, 37), (5_000, 1_000)])
def test_sizes_are_those_of_packets_written_bit_by_bit(size, kept):
    positions = np.sort(np.random.default_rng(0).choice(size, kept, replace=False))
    scale_bits = 32
    expected = len(golomb_string(positions.tolist(), size)) + scale_bits
    assert anchors.stc_bits(positions, size) == expected
    assert anchors.leb128_bits(positions) == 8 * len(leb128_string(positions.tolist())) + scale_bits


def test_errors_are_those_of_what_is_restored():
    flat = np.random.default_rng(1).standard_normal(2_000).astype(np.float32)
    energy = float((flat.astype(float) ** 2).sum())
    found = anchors.Anchors(flat)
    order = np.argsort(-np.abs(flat), kind="stable")

    kept = order[: 160 // 8]
    restored = np.zeros(2_000)
    restored[kept] = flat[kept]
    assert found.int32_fp32(160) == pytest.approx(((flat - restored) ** 2).sum() / energy)

    error, needed = found.stc(160), found.stc_bytes(found.stc(160))
    best = min(
        ((flat - ternary(flat, order[:k])) ** 2).sum()
        for k in range(1, 2_000)
        if anchors.stc_bits(np.sort(order[:k]), 2_000) <= 8 * 160
    )
    assert error == pytest.approx(best / energy)
    assert needed <= 160
    assert found.stc_bytes(0.0) is None


def ternary(flat, kept):
    restored = np.zeros(len(flat))
    restored[kept] = np.sign(flat[kept]) * np.abs(flat[kept]).mean()
    return restored
