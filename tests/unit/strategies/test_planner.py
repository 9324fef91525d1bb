from dataclasses import replace

import numpy as np
import pytest

from compression import CodecSettings, encode
from device_profiles.board import load_board
from device_profiles.cost import training_memory_bytes
from fedfreeze.errors import PlanError
from fedfreeze.layout import Layer, LayerCosts, Layout, TensorSpec
from fedfreeze.plan import Reason, Stage
from fedfreeze.units import Dimension, written
from strategies.coverage import covering
from strategies.freeze.policy import Advice, StageAdvice
from strategies.orders import limits as limits_of
from strategies.planner import as_advice, feasible, fit, reachable
from strategies.tables import Clients, Compression, Local
from tests.unit.strategies.samples import LIMITS, LOAD, board, stack

LAYOUT = stack()
NAMES = LAYOUT.names
EVERYTHING = Advice(frozen={}, values=dict.fromkeys(NAMES, 1.0))
# Each layer is worth more than all before it together.
DEEPER = Advice(frozen={}, values={"stem": 1.0, "body": 2.0, "tail": 4.0, "head": 8.0})


def plan(advice=EVERYTHING, capacity=None, limits=LIMITS, load=LOAD, layout=LAYOUT):
    return fit(advice, layout=layout, capacity=capacity or board(), limits=limits, load=load)


def refusal(**arguments):
    with pytest.raises(PlanError) as caught:
        plan(**arguments)
    return caught.value.limit, str(caught.value)


def test_a_board_with_room_to_spare_trains_everything_for_all_epochs():
    suggestion = plan()
    assert suggestion.stages == (Stage(1.0, NAMES),)
    assert (suggestion.epochs, suggestion.batch_size) == (3, 10)
    assert suggestion.upload_budget_bytes == 300
    assert (suggestion.frozen, suggestion.binding) == ({}, None)


def test_what_the_policy_froze_stays_frozen_with_its_own_reason():
    settled = Reason("score", "settled")
    suggestion = plan(replace(EVERYTHING, frozen={"body": settled}))
    assert suggestion.trained == ("stem", "tail", "head")
    assert suggestion.frozen == {"body": settled}
    assert suggestion.binding is None


def needs(*names, examples=10):
    """Bytes to train these layers. Each keeps a megabyte of an example from the shallowest on."""
    return training_memory_bytes(LAYOUT, names, examples, optimizer_slots=0)


def megabytes(value):
    return written(value, Dimension.BYTES)


@pytest.mark.parametrize("trained", [4, 3, 2, 1])
def test_memory_is_saved_by_a_frozen_prefix(trained):
    """A megabyte less is more than all gradients, and less than what the next layer keeps."""
    enough = needs(*NAMES[-trained:])
    assert plan(capacity=board(memory=enough)).trained == NAMES[-trained:]
    if trained > 1:
        assert plan(capacity=board(memory=enough - 1e6)).trained == NAMES[1 - trained :]


def test_a_layer_that_memory_forbids_says_what_is_needed_and_what_there_is():
    suggestion = plan(capacity=board(memory=50e6))
    assert suggestion.binding == "memory"
    stem, body = (megabytes(needs(name, "tail", "head")) for name in ("stem", "body"))
    assert suggestion.frozen == {
        "stem": Reason("memory", f"training from here on needs {stem}, the board has 50 MB"),
        "body": Reason("memory", f"training from here on needs {body}, the board has 50 MB"),
    }


def test_feasible_is_what_memory_allows_with_every_layer_above():
    assert feasible(LAYOUT, board(memory=50e6), LIMITS) == {
        "stem": False,
        "body": False,
        "tail": True,
        "head": True,
    }


def test_a_board_whose_memory_holds_no_layer_is_told_by_how_much():
    least = megabytes(needs("head"))
    assert refusal(capacity=board(memory=30e6)) == (
        "memory",
        f'"head" alone: training from here on needs {least}, the board has 30 MB',
    )


# 150 bytes of 300 serve half of the 750 parameters.
THIN = board(uplink=1_150.0)


def test_a_thin_uplink_keeps_what_must_train_then_the_most_valued_that_fits():
    values = {"stem": 0.9, "body": 0.5, "tail": 0.8, "head": 0.1}
    suggestion = plan(Advice(frozen={}, values=values, must_train=("head",)), THIN)
    assert suggestion.upload_budget_bytes == 150
    assert suggestion.trained == ("stem", "body", "head")
    assert suggestion.binding == "uplink"
    assert suggestion.frozen == {
        "tail": Reason(
            "uplink",
            "150 B of the full 300 B serve about 375 parameters; this layer has 400",
        )
    }


def test_among_equals_a_thin_uplink_keeps_the_deepest_layers():
    assert plan(capacity=THIN).trained == ("stem", "body", "head")
    assert plan(capacity=board(uplink=1_100.0)).trained == ("body", "head")


def test_what_must_train_stays_even_where_only_a_smaller_layer_would_fit():
    layout = stack(stem=10, head=500)
    advice = Advice(frozen={}, values={"stem": 1.0, "head": 0.0}, must_train=("head",))
    assert plan(advice, THIN, layout=layout).trained == ("head",)


def test_an_uplink_below_the_smallest_packet_sits_the_round_out():
    assert refusal(capacity=board(uplink=1_039.0)) == (
        "uplink",
        "the uplink carries 1.04 kB in 1 s; a message needs 1 kB and the smallest packet 40 B more",
    )
    assert plan(capacity=board(uplink=1_040.0)).upload_budget_bytes == 40


# At 1e5 FLOP/s an epoch takes 4.3 s with every layer, then 3.7, 2.5 and 1.6 s for the head alone.
SLOW = board(flops=1e5)


@pytest.mark.parametrize(
    ("deadline_s", "epochs", "trained"),
    [(13.0, 3, 4), (12.8, 2, 4), (8.5, 1, 4), (4.2, 1, 3), (3.6, 1, 2), (2.4, 1, 1), (1.7, 1, 1)],
)
def test_a_slow_board_trains_fewer_epochs_first_and_then_fewer_layers(deadline_s, epochs, trained):
    suggestion = plan(DEEPER, SLOW, replace(LIMITS, deadline_s=deadline_s))
    assert (suggestion.epochs, suggestion.trained) == (epochs, NAMES[-trained:])
    assert suggestion.binding == (None if epochs == 3 else "compute")


def test_a_layer_that_time_forbids_says_how_long_the_round_would_take():
    suggestion = plan(DEEPER, SLOW, replace(LIMITS, deadline_s=4.0))
    assert suggestion.frozen == {
        "stem": Reason("compute", "the round takes 4.31 s with it, the deadline is 4 s")
    }


def test_a_board_too_slow_for_one_layer_is_told_by_how_much():
    assert refusal(capacity=SLOW, limits=replace(LIMITS, deadline_s=1.0)) == (
        "compute",
        '"head" alone: the round takes 1.61 s with it, the deadline is 1 s',
    )


@pytest.mark.parametrize(
    ("capacity", "upload_time_s", "limit", "down", "up"),
    [
        (board(downlink=50.0), 1.0, "downlink", "100 s", "0.00104 s"),
        (board(uplink=17.0), 100.0, "uplink", "0.005 s", "61.2 s"),
    ],
)
def test_transfers_that_outlast_the_round_are_not_blamed_on_the_processor(
    capacity, upload_time_s, limit, down, up
):
    limits = replace(LIMITS, upload_time_s=upload_time_s)
    assert refusal(capacity=capacity, limits=limits) == (
        limit,
        f"the transfers alone take {down} down and {up} up, the deadline is 60 s",
    )


def test_the_first_limit_that_binds_is_the_one_that_is_named():
    suggestion = plan(capacity=board(memory=60e6, uplink=1_150.0, flops=1e5))
    assert {reason.code for reason in suggestion.frozen.values()} == {"memory", "uplink"}
    assert suggestion.binding == "memory"


def test_zero_trainable_layers_are_refused_when_the_plan_is_made():
    frozen = {name: Reason("score", "settled") for name in NAMES}
    expected = ("policy", "the policy froze every layer; one at least must train")
    assert refusal(advice=replace(EVERYTHING, frozen=frozen)) == expected


HALVES = (StageAdvice(0.5, ("stem",)), StageAdvice(0.3, ("stem", "body")), StageAdvice(0.2, NAMES))


def test_stages_are_kept_in_order():
    suggestion = plan(replace(EVERYTHING, stages=HALVES))
    assert suggestion.stages == tuple(Stage(s.share, s.layers) for s in HALVES)
    suggestion.check(LAYOUT)


def test_a_stage_that_lost_its_layers_gives_its_share_to_the_next():
    suggestion = plan(replace(EVERYTHING, stages=HALVES), board(memory=60e6))
    assert suggestion.stages == (Stage(0.8, ("body",)), Stage(0.2, ("body", "tail", "head")))


def test_a_last_stage_that_lost_its_layers_gives_its_share_to_the_one_before():
    stages = (StageAdvice(0.75, ("head",)), StageAdvice(0.25, ("stem",)))
    frozen = {name: Reason("fixed", "never") for name in ("body", "tail")}
    suggestion = plan(Advice(frozen, EVERYTHING.values, stages=stages), board(memory=50e6))
    assert suggestion.stages == (Stage(1.0, ("head",)),)


def test_stages_that_have_become_the_same_are_one():
    stages = (StageAdvice(0.5, ("stem", "head")), StageAdvice(0.5, NAMES))
    suggestion = plan(replace(EVERYTHING, stages=stages), board(memory=40e6))
    assert suggestion.stages == (Stage(1.0, ("head",)),)


def test_a_layer_of_no_stage_is_frozen_and_says_so():
    suggestion = plan(replace(EVERYTHING, stages=(StageAdvice(1.0, ("tail", "head")),)))
    suggestion.check(LAYOUT)
    assert suggestion.trained == ("tail", "head")
    nobody = Reason("fixed", "no stage trains this layer")
    assert suggestion.frozen == {"stem": nobody, "body": nobody}


def test_a_suggestion_that_a_limit_shaped_comes_out_of_the_clients_fit_unchanged():
    suggestion = plan(capacity=board(memory=60e6, flops=1e5), limits=replace(LIMITS, deadline_s=3))
    assert (suggestion.binding, suggestion.epochs) == ("memory", 1)
    again = plan(
        as_advice(suggestion),
        board(memory=60e6, flops=1e5),
        replace(LIMITS, deadline_s=3, epochs=suggestion.epochs),
    )
    assert again == suggestion


def test_a_client_with_less_memory_than_the_server_believed_freezes_more():
    own = plan(as_advice(plan(capacity=board(memory=60e6))), board(memory=50e6))
    assert own.trained == ("tail", "head")
    body = megabytes(needs("body", "tail", "head"))
    assert own.frozen["body"].detail == (f"training from here on needs {body}, the board has 50 MB")


BUFFERED = Layout(
    "buffered",
    (
        Layer("a", (TensorSpec("a.w", (40,), "float32"),)),
        Layer(
            "b",
            (
                TensorSpec("b.w", (1000,), "float32"),
                TensorSpec("b.mean", (3000,), "float32", "buffer"),
                TensorSpec("b.batches", (), "int64", "buffer"),
            ),
        ),
        Layer("c", (TensorSpec("c.w", (2000,), "float32"),)),
    ),
)


@pytest.mark.parametrize("bits", [8, 16, 32])
@pytest.mark.parametrize("uplink", [1e6, 15_000.0, 9_000.0, 4_000.0])
def test_a_dense_update_of_what_the_plan_trains_fits_its_budget(bits, uplink):
    limits = limits_of(
        BUFFERED,
        Clients(),
        Compression(mode="dense", bits=bits, upload_time=1.0),
        Local(),
    )
    suggestion = plan(
        Advice({}, {"a": 1.0, "b": 2.0, "c": 3.0}), board(uplink=uplink), limits, layout=BUFFERED
    )
    update = {t.name: np.ones(t.shape, np.float32) for t in BUFFERED.tensors.values() if t.is_float}
    sent = encode(
        update,
        BUFFERED,
        suggestion.trained,
        budget_bytes=suggestion.upload_budget_bytes,
        round_number=1,
        settings=CodecSettings("dense", bits),
    )
    assert len(sent.packet) <= suggestion.upload_budget_bytes
    assert uplink < 1e6 or suggestion.trained == ("a", "b", "c")


def test_a_dense_update_of_no_layer_is_refused_with_the_way_out():
    limits = replace(LIMITS, dense_bits=32, full_upload_bytes=4_000, smallest_packet_bytes=1_000)
    assert refusal(capacity=board(uplink=2_100.0), limits=limits) == (
        "uplink",
        'a dense update of no layer fits 1.1 kB, that of "head" has 1.2 kB; use mode = "sparse"',
    )


def test_with_a_thin_uplink_more_memory_never_trains_what_is_worth_less():
    """One large layer is worth less than the two that fit in its place, whatever else would fit."""
    layout = stack(large=60, left=50, right=50)
    thin = {"uplink": 1_190.0}  # 190 bytes of 300 serve 101 of the 160 parameters
    for values, best in (((3.0, 2.0, 1.5), ("left", "right")), ((4.0, 2.0, 1.5), ("large",))):
        advice = Advice({}, dict(zip(layout.names, values, strict=True)))
        much = plan(advice, board(**thin), layout=layout)
        little = plan(advice, board(**thin, memory=50e6), layout=layout)
        assert (much.trained, little.trained) == (best, ("left", "right"))


def with_constants(*names):
    """The stack with the layers of these names frozen by the model's author."""
    return Layout(
        "stack",
        tuple(
            replace(layer, tensors=tuple(replace(t, kind="constant") for t in layer.tensors))
            if layer.name in names
            else layer
            for layer in LAYOUT
        ),
    )


CONSTANT = Reason("fixed", "none of its parameters is trainable")


@pytest.mark.parametrize(
    "advice",
    [
        EVERYTHING,
        replace(EVERYTHING, must_train=("stem",)),
        replace(EVERYTHING, frozen={"stem": Reason("score", "settled")}),
        replace(EVERYTHING, stages=(StageAdvice(0.5, ("stem",)), StageAdvice(0.5, NAMES))),
    ],
)
def test_a_layer_without_trainable_parameters_is_never_trained_whatever_is_advised(advice):
    suggestion = plan(advice, layout=with_constants("stem", "tail"))
    assert suggestion.trained == ("body", "head")
    assert suggestion.stages == (Stage(1.0, ("body", "head")),)
    assert suggestion.frozen == {"stem": CONSTANT, "tail": CONSTANT}
    assert suggestion.binding is None


def test_the_client_agrees_that_a_layer_without_trainable_parameters_is_frozen():
    layout = with_constants("stem")
    suggestion = plan(layout=layout)
    assert plan(as_advice(suggestion), layout=layout).frozen == {"stem": CONSTANT}


def test_when_all_that_could_train_is_frozen_the_policy_is_to_blame():
    frozen = {name: Reason("score", "settled") for name in NAMES if name != "stem"}
    assert refusal(advice=replace(EVERYTHING, frozen=frozen), layout=with_constants("stem")) == (
        "policy",
        "the policy froze every layer; one at least must train",
    )


# ---- what is worth most


def test_two_layers_that_are_worth_more_than_a_third_take_its_place():
    values = {"stem": 0.4, "body": 0.5, "tail": 0.8, "head": 0.0}
    thin = board(uplink=1_160.0)  # 160 bytes of 300 serve 400 parameters
    assert plan(Advice({}, values), thin).trained == ("stem", "body", "head")
    assert plan(Advice({}, values | {"tail": 0.95}), thin).trained == ("tail",)


def test_values_count_by_the_share_of_the_steps_in_which_a_layer_may_train():
    stages = (StageAdvice(0.75, ("stem", "body")), StageAdvice(0.25, ("tail",)))
    thin = board(uplink=1_160.0)
    advice = Advice({}, {"stem": 0.1, "body": 0.1, "tail": 0.5}, stages=stages)
    assert plan(advice, thin).trained == ("stem", "body")
    advice = replace(advice, values={"stem": 0.1, "body": 0.1, "tail": 0.7})
    assert plan(advice, thin).trained == ("tail",)


def test_a_layer_that_is_worth_nothing_trains_where_it_takes_nothing_from_the_others():
    values = {"stem": 0.0, "body": 1.0, "tail": 1.0, "head": 1.0}
    assert plan(Advice({}, values)).trained == NAMES
    # 3 epochs end in 12 s, but not with the stem: see below.
    limits = replace(LIMITS, deadline_s=12.0)
    suggestion = plan(Advice({}, values), SLOW, limits)
    assert (suggestion.trained, suggestion.epochs) == (("body", "tail", "head"), 3)
    assert suggestion.frozen == {
        "stem": Reason("compute", "the round takes 12.9 s with it, the deadline is 12 s")
    }


def test_a_packet_gives_up_bytes_before_a_layer_or_an_epoch_is_given_up():
    """Without the tail an epoch takes 350,000 operations and a packet of 140 bytes or more.

    They take 2.5 s; what is left of 3 s carries 1,200 bytes, 200 of them a packet.
    """
    capacity = board(flops=350_000 / 2.5, uplink=2_400.0)
    limits = replace(LIMITS, epochs=1, deadline_s=3.005)
    settled = {"tail": Reason("score", "settled")}
    suggestion = plan(replace(EVERYTHING, frozen=settled), capacity, limits)
    assert suggestion.trained == ("stem", "body", "head")
    assert suggestion.binding == "compute"
    assert suggestion.upload_budget_bytes == 200


# ---- batches in parts


SPLIT = replace(LIMITS, splits=(1, 2, 4, 8, 10))


@pytest.mark.parametrize(
    ("parts", "examples", "fewer"), [(1, 10, 1), (2, 5, 1), (4, 3, 2), (8, 2, 4), (10, 1, 8)]
)
def test_batches_are_split_before_a_layer_is_given_up(parts, examples, fewer):
    memory = needs(*NAMES, examples=examples)
    suggestion = plan(capacity=board(memory=memory), limits=SPLIT)
    assert (suggestion.trained, suggestion.micro_batches) == (NAMES, parts)
    assert suggestion.batch_size == 10
    assert suggestion.binding == (None if parts == 1 else "memory")
    assert suggestion.cost.modelled_memory_bytes == memory
    larger = -(-10 // fewer)
    assert parts == 1 or needs(*NAMES, examples=larger) > memory


def test_what_fits_in_no_part_is_given_up_and_the_rest_is_split_no_more_than_it_must():
    """Of one example, the stem keeps a megabyte more; two examples keep three."""
    memory = needs("body", "tail", "head", examples=1) + 0.5e6
    suggestion = plan(capacity=board(memory=memory), limits=SPLIT)
    assert suggestion.trained == ("body", "tail", "head")
    assert suggestion.micro_batches == 10
    stem = megabytes(needs(*NAMES, examples=1))
    assert suggestion.frozen == {
        "stem": Reason(
            "memory", f"training from here on needs {stem}, the board has {megabytes(memory)}"
        )
    }


def test_a_client_splits_a_suggestion_that_its_memory_has_become_too_small_for():
    suggestion = plan(capacity=board(memory=needs(*NAMES)), limits=SPLIT)
    own = plan(as_advice(suggestion), board(memory=needs(*NAMES, examples=5)), SPLIT)
    assert (suggestion.micro_batches, own.micro_batches) == (1, 2)
    assert own.trained == suggestion.trained == NAMES


# ---- limits of a round


# An epoch of everything takes 430,000 operations: 100 examples of 2 * 750 forward, 2 * 650 back to
# the stem and 2 * 750 for weights; without the stem, 370,000.


@pytest.mark.parametrize(
    ("most", "epochs", "trained"), [(1.3e6, 3, 4), (1.28e6, 2, 4), (4.4e5, 1, 4), (4e5, 1, 3)]
)
def test_operations_of_a_round_are_limited_epochs_first(most, epochs, trained):
    suggestion = plan(DEEPER, limits=replace(LIMITS, flops_per_round=most))
    assert (suggestion.epochs, suggestion.trained) == (epochs, NAMES[-trained:])
    assert suggestion.binding == (None if epochs == 3 else "flops")


def test_a_layer_that_takes_too_many_operations_says_how_many():
    assert plan(DEEPER, limits=replace(LIMITS, flops_per_round=4e5)).frozen == {
        "stem": Reason(
            "flops", "training takes 4.3e+05 operations with it, limits.flops-per-round is 4e+05"
        )
    }


def test_bytes_of_a_round_are_limited_with_the_envelope():
    suggestion = plan(limits=replace(LIMITS, upload_bytes_per_round=1_150))
    assert (suggestion.upload_budget_bytes, suggestion.binding) == (150, "upload")
    assert suggestion.trained == ("stem", "body", "head")
    assert suggestion.frozen["tail"].code == "upload"


def test_bytes_of_a_round_that_carry_no_packet_are_too_few():
    limits = replace(LIMITS, upload_bytes_per_round=1_039)
    assert refusal(limits=limits) == (
        "upload",
        (
            "limits.upload-bytes-per-round is 1039; a message needs 1 kB and the smallest packet "
            "40 B more"
        ),
    )


PI = load_board("rpi-4b-4gb")


def test_joules_of_a_round_are_those_of_radio_and_processor():
    """0.005 s down, 1,300 bytes up in 0.0013 s, and 4.3 s of training at each epoch."""
    radio_j = PI.power.radio.value * 0.0063
    load = replace(LOAD, board=PI)
    for epochs in (1, 2, 3):
        joules = radio_j + epochs * PI.power.compute.value * 4.3
        for most, expected in ((joules + 0.01, epochs), (joules - 0.01, epochs - 1)):
            limits = replace(LIMITS, energy_j_per_round=most)
            suggestion = plan(capacity=SLOW, limits=limits, load=load)
            assert suggestion.epochs == max(1, expected)
            assert (suggestion.trained == NAMES) == (expected > 0)
            assert suggestion.binding == (None if expected == 3 else "energy")


def test_a_board_without_the_joules_for_one_layer_is_told_by_how_much():
    limits = replace(LIMITS, energy_j_per_round=5.0)
    least = PI.power.compute.value * 1.6 + PI.power.radio.value * 0.006
    assert refusal(capacity=SLOW, limits=limits, load=replace(LOAD, board=PI)) == (
        "energy",
        f'"head" alone: the round takes {least:.3g} J with it, limits.energy-j-per-round is 5',
    )


def test_joules_cannot_be_limited_on_a_board_whose_watts_nobody_knows():
    assert refusal(limits=replace(LIMITS, energy_j_per_round=5.0)) == (
        "energy",
        (
            "limits.energy-j-per-round counts with the board's watts, and nobody knows them: "
            "expected the profile of a board that ships with FedFreeze; name one in the node's "
            "config, or remove the limit"
        ),
    )


# ---- float buffers


@pytest.mark.parametrize(
    ("uplink", "trained"), [(14_000.0, ("a", "b", "c")), (13_000.0, ("a", "c")), (1_040.0, ("c",))]
)
def test_a_sparse_packet_holds_the_float_buffers_of_what_it_trains(uplink, trained):
    """Layer b has 12,000 bytes of them. A packet of the rest can be short."""
    limits = replace(LIMITS, full_upload_bytes=12_700)
    suggestion = plan(
        Advice({}, {"a": 1.0, "b": 1.5, "c": 1.0}), board(uplink=uplink), limits, layout=BUFFERED
    )
    assert suggestion.trained == trained


def test_a_layer_whose_float_buffers_do_not_fit_says_so():
    limits = replace(LIMITS, full_upload_bytes=12_700)
    settled = Reason("score", "settled")
    advice = Advice({"c": settled}, {"a": 1.0, "b": 0.5})
    suggestion = plan(advice, board(uplink=12_000.0), limits, layout=BUFFERED)
    assert suggestion.frozen == {
        "b": Reason(
            "uplink",
            "float buffers travel whole: with this layer a packet has 12 kB or more, the budget "
            "is 11 kB",
        ),
        "c": settled,
    }


# ---- many layers


def many(layers=60):
    """Layers of 1 to 60 parameters, each with a megabyte of activations for ten examples."""
    return Layout(
        "many",
        tuple(
            Layer(
                f"l{at:02}",
                (TensorSpec(f"l{at:02}.w", (1 + at * 7 % layers,), "float32"),),
                LayerCosts(20.0, 20.0, 20.0 + 13 * at % 31, 1e5),
            )
            for at in range(layers)
        ),
    )


def test_many_layers_are_planned_within_every_limit_and_nothing_more_would_fit():
    layout = many()
    values = {name: 1.0 + at * 11 % 60 for at, name in enumerate(layout.names)}
    limits = replace(LIMITS, deadline_s=7.0)
    memory = training_memory_bytes(layout, layout.names[15:], 10, optimizer_slots=0)
    capacity = board(memory=memory, uplink=1_200.0, flops=1e5)
    suggestion = plan(Advice({}, values), capacity, limits, layout=layout)
    suggestion.check(layout)
    assert 20 < len(suggestion.trained) < 45
    assert suggestion.cost.modelled_memory_bytes <= capacity.memory_bytes.value
    assert suggestion.cost.modelled_total_s <= 7.0
    parameters = sum(layout[name].parameter_count for name in suggestion.trained)
    assert parameters * 300 <= suggestion.upload_budget_bytes * layout.parameter_count
    assert {"memory", "uplink"} <= {reason.code for reason in suggestion.frozen.values()}


def test_of_many_layers_the_one_that_must_train_does():
    layout = many()
    values = {name: float(at > 0) for at, name in enumerate(layout.names)}
    advice = Advice({}, values, must_train=("l00",))
    thin = plan(advice, board(uplink=1_100.0), layout=layout)
    assert "l00" in thin.trained
    assert len(thin.trained) > 20
    low = plan(advice, board(memory=40e6), layout=layout)
    assert "l00" not in low.trained
    assert low.frozen["l00"].code == "memory"


def test_of_what_comes_first_as_much_as_can_be_trains_though_one_is_in_the_way_of_two():
    others = {f"l{at:02}": 10 for at in range(10)}
    layout = stack(a=100, b=100, **others, big=400)
    advice = Advice({}, dict.fromkeys(layout.names, 1.0), must_train=("a", "b", "big"))
    # 193 of 300 bytes serve 450 of 700 parameters.
    assert plan(advice, board(uplink=1_193.0), layout=layout).trained == ("a", "b", *others)


def test_of_many_layers_one_alone_may_take_the_whole_packet():
    big = Layer("big", (TensorSpec("big.w", (5_000,), "float32"),), LayerCosts(1.0, 1.0, 1.0, 1.0))
    layout = Layout("m", (*many(20).layers, big))
    advice = Advice({}, {"big": 1.0}, must_train=("big",))
    assert plan(advice, board(uplink=1_050.0), layout=layout).trained == ("big",)


@pytest.mark.parametrize("uplink", [1_050.0, 1_150.0, 2_000.0])
def test_many_layers_in_stages_stay_within_the_deadline(uplink):
    layout = many()
    front, back = layout.names[:30], layout.names[30:]
    advice = Advice(
        {},
        dict.fromkeys(layout.names, 1.0),
        stages=(StageAdvice(0.5, back), StageAdvice(0.5, (*front, *back))),
    )
    limits = replace(LIMITS, deadline_s=6.0)
    suggestion = plan(advice, board(flops=1e5, uplink=uplink), limits, layout=layout)
    suggestion.check(layout)
    assert suggestion.cost.modelled_total_s <= 6.0
    assert suggestion.trained


def test_a_client_that_can_do_less_gives_up_last_what_coverage_asks_for():
    suggestion = plan(covering(EVERYTHING, ("stem",)))
    assert (suggestion.trained, suggestion.covers) == (NAMES, ("stem",))
    # 50 bytes are left for a packet: one layer alone.
    thin = board(uplink=1_050.0)
    own = plan(as_advice(suggestion), capacity=thin)
    assert (own.trained, own.covers) == (("stem",), ("stem",))
    unasked = as_advice(replace(suggestion, covers=()))
    assert plan(unasked, capacity=thin).trained == ("head",)


def test_without_the_boards_watts_no_layer_is_within_the_joules():
    limits = replace(LIMITS, energy_j_per_round=5.0)
    assert reachable(LAYOUT, board(), limits, LOAD) == dict.fromkeys(NAMES, "energy")
