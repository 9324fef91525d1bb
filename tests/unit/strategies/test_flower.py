import json
from dataclasses import replace

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, Error, Message

from client_app.app import app as client_app
from device_profiles.fleet import fleet_text
from fedfreeze.errors import ConfigError, FleetError, LayoutError, RunError
from fedfreeze.messages import NO_ROUND, NO_TEXT
from strategies import schema
from strategies.envelope import EnvelopeBound
from strategies.flower import FedFreeze
from strategies.orders import ORDER_BYTES
from tasks.loading import load as load_task
from tasks.task import initial_arrays
from tests.grid import FIRST_NODE, InProcessGrid
from tests.unit.strategies.fake_boards import FakeBoards
from tests.unit.strategies.samples import board, constant, stack

LAYOUT = stack(stem=100, body=200, head=50)

SETTINGS = """
version = 1
rounds = 5
[freeze]
policy = "full"
[clients]
round-deadline = "60 s"
[compression]
compression-ratio = 1
[local]
learning-rate = 0.5
"""


def strategy(*overrides, layout=LAYOUT, **keys):
    settings = schema.from_text(SETTINGS, overrides=overrides)
    return FedFreeze(settings, layout, **{"run": "run", **keys})


def test_two_runs_without_a_name_are_told_apart():
    settings = schema.from_text(SETTINGS)
    assert FedFreeze(settings, LAYOUT).run != FedFreeze(settings, LAYOUT).run


def record(value=10.0, layout=LAYOUT):
    return ArrayRecord({name: Array(array) for name, array in constant(layout, value).items()})


def play(server, grid, number):
    """One round as Flower plays it; returns what happened."""
    orders = server.configure_train(number, ArrayRecord(), ConfigRecord(), grid)
    server.aggregate_train(number, grid.send_and_receive(orders))
    return server.result


def published(value=10.0, **keys):
    server = strategy(**keys)
    server.publish(constant(LAYOUT, value))
    return server


def bits(server):
    return {name: array.tobytes() for name, array in server.published.arrays.items()}


# ---- under Flower's own loop


def test_it_runs_under_flowers_own_loop_and_returns_the_arrays():
    """Weighted 1 to 3, deltas of 1 and 2 give 1.75 a round; packets of this size lose nothing."""
    boards = FakeBoards(
        LAYOUT,
        delta=lambda device_id, layer: {"b0": 1.0, "b1": 2.0}[device_id],
        examples={"b0": 10, "b1": 30},
    )
    server = strategy()
    result = server.start(InProcessGrid(boards.app(), 2), record(), num_rounds=2)
    for array in result.arrays.values():
        np.testing.assert_allclose(array.numpy(), 13.5, rtol=0.01)
    assert sorted(result.arrays) == sorted(LAYOUT.tensors)
    assert sorted(result.train_metrics_clientapp) == [1, 2]
    assert result.train_metrics_clientapp[2]["clients-used"] == 2
    assert result.train_metrics_clientapp[2]["train-loss"] == 1.5
    assert [order.round_number for order in boards.orders] == [1, 1, 2, 2]


def test_under_flowers_own_loop_a_client_is_sent_only_what_changed():
    """Memory keeps the stem frozen, so it is sent once."""
    boards = FakeBoards(LAYOUT, capacity=board(memory=110e6))
    strategy().start(InProcessGrid(boards.app(), 1), record(), num_rounds=2)
    versions = [(order.model_version, order.base_version) for order in boards.orders]
    assert versions == [(0, NO_ROUND), (1, 0)]


def test_the_shipped_client_trains_under_flowers_own_loop(tmp_path):
    settings = schema.load("full", ["rounds=2", "local.epochs=1", "local.batch-size=64"])
    task = load_task(settings.task)
    begin = initial_arrays(task, settings.seed)
    server = FedFreeze(settings, task.layout(), fleet=fleet_text("high"), state_dir=str(tmp_path))
    result = server.start(
        InProcessGrid(client_app, 2),
        ArrayRecord({name: Array(array) for name, array in begin.items()}),
        num_rounds=2,
    )
    task.layout().check({name: array.numpy() for name, array in result.arrays.items()})
    assert {round_["clients-used"] for round_ in result.train_metrics_clientapp.values()} == {2}
    assert all(not np.array_equal(result.arrays[n].numpy(), a) for n, a in begin.items())


def test_arrays_of_another_model_are_refused():
    with pytest.raises(LayoutError) as caught:
        strategy().start(
            InProcessGrid(FakeBoards(LAYOUT).app(), 1), record(layout=stack(stem=100, body=200))
        )
    assert str(caught.value) == "expected tensor 'head.w', got none of that name"


def test_a_ratio_that_leaves_no_packet_is_refused_before_a_node_is_asked():
    with pytest.raises(ConfigError):
        strategy("compression.compression-ratio=1000")


def test_without_a_model_nothing_is_configured():
    grid = InProcessGrid(FakeBoards(LAYOUT).app(), 1)
    with pytest.raises(RunError) as caught:
        strategy().configure_train(1, ArrayRecord(), ConfigRecord(), grid)
    assert str(caught.value) == (
        "no model yet; call publish() first or use start(initial_arrays=...)"
    )


def test_a_round_that_was_not_configured_cannot_be_merged():
    with pytest.raises(RunError) as caught:
        published().aggregate_train(3, [])
    assert str(caught.value) == "round 3 was not configured; call configure_train() first"


# ---- orders


def test_every_client_has_orders_of_its_own():
    grid = InProcessGrid(FakeBoards(LAYOUT).app(), 3)
    server = published()
    messages = server.configure_train(1, ArrayRecord(), ConfigRecord(), grid)
    orders = [message.content["order"] for message in messages]
    assert [order["device_id"] for order in orders] == ["b0", "b1", "b2"]
    orders[0]["round_number"] = 99
    assert [order["round_number"] for order in orders] == [99, 1, 1]
    assert messages[0].content["model"] is messages[1].content["model"]
    assert server.devices() == {FIRST_NODE + i: f"b{i}" for i in range(3)}


def test_a_board_on_which_no_plan_fits_sits_out_and_the_log_says_why():
    server = published()
    result = play(server, InProcessGrid(FakeBoards(LAYOUT, capacity=board(memory=1e6)).app(), 1), 1)
    assert (result.asked, result.void) == ({}, True)
    assert result.sat_out == {
        "b0": '"head" alone: training from here on needs 61 MB, the board has 1 MB'
    }


def test_a_plan_counts_the_bytes_of_the_packets_that_the_order_brings():
    """Not those of the 350 dense values, which would make slow boards freeze for nothing."""
    server = strategy('compression.downlink="sparse"', "compression.downlink-ratio=5")
    server.publish(constant(LAYOUT, 10.0))
    grid = InProcessGrid(FakeBoards(LAYOUT).app(), 1)
    play(server, grid, 1)
    message = server.configure_train(2, ArrayRecord(), ConfigRecord(), grid)[0]
    brought = len(message.content["packets"]["packed"].data)
    assert brought <= 350 * 4 / 5 + 4
    load = server.result.asked["b0"].load
    assert load.download_bytes == brought + ORDER_BYTES


def test_a_downlink_ratio_that_leaves_no_packet_is_refused_before_a_node_is_asked():
    with pytest.raises(ConfigError):
        strategy('compression.downlink="sparse"', "compression.downlink-ratio=1000")


# ---- merging


def test_a_layer_that_nobody_trained_stays_bit_identical_and_is_not_sent_again():
    """Memory allows the head and the body but not the stem: 32 examples of a megabyte each."""
    boards = FakeBoards(LAYOUT, capacity=board(memory=110e6))
    server, grid = published(0.1), InProcessGrid(boards.app(), 2)
    before = bits(server)
    result = play(server, grid, 1)
    assert result.used == ("b0", "b1")
    assert bits(server)["stem.w"] == before["stem.w"]
    assert bits(server)["body.w"] != before["body.w"]
    assert result.frozen_share(LAYOUT) == pytest.approx(100 / 350)
    messages = server.configure_train(2, ArrayRecord(), ConfigRecord(), grid)
    assert messages[0].content["order"]["base_version"] == 0
    array = messages[0].content["model"]["packed"]
    assert 250 * 4 < len(array.data) < 350 * 4


def test_a_client_that_froze_a_layer_does_not_hold_back_the_one_that_trained_it():
    """10 + 1 = 11, where a mean over everybody's examples would give 10.25."""
    boards = FakeBoards(
        LAYOUT, examples={"b0": 100, "b1": 300}, capacities={"b1": board(memory=110e6)}
    )
    server = published()
    result = play(server, InProcessGrid(boards.app(), 2), 1)
    assert result.used == ("b0", "b1")
    assert "stem" in result.answers["b1"].plan.frozen
    np.testing.assert_allclose(server.published.arrays["stem.w"], 11.0, rtol=1e-3)


@pytest.mark.parametrize("policy", ["full", "fedfreeze"])
def test_the_order_of_replies_changes_no_bit(policy):
    def final(reply_order):
        boards = FakeBoards(
            LAYOUT,
            delta=lambda device_id, layer: {"b0": 50.0, "b1": -50.0, "b2": 3e-3}[device_id],
            examples={"b0": 7, "b1": 11, "b2": 13},
        )
        server = published(0.1)
        server.policy = strategy(f'freeze.policy="{policy}"').policy
        grid = InProcessGrid(boards.app(), 3, reply_order=reply_order)
        for number in (1, 2, 3):
            play(server, grid, number)
            server.observe(1.0 / number)
        return bits(server), json.dumps(server.state())

    assert final(list) == final(lambda replies: replies[::-1])


def test_the_same_reply_twice_counts_once():
    grid = InProcessGrid(FakeBoards(LAYOUT).app(), 1)
    once, twice = published(), published()
    for server, times in ((once, 1), (twice, 2)):
        orders = server.configure_train(1, ArrayRecord(), ConfigRecord(), grid)
        server.aggregate_train(1, list(grid.send_and_receive(orders)) * times)
    assert bits(twice) == bits(once)
    assert twice.result.upload_bytes == once.result.upload_bytes


def test_a_second_reply_does_not_replace_the_first():
    boards = FakeBoards(LAYOUT)
    server, grid = published(), InProcessGrid(boards.app(), 1)
    orders = server.configure_train(1, ArrayRecord(), ConfigRecord(), grid)
    first = list(grid.send_and_receive(orders))
    boards.change["b0"] = lambda report: replace(report, train_loss=9.0, examples=99)
    second = list(grid.send_and_receive(orders))
    server.aggregate_train(1, first + second)
    assert server.result.answers["b0"].report.train_loss == 1.5
    assert server.clients["b0"].examples == 10


def test_a_reply_of_an_earlier_round_is_refused():
    server, grid = published(), InProcessGrid(FakeBoards(LAYOUT).app(), 1)
    orders = server.configure_train(1, ArrayRecord(), ConfigRecord(), grid)
    old = list(grid.send_and_receive(orders))
    server.aggregate_train(1, old)
    after_1 = bits(server)
    server.configure_train(2, ArrayRecord(), ConfigRecord(), grid)
    server.aggregate_train(2, old)
    assert server.result.failed == {"b0": "ProtocolError: round: expected 2, got 1"}
    assert bits(server) == after_1
    assert server.clients["b0"].accepted[0] == 1


def test_a_bad_reply_is_kept_from_the_others():
    boards = FakeBoards(LAYOUT, change={"b1": lambda r: replace(r, measures='{"head": [NaN, 1]}')})
    server = published()
    result = play(server, InProcessGrid(boards.app(), 3), 1)
    assert result.used == ("b0", "b2")
    assert result.failed == {
        "b1": "ProtocolError: measures of 'head': expected 2 numbers >= 0, got [nan, 1]"
    }
    assert server.clients["b1"].accepted is None
    np.testing.assert_allclose(server.published.arrays["head.w"], 11.0, rtol=1e-3)


def test_a_board_whose_update_is_refused_has_taken_the_model_all_the_same():
    """Or it would be sent one step more in each round in which its training diverges."""
    boards = FakeBoards(
        LAYOUT,
        delta=lambda device_id, layer: 1e9 if device_id == "b0" else 1.0,
        capacity=board(memory=110e6),
    )
    server, grid = published(), InProcessGrid(boards.app(), 3)
    result = play(server, grid, 1)
    assert result.used == ("b1", "b2")
    assert result.failed["b0"].startswith("ProtocolError: layer 'body': expected an update of a ")
    play(server, grid, 2)
    assert [order.base_version for order in boards.orders] == [NO_ROUND] * 3 + [0] * 3


def test_a_reply_from_a_node_that_was_not_asked_is_dropped():
    server, grid = (
        published(),
        InProcessGrid(FakeBoards(LAYOUT).app(), 2),
    )
    orders = server.configure_train(1, ArrayRecord(), ConfigRecord(), grid)
    replies = list(grid.send_and_receive(orders))
    del server.result.asked["b1"]
    server.aggregate_train(1, replies)
    assert server.result.used == ("b0",)


def test_the_bytes_of_every_reply_count_whatever_it_says():
    """One is merged, one sat out, one is refused."""
    boards = FakeBoards(
        LAYOUT,
        change={
            "b1": lambda r: replace(r, status="sat-out", detail="memory", measures="{}"),
            "b2": lambda r: replace(r, measures='{"head": [NaN, 1]}'),
        },
    )
    server, grid = published(), InProcessGrid(boards.app(), 3)
    orders = server.configure_train(1, ArrayRecord(), ConfigRecord(), grid)
    before = grid.upload_bytes
    server.aggregate_train(1, grid.send_and_receive(orders))
    assert set(server.result.answers) == {"b0"}
    assert server.result.upload_bytes == grid.upload_bytes - before


# ---- settling


def test_what_was_merged_is_acknowledged_in_the_next_order():
    boards = FakeBoards(LAYOUT)
    server, grid = published(), InProcessGrid(boards.app(), 1)
    play(server, grid, 1)
    digest = server.result.answers["b0"].report.packet_digest
    play(server, grid, 2)
    assert [(o.accepted_round, o.accepted_digest) for o in boards.orders] == [
        (NO_ROUND, NO_TEXT),
        (1, digest),
    ]


def test_the_next_plan_leaves_room_for_a_heavier_envelope_than_the_last():
    server, grid = published(), InProcessGrid(FakeBoards(LAYOUT).app(), 1)
    play(server, grid, 1)
    weighed = server.result.answers["b0"].envelope_bytes
    bound = EnvelopeBound(server.settings, LAYOUT, "b0")
    most = bound.most_bytes(LAYOUT.names, server.limits.full_upload_bytes)
    play(server, grid, 2)
    assert server.result.asked["b0"].load.envelope_bytes == most > weighed


def test_a_client_past_the_simulated_deadline_is_not_accepted():
    boards = FakeBoards(LAYOUT, later_capacity={"b1": board(flops=1.0)})
    server = published()
    result = play(server, InProcessGrid(boards.app(), 3), 1)
    assert (result.used, result.late, result.void) == (("b0", "b2"), ("b1",), False)
    assert (result.simulated_s, server.clock.now_s) == (60.0, 60.0)
    assert server.clients["b1"].accepted is None
    assert server.clients["b0"].accepted[0] == 1
    assert set(result.answers) == {"b0", "b1", "b2"}


def test_a_client_that_lost_its_model_is_sent_all_of_it():
    boards = FakeBoards(LAYOUT, capacity=board(memory=110e6))
    server, grid = published(), InProcessGrid(boards.app(), 1)
    play(server, grid, 1)
    boards.change["b0"] = lambda r: replace(
        r, status="needs-model", detail="disk lost", held_version=NO_ROUND, measures="{}"
    )
    result = play(server, grid, 2)
    assert result.failed == {"b0": "lost the published model: disk lost"}
    del boards.change["b0"]
    play(server, grid, 3)
    assert [order.base_version for order in boards.orders] == [NO_ROUND, 0, NO_ROUND]


# ---- void rounds


def test_a_round_below_its_quorum_leaves_the_model_and_accepts_nothing():
    """The quorum is 0.6 of three: two must answer."""
    server = published()
    before = bits(server)
    grid = InProcessGrid(FakeBoards(LAYOUT, silent={"b0", "b1"}).app(), 3)
    result = play(server, grid, 1)
    assert (result.void, result.used, server.published.version) == (True, (), 0)
    assert bits(server) == before
    assert server.clients["b2"].accepted is None
    assert result.failed == dict.fromkeys(("b0", "b1"), "code 2: RuntimeError: out of memory")


def test_those_who_sat_out_do_not_count_for_the_quorum():
    def sits_out(report):
        return replace(report, status="sat-out", detail="memory: short", measures="{}")

    boards = FakeBoards(LAYOUT, change=dict.fromkeys(("b0", "b1"), sits_out))
    result = play(published(), InProcessGrid(boards.app(), 3), 1)
    assert (result.used, result.void) == (("b2",), False)
    assert result.sat_out == dict.fromkeys(("b0", "b1"), "memory: short")


def test_three_void_rounds_in_a_row_end_the_run_with_the_last_reason_of_each_client():
    server = published()
    boards = FakeBoards(
        LAYOUT,
        silent={"b0"},
        capacities={"b2": board(memory=1e6)},
        later_capacity={"b1": board(flops=1.0)},
    )
    grid = InProcessGrid(boards.app(), 3)
    for number in (1, 2):
        assert play(server, grid, number).void
    with pytest.raises(FleetError) as caught:
        play(server, grid, 3)
    # What b1 said of itself in round 1 kept it out of round 2; it was asked anew for round 3.
    assert str(caught.value) == (
        "3 void rounds in a row; the last one: round 3 is void: 0 of 2 clients answered in time, "
        "the quorum is 0.6 (b0: code 2: RuntimeError: out of memory; b1: late; b2 sat out: "
        '"head" alone: training from here on needs 61 MB, the board has 1 MB)'
    )


def test_a_board_on_which_no_plan_fitted_is_asked_anew_what_it_can_do():
    boards = FakeBoards(LAYOUT, capacities={"b1": board(memory=1e6)})
    server, grid = published(), InProcessGrid(boards.app(), 2)
    assert set(play(server, grid, 1).sat_out) == {"b1"}
    boards.capacities.clear()
    assert play(server, grid, 2).used == ("b0", "b1")


def test_a_board_that_sat_out_by_itself_is_asked_anew_what_it_can_do():
    boards = FakeBoards(LAYOUT, later_capacity={"b1": board(memory=1e6)})
    boards.change["b1"] = lambda r: replace(r, status="sat-out", detail="memory", measures="{}")
    server, grid = published(), InProcessGrid(boards.app(), 2)
    assert play(server, grid, 1).sat_out == {"b1": "memory"}
    boards.later_capacity.clear()
    boards.change.clear()
    assert play(server, grid, 2).used == ("b0", "b1")


def test_a_round_that_is_not_void_starts_the_count_again():
    boards = FakeBoards(LAYOUT, silent={"b0"})
    server, grid = published(), InProcessGrid(boards.app(), 1)
    for number in range(1, 8):
        boards.silent = set() if number % 3 == 0 else {"b0"}
        assert play(server, grid, number).void == (number % 3 != 0)


def test_a_node_that_says_nothing_is_recorded():
    grid = InProcessGrid(
        FakeBoards(LAYOUT).app(),
        2,
        on_reply=lambda reply: (
            None
            if "packet" in reply.content and reply.metadata.src_node_id == FIRST_NODE
            else reply
        ),
    )
    result = play(published(), grid, 1)
    assert result.failed == {"b0": "no reply"}


def test_what_the_exchange_knows_of_a_failure_is_not_overwritten():
    server = published()
    grid = InProcessGrid(FakeBoards(LAYOUT).app(), 1)
    server.configure_train(1, ArrayRecord(), ConfigRecord(), grid)
    server.note_failures({"b0": "no reply within 600 s"})
    server.aggregate_train(1, [])
    assert server.result.failed == {"b0": "no reply within 600 s"}


def test_real_boards_are_asked_whatever_the_fleet_says_of_simulated_ones():
    never = '[[board]]\nprofile = "laptop"\navailability = 0\n'
    server = published(fleet=never)
    result = play(server, InProcessGrid(FakeBoards(LAYOUT).app(), 2), 1)
    assert result.used == ("b0", "b1")
    assert (result.away, result.arrival_s, result.modelled_energy_j) == ({}, {}, {})
    assert server.attendance.modelled_energy_total_j is None


def test_a_dead_simulation_worker_ends_the_run():
    server, grid = published(), InProcessGrid(FakeBoards(LAYOUT).app(), 1)
    (order,) = server.configure_train(1, ArrayRecord(), ConfigRecord(), grid)
    order.metadata.__dict__["_message_id"] = "1"
    with pytest.raises(RunError) as caught:
        server.aggregate_train(1, [Message(Error(0, "actor died"), reply_to=order)])
    assert str(caught.value) == "a simulation worker died in round 1: code 0: actor died"


# ---- state


def test_a_strategy_restored_from_json_goes_on_as_if_nothing_had_happened():
    def rounds(server, grid, numbers):
        for number in numbers:
            play(server, grid, number)
            server.observe(1.0 / number)
        return bits(server), json.dumps(server.state())

    overrides = ('freeze={policy="fedfreeze", warm-up-rounds=1, threshold=0.3}',)

    def fresh():
        server = strategy(*overrides)
        server.publish(constant(LAYOUT, 0.1))
        return server, InProcessGrid(FakeBoards(LAYOUT).app(), 3)

    uninterrupted = rounds(*fresh(), range(1, 6))
    stopped, grid = fresh()
    rounds(stopped, grid, range(1, 4))
    state = json.loads(json.dumps(stopped.state()))
    resumed = strategy(*overrides)
    resumed.restore(state, stopped.published.arrays, stopped.published.memory())
    assert rounds(resumed, grid, range(4, 6)) == uninterrupted


def test_void_rounds_before_a_restart_count_towards_the_three_in_a_row():
    grid = InProcessGrid(FakeBoards(LAYOUT, silent={"b0"}).app(), 1)
    stopped, resumed = published(), strategy()
    for number in (1, 2):
        play(stopped, grid, number)
    resumed.restore(stopped.state(), stopped.published.arrays, stopped.published.memory())
    with pytest.raises(FleetError):
        play(resumed, grid, 3)


def test_a_round_is_learned_from_once():
    server = published()
    seen = []
    server.policy.observe = seen.append
    play(server, InProcessGrid(FakeBoards(LAYOUT).app(), 1), 1)
    server.observe(0.5)
    server.observe(0.7)
    assert [(outcome.number, outcome.validation_loss) for outcome in seen] == [(1, 0.5)]
    assert seen[0].learning_rate == 0.5
    assert set(seen[0].movement) == set(LAYOUT.names)


# ---- residuals and few examples


def with_residual(norm):
    """A report of boards whose training moved the model (350 values of 10) by a quarter."""
    return lambda report: replace(report, residual_norm=norm)


MOVED = 0.25 * 10 * 350**0.5


def test_a_residual_that_stays_too_large_gives_a_warning_in_the_fifth_round(caplog):
    server = published()
    boards = FakeBoards(LAYOUT, change={"b1": with_residual(10.5 * MOVED)})
    boards.delta = lambda device_id, layer: 0.0  # the model stays, and with it the ratio
    grid = InProcessGrid(boards.app(), 2)
    for number in range(1, 5):
        result = play(server, grid, number)
        assert result.residual_ratios == {"b0": 0.0, "b1": pytest.approx(10.5)}
        assert result.residual_warnings == {}
    result = play(server, grid, 5)
    assert list(result.residual_warnings) == ["b1"]
    assert result.residual_warnings["b1"].startswith(
        "b1: expected a residual of up to 10 times the round's update, got 10.5 times"
    )
    assert result.residual_warnings["b1"] in caplog.text


def test_rounds_before_a_restart_count_towards_that_warning():
    boards = FakeBoards(LAYOUT, change={"b0": with_residual(1e9)})
    grid = InProcessGrid(boards.app(), 1)
    stopped, resumed = published(), strategy()
    for number in range(1, 5):
        play(stopped, grid, number)
    resumed.restore(
        json.loads(json.dumps(stopped.state())),
        stopped.published.arrays,
        stopped.published.memory(),
    )
    assert list(play(resumed, grid, 5).residual_warnings) == ["b0"]


def test_a_client_with_few_examples_is_merged_with_the_weight_that_the_strategy_gives_it():
    """Deltas 1 and 5: weights 40 and 10 give 1.8; 40 and 10 * 10 / 40 = 2.5 give 52.5 / 42.5."""
    boards = FakeBoards(LAYOUT, examples={"b0": 40, "b1": 10})
    boards.delta = lambda device_id, layer: {"b0": 1.0, "b1": 5.0}[device_id]
    merged = {}
    for overrides in ((), ('compression.few-examples="damped-weight"', "compression.n-min=40")):
        server = strategy(*overrides)
        server.publish(constant(LAYOUT, 0.0))
        play(server, InProcessGrid(boards.app(), 2), 1)
        merged[overrides] = server.published.arrays["head.w"][0]
    plain, damped = merged.values()
    assert plain == pytest.approx(1.8, rel=1e-4)
    assert damped == pytest.approx(52.5 / 42.5, rel=1e-4)
