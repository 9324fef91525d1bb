"""Four ways down for the published model; whichever it is, boards hold the server's very bits."""

from __future__ import annotations

import numpy as np
import pytest
from safetensors.numpy import load_file

from strategies.published import Published
from tests.conftest import records
from tests.grid import FIRST_NODE
from tests.round.held_models import held_by, model_of

# Has running statistics and their counter, which packets carry exactly or not at all.
TINY = ('task="tests.tiny_task"', "fleet=high", "compression.compression-ratio=1")
DOWNLINKS = ("dense", "delta", "quantised", "sparse")
BY_PACKETS = ("quantised", "sparse")


def tiny(kind, rounds):
    ratio = ("compression.downlink-ratio=3",) if kind == "sparse" else ()
    return (*TINY, f"rounds={rounds}", down(kind), *ratio)


def down(kind):
    return f'compression.downlink="{kind}"'


def bits(arrays):
    return {name: np.asarray(array).tobytes() for name, array in arrays.items()}


def parts_of(orders):
    """By round and node: which part of the model an order carried, and its bytes."""
    return {
        (order["round_number"], message.metadata.dst_node_id - FIRST_NODE): next(
            (part, len(message.content[part]["packed"].data))
            for part in ("packets", "model")
            if part in message.content
        )
        for message in orders
        if (order := message.content.get("order")) is not None
    }


def missing(orders, *rounds):
    """Keeps every order that is sent; node 2 does not answer those of some rounds."""

    def on_order(message):
        orders.append(message)
        order = message.content.get("order")
        is_third = message.metadata.dst_node_id == FIRST_NODE + 2
        if is_third and order is not None and order["round_number"] in rounds:
            raise ValueError("asleep")

    return on_order


@pytest.fixture
def published_after(monkeypatch):
    """The bits of the server's model by version, as they were published."""
    seen = {}
    advance = Published.advance

    def watched(self, steps):
        seen.setdefault(self.version, bits(self.arrays))
        advance(self, steps)
        seen[self.version] = bits(self.arrays)

    monkeypatch.setattr(Published, "advance", watched)
    return seen


@pytest.mark.parametrize("kind", ["delta", "quantised", "sparse"])
def test_every_board_holds_the_bits_of_the_version_that_it_was_sent(
    small_run, published_after, kind
):
    run = small_run(*tiny(kind, 4))
    run.play()
    for index in range(3):
        state = held_by(run, index)
        assert state.model_version == 3
        assert bits(state.model) == published_after[3]


@pytest.mark.parametrize("kind", DOWNLINKS)
def test_a_run_that_was_stopped_and_resumed_equals_one_that_was_not(small_run, kind):
    wanted = (*tiny(kind, 5), "freeze.warm-up-rounds=1")
    whole = small_run(*wanted, name="whole")
    whole.play()
    small_run(*wanted, name="cut").play(until=3)
    resumed = small_run(*wanted, name="cut", resume=True)
    resumed.play()
    assert model_of(resumed) == model_of(whole)
    assert bits(resumed.strategy.published.memory()) == bits(whole.strategy.published.memory())
    kept = ("round", "test_accuracy", "upload_bytes", "download_bytes", "simulated_total_s")
    for of_resumed, of_whole in zip(records(resumed.folder), records(whole.folder), strict=True):
        # The number of bytes of a message moves by one or two with its random ids.
        assert abs(of_resumed["download_bytes"] - of_whole["download_bytes"]) < 32
        assert {k: of_resumed[k] for k in kept if k != "download_bytes"} == {
            k: of_whole[k] for k in kept if k != "download_bytes"
        }


class Killed(BaseException):
    """Stands for the death of the server's process."""


@pytest.mark.parametrize("kind", BY_PACKETS)
def test_boards_that_are_ahead_of_a_revived_server_skip_the_packets_they_have(small_run, kind):
    """Two boards have taken version 3 in round 4 when the server dies; it believes they hold 2."""
    wanted = tiny(kind, 5)
    whole = small_run(*wanted, name="whole")
    whole.play()

    def die(message):
        order = message.content.get("order")
        if order is not None and order["round_number"] == 4 and order["device_id"] == "sim-0002":
            raise Killed

    cut = small_run(*wanted, name="cut", grid={"on_order": die})
    with pytest.raises(Killed):
        cut.play()
    assert [held_by(cut, index).model_version for index in range(3)] == [3, 3, 2]
    resumed = small_run(*wanted, name="cut", resume=True)
    resumed.play()
    assert all("failures" not in record for record in records(resumed.folder))
    assert model_of(resumed) == model_of(whole)


@pytest.mark.parametrize("kind", DOWNLINKS)
def test_a_board_that_missed_rounds_holds_the_same_bits_as_one_that_did_not(
    small_run, published_after, kind
):
    """Node 2 does not answer in round 3: it is sent one step more than the others."""
    orders = []
    run = small_run(*tiny(kind, 5), grid={"on_order": missing(orders, 3)})
    run.play()
    assert [record["clients_used"] for record in records(run.folder)] == [3, 3, 2, 3, 3]
    sent = parts_of(orders)
    if kind in BY_PACKETS:
        assert sent[4, 0][0] == sent[4, 2][0] == "packets"
        assert 1.5 * sent[4, 0][1] < sent[4, 2][1] < 2.5 * sent[4, 0][1]
    else:
        assert sent[4, 2] == sent[4, 0]
    if kind != "dense":
        assert bits(held_by(run, 2).model) == bits(held_by(run, 0).model) == published_after[4]


@pytest.mark.parametrize("kind", BY_PACKETS)
def test_a_board_that_missed_too_much_is_sent_the_changed_layers_dense(
    small_run, published_after, kind
):
    """A packet is about a third of this model, so four of them are larger than all of it."""
    orders = []
    run = small_run(*tiny(kind, 6), grid={"on_order": missing(orders, 2, 3, 4)})
    run.play()
    sent = parts_of(orders)
    assert sent[5, 0][0] == "packets"
    assert sent[5, 2] == sent[1, 2]
    assert sent[5, 2][0] == "model"
    assert sent[6, 2] == sent[6, 0]
    assert bits(held_by(run, 2).model) == bits(held_by(run, 0).model) == published_after[5]


def test_up_to_date_boards_are_sent_the_same_bytes_and_far_fewer_of_them(small_run):
    orders = []
    run = small_run("rounds=3", "fleet=high", down("sparse"), grid={"on_order": orders.append})
    run.play()
    sent = parts_of(orders)
    packets = {
        message.content["packets"]["packed"].data
        for message in orders
        if "packets" in message.content and message.content["order"]["round_number"] == 3
    }
    assert len(packets) == 1
    assert sent[1, 0][0] == "model"
    assert sent[3, 0] == ("packets", len(packets.pop()))
    assert sent[3, 0][1] <= sent[1, 0][1] / 50


@pytest.mark.parametrize("kind", BY_PACKETS)
def test_the_byte_counts_are_those_of_the_messages_that_crossed_the_wire(small_run, kind):
    run = small_run(*tiny(kind, 2))
    grid = run.grid
    run.play(until=1)
    up, down_bytes = grid.upload_bytes, grid.download_bytes
    run.play(until=2)
    second = records(run.folder)[1]
    assert grid.upload_bytes - up == second["upload_bytes"]
    assert grid.download_bytes - down_bytes == second["download_bytes"]


@pytest.mark.parametrize("kind", BY_PACKETS)
def test_a_board_that_lost_its_model_is_sent_all_of_it_in_the_next_round(small_run, kind):
    orders = []
    run = small_run(*tiny(kind, 4), nodes=1, grid={"on_order": orders.append})
    run.play(until=2)
    for path in (run.folder.path / "simulated-boards" / "boards" / "sim-0000").iterdir():
        path.unlink()
    run.play()
    third, fourth = records(run.folder)[2:]
    assert third["failures"] == {
        "sim-0000": "lost the published model: expected version 1, the board holds none"
    }
    assert fourth["clients_used"] == 1
    assert [parts_of(orders)[number, 0][0] for number in (1, 2, 3, 4)] == [
        "model",
        "packets",
        "packets",
        "model",
    ]


@pytest.mark.parametrize("kind", ["delta", "sparse"])
def test_a_board_whose_model_is_not_the_servers_is_sent_all_of_it(small_run, kind):
    """As after a server that fell back to an older checkpoint: same number, other model."""
    run = small_run("rounds=4", "fleet=low", down(kind), nodes=1)
    run.play(until=2)
    published = run.strategy.published
    frozen = published.layout.names[0]
    name = published.layout[frozen].tensors[0].name
    published.arrays[name] = published.arrays[name] + np.float32(1)
    published._digest = None
    run.play()
    third, fourth = records(run.folder)[2:]
    assert third["failures"]["sim-0000"].startswith(
        "lost the published model: expected version 2 with the digest "
    )
    assert fourth["clients_used"] == 1


def test_the_model_that_is_measured_and_saved_is_the_one_that_boards_hold(small_run):
    run = small_run(*tiny("sparse", 2))
    run.play()
    assert bits(load_file(run.folder.model)) == model_of(run)
    assert run.strategy.published.residual
