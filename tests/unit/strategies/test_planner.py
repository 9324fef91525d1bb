from dataclasses import replace

import numpy as np
import pytest

from compression import CodecSettings, encode
from fedfreeze.errors import PlanError
from fedfreeze.layout import Layer, Layout, TensorSpec
from fedfreeze.plan import Reason, Stage
from strategies.freeze.policy import Advice, StageAdvice
from strategies.orders import limits as limits_of
from strategies.planner import as_advice, feasible, fit
from strategies.tables import Clients, Compression, Local
from tests.unit.strategies.samples import LIMITS, LOAD, board, stack

LAYOUT = stack()
NAMES = LAYOUT.names
EVERYTHING = Advice(frozen={}, values=dict.fromkeys(NAMES, 1.0))


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


# Training everything takes 68 MB here, from body on 57, from tail on 46, and the head alone 35.
@pytest.mark.parametrize(
    ("memory", "trained"),
    [(68.1e6, 4), (67.9e6, 3), (57.1e6, 3), (56.9e6, 2), (46.1e6, 2), (45.9e6, 1), (35.1e6, 1)],
)
def test_memory_is_saved_by_a_frozen_prefix(memory, trained):
    assert plan(capacity=board(memory=memory)).trained == NAMES[-trained:]


def test_a_layer_that_memory_forbids_says_what_is_needed_and_what_there_is():
    suggestion = plan(capacity=board(memory=50e6))
    assert suggestion.binding == "memory"
    assert suggestion.frozen == {
        "stem": Reason("memory", "training from here on needs 68 MB, the board has 50 MB"),
        "body": Reason("memory", "training from here on needs 57 MB, the board has 50 MB"),
    }


def test_feasible_is_what_memory_allows_with_every_layer_above():
    assert feasible(LAYOUT, board(memory=50e6), LIMITS) == {
        "stem": False,
        "body": False,
        "tail": True,
        "head": True,
    }


def test_a_board_whose_memory_holds_no_layer_is_told_by_how_much():
    assert refusal(capacity=board(memory=30e6)) == (
        "memory",
        '"head" alone: training from here on needs 35 MB, the board has 30 MB',
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
    suggestion = plan(capacity=SLOW, limits=replace(LIMITS, deadline_s=deadline_s))
    assert (suggestion.epochs, suggestion.trained) == (epochs, NAMES[-trained:])
    assert suggestion.binding == (None if epochs == 3 else "compute")


def test_a_layer_that_time_forbids_says_how_long_the_round_would_take():
    suggestion = plan(capacity=SLOW, limits=replace(LIMITS, deadline_s=4.0))
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
        (board(downlink=50.0), 1.0, "downlink", "100 s", "0.0013 s"),
        (board(uplink=20.0), 100.0, "uplink", "0.005 s", "65 s"),
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
    assert own.frozen["body"].detail == "training from here on needs 57 MB, the board has 50 MB"


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
        'a dense update of no layer fits 1.1 kB; use mode = "sparse"',
    )


def test_with_a_thin_uplink_less_memory_may_train_more_parameters():
    """The one place where the greedy is not monotone: a layer that takes most of the room goes."""
    layout = stack(large=60, left=50, right=50)
    advice = Advice({}, {"large": 3.0, "left": 2.0, "right": 1.0})
    thin = {"uplink": 1_190.0}  # 190 bytes of 300 serve 101 of the 160 parameters
    much = plan(advice, board(**thin), layout=layout)
    little = plan(advice, board(**thin, memory=50e6), layout=layout)
    assert (much.trained, little.trained) == (("large",), ("left", "right"))


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
