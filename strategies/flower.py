"""The Flower ``Strategy`` that composes policy, planner, method and codec.

:class:`FedFreeze` works under Flower's own ``start()`` for those who embed it, and under
``server_app.round`` which adds checkpoints, resume and an audit log. It holds all state of the
server between rounds and does no I/O of its own but Flower's messages.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from logging import INFO, WARNING
from typing import Any

from flwr.app import (
    Array,
    ArrayRecord,
    ConfigRecord,
    Message,
    MetricRecord,
)
from flwr.common.logger import log
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Strategy

from device_profiles.clock import VirtualClock
from device_profiles.fleet import fleet_from_text
from fedfreeze.code_digest import code_digest
from fedfreeze.errors import PlanError, RunError
from fedfreeze.layer_digest import layer_digests
from fedfreeze.layout import Arrays, Layout
from fedfreeze.messages import NO_TEXT
from strategies import schema
from strategies.asking import Asking
from strategies.attendance import Attendance
from strategies.clients import Client, Clients
from strategies.coverage import Coverage, untrainable
from strategies.downlink import packet_rule
from strategies.enrolment import Exchange, enrol, new_query, through_grid
from strategies.freeze import policy_for
from strategies.freeze.policy import RoundOutcome, RoundView
from strategies.merging import Quorum, merged
from strategies.methods import method_for
from strategies.orders import Desk, Parcels, limits
from strategies.published import Published
from strategies.reception import Reception
from strategies.residual_watch import ResidualWatch
from strategies.round_result import RoundResult
from strategies.schedule import learning_rate
from strategies.selection import Offer, selector_for
from strategies.selection.log import records_of
from strategies.selection.prediction import predictions


class FedFreeze(Strategy):
    """Freeze, train the rest, send a packet inside a byte budget, merge layer by layer.

    Args:
        settings: the strategy TOML, as :func:`strategies.schema.load` reads it.
        layout: of the model; its tensors are what ``initial_arrays`` must hold.
        fleet: TOML of the simulated fleet; real boards ignore it.
        run: by which boards tell runs apart, so that a residual of another run is never used;
            a random one unless given.
        state_dir: where simulated clients keep their state.
        data_dir: where simulated clients find their data.
        exchange: sends messages; Flower's ``send_and_receive`` unless given.

    Raises:
        ConfigError: the fleet is none, or the strategy asks for what the model has not.
        FleetError: nobody is there and nobody comes any more, or the quorum was missed three times
            in a row.
        RunError: a simulation worker died.
    """

    def __init__(
        self,
        settings: schema.Strategy,
        layout: Layout,
        *,
        fleet: str = NO_TEXT,
        run: str | None = None,
        state_dir: str = NO_TEXT,
        data_dir: str = NO_TEXT,
        exchange: Exchange = through_grid,
    ) -> None:
        self.settings = settings
        self.layout = layout
        self.limits = limits(
            layout, settings.clients, settings.compression, settings.local, settings.limits
        )
        self.coverage = Coverage(
            layout,
            self.limits,
            q_min=settings.clients.q_min,
            rounds=settings.clients.coverage_rounds,
        )
        self._rule = packet_rule(layout, settings.compression)
        self.policy = policy_for(settings.freeze, layout)
        self.method = method_for(settings.method, layout)
        self.clients = Clients()
        self.clock = VirtualClock()
        self.attendance = Attendance(
            None if fleet == NO_TEXT else fleet_from_text(fleet, "fleet.toml"),
            seed=settings.seed,
            deadline_s=settings.clients.round_deadline,
        )
        self.result: RoundResult | None = None
        self._digest = code_digest()
        self._strategy_text = settings.model_dump_json(by_alias=True)
        self._fleet = fleet
        self.run = run or f"embedded-{uuid.uuid4().hex}"
        self._desk = Desk(
            self.run, self._strategy_text, fleet, state_dir, data_dir, settings.compression.downlink
        )
        self._exchange = exchange
        self._published: Published | None = None
        self._given: ArrayRecord | None = None
        self._unobserved: RoundOutcome | None = None
        self._reception = Reception(settings, layout, self.limits, self.clients, self._digest)
        self._quorum = Quorum(settings.clients.quorum)
        self._selector = selector_for(settings.clients, settings.seed)
        self._residual_watch = ResidualWatch()
        self._told_untrainable: dict[str, str] = {}

    # ---- the model

    @property
    def published(self) -> Published:
        """What clients hold.

        Raises:
            RunError: :meth:`publish` was not called yet.
        """
        if self._published is None:
            raise RunError("no model yet; call publish() first or use start(initial_arrays=...)")
        return self._published

    def publish(self, arrays: Arrays, version: int = 0) -> None:
        """Start from these arrays.

        Raises:
            LayoutError: they are not the layout's tensors.
        """
        self._published = Published(self.layout, arrays, version, self._rule)
        if version == 0 and self.settings.model.pretrained is not None:
            self._desk = replace(self._desk, initial=layer_digests(self.layout, arrays))

    # ---- one round, as Flower calls it

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> list[Message]:
        """Ask, plan, and write one order per client of the cohort.

        ``arrays`` is only looked at when it is not what :meth:`aggregate_train` returned last;
        ``config`` is not used: everything a client needs is in its order.
        """
        del config
        if len(arrays) and arrays is not self._given:
            version = 0 if self._published is None else self._published.version + 1
            self.publish({name: array.numpy() for name, array in arrays.items()}, version)
        self.observe(None)
        timeout_s = self.settings.clients.round_timeout
        enrol(
            grid,
            self.clients,
            exchange=self._exchange,
            query=new_query(server_round, self._strategy_text, self._fleet, self._desk.data_dir),
            code_digest=self._digest,
            timeout_s=timeout_s,
        )
        self.result = RoundResult(server_round)
        profiles = {i: self.clients[i].profile for i in self.clients.online()}
        nodes = len(list(grid.get_node_ids()))
        self.result.begins(self.attendance.open_round(server_round, profiles, nodes, self.clock))
        wanted = self.settings
        rate = self.learning_rate(server_round)
        view = RoundView(server_round, wanted.rounds, rate, wanted.seed)
        asking = Asking(
            view, self.policy, self.limits, self._desk, Parcels(self.published), ttl_s=timeout_s
        )
        messages = []
        cohort = [self.clients[device_id] for device_id in self._cohort(asking, self.result)]
        self._look_at_coverage(asking, cohort, self.result)
        for client in cohort:
            device_id = client.device_id
            self.result.capacities[device_id] = client.capacity
            try:
                asked, message = asking.ask(client, self.result.asked_to_cover(device_id))
            except PlanError as error:
                self.result.sat_out[device_id] = str(error)
                # It may do better next time, and nobody but itself can say so.
                self.clients.ask_again(device_id)
                continue
            self.result.asked[device_id] = asked
            messages.append(message)
        return messages

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Merge what is good, publish, and settle who was heard.

        Raises:
            FleetError, RunError: see the class.
        """
        result = self._current(server_round)
        self._reception.take(replies, result, self.published)
        silent = set(result.asked) - set(result.answers) - set(result.sat_out)
        self.note_failures(dict.fromkeys(silent, "no reply"), overwrite=False)
        result.ends(
            self.attendance.close_round(
                {i: answer.cost for i, answer in result.answers.items()},
                self.clock,
                asked=result.asked,
                awaited_s=None if result.expected else result.awaited_s,
            )
        )
        # Before the merge: the model is still the one that clients trained from.
        self._residual_watch.look_at(result, self.published.arrays, self.layout)
        if self._quorum.meets(result):
            self._unobserved = merged(
                result,
                self.published,
                layout=self.layout,
                method=self.method,
                clients=self.clients,
                learning_rate=self.learning_rate(result.number),
                reads_gains=self._selector.reads_gains,
            )
            trained = {i: result.answers[i].plan.trained for i in result.used}
            self.coverage.observe(result.number, trained)
        self._selector.observe(records_of(result))
        self._given = ArrayRecord(
            {name: Array(array) for name, array in self.published.arrays.items()}
        )
        return self._given, result.metrics(self.layout)

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Nobody: a further message would cost each board a process start."""
        del server_round, arrays, config, grid
        return []

    def aggregate_evaluate(
        self, server_round: int, replies: Iterable[Message]
    ) -> MetricRecord | None:
        """Nothing: nobody was asked."""
        del server_round, replies
        return None

    def summary(self) -> None:
        """One line each on policy, method and budget."""
        log(INFO, "\tpolicy %s, method %s", self.policy.name, self.method.name)
        log(INFO, "\tlargest packet %d bytes", self.limits.full_upload_bytes)

    # ---- between the two

    def devices(self) -> dict[int, str]:
        """Device id of each node that has orders in this round."""
        asked = {} if self.result is None else self.result.asked
        return {order.node_id: device_id for device_id, order in asked.items()}

    def note_failures(self, reasons: Mapping[str, str], *, overwrite: bool = True) -> None:
        """Record, by device id, why clients did not answer: the exchange knows more than Flower."""
        if self.result is not None:
            for device_id, why in reasons.items():
                if overwrite or device_id not in self.result.failed:
                    self.result.failed[device_id] = why

    def observe(self, validation_loss: float | None) -> None:
        """Let the policy learn from the last merged round; later calls for it do nothing."""
        if self._unobserved is not None:
            self.policy.observe(replace(self._unobserved, validation_loss=validation_loss))
            self._unobserved = None

    def state(self) -> dict[str, Any]:
        """All but the published arrays and their memory, as JSON values, for a checkpoint."""
        return {
            "run": self.run,
            "version": self.published.version,
            "changed_at": self.published.changed_at,
            "initial": dict(self._desk.initial),
            "clients": self.clients.to_json(),
            "policy": self.policy.state(),
            "method": self.method.state(),
            "simulated_s": self.clock.now_s,
            "attendance": self.attendance.state(),
            "void_rounds": self._quorum.void_rounds,
            "residual_watch": self._residual_watch.state(),
            "coverage": self.coverage.state(),
            "selection": self._selector.state(),
        }

    def restore(self, state: Mapping[str, Any], arrays: Arrays, memory: Arrays) -> None:
        """Take back :meth:`state`, the published arrays and :meth:`Published.memory`.

        Raises:
            LayoutError: the arrays are not the layout's tensors.
        """
        self.run = state["run"]
        self._desk = replace(self._desk, run=self.run, initial=dict(state["initial"]))
        self.publish(arrays, state["version"])
        self.published.changed_at = dict(state["changed_at"])
        self.published.recall(memory)
        self.clients.restore(state["clients"])
        self.policy.restore(state["policy"])
        self.method.restore(state["method"])
        self.clock = VirtualClock(state["simulated_s"])
        self.attendance.restore(state["attendance"])
        self._quorum.void_rounds = state["void_rounds"]
        self._residual_watch.restore(state["residual_watch"])
        self.coverage.restore(state["coverage"])
        self._selector.restore(state["selection"])

    # ---- parts of a round

    def learning_rate(self, number: int) -> float:
        """The local learning rate of a round."""
        return learning_rate(self.settings.local, number, self.settings.rounds)

    def _present(self) -> list[str]:
        """Device ids of those who are online, and there as their fleet has it, sorted."""
        away = {} if self.result is None else self.result.away
        return [device_id for device_id in self.clients.online() if device_id not in away]

    def _cohort(self, asking: Asking, result: RoundResult) -> tuple[str, ...]:
        candidates = tuple(self._present())
        predicted = {}
        if self._selector.reads_predictions:
            predicted = predictions(asking, (self.clients[i] for i in candidates))
        chosen = self._selector.cohort(Offer(result.number, candidates, predicted))
        result.selection = chosen if chosen.rule is not None else None
        return chosen.cohort

    def _look_at_coverage(
        self, asking: Asking, cohort: Sequence[Client], result: RoundResult
    ) -> None:
        """What no board can train, and what each client of the cohort is asked to."""
        everybody = (self.clients[device_id] for device_id in self._present())
        boards = ((client.capacity, asking.load(client)) for client in everybody)
        result.untrainable = untrainable(self.layout, self.limits, boards)
        if result.untrainable and result.untrainable != self._told_untrainable:
            limits_of = ", ".join(f"{name} ({why})" for name, why in result.untrainable.items())
            log(WARNING, "no board that is online can train %s", limits_of)
        self._told_untrainable = result.untrainable
        if self.coverage.is_on:
            wanted = {client.device_id: asking.wanted(client) for client in cohort}
            result.covered = self.coverage.cover(result.number, wanted)

    def _current(self, server_round: int) -> RoundResult:
        if self.result is None or self.result.number != server_round:
            raise RunError(f"round {server_round} was not configured; call configure_train() first")
        return self.result
