"""The literal mode against the text's equations, computed here with numpy alone."""

import math

import numpy as np
import pytest

from compression import CodecSettings, decode, encode
from compression.literal import quantised
from compression.packet import Kind, close
from fedfreeze.errors import PacketError
from tests.unit.compression.sample_layouts import heavy_update, line, mixed

LITERAL = CodecSettings("literal")
DAMAGED = "; the packet is damaged, or another codec wrote it"


def sent(update, layout, budget_bytes, ranges=None, **options):
    settings = CodecSettings("literal", **options)
    return encode(
        update,
        layout,
        layout.names,
        budget_bytes=budget_bytes,
        round_number=3,
        settings=settings,
        ranges=ranges or {},
    )


def test_the_example_of_the_text():
    # Values .9, -.35, .1: s = .9 / 7, q = 7, -3, 1; what is left is 0, .035714, -.028571.
    values = np.array([0.9, -0.35, 0.1], np.float32)
    part = quantised(values, np.arange(3))
    assert (part.width, part.whole.tolist()) == (4, [7, -3, 1])
    assert np.allclose(values - part.values, [0, 0.0357142857, -0.0285714286], atol=1e-7)


@pytest.mark.parametrize("seed", range(4))
def test_the_width_is_the_least_whose_expected_error_is_a_tenth(seed):
    values = np.random.default_rng(seed).laplace(size=300).astype(np.float32) ** (1 + 2 * seed)
    part = quantised(values, np.arange(300))

    def error(bits):
        scale = np.abs(values).max() / (2 ** (bits - 1) - 1)
        return math.sqrt(len(values)) * scale / (math.sqrt(12) * np.linalg.norm(values))

    assert part.width == next((b for b in (2, 4, 8) if error(b) <= 0.1), 16)
    assert np.array_equal(part.whole, np.rint(values.astype(float) / part.scale))


@pytest.mark.parametrize(
    ("lately", "width"), [(0.0, 4), (0.9, 4), (1.35, 4), (1.37, 8), (24.6, 8), (24.7, 16)]
)
def test_a_layer_that_was_larger_lately_has_more_bits(lately, width):
    # |v| = sqrt(.9^2 + .35^2 + .1^2) = .970824; with 7, 127 and 32,767 whole numbers to a side,
    # sqrt(3) R / sqrt(12) <= .0970824 x 7 holds up to R = 1.359, and x 127 up to 24.66.
    values = np.array([0.9, -0.35, 0.1], np.float32)
    part = quantised(values, np.arange(3), lately)
    assert part.width == width
    # The scale is still that of the values which are sent.
    assert part.scale == pytest.approx(0.9 / (2 ** (width - 1) - 1))


def test_the_widths_of_layers_follow_their_ranges():
    layout = mixed()
    update = {name: np.sign(array) for name, array in heavy_update(layout, 2).items()}
    # Values of one size, of which 2 bits with s = 1 lose nothing, are expected to lose
    # s / sqrt(12) each: 4 bits have s = 1/7, and 8 bits s = R/127.
    alone = sent(update, layout, 10**5)
    assert alone.widths == {"stem": 4, "body": 4, "head": 4}
    after = sent(update, layout, 10**5, ranges={"body": 30.0, "head": 0.1, "stem": 1.0})
    assert after.widths == {"stem": 4, "body": 8, "head": 4}
    for name, array in update.items():
        assert after.decoded[name] == pytest.approx(array)


def test_layers_of_which_nothing_is_sent_have_no_width():
    layout = mixed()
    update = {name: np.zeros_like(array) for name, array in heavy_update(layout, 2).items()}
    update["body.weight"][0, 0] = 1
    assert sent(update, layout, 10**4).widths == {"body": 4}


@pytest.mark.parametrize("budget_bytes", [60, 100, 300, 1000, 3000, 9000])
def test_the_largest_values_are_kept_as_far_as_the_budget_goes(budget_bytes):
    layout = line(4000)
    update = heavy_update(layout, 1)
    came = sent(update, layout, budget_bytes)
    assert len(came.packet) <= budget_bytes
    order = np.argsort(-np.abs(update["w"]), kind="stable")
    kept = order[: came.kept]
    rest = np.delete(came.decoded["w"], kept)
    assert not rest.any()
    # One value more takes at most 1 byte of gap, 16 bits, and maybe a wider code for all.
    if came.kept < 4000:
        more = sent(update, layout, 10**6, density=(came.kept + 1) / 4000)
        assert len(more.packet) > budget_bytes


def test_a_density_is_kept_if_it_fits():
    layout = line(4000)
    came = sent(heavy_update(layout, 1), layout, 10**6, density=0.01)
    assert came.kept == 40


@pytest.mark.parametrize("budget_bytes", range(0, 120, 7))
def test_every_small_budget_is_kept(budget_bytes):
    layout = mixed()
    came = sent(heavy_update(layout, 2), layout, budget_bytes)
    assert len(came.packet) <= max(budget_bytes, 24)


def test_zeros_cover_their_layers_and_keep_nothing():
    layout = line(100)
    came = sent({"w": np.zeros(100, np.float32)}, layout, 90)
    assert (came.empty, came.kept) == (False, 0)


def refused(body):
    layout = line(10)
    with pytest.raises(PacketError) as caught:
        decode(close(Kind.LITERAL, layout, layout.names, body, 0), layout, max_bytes=1000)
    return str(caught.value)


ONE = b"\x00\x00\x80\x3f"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"\x0b", "expected a count up to 10, got 11"),
        (b"\x02" + b"\x03" + ONE + b"\0\0\xff", "expected a width of 2, 4, 8 or 16 bits, got 3"),
        (b"\x01" + b"\x02" + ONE + b"\x0a\x03", "expected positions inside their layer, got one"),
        (
            b"\x01" + b"\x02" + ONE + b"\x00\x07",
            "expected zero bits at the end of a layer,",
        ),
        (b"\x01" + b"\x02" + ONE + b"\x00\x00", "expected whole numbers from -1 to 1, not all 0,"),
        (b"\x01" + b"\x02" + ONE + b"\x00\x02", "expected whole numbers from -1 to 1, not all 0,"),
        (b"\x00\x00", "expected the end of the body, got 1 more bytes"),
        (b"\x01\x02" + b"\0\0\0\0\0\x03", "expected a step or scale that is finite, positive"),
    ],
)
def test_bodies_that_no_encoder_writes_are_refused(body, said):
    assert refused(body).startswith(f"packet: {said}")


def test_positions_and_steps_are_refused():
    with pytest.raises(PacketError) as caught:
        encode(
            heavy_update(line(9), 0),
            line(9),
            ["all"],
            budget_bytes=99,
            round_number=0,
            settings=LITERAL,
            step=1.0,
        )
    assert str(caught.value) == (
        "packet: expected no positions and no step, got some; mode literal has no use for them"
    )
