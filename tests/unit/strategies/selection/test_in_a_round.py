"""What a rule is given by the server, and what the server learns for it."""

import pytest
from flwr.app import ArrayRecord, ConfigRecord

from strategies import schema
from strategies.flower import FedFreeze
from tests.grid import InProcessGrid
from tests.unit.strategies.fake_boards import FakeBoards
from tests.unit.strategies.samples import board, constant, stack

LAYOUT = stack(stem=100, body=200, head=50)

SETTINGS = """
version = 1
rounds = 5
[freeze]
policy = "full"
[clients]
quorum = 0.5
[compression]
compression-ratio = 1
[local]
epochs = 2
"""


def published(rule, **keys):
    overrides = [f'clients.selection="{rule}"', *(f"clients.{k}={v}" for k, v in keys.items())]
    server = FedFreeze(schema.from_text(SETTINGS, overrides=overrides), LAYOUT, run="run")
    server.publish(constant(LAYOUT, 10.0))
    return server


def play(server, boards, number=1, nodes=3):
    grid = InProcessGrid(boards.app(), nodes)
    orders = server.configure_train(number, ArrayRecord(), ConfigRecord(), grid)
    server.aggregate_train(number, grid.send_and_receive(orders))
    return server.result


def test_a_prediction_is_what_the_client_is_then_asked_for():
    boards = FakeBoards(LAYOUT, examples={"b0": 10, "b1": 20, "b2": 30})
    result = play(published("resource"), boards)
    assert set(result.selection.offer.predictions) == set(result.asked)
    for device_id, prediction in result.selection.offer.predictions.items():
        plan = result.asked[device_id].plan
        assert prediction.modelled_s == plan.cost.modelled_total_s > 0
        assert prediction.work == 350 * 2 * boards.examples[device_id]


def test_a_layer_that_does_not_fit_is_no_work():
    """Memory keeps the stem frozen."""
    result = play(published("resource"), FakeBoards(LAYOUT, capacity=board(memory=110e6)))
    assert {p.work for p in result.selection.offer.predictions.values()} == {250 * 2 * 10}


def test_a_board_on_which_no_plan_fits_has_no_prediction_and_is_no_ones_choice():
    boards = FakeBoards(LAYOUT, capacities={"b1": board(memory=1e6)})
    server = published("resource", share=0.5, exploration=0.0)
    for number in (1, 2, 3):
        selection = play(server, boards, number).selection
        assert set(selection.offer.predictions) == {"b0", "b2"}
        assert selection.cohort == ("b0", "b2")


@pytest.mark.parametrize("rule", ["gain", "all"])
def test_predictions_are_made_only_for_a_rule_that_reads_them(rule):
    result = play(published(rule), FakeBoards(LAYOUT))
    assert result.selection is None or result.selection.offer.predictions == {}
    assert (result.selection is None) == (rule == "all")


def test_gains_are_of_the_updates_as_they_were_decoded_and_only_where_they_are_read():
    """b1 pulls the other way; the others' mean is (1 - 1) / 2 for each of them."""
    boards = FakeBoards(LAYOUT, delta=lambda i, layer: -1.0 if i == "b1" else 1.0)
    assert play(published("gain"), boards).gains == pytest.approx(
        {"b0": 0.0, "b1": -1.0, "b2": 0.0}, abs=1e-6
    )
    assert play(published("oort"), boards).gains == {}


def test_a_client_that_does_not_answer_is_remembered_to_have_been_asked_in_vain():
    server = published("resource")
    play(server, FakeBoards(LAYOUT, silent={"b1"}))
    attendance = server.state()["selection"]["attendance"]
    assert {i: (one["used"], one["vain"]) for i, one in attendance.items()} == {
        "b0": (1, 0),
        "b1": (0, 1),
        "b2": (1, 0),
    }


def test_a_round_without_a_quorum_is_held_against_the_silent_alone():
    server = published("resource", quorum=1.0)
    assert play(server, FakeBoards(LAYOUT, silent={"b1"})).void
    attendance = server.state()["selection"]["attendance"]
    assert {i: one["vain"] for i, one in attendance.items()} == {"b0": 0, "b1": 1, "b2": 0}
