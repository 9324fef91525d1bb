"""One round on a board: settle, plan, train, encode, store, reply."""

from __future__ import annotations

import json
import logging
import tempfile
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
from pydantic import ValidationError
from safetensors import SafetensorError
from safetensors.numpy import load as load_safetensors

from client_app.initial import own_layers
from client_app.resources import Identity, capacity_now
from client_app.settling import Outcome, send, settle
from client_app.store import BoardState, BoardStore, Pending, folder_name
from client_app.training import Trained, chosen_device, movements, train
from compression import CodecSettings
from fedfreeze.code_digest import code_digest
from fedfreeze.errors import PlanError, ProtocolError, StateError
from fedfreeze.layout import Arrays, Layout
from fedfreeze.messages import NO_ROUND, NO_TEXT, PROTOCOL, TrainOrder, TrainReport, from_json
from fedfreeze.plan import Plan
from fedfreeze.run_folder import home
from strategies import schema
from strategies.aggregation.step import l2_norm
from strategies.freeze import policy_for
from strategies.local_step import Chain, GradientNorms
from strategies.methods import method_for
from strategies.orders import ORDER_BYTES, limits
from strategies.planner import Load, as_advice, fit
from strategies.schedule import learning_rate
from tasks.dataset import Examples
from tasks.loading import load

_log = logging.getLogger("fedfreeze")


@dataclass(frozen=True)
class Reply:
    """What goes back; the packet only if the board trained."""

    report: TrainReport
    packet: bytes | None


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
        self.capacity, _ = capacity_now(
            who, fleet=order.fleet, seed=self.strategy.seed, round_number=order.round_number
        )
        self.store = BoardStore(
            _state_dir(order, who),
            who.device_id,
            run=order.run,
            fingerprint=self.layout.fingerprint,
        )

    def play(self, blob: bytes) -> Reply:
        """Settle, plan, train, encode, store; ``blob`` holds the layers that were sent along."""
        state = _load(self.store)
        base = self._base(state)
        if base is None:
            held = state.model_version
            has = "none" if held is None else f"version {held}"
            if self.order.initial != NO_TEXT:
                has += ", and not the pretrained layers that were named"
            detail = f"expected version {self.order.base_version}, the board holds {has}"
            return Reply(self._report("needs-model", detail), None)
        published = _assembled(blob, base, self.layout)
        if self.strategy.compression.downlink == "delta":
            state = replace(state, model_version=self.order.model_version, model=published)
        else:
            state = replace(state, model_version=None, model={})
        suggestion = _suggestion(self.order.plan, self.layout)
        try:
            plan = self._own_plan(suggestion, len(blob))
            norms = GradientNorms(self.layout.layer_of)
            trained = self._train(plan, published, norms)
        except PlanError as error:
            self.store.commit(state)
            return Reply(self._report("sat-out", f"{error.limit}: {error}", state), None)
        pending, state, outcome = self._send(plan, trained.delta, state)
        self.store.commit(state)
        report = replace(
            self._report("trained", outcome, state),
            plan=NO_TEXT if _same_plan(plan, suggestion) else _compact(plan.to_json()),
            measures=_measures(trained.delta, published, norms, self.layout),
            packet_digest=pending.digest,
            train_loss=trained.loss,
            train_s=trained.train_s,
            residual_norm=l2_norm(state.residual[name] for name in sorted(state.residual)),
        )
        return Reply(report, pending.packet)

    def _base(self, state: BoardState) -> Arrays | None:
        """What the layers that were sent go on top of; None if the board does not have it.

        All layers that changed after ``base_version`` came along. A later version will do as well:
        a server that died in mid-round does not know that the board has taken it.
        """
        base, held = self.order.base_version, state.model_version
        if base == NO_ROUND:
            return {}
        if held is not None:
            return state.model if base <= held <= self.order.model_version else None
        if self.order.initial == NO_TEXT:
            return None
        return own_layers(self.strategy, _named(self.order.initial, self.layout))

    def _own_plan(self, suggestion: Plan, model_bytes: int) -> Plan:
        """The suggestion, fitted again to what the board can do now; it may only shrink."""
        wanted = self.strategy
        asked = limits(self.layout, wanted.clients, wanted.compression, wanted.local)
        own = fit(
            as_advice(suggestion),
            layout=self.layout,
            capacity=self.capacity,
            limits=replace(asked, epochs=suggestion.epochs, batch_size=suggestion.batch_size),
            load=Load(len(self.examples), model_bytes + ORDER_BYTES, self.order.envelope_bytes),
        )
        budget = min(own.upload_budget_bytes, suggestion.upload_budget_bytes)
        return replace(own, upload_budget_bytes=budget)

    def _train(self, plan: Plan, published: Arrays, norms: GradientNorms) -> Trained:
        local, number = self.strategy.local, self.order.round_number
        policy = policy_for(self.strategy.freeze, self.layout)
        method = method_for(self.strategy.method, self.layout)
        return train(
            self.task,
            published,
            self.examples,
            plan,
            layout=self.layout,
            local=local,
            learning_rate=learning_rate(local, number, self.strategy.rounds),
            seed=_seed(self.strategy.seed, number, self.who.device_id),
            device=chosen_device("cpu" if self.who.simulated else local.device),
            step=Chain([norms, policy.watch(), method.local_step()]),
        )

    def _send(
        self, plan: Plan, delta: Arrays, state: BoardState
    ) -> tuple[Pending, BoardState, Outcome]:
        """The packet, the state after it, and how the packet before it was settled."""
        number, compression = self.order.round_number, self.strategy.compression
        accepted = (self.order.accepted_round, self.order.accepted_digest)
        residual, outcome = settle(state, self.layout, round_number=number, accepted=accepted)
        keeps = compression.error_feedback
        pending, left = send(
            delta,
            residual if keeps else {},
            self.layout,
            self.layout.ordered(plan.trained),
            budget_bytes=plan.upload_budget_bytes,
            round_number=number,
            settings=CodecSettings(compression.mode, compression.bits),
        )
        return pending, replace(state, residual=left if keeps else {}, pending=pending), outcome

    def _report(self, status: str, detail: str, state: BoardState | None = None) -> TrainReport:
        version = None if state is None else state.model_version
        return TrainReport(
            protocol=PROTOCOL,
            code_digest=code_digest(),
            device_id=self.who.device_id,
            round_number=self.order.round_number,
            status=status,
            detail=detail,
            held_version=NO_ROUND if version is None else version,
            capacity=_compact(self.capacity.to_json()),
            examples=len(self.examples),
            plan=NO_TEXT,
            measures="{}",
            packet_digest=NO_TEXT,
            train_loss=0.0,
            train_s=0.0,
            residual_norm=0.0,
        )


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


def _load(store: BoardStore) -> BoardState:
    try:
        return store.load()
    except StateError as error:
        _log.warning("%s; starting afresh", error)
        store.forget()
        return BoardState()


def _named(text: str, layout: Layout) -> dict[str, str]:
    named = from_json("order.initial", text)
    if not isinstance(named, dict) or not all(isinstance(v, str) for v in named.values()):
        raise ProtocolError(f"order.initial: expected digests by layer, got {text!r:.80}")
    return {layer: named[layer] for layer in layout.ordered(named)}


def _assembled(blob: bytes, base: Arrays, layout: Layout) -> Arrays:
    """The published model: what the board had, under the layers that came."""
    try:
        came = load_safetensors(blob) if blob else {}
    except SafetensorError as error:
        raise ProtocolError(
            f"the model that was sent is not a safetensors file: {error}"
        ) from error
    arrays = {**base, **came}
    layout.check(arrays, sender="the server")
    return arrays


def _measures(delta: Arrays, published: Arrays, norms: GradientNorms, layout: Layout) -> str:
    gradients, moved = norms.means(), movements(delta, published, layout)
    return _compact(
        {
            name: [_six_digits(gradients[name]), _six_digits(moved[name])]
            for name in layout.ordered(moved)
            if name in gradients
        }
    )


def _same_plan(own: Plan, suggestion: Plan) -> bool:
    """Equal but for the predicted cost, which moves with every measurement."""
    return replace(own, cost=None) == replace(suggestion, cost=None)


def _seed(seed: int, round_number: int, device_id: str) -> int:
    sequence = np.random.SeedSequence([seed, round_number, *device_id.encode()])
    return int(sequence.generate_state(1, np.uint64)[0] >> np.uint64(1))


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _six_digits(value: float) -> float:
    """The wire carries no digits that nobody reads."""
    return float(f"{value:.6g}")
