import numpy as np
import pytest

from compression import CodecSettings, encode
from compression.segments import Segments
from compression.wishes import Wishes
from fedfreeze.errors import PacketError
from tests.unit.compression.sample_layouts import crowded_update, network

LAYOUT = network()
SEGMENTS = Segments.of(LAYOUT, LAYOUT.names)  # weights of conv, body, head, then their biases


def wishes(floors=None, importance=None):
    return Wishes.of(SEGMENTS, CodecSettings(), floors or {}, importance or {})


def listed(gains):
    return {number: gain.tolist() for number, gain in gains.items()}


def sent(update, budget_bytes, **options):
    return encode(
        update, LAYOUT, LAYOUT.names, budget_bytes=budget_bytes, round_number=0, **options
    )


def arrived(found, layer):
    """Values of a layer that arrive and are not 0."""
    return sum(int(np.count_nonzero(found.decoded[t.name])) for t in LAYOUT[layer].parameters)


def weighted_error(update, found, weights):
    """Squared error, each row times its weight."""
    total = 0.0
    for name, array in update.items():
        off = (array.astype(float) - found.decoded[name]) ** 2
        weight = np.atleast_1d(weights.get(name, 1.0))
        total += float((off.reshape(len(array), -1).sum(axis=1) * weight).sum())
    return total


@pytest.mark.parametrize(
    ("weight", "gain"),
    [(1.0, None), (1.9, None), (2.0, 1), (4.0, 1), (16.0, 2), (60.0, 3), (1e9, 7), (1e300, 7)],
)
def test_an_error_of_four_times_the_weight_has_half_the_step(weight, gain):
    found = wishes(importance={"head.weight": weight}).gains
    assert listed(found) == ({} if gain is None else {2: [gain]})


@pytest.mark.parametrize(("weight", "gain"), [(0.6, None), (0.5, 1), (0.25, 1), (1e-9, 7)])
def test_a_weight_below_that_of_the_others_gives_all_the_others_a_gain(weight, gain):
    found = wishes(importance={"head.weight": weight}).gains
    others = {} if gain is None else {n: [gain] for n in (0, 1, 3, 4, 5)}
    assert listed(found) == others


def test_of_a_range_too_wide_the_heavy_end_is_right():
    # 4^9 beside 1: what weighs less than 4^2 counts as 4^2.
    given = {"head.weight": 4.0**9, "body.weight": 4.0**3, "conv.weight": 4.0}
    assert listed(wishes(importance=given).gains) == {1: [1], 2: [7]}


def test_layers_that_are_not_covered_do_not_count_as_the_smallest():
    segments = Segments.of(LAYOUT, ["body", "head"])
    given = {"conv": 1e-6, "body": 4.0, "head": 16.0}
    found = Wishes.of(segments, CodecSettings(), {}, given).gains
    assert listed(found) == {1: [1], 3: [1]}


def test_a_weight_of_a_layer_is_that_of_its_tensors_and_a_tensor_may_have_its_own():
    found = wishes(importance={"head": 16.0, "head.bias": 4.0}).gains
    assert listed(found) == {2: [2], 5: [1]}


def test_rows_of_one_weight_are_one_gain():
    assert wishes(importance={"head.weight": np.full(10, 4.0)}).gains[2].tolist() == [1]
    rows = wishes(importance={"head.weight": 4.0 ** np.arange(10)}).gains[2]
    assert rows.tolist() == [0, 0, 0, 1, 2, 3, 4, 5, 6, 7]


def test_tensors_with_a_floor_or_a_gain_for_each_row_are_units_of_their_own():
    rows = np.where(np.arange(10) < 3, 16.0, 4.0)
    given = wishes(floors={"conv": 3}, importance={"head.weight": rows, "body": 4.0})
    assert given.alone(SEGMENTS).tolist() == [True, False, True, True, False, False]
    # Beside row gains, only tensors of one gain share a unit.
    assert given.unit_gains(SEGMENTS).tolist() == [0, 1, 0, 0, 1, 0]


def test_floors_and_weights_of_layers_that_are_not_covered_are_passed_over():
    segments = Segments.of(LAYOUT, ["body"])
    found = Wishes.of(segments, CodecSettings(), {"head": 9}, {"head": 4.0, "x": 2.0})
    assert (found.floors, found.gains) == ({}, {})


def test_a_floor_below_0_is_refused():
    with pytest.raises(PacketError) as error:
        wishes(floors={"head": -1})
    assert str(error.value) == (
        "packet: expected a floor of 0 or more for layer 'head', got -1; raise the floor"
    )


@pytest.mark.parametrize("bad", [0.0, -1.0, float("inf"), float("nan")])
def test_weights_that_are_not_positive_and_finite_are_refused_by_name(bad):
    with pytest.raises(PacketError) as error:
        wishes(importance={"head.weight": bad})
    assert str(error.value) == (
        f"packet: expected positive, finite weights for 'head.weight', got {bad}; "
        "leave out what does not count"
    )


@pytest.mark.parametrize(("shape", "came"), [((9,), "9"), ((0,), "0"), ((1, 10), "1 x 10")])
def test_weights_for_the_rows_of_another_tensor_are_refused_by_name(shape, came):
    with pytest.raises(PacketError) as error:
        wishes(importance={"head.weight": np.ones(shape)})
    assert str(error.value) == (
        f"packet: expected one weight or 10 for 'head.weight', got {came}; "
        "give a weight for each row of the tensor"
    )


def test_values_that_a_gain_makes_infinite_are_refused_by_name():
    update = crowded_update(LAYOUT, 0)
    update["head.weight"][0, 0] = 3e38
    with pytest.raises(PacketError) as error:
        sent(update, 900, importance={"head.weight": 16.0})
    assert str(error.value) == (
        "packet: expected values of 'head.weight' that a gain of 4 leaves finite, "
        "got larger ones; lower the weight of the tensor"
    )


@pytest.mark.parametrize("budget_bytes", [400, 1200, 3000])
@pytest.mark.parametrize(
    "weights",
    [
        {"head.weight": 16.0},
        {"body.weight": 256.0},
        {"body.weight": np.where(np.arange(40) % 4, 1.0, 64.0)},
    ],
    ids=["tensor", "heavy tensor", "rows"],
)
def test_the_weighted_error_is_lower_for_the_same_bytes(weights, budget_bytes):
    update = crowded_update(LAYOUT, 8)
    with_, without = sent(update, budget_bytes, importance=weights), sent(update, budget_bytes)
    assert len(with_.packet) <= budget_bytes
    assert weighted_error(update, with_, weights) < 0.95 * weighted_error(update, without, weights)


@pytest.mark.parametrize("factor", [4.0, 1 / 64, 4.0**20])
def test_weights_times_a_power_of_four_change_no_byte(factor):
    update = crowded_update(LAYOUT, 9)
    rows = np.where(np.arange(40) % 4, 1.0, 64.0)
    weights = {"conv": 1.0, "body.weight": rows, "body.bias": 4.0, "head": 16.0}
    scaled = {name: weight * factor for name, weight in weights.items()}
    assert sent(update, 900, importance=scaled).packet == (
        sent(update, 900, importance=weights).packet
    )


def test_one_weight_of_a_quarter_is_weights_of_four_everywhere_else():
    update = crowded_update(LAYOUT, 9)
    others = {name: 4.0 for name in LAYOUT.tensors if name != "body.weight"}
    light = sent(update, 900, importance={"body.weight": 0.25})
    assert light.packet == sent(update, 900, importance=others).packet
    assert light.packet != sent(update, 900).packet


@pytest.mark.parametrize("budget_bytes", [400, 1200, 3000])
@pytest.mark.parametrize("name", ["conv.weight", "body.weight", "head.weight"])
def test_a_weight_of_a_sixteenth_costs_its_tensor_and_helps_the_others(name, budget_bytes):
    update = crowded_update(LAYOUT, 8)
    weights = {name: 1 / 16}
    with_, without = sent(update, budget_bytes, importance=weights), sent(update, budget_bytes)
    only = {other: float(other == name) for other in update}
    rest = {other: float(other != name) for other in update}
    assert len(with_.packet) <= budget_bytes
    assert weighted_error(update, with_, only) > weighted_error(update, without, only)
    assert weighted_error(update, with_, rest) < weighted_error(update, without, rest)
    assert weighted_error(update, with_, weights) < weighted_error(update, without, weights)


def test_a_quiet_head_is_sent_as_far_as_its_floor_demands():
    update = crowded_update(LAYOUT, 1)
    for tensor in LAYOUT["head"].parameters:
        update[tensor.name] *= np.float32(0.05)
    free, bound = sent(update, 900), sent(update, 900, floors={"head": 200})
    assert arrived(free, "head") < 100
    assert arrived(bound, "head") >= 200
    assert bound.unmet_floors == ()
    assert len(bound.packet) <= 900


def test_a_floor_is_met_by_the_largest_values_of_its_layer():
    update = crowded_update(LAYOUT, 2)
    update["head.weight"] *= np.float32(0.05)
    update["head.bias"][:] = 0
    found = sent(update, 900, floors={"head": 50})
    largest = np.argsort(-np.abs(update["head.weight"]).reshape(-1))[:50]
    assert (found.decoded["head.weight"].reshape(-1)[largest] != 0).all()


def test_a_floor_that_the_budget_cannot_hold_is_reported():
    found = sent(crowded_update(LAYOUT, 3), 120, floors={"head": 1000})
    assert "head" in found.unmet_floors
    assert len(found.packet) <= 120


def test_an_empty_packet_meets_no_floor():
    found = sent(crowded_update(LAYOUT, 3), 20, floors={"head": 1, "conv": 0})
    assert (found.empty, found.unmet_floors) == (True, ("head",))


def test_a_floor_asks_for_no_more_values_than_there_are():
    update = crowded_update(LAYOUT, 4)
    update["head.weight"][1:] = 0
    assert sent(update, 4000, floors={"head": 10**6}).unmet_floors == ()


def test_values_that_arrive_as_0_meet_no_floor():
    update = crowded_update(LAYOUT, 5)
    for tensor in LAYOUT["head"].parameters:
        update[tensor.name] *= np.float32(1e-7)  # far below the step of the others
    found = sent(update, 1500, floors={"head": 300})
    assert (arrived(found, "head") < 300) == (found.unmet_floors == ("head",))
    assert found.unmet_floors == ("head",)
