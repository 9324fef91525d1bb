import numpy as np
import pytest
from safetensors.numpy import load, save

from compression import CodecSettings, decode
from fedfreeze.errors import LayoutError, RunError
from strategies.chain import parted
from strategies.downlink import PacketRule
from strategies.published import Published
from tests.unit.strategies.samples import constant, stack, with_buffers

LAYOUT = stack(a=2, b=3, c=4)


def published(value=10.0, layout=LAYOUT):
    return Published(layout, constant(layout, value))


def stepped(model, **steps):
    model.advance(
        {
            name: {t.name: np.full(t.shape, step) for t in model.layout[name].tensors}
            for name, step in steps.items()
        }
    )
    return model


def test_a_step_is_added_and_a_layer_without_one_stays_bit_identical():
    model = published(0.1)
    before = {name: array.tobytes() for name, array in model.arrays.items()}
    stepped(model, b=1.0)
    assert model.arrays["b.w"].tolist() == pytest.approx([1.1] * 3)
    assert model.arrays["a.w"].tobytes() == before["a.w"]
    assert model.arrays["c.w"].tobytes() == before["c.w"]
    assert set(model.arrays) == set(LAYOUT.tensors)


def test_the_sum_is_rounded_once():
    """In float32 the step would become 1 first, and the tie then go to the even neighbour."""
    model = Published(stack(a=1), {"a.w": np.array([2**24], np.float32)})
    model.advance({"a": {"a.w": np.array([1 + 2**-26])}})
    assert model.arrays["a.w"].tolist() == [2**24 + 2]


def test_every_tensor_keeps_its_dtype_and_shape():
    layout = with_buffers()
    model = published(1.0, layout)
    floats = {t.name: np.asarray(0.5) for t in layout.tensors.values() if t.is_float}
    model.advance(
        {
            layer.name: {t.name: floats[t.name] for t in layer.tensors if t.name in floats}
            for layer in layout
        }
    )
    layout.check(model.arrays)
    assert all(isinstance(array, np.ndarray) for array in model.arrays.values())
    assert model.arrays["norm.scale"].tolist() == 1.5
    assert model.arrays["norm.batches"].tolist() == 1
    layout.check(load(model.blob(layout.names)))


def test_the_given_arrays_are_copied():
    given = constant(LAYOUT, 1.0)
    model = Published(LAYOUT, given)
    given["a.w"][:] = 9
    assert model.arrays["a.w"].tolist() == [1, 1]


def test_a_client_lacks_what_changed_after_the_version_that_it_holds():
    model = stepped(stepped(published(), a=1.0, b=1.0), b=1.0)
    assert model.version == 2
    assert model.lacking(0) == ("a", "b")
    assert model.lacking(1) == ("b",)
    assert model.lacking(2) == ()


@pytest.mark.parametrize("held", [None, 3])
def test_a_client_with_nothing_or_with_a_version_from_the_future_lacks_everything(held):
    assert stepped(published(), a=1.0).lacking(held) == ("a", "b", "c")


def test_a_blob_holds_the_layers_asked_for_and_is_made_once():
    model = published()
    blob = model.blob(("a", "c"))
    assert model.blob(("a", "c")) is blob
    assert {name: array.tolist() for name, array in load(blob).items()} == {
        "a.w": [10] * 2,
        "c.w": [10] * 4,
    }
    assert load(model.blob(())) == {}


def test_a_blob_of_the_version_before_is_not_sent_again():
    model = published()
    model.blob(("a",))
    stepped(model, a=1.0)
    assert load(model.blob(("a",)))["a.w"].tolist() == [11, 11]


def test_arrays_of_another_model_are_refused():
    with pytest.raises(LayoutError) as caught:
        Published(LAYOUT, constant(stack(a=2, b=3, c=5), 0.0))
    assert str(caught.value) == "tensor 'c.w': expected float32[4], got float32[5]"


def test_a_step_out_of_the_finite_numbers_is_refused_and_nothing_of_it_is_published():
    model = published(1.0)
    with pytest.raises(RunError) as raised:
        stepped(model, a=1.0, c=1e300)
    name = LAYOUT["c"].tensors[0].name
    assert str(raised.value) == (
        f"the merged step takes {name!r} out of the finite numbers; lower "
        "method.server-learning-rate or local.learning-rate"
    )
    assert model.version == 0
    for tensor, array in constant(LAYOUT, 1.0).items():
        assert np.array_equal(model.arrays[tensor], array)


# ---- by packets

SPARSE = PacketRule(CodecSettings("sparse"), 200, flushes=True)
QUANTISED = PacketRule(CodecSettings("dense", 8), 3_000, flushes=False)
LARGE = stack(a=400, b=300, c=200)


def by_packets(rule=SPARSE, layout=LARGE, value=0.0):
    return Published(layout, constant(layout, value), rule=rule)


def random_step(seed, *layers, layout=LARGE):
    rng = np.random.default_rng(seed)
    return {
        name: {t.name: rng.normal(0, 0.1, t.shape) for t in layout[name].tensors} for name in layers
    }


def last_packet(model):
    (packet,) = parted(model.packets(model.version - 1), 1, max_bytes=10**6)
    return packet


@pytest.mark.parametrize("rule", [SPARSE, QUANTISED])
def test_what_a_packet_does_not_carry_is_the_residual(rule):
    """Between two powers of two a difference of floats is exact."""
    model = by_packets(rule)
    steps = random_step(1, "a", "b")
    model.advance(steps)
    packet = last_packet(model)
    assert len(packet) <= rule.budget_bytes
    decoded = decode(packet, LARGE, max_bytes=len(packet))
    assert (decoded.layers, decoded.round_number) == (("a", "b"), 1)
    for layer in ("a", "b"):
        name = f"{layer}.w"
        assert np.array_equal(model.arrays[name], decoded.update[name])
        meant = steps[layer][name].astype(np.float32)
        assert np.array_equal(model.residual[name], meant - decoded.update[name])
        assert model.residual[name].any()
    assert "c.w" not in model.residual
    assert not model.arrays["c.w"].any()


def test_the_residual_is_part_of_the_next_packet():
    """A step of zero is the residual alone; an 8-bit packet brings all but 1/254 of it."""
    model = by_packets(QUANTISED)
    model.advance(random_step(1, "a"))
    before, owed = model.arrays["a.w"], model.residual["a.w"]
    model.advance({"a": {"a.w": np.zeros(400)}})
    moved = model.arrays["a.w"] - before
    assert np.abs(moved - owed).max() <= np.abs(owed).max() / 254 * 1.01


def test_what_sparse_packets_left_of_a_layer_is_sent_by_and_by_when_nobody_trains_it():
    model = by_packets()
    steps = random_step(1, "a")
    model.advance(steps)
    owed = [float(np.linalg.norm(model.residual["a.w"]))]
    for _ in range(8):
        model.advance({})
        owed.append(float(np.linalg.norm(model.residual["a.w"])))
    assert owed == sorted(owed, reverse=True)
    assert owed[-1] < owed[0] / 20
    np.testing.assert_allclose(model.arrays["a.w"], steps["a"]["a.w"], atol=0.03)


def test_what_quantised_packets_left_of_a_layer_waits_until_it_is_trained_again():
    model = by_packets(QUANTISED)
    model.advance(random_step(1, "a"))
    owed, held = model.residual["a.w"].copy(), model.arrays["a.w"].copy()
    model.advance(random_step(2, "b"))
    assert np.array_equal(model.residual["a.w"], owed)
    assert np.array_equal(model.arrays["a.w"], held)
    assert model.lacking(1) == ("b",)
    model.advance(random_step(3, "a"))
    assert not np.array_equal(model.residual["a.w"], owed)


def test_a_layer_that_was_never_trained_is_in_no_packet_and_stays_bit_identical():
    model = by_packets(value=-0.0)
    before = model.arrays["c.w"].tobytes()
    for seed in range(5):
        model.advance(random_step(seed, "a", "b"))
        packet = last_packet(model)
        assert "c" not in decode(packet, LARGE, max_bytes=len(packet)).layers
    assert model.arrays["c.w"].tobytes() == before
    assert model.lacking(0) == ("a", "b")


def test_buffers_come_down_exactly_and_leave_nothing():
    layout = stack(a=200).layers[0]
    norm = with_buffers().layers[0]
    layout = type(LARGE)("both", (layout, norm))
    model = by_packets(layout=layout)
    step = {t.name: np.full(t.shape, 0.1) for t in norm.tensors if t.is_float}
    model.advance({"norm": step, **random_step(1, "a", layout=stack(a=200))})
    assert model.arrays["norm.mean"].tolist() == [np.float32(0.1)] * 2
    assert "norm.mean" not in model.residual
    assert model.arrays["norm.batches"].tolist() == 0


@pytest.mark.parametrize("rule", [SPARSE, QUANTISED])
def test_a_round_without_steps_leaves_a_packet_all_the_same(rule):
    """Versions and packets must go on together."""
    model = by_packets(rule)
    model.advance({})
    assert model.version == 1
    assert decode(last_packet(model), LARGE, max_bytes=100).layers == ()
    assert model.lacking(0) == ()
    assert not model.has_smaller_packets(0)


def test_packets_are_preferred_until_they_are_larger_than_the_layers_that_changed():
    """Layer b has 1,200 bytes; each packet fills 200 and has its length in front."""
    model = by_packets()
    for seed in range(6):
        model.advance(random_step(seed, "b"))
    fits = [model.has_smaller_packets(held) for held in range(6)]
    lengths = [len(model.packets(held)) for held in range(6)]
    assert fits == [length <= 1_200 for length in lengths]
    assert set(fits) == {True, False}


@pytest.mark.parametrize("held", [-1, 7])
def test_no_packets_lead_from_a_version_that_is_not_known(held):
    model = by_packets()
    model.advance(random_step(1, "a"))
    assert not model.has_smaller_packets(held)
    with pytest.raises(RunError) as caught:
        model.packets(held)
    assert str(caught.value) == f"no packets lead from version {held} to 1"


def test_the_same_packets_are_one_object_until_the_next_version():
    model = by_packets()
    model.advance(random_step(1, "a"))
    first = model.packets(0)
    assert model.packets(0) is first
    model.advance(random_step(2, "a"))
    assert model.packets(0) != first


def test_the_digest_follows_the_model():
    model = by_packets()
    before = model.digest
    assert model.digest == before == by_packets(SPARSE).digest
    model.advance(random_step(1, "a"))
    assert model.digest != before


@pytest.mark.parametrize("large", [1e300, 3.3e38])
def test_a_step_that_is_too_large_for_a_packet_is_refused_and_nothing_of_it_is_published(large):
    model = by_packets(QUANTISED, value=1e38)
    before = model.digest
    with pytest.raises(RunError) as raised:
        model.advance({"a": {"a.w": np.full(400, large)}})
    assert str(raised.value) == (
        "the merged step takes 'a.w' out of the finite numbers; lower "
        "method.server-learning-rate or local.learning-rate"
    )
    assert (model.version, model.digest, model.residual) == (0, before, {})
    assert not model.has_smaller_packets(0)


@pytest.mark.parametrize("rule", [SPARSE, QUANTISED])
def test_a_model_that_is_taken_up_again_goes_on_with_the_same_packets(rule):
    whole = by_packets(rule)
    for seed in range(3):
        whole.advance(random_step(seed, "a", "b"))
    resumed = Published(LARGE, whole.arrays, whole.version, rule)
    resumed.changed_at = dict(whole.changed_at)
    resumed.recall(load(save(whole.memory())))
    for model in (whole, resumed):
        model.advance(random_step(9, "b", "c"))
    assert resumed.digest == whole.digest
    for held in range(4):
        fits = whole.has_smaller_packets(held)
        assert resumed.has_smaller_packets(held) == fits
        assert not fits or resumed.packets(held) == whole.packets(held)


@pytest.mark.parametrize(
    ("name", "array", "came"),
    [
        ("z.w", np.zeros(2, np.float32), "float32[2]"),
        ("a.w", np.zeros(3, np.float32), "float32[3]"),
        ("a.w", np.zeros(400), "float64[400]"),
    ],
)
def test_a_residual_of_another_model_is_refused(name, array, came):
    with pytest.raises(LayoutError) as caught:
        by_packets().recall({f"residual/{name}": array})
    assert str(caught.value) == f"residual {name!r}: expected one of the layout, got {came}"
