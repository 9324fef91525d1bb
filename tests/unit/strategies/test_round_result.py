from dataclasses import replace

import pytest
from flwr.app import ArrayRecord, ConfigRecord

from fedfreeze.wire_size import wire_bytes
from strategies import schema
from strategies.flower import FedFreeze
from strategies.round_result import RoundResult
from tests.grid import InProcessGrid
from tests.unit.strategies.fake_boards import FakeBoards
from tests.unit.strategies.samples import board, constant, stack

LAYOUT = stack(stem=100, body=200, head=50)


def merged(boards, nodes):
    """A round, its orders and the grid that carried it."""
    server = FedFreeze(
        schema.from_text("version = 1\nrounds = 1\n[compression]\ncompression-ratio = 1"), LAYOUT
    )
    server.publish(constant(LAYOUT, 1.0))
    grid = InProcessGrid(boards.app(), nodes)
    orders = server.configure_train(1, ArrayRecord(), ConfigRecord(), grid)
    replies = list(grid.send_and_receive(orders))
    server.aggregate_train(1, replies)
    return server.result, orders, replies


def test_bytes_are_those_of_the_messages_as_flower_was_handed_them():
    result, orders, replies = merged(FakeBoards(LAYOUT), 3)
    assert result.download_bytes == sum(map(wire_bytes, orders))
    assert result.upload_bytes == sum(map(wire_bytes, replies))
    assert result.upload_packet_bytes == sum(
        len(reply.content["packet"]["packed"].data) for reply in replies
    )


def test_the_frozen_share_is_the_mean_over_used_clients():
    boards = FakeBoards(LAYOUT, capacities={"b1": board(memory=110e6)})
    result, _, _ = merged(boards, 2)
    assert result.frozen_share(LAYOUT) == pytest.approx((0 + 100 / 350) / 2)


def test_the_training_loss_is_weighted_by_examples():
    boards = FakeBoards(LAYOUT, examples={"b0": 10, "b1": 30})
    boards.change["b1"] = lambda report: type(report)(**{**vars(report), "train_loss": 2.5})
    result, _, _ = merged(boards, 2)
    assert result.train_loss() == pytest.approx((10 * 1.5 + 30 * 2.5) / 40)


def test_the_residual_is_the_mean_over_used_clients_and_its_ratio_the_largest():
    """The model of 350 ones moved by a quarter of its norm."""
    boards = FakeBoards(LAYOUT)
    for name, norm in (("b0", 3.0), ("b1", 5.0)):
        boards.change[name] = lambda report, norm=norm: replace(report, residual_norm=norm)
    result, _, _ = merged(boards, 2)
    assert result.residual_norm() == pytest.approx(4)
    assert result.residual_ratio() == pytest.approx(5 / (0.25 * 350**0.5))


def test_of_a_round_without_clients_the_loss_is_unknown():
    result = RoundResult(1)
    assert result.train_loss() is None
    assert result.frozen_share(LAYOUT) is None
    assert result.residual_norm() is None
    assert result.residual_ratio() is None
    assert (result.upload_bytes, result.download_bytes) == (0, 0)
