"""The Flower ``Strategy`` that composes policy, planner, method and codec.

:class:`FedFreeze` works under Flower's own ``start()`` for those who embed it, and under
``server_app.round`` which adds checkpoints, resume and an audit log. It holds all state of the
server between rounds and does no I/O of its own but Flower's messages.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import replace
from logging import INFO, WARNING
from typing import Any

from flwr.app import (
    Array,
    ArrayRecord,
    ConfigRecord,
    Message,
    MessageType,
    MetricRecord,
)
from flwr.common.logger import log
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Strategy

from device_profiles.clock import VirtualClock, round_seconds
from fedfreeze.code_digest import code_digest
from fedfreeze.errors import FedFreezeError, FleetError, PlanError, RunError
from fedfreeze.layer_digest import layer_digests
from fedfreeze.layout import Arrays, Layout
from fedfreeze.messages import NO_TEXT, WORKER_DIED
from fedfreeze.wire_size import wire_bytes
from strategies import schema
from strategies.aggregation.step import global_step
from strategies.clients import Client, Clients
from strategies.downlink import packet_rule
from strategies.enrolment import Exchange, enrol, new_query, through_grid
from strategies.freeze import policy_for
from strategies.freeze.policy import ClientOutcome, ClientView, RoundOutcome, RoundView
from strategies.methods import method_for
from strategies.orders import ORDER_BYTES, Asked, Desk, Parcels, limits
from strategies.planner import Load, feasible, fit
from strategies.published import Published
from strategies.replies import check_movement, understand
from strategies.residual_watch import ResidualWatch, residual_ratio
from strategies.round_result import RoundResult
from strategies.schedule import learning_rate
from strategies.selection import choose

# After so many void rounds in a row nothing is going to get better by itself.
MOST_VOID_ROUNDS = 3


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
        FleetError: nobody is there, or the quorum was missed three times in a row.
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
        self.limits = limits(layout, settings.clients, settings.compression, settings.local)
        self._rule = packet_rule(layout, settings.compression)
        self.policy = policy_for(settings.freeze, layout)
        self.method = method_for(settings.method, layout)
        self.clients = Clients()
        self.clock = VirtualClock()
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
        self._void_rounds = 0
        self._residual_watch = ResidualWatch()

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
        parcels = Parcels(self.published)
        messages = []
        for device_id in self._cohort(server_round):
            self.result.capacities[device_id] = self.clients[device_id].capacity
            try:
                asked, message = self._ask(self.clients[device_id], server_round, parcels)
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
        nodes = self.devices()
        for reply in replies:
            if reply.has_error():
                self._note_error(result, reply, nodes)
            else:
                self._note_reply(result, reply, nodes)
        silent = set(result.asked) - set(result.answers) - set(result.sat_out)
        self.note_failures(dict.fromkeys(silent, "no reply"), overwrite=False)
        self._settle_clock(result)
        self._watch_residuals(result)
        self._merge(result)
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
            "void_rounds": self._void_rounds,
            "residual_watch": self._residual_watch.state(),
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
        self._void_rounds = state["void_rounds"]
        self._residual_watch.restore(state["residual_watch"])

    # ---- parts of a round

    def learning_rate(self, number: int) -> float:
        """The local learning rate of a round."""
        return learning_rate(self.settings.local, number, self.settings.rounds)

    def _cohort(self, number: int) -> tuple[str, ...]:
        rules = self.settings.clients
        return choose(
            rules.selection,
            self.clients.online(),
            share=rules.share,
            seed=self.settings.seed,
            number=number,
        )

    def _ask(self, client: Client, number: int, parcels: Parcels) -> tuple[Asked, Message]:
        """One client's suggestion and the message that carries it."""
        view = RoundView(number, self.settings.rounds, self.learning_rate(number))
        able = feasible(self.layout, client.capacity, self.limits)
        advice = self.policy.advise(
            view, ClientView(client.device_id, client.capacity, client.examples, able)
        )
        shipment = self._desk.shipment(client, self.published)
        load = Load(
            client.examples,
            parcels.model_bytes(shipment) + ORDER_BYTES,
            client.envelope_bytes,
        )
        plan = fit(
            advice, layout=self.layout, capacity=client.capacity, limits=self.limits, load=load
        )
        order = self._desk.order(client, plan, self.published, number, shipment)
        node_id = client.node_id
        if node_id is None:
            raise RunError(f'"{client.device_id}" was planned for while it is offline')
        message = Message(
            parcels.content(order, shipment),
            node_id,
            MessageType.TRAIN,
            ttl=self.settings.clients.round_timeout,
            group_id=str(number),
        )
        return Asked(client, node_id, advice, plan, order, load, wire_bytes(message)), message

    def _current(self, server_round: int) -> RoundResult:
        if self.result is None or self.result.number != server_round:
            raise RunError(f"round {server_round} was not configured; call configure_train() first")
        return self.result

    def _note_error(self, result: RoundResult, reply: Message, nodes: Mapping[int, str]) -> None:
        reason = f"code {reply.error.code}: {reply.error.reason}"
        if reply.error.code == WORKER_DIED:
            raise RunError(f"a simulation worker died in round {result.number}: {reason}")
        device_id = nodes.get(reply.metadata.src_node_id)
        if device_id is not None:
            result.failed[device_id] = reason

    def _note_reply(self, result: RoundResult, reply: Message, nodes: Mapping[int, str]) -> None:
        device_id = nodes.get(reply.metadata.src_node_id)
        if device_id is None or device_id in result.answers:
            log(WARNING, "dropped a reply nobody waits for, node %d", reply.metadata.src_node_id)
            return
        asked = result.asked[device_id]
        try:
            answer = understand(
                reply.content,
                asked,
                self.layout,
                upload_bytes=wire_bytes(reply),
                code_digest=self._digest,
                optimizer_slots=self.limits.optimizer_slots,
                few_examples=self.settings.compression.small_clients,
            )
            # Whatever becomes of its update, it has taken the model.
            asked.client.held_version = answer.held_version
            if answer.update is not None:
                check_movement(answer.update, self.published.arrays, self.layout)
        except FedFreezeError as error:
            result.failed[device_id] = f"{type(error).__name__}: {error}"
            return
        result.failed.pop(device_id, None)
        client = asked.client
        client.capacity, client.examples = answer.capacity, answer.report.examples
        if answer.report.status == "needs-model":
            if asked.order.initial != NO_TEXT:
                client.initial = {}  # it does not have what it said it had
            result.failed[device_id] = f"lost the published model: {answer.report.detail}"
            return
        if answer.report.status == "sat-out":
            result.sat_out[device_id] = answer.report.detail
            self.clients.ask_again(device_id)
            return
        client.envelope_bytes = answer.envelope_bytes
        result.answers[device_id] = answer

    def _settle_clock(self, result: RoundResult) -> None:
        totals = {i: answer.cost.modelled_total_s for i, answer in result.answers.items()}
        deadline_s = self.settings.clients.round_deadline
        result.simulated_s, result.late = round_seconds(totals, deadline_s)
        self.clock.advance(result.simulated_s)

    def _watch_residuals(self, result: RoundResult) -> None:
        """Before the merge: the model is still the one that clients trained from."""
        for device_id, answer in sorted(result.answers.items()):
            norm, before = answer.report.residual_norm, self.published.arrays
            ratio = residual_ratio(norm, answer.measures, before, self.layout)
            if ratio is None:
                continue
            result.residual_ratios[device_id] = ratio
            if warning := self._residual_watch.note(device_id, ratio):
                result.residual_warnings[device_id] = warning
                log(WARNING, warning)

    def _merge(self, result: RoundResult) -> None:
        arrived = sorted(set(result.answers) - set(result.late))
        expected = len(result.asked) - len(set(result.sat_out) & set(result.asked))
        result.void = not arrived or len(arrived) < self.settings.clients.quorum * expected
        if result.void:
            self._count_void(result, expected)
            return
        self._void_rounds = 0
        result.used = tuple(arrived)
        updates = [u for i in arrived if (u := result.answers[i].update) is not None]
        step = global_step(self.layout, updates, self.method, self.published.arrays)
        self.published.advance(step.steps)
        for device_id in arrived:
            report = result.answers[device_id].report
            self.clients[device_id].accepted = (result.number, report.packet_digest)
        self._unobserved = RoundOutcome(
            number=result.number,
            learning_rate=self.learning_rate(result.number),
            clients={
                i: ClientOutcome(
                    result.answers[i].plan,
                    float(result.answers[i].report.examples),
                    result.answers[i].measures,
                )
                for i in arrived
            },
            movement=step.movement,
            step_norm=step.norm,
            validation_loss=None,
        )

    def _count_void(self, result: RoundResult, expected: int) -> None:
        self._void_rounds += 1
        why = "; ".join(
            [f"{i}: {reason}" for i, reason in sorted(result.failed.items())]
            + [f"{i}: late" for i in result.late]
            + [f"{i} sat out: {reason}" for i, reason in sorted(result.sat_out.items())]
        )
        text = (
            f"round {result.number} is void: {len(result.answers) - len(result.late)} of "
            f"{expected} clients answered in time, the quorum is "
            f"{self.settings.clients.quorum:g} ({why or 'nobody was asked'})"
        )
        log(WARNING, text)
        if self._void_rounds >= MOST_VOID_ROUNDS:
            raise FleetError(f"{self._void_rounds} void rounds in a row; the last one: {text}")
