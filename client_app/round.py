"""One round on a board: settle, plan, train, encode, store, reply."""

from __future__ import annotations

import logging
import tempfile
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from pydantic import ValidationError

from client_app.assembly import NoModelError, assembled
from client_app.report import Reply, Reporter, measures_text, residuals_text
from client_app.resources import Identity, capacity_now
from client_app.settling import Outcome, Sent, send, settle, without_feedback
from client_app.store import BoardState, BoardStore, folder_name
from client_app.training import Trained, chosen_device, train
from client_app.waiting import adopted
from fedfreeze.errors import PlanError, ProtocolError, StateError
from fedfreeze.layout import Arrays, Layout
from fedfreeze.messages import NO_TEXT, TrainOrder, from_json
from fedfreeze.plan import Plan
from fedfreeze.run_folder import home
from strategies import schema
from strategies.bounds import board_for
from strategies.envelope import EnvelopeBound
from strategies.freeze import policy_for
from strategies.freeze.policy import RoundView
from strategies.layer_wishes import floors_of, importance_of
from strategies.local_step import Chain, GradientNorms
from strategies.methods import method_for
from strategies.movement import too_far
from strategies.orders import ORDER_BYTES, limits
from strategies.own_plan import own_plan, plan_text
from strategies.planner import Load
from strategies.schedule import learning_rate
from strategies.selection import RULES
from tasks.dataset import Examples
from tasks.loading import load

_log = logging.getLogger("fedfreeze")


def strategy_of(text: str) -> schema.Strategy:
    """The strategy that the server sent as JSON.

    Raises:
        ProtocolError: this release cannot read it.
    """
    try:
        return schema.Strategy.model_validate_json(text)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        where = ".".join(map(str, fault["loc"])) or "the text"
        raise ProtocolError(
            f"the strategy that the server sent cannot be read here: {where}: {fault['msg']}; "
            "install the same release of FedFreeze on the server and on every board"
        ) from error


@lru_cache(maxsize=4)
def examples_of(who: Identity, strategy: str, data_dir: str) -> Examples:
    """The node's own examples; a simulated worker asks for the same ones in every round.

    Args:
        who: the node, with its part of the data.
        strategy: JSON of the whole strategy.
        data_dir: where the server says that simulated nodes find the data; others know better.
    """
    wanted = strategy_of(strategy)
    told = data_dir if who.simulated and data_dir != NO_TEXT else None
    return load(wanted.task, wanted.options).client_examples(
        who.index, who.clients, wanted.split, who.data_dir or told
    )


class BoardRound:
    """One order and everything that one board needs to carry it out.

    Args:
        order: what the server asks.
        who: this board.

    Raises:
        ProtocolError: the order is for another device, layout or release.
    """

    def __init__(self, order: TrainOrder, who: Identity) -> None:
        self.order = order
        self.who = who
        self.strategy = strategy_of(order.strategy)
        self.task = load(self.strategy.task, self.strategy.options)
        self.layout = self.task.layout()
        _check(order, who, self.layout)
        self.examples = examples_of(who, order.strategy, order.data_dir)
        self.capacity, self.profile = capacity_now(
            who,
            fleet=order.fleet,
            seed=self.strategy.seed,
            round_number=order.round_number,
            device=self.strategy.local.device,
        )
        self.store = BoardStore(
            _state_dir(order, who),
            who.device_id,
            run=order.run,
            fingerprint=self.layout.fingerprint,
        )

    @property
    def device(self) -> torch.device:
        """Where the model trains; a simulated board has no GPU."""
        return chosen_device("cpu" if self.who.simulated else self.strategy.local.device)

    def play(self, came: bytes, *, by_packets: bool = False) -> Reply:
        """Settle, plan, train, encode, store.

        Args:
            came: the layers that were sent along, or the packets that lead to the server's version.
            by_packets: which of the two.
        """
        reporter = Reporter(self.order, self.who, self.capacity, len(self.examples))
        state = self._load()
        try:
            published = assembled(
                self.order, self.strategy, self.layout, state, came, by_packets=by_packets
            )
        except NoModelError as error:
            return Reply(reporter.untrained("needs-model", str(error)), None)
        if self.strategy.compression.downlink != "dense":
            state = replace(state, model_version=self.order.model_version, model=published)
        else:
            state = replace(state, model_version=None, model={})
        suggestion = _suggestion(self.order.plan, self.layout)
        try:
            plan = self._own_plan(suggestion, len(came))
            norms = GradientNorms(self.layout.layer_of)
            trained = self._train(plan, published, norms)
            _check_training(trained.delta, plan, published, self.layout)
        except PlanError as error:
            self.store.commit(state)
            detail = f"{error.limit}: {error}"
            return Reply(reporter.untrained("sat-out", detail, state.model_version), None)
        sent, state, outcome = self._send(plan, trained.delta, published, state, norms)
        self.store.commit(state)
        report = reporter.trained(
            outcome=outcome,
            plan=plan_text(plan, suggestion),
            measures=measures_text(trained.delta, published, norms, self.layout),
            trained=trained,
            sent=sent,
            state=state,
            residuals=residuals_text(state, self.layout)
            if self.strategy.residual.summary
            else "{}",
        )
        return Reply(report, sent.pending.packet)

    def _own_plan(self, suggestion: Plan, model_bytes: int) -> Plan:
        """The suggestion, fitted again to what the board can do now."""
        wanted = self.strategy
        asked = limits(self.layout, wanted.clients, wanted.compression, wanted.local, wanted.limits)
        load = Load(
            len(self.examples),
            model_bytes + ORDER_BYTES,
            self.order.envelope_bytes,
            board_for(asked, self.profile),
        )
        return own_plan(
            suggestion,
            layout=self.layout,
            capacity=self.capacity,
            limits=asked,
            load=load,
            bound=EnvelopeBound(wanted, self.layout, self.who.device_id),
        ).plan

    def _train(self, plan: Plan, published: Arrays, norms: GradientNorms) -> Trained:
        local, number = self.strategy.local, self.order.round_number
        policy = policy_for(self.strategy.freeze, self.layout)
        method = method_for(self.strategy.method, self.layout)
        rounds, seed = self.strategy.rounds, self.strategy.seed
        rate = learning_rate(local, number, rounds)
        view = RoundView(number, rounds, rate, seed)
        return train(
            self.task,
            published,
            self.examples,
            plan,
            layout=self.layout,
            local=local,
            learning_rate=rate,
            seed=_seed(seed, number, self.who.device_id),
            device=self.device,
            step=Chain([norms, policy.watch(view), method.local_step()]),
            wants_rms=RULES[self.strategy.clients.selection].reads_losses,
        )

    def _send(
        self,
        plan: Plan,
        delta: Arrays,
        published: Arrays,
        state: BoardState,
        norms: GradientNorms,
    ) -> tuple[Sent, BoardState, Outcome]:
        """The packet, the state after it, and how the packet before it was settled."""
        number, compression = self.order.round_number, self.strategy.compression
        rules = self.strategy.residual
        settled = settle(
            state,
            self.layout,
            round_number=number,
            accepted=(self.order.accepted_round, self.order.accepted_digest),
            precision=rules.precision,
        )
        keeps = compression.error_feedback
        measured = norms.mean_squares() if compression.boost_by == "importance" else None
        trained, budget_bytes = self.layout.ordered(plan.trained), plan.upload_budget_bytes
        rule = compression.mask_rule(self.strategy.seed)
        sent = send(
            delta,
            settled if keeps else without_feedback(settled),
            self.layout,
            trained,
            budget_bytes=budget_bytes,
            round_number=number,
            settings=compression.codec(len(self.examples)),
            rules=rules,
            before=published,
            floors={} if rule else floors_of(self.layout, compression.floors),
            importance=importance_of(self.layout, compression.boost, measured),
            mask=rule.mask(self.layout, trained, budget_bytes, number) if rule else None,
        )
        left = sent.residual if keeps else {}
        state = replace(state, residual=left, pending=sent.pending, history=sent.history)
        return sent, state, settled.outcome

    def _load(self) -> BoardState:
        """The board's state; after a change of layout, what the strategy takes over."""
        rules = self.strategy.residual
        try:
            state = self.store.load()
            if rules.layout_change != "drop" and (other := self.store.load_other_layout()):
                state = adopted(other, self.layout, rules)
        except StateError as error:
            _log.warning("%s; starting afresh", error)
            self.store.forget()
            return BoardState()
        return state


def _check(order: TrainOrder, who: Identity, layout: Layout) -> None:
    if order.device_id != who.device_id:
        raise ProtocolError(
            f'the order is for "{order.device_id}", this is "{who.device_id}"; two nodes may '
            "share a device-id"
        )
    if order.fingerprint != layout.fingerprint:
        raise ProtocolError(
            f"expected a model with the layout {layout.fingerprint}, the server has "
            f"{order.fingerprint}; install the same release and the same task on both"
        )


def _check_training(delta: Arrays, plan: Plan, published: Arrays, layout: Layout) -> None:
    """What the server would refuse is not sent, and must not wait in the residual either.

    Raises:
        PlanError: training moved a layer too far.
    """
    for wrong in too_far(delta, plan.trained, published, layout):
        raise PlanError(f"local training diverged: {wrong}", limit="training")


def _suggestion(text: str, layout: Layout) -> Plan:
    plan = Plan.from_json(from_json("order.plan", text))
    plan.check(layout)
    return plan


def _state_dir(order: TrainOrder, who: Identity) -> Path:
    """Real boards decide for themselves where they write; only simulated ones are told."""
    if who.state_dir is not None:
        return Path(who.state_dir)
    if not who.simulated:
        return home() / "state"
    if order.state_dir != NO_TEXT:
        return Path(order.state_dir)
    return Path(tempfile.gettempdir()) / "fedfreeze-simulated" / folder_name(order.run)


def _seed(seed: int, round_number: int, device_id: str) -> int:
    sequence = np.random.SeedSequence([seed, round_number, *device_id.encode()])
    return int(sequence.generate_state(1, np.uint64)[0] >> np.uint64(1))
