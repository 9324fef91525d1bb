import numpy as np
import pytest

from compression import EMPTY_PACKET_BYTES, CodecSettings, decode, encode
from fedfreeze.errors import ConfigError, LayoutError, PacketError
from fedfreeze.layout import Layer, Layout, TensorSpec
from tests.unit.compression.sample_layouts import heavy_update, line, mixed


def error_share(update, decoded):
    """Squared error over squared norm."""
    off = sum(((update[n].astype(float) - decoded.get(n, 0)) ** 2).sum() for n in update)
    return off / sum((update[n].astype(float) ** 2).sum() for n in update)


@pytest.mark.parametrize("tail", ["normal", "laplace", "cubed"])
@pytest.mark.parametrize("budget_bytes", [300, 1000, 5000, 20_000])
def test_the_budget_is_filled_to_at_least_98_per_cent(tail, budget_bytes):
    layout, rng = line(40_000), np.random.default_rng(1)
    draw = {"normal": rng.normal, "laplace": rng.laplace}.get(tail, rng.laplace)
    values = draw(size=40_000) ** (3 if tail == "cubed" else 1)
    sent = encode(
        {"w": values.astype(np.float32)},
        layout,
        ["all"],
        budget_bytes=budget_bytes,
        round_number=0,
    )
    assert 0.98 * budget_bytes <= len(sent.packet) <= budget_bytes


@pytest.mark.parametrize("budget_bytes", range(120))
def test_every_small_budget_is_kept(budget_bytes):
    layout = mixed()
    sent = encode(
        heavy_update(layout, 2), layout, layout.names, budget_bytes=budget_bytes, round_number=0
    )
    assert len(sent.packet) <= max(budget_bytes, EMPTY_PACKET_BYTES)
    assert sent.empty == (sent.kept == 0)


@pytest.mark.parametrize(("power", "at_most"), [(1, 1.01), (3, 0.6)])
def test_the_error_beside_ternary_values_at_equal_bytes(power, at_most):
    # Sparse ternary compression (Sattler et al. 2019) with an ideal position code: top-k signs
    # with one mean magnitude, k as large as log2 C(n, k) + k bits allow. Nothing is to be won on
    # a light tail, much on a heavy one.
    n, bits = 40_000, 8 * 2500
    values = np.random.default_rng(5).laplace(size=n).astype(np.float32) ** power
    magnitudes = np.sort(np.abs(values))[::-1].astype(float)
    k = np.arange(1, n)
    cost = -k * np.log2(k / n) - (n - k) * np.log2(1 - k / n) + k
    k = int(k[cost <= bits].max())
    ternary = 1 - magnitudes[:k].sum() ** 2 / k / (magnitudes**2).sum()
    sent = encode({"w": values}, line(n), ["all"], budget_bytes=2500, round_number=0)
    assert error_share({"w": values}, sent.decoded) < at_most * ternary


def test_a_doubled_budget_never_makes_a_larger_error():
    layout = mixed()
    update = heavy_update(layout, 4)
    shares = [
        error_share(
            update,
            encode(update, layout, layout.names, budget_bytes=b, round_number=0).decoded,
        )
        for b in (100, 200, 400, 800, 1600, 3200, 6400, 12_800)
    ]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 0.2
    assert shares[-1] < 1e-4


def test_equal_values_are_sent_as_far_as_the_budget_goes_and_lowest_index_first():
    layout = line(5000)
    sent = encode(
        {"w": np.full(5000, 0.25, np.float32)},
        layout,
        ["all"],
        budget_bytes=90,
        round_number=0,
        settings=CodecSettings(affine=False),
    )
    assert 0.95 * 90 <= len(sent.packet) <= 90
    assert np.flatnonzero(sent.decoded["w"]).tolist() == list(range(sent.kept))
    assert np.abs(sent.decoded["w"][: sent.kept] - 0.25).max() < 0.25 / 100


def test_equal_values_of_one_sign_are_all_sent_from_a_zero_point():
    layout = line(5000)
    update = {"w": np.full(5000, -0.25, np.float32)}
    sent = encode(update, layout, ["all"], budget_bytes=90, round_number=0)
    assert sent.kept == 5000
    assert np.abs(sent.decoded["w"] + 0.25).max() < 0.25 / 100


def test_an_update_of_zeros_covers_its_layers_and_keeps_nothing():
    layout = line(100)
    sent = encode(
        {"w": np.zeros(100, np.float32)}, layout, ["all"], budget_bytes=90, round_number=0
    )
    assert (sent.empty, sent.kept) == (False, 0)
    assert decode(sent.packet, layout, max_bytes=90).layers == ("all",)
    assert sent.decoded["w"].tolist() == [0] * 100


def test_a_layer_of_which_nothing_was_kept_is_still_covered():
    layout = mixed()
    update = heavy_update(layout, 0)
    update["head.weight"] = np.zeros(30, np.float32)
    sent = encode(update, layout, ["body", "head"], budget_bytes=200, round_number=0)
    assert decode(sent.packet, layout, max_bytes=200).layers == ("body", "head")
    assert not sent.decoded["head.weight"].any()


def test_layers_that_are_not_listed_do_not_travel():
    layout = mixed()
    sent = encode(heavy_update(layout, 0), layout, ["head"], budget_bytes=900, round_number=0)
    assert set(sent.decoded) == {"head.weight", "head.none"}


def test_no_layers_make_the_empty_packet():
    sent = encode({}, mixed(), [], budget_bytes=900, round_number=0)
    assert (sent.empty, len(sent.packet)) == (True, EMPTY_PACKET_BYTES)


def test_no_layers_make_the_empty_packet_in_mode_dense_too():
    dense = CodecSettings(mode="dense")
    assert encode({}, mixed(), [], budget_bytes=0, round_number=0, settings=dense).empty


@pytest.mark.parametrize("bits", [8, 16])
def test_the_largest_float_survives_scaled_integers(bits):
    largest = np.finfo(np.float32).max
    sent = encode(
        {"w": np.array([largest, -largest, 0, 0], np.float32)},
        line(4),
        ["all"],
        budget_bytes=99,
        round_number=0,
        settings=CodecSettings("dense", bits),
    )
    assert np.allclose(sent.decoded["w"] / largest, [1, -1, 0, 0], rtol=2**-22, atol=0)


def test_buffers_that_bust_the_budget_alone_make_the_empty_packet():
    layout = mixed()
    sent = encode(heavy_update(layout, 0), layout, ["stem"], budget_bytes=56, round_number=0)
    assert sent.empty
    assert sent.decoded == {}
    assert sent.step is None


@pytest.mark.parametrize("shapes", [[()], [(0,), (2,)]])
def test_layers_of_buffers_alone_arrive(shapes):
    specs = [TensorSpec(f"b{n}", shape, "float32", "buffer") for n, shape in enumerate(shapes)]
    layout = Layout("buffers", (Layer("norm", tuple(specs)),))
    update = {spec.name: np.full(spec.shape, 0.1, np.float32) for spec in specs}
    sent = encode(update, layout, ["norm"], budget_bytes=60, round_number=0)
    assert not sent.empty
    received = decode(sent.packet, layout, max_bytes=60).update
    assert {name: a.tolist() for name, a in received.items()} == {
        name: a.tolist() for name, a in update.items()
    }


def test_float_buffers_arrive_bit_for_bit():
    layout = mixed()
    update = heavy_update(layout, 0)
    sent = encode(update, layout, ["stem"], budget_bytes=150, round_number=0)
    assert sent.decoded["stem.mean"].tobytes() == update["stem.mean"].tobytes()


def test_dense_32_bits_arrive_bit_for_bit():
    layout = mixed()
    update = heavy_update(layout, 0)
    dense = CodecSettings(mode="dense")
    sent = encode(update, layout, layout.names, budget_bytes=20_000, round_number=0, settings=dense)
    assert {n: a.tobytes() for n, a in sent.decoded.items()} == {
        n: a.tobytes() for n, a in update.items()
    }
    assert sent.kept == layout.parameter_count


def test_the_same_update_gives_the_same_bytes_in_any_memory_order():
    layout = mixed()
    update = heavy_update(layout, 0)
    turned = {n: np.array(a, ">f4", order="F") for n, a in reversed(update.items())}
    sizes = {"budget_bytes": 700, "round_number": 4}
    one = encode(update, layout, layout.names, **sizes)
    other = encode(turned, layout, layout.names[::-1], **sizes)
    assert one.packet == other.packet


def test_one_outlier_does_not_bury_the_rest_for_more_than_a_round():
    layout = line(1000)
    update = heavy_update(layout, 0, scale=1e-6)
    update["w"][17] = 1e30
    first = encode(update, layout, ["all"], budget_bytes=500, round_number=0)
    rest = {"w": update["w"] - first.decoded["w"]}
    assert abs(rest["w"][17]) < 1e30 / 2**8
    for number in range(1, 8):
        sent = encode(rest, layout, ["all"], budget_bytes=500, round_number=number)
        rest = {"w": rest["w"] - sent.decoded["w"]}
    assert np.abs(rest["w"]).max() < 1e-6 * 10


def test_subnormal_values_wait_for_larger_ones():
    layout = line(10)
    sent = encode(
        {"w": np.full(10, 1e-45, np.float32)}, layout, ["all"], budget_bytes=90, round_number=0
    )
    assert (sent.kept, sent.empty) == (0, False)


def test_a_fixed_step_is_used_as_it_is_and_the_budget_still_holds():
    layout = line(5000)
    update = heavy_update(layout, 0)
    ample = encode(update, layout, ["all"], budget_bytes=9000, round_number=0, step=0.5)
    tight = encode(update, layout, ["all"], budget_bytes=300, round_number=0, step=0.5)
    assert ample.step == tight.step == 0.5
    assert len(tight.packet) <= 300
    assert tight.kept < ample.kept
    kept = ample.decoded["w"] != 0
    # First-cell values lie within one step of their mean, others within half a step.
    assert np.abs(ample.decoded["w"] - update["w"])[kept].max() < 0.5


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_refused_by_name(bad):
    layout = mixed()
    update = heavy_update(layout, 0)
    update["body.weight"][7, 3] = bad
    with pytest.raises(PacketError) as error:
        encode(update, layout, layout.names, budget_bytes=900, round_number=0)
    assert str(error.value) == (
        "tensor 'body.weight': expected finite values, got NaN or infinity; "
        "training has diverged: lower the learning rate or clip gradients"
    )


def test_a_missing_tensor_is_refused_by_name():
    with pytest.raises(LayoutError) as error:
        encode({}, line(10), ["all"], budget_bytes=900, round_number=0)
    assert str(error.value) == (
        "tensor 'w': its layer is trained, but the update lacks it; "
        "an update holds every float tensor of every trained layer"
    )


@pytest.mark.parametrize(
    ("array", "came"),
    [(np.zeros(10), "float64[10]"), (np.zeros((10, 1), np.float32), "float32[10, 1]")],
)
def test_another_shape_or_dtype_is_refused_by_name(array, came):
    with pytest.raises(LayoutError) as error:
        encode({"w": array}, line(10), ["all"], budget_bytes=900, round_number=0)
    assert str(error.value) == (
        f"tensor 'w': expected float32[10], got {came}; convert the update before it is encoded"
    )


def test_a_dense_packet_over_its_budget_is_refused_with_its_size():
    layout = line(1000)
    with pytest.raises(PacketError) as error:
        encode(
            heavy_update(layout, 0),
            layout,
            ["all"],
            budget_bytes=4000,
            round_number=0,
            settings=CodecSettings("dense", 32),
        )
    assert str(error.value) == (
        "dense packet: expected at most 4000 bytes, got 4025; "
        "raise the budget, use fewer bits, or use mode sparse"
    )


def test_dense_packets_take_no_step():
    with pytest.raises(PacketError) as error:
        encode(
            heavy_update(line(10), 0),
            line(10),
            ["all"],
            budget_bytes=4000,
            round_number=0,
            settings=CodecSettings("dense"),
            step=1.0,
        )
    assert str(error.value) == (
        "packet: expected no positions and no step, got some; mode dense has no use for them"
    )


@pytest.mark.parametrize("step", [0.0, -1.0, 1e-40, float("nan"), float("inf")])
def test_a_step_that_float32_cannot_carry_is_refused(step):
    with pytest.raises(PacketError) as error:
        encode(
            heavy_update(line(10), 0),
            line(10),
            ["all"],
            budget_bytes=400,
            round_number=0,
            step=step,
        )
    assert str(error.value) == (
        f"packet: expected a step from 1.18e-38 to 3.4e+38, got {step!r}; scale the step"
    )


@pytest.mark.parametrize("round_number", [-1, 2**32])
def test_a_round_that_32_bits_cannot_carry_is_refused(round_number):
    with pytest.raises(PacketError) as error:
        encode({}, mixed(), [], budget_bytes=400, round_number=round_number)
    assert str(error.value) == (
        f"packet: expected a round from 0 to 4294967295, got {round_number}; check the caller"
    )


def test_settings_refuse_what_is_not_listed():
    with pytest.raises(ConfigError) as mode:
        CodecSettings(mode="zip")
    assert str(mode.value) == "expected a codec mode of sparse, dense or literal, got 'zip'"
    with pytest.raises(ConfigError) as bits:
        CodecSettings(bits=4)
    assert str(bits.value) == "expected 8, 16 or 32 bits a dense value, got 4"
    for fineness in (0.5, float("inf"), float("nan")):
        with pytest.raises(ConfigError) as caught:
            CodecSettings(fineness=fineness)
        assert str(caught.value) == f"expected a fineness from 1 to 64, got {fineness}"


@pytest.mark.parametrize("settings", [CodecSettings("dense", 32), CodecSettings()])
def test_constants_do_not_travel_though_an_update_may_hold_them(settings):
    layout = Layout(
        "m",
        (
            Layer(
                "all",
                (
                    TensorSpec("free", (3,), "float32"),
                    TensorSpec("fixed", (500,), "float32", "constant"),
                ),
            ),
        ),
    )
    update = {"free": np.array([1, -2, 3], np.float32)}
    for given in (update, update | {"fixed": np.full(500, np.nan, np.float32)}):
        sent = encode(given, layout, ["all"], budget_bytes=200, round_number=1, settings=settings)
        received = decode(sent.packet, layout, max_bytes=200)
        assert set(received.update) == set(sent.decoded) == {"free"}
        assert sent.kept == 3
