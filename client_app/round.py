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
from client_app.settling import Outcome, Sent, send, settle, without_feedback
from client_app.store import BoardState, BoardStore, folder_name
from client_app.training import Trained, chosen_device, movements, train
from client_app.waiting import adopted
from compression import summary
from fedfreeze.code_digest import code_digest
from fedfreeze.errors import PlanError, ProtocolError, StateError
from fedfreeze.layer_digest import model_digest
from fedfreeze.layout import Arrays, Layout
from fedfreeze.messages import NO_ROUND, NO_TEXT, PROTOCOL, TrainOrder, TrainReport, from_json
from fedfreeze.plan import Plan
from fedfreeze.run_folder import home
from strategies import schema
from strategies.aggregation.step import l2_norm
from strategies.chain import caught_up, parted
from strategies.downlink import packet_rule
from strategies.freeze import policy_for
from strategies.layer_wishes import floors_of, importance_of
from strategies.local_step import Chain, GradientNorms
from strategies.methods import method_for
from strategies.movement import too_far
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

    def play(self, came: bytes, *, by_packets: bool = False) -> Reply:
        """Settle, plan, train, encode, store.

        Args:
            came: the layers that were sent along, or the packets that lead to the server's version.
            by_packets: which of the two.
        """
        state = self._load()
        base = self._base(state)
        if base is None:
            held = state.model_version
            has = "none" if held is None else f"version {held}"
            if self.order.initial != NO_TEXT:
                has += ", and not the pretrained layers that were named"
            detail = f"expected version {self.order.base_version}, the board holds {has}"
            return Reply(self._report("needs-model", detail), None)
        if by_packets:
            published = self._led_on(came, base, state)
        else:
            published = _assembled(came, base, self.layout)
        if (difference := self._difference(published)) is not None:
            return Reply(self._report("needs-model", difference), None)
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
            return Reply(self._report("sat-out", f"{error.limit}: {error}", state), None)
        sent, state, outcome = self._send(plan, trained.delta, published, state)
        self.store.commit(state)
        report = replace(
            self._report("trained", outcome, state),
            plan=NO_TEXT if _same_plan(plan, suggestion) else _compact(plan.to_json()),
            measures=_measures(trained.delta, published, norms, self.layout),
            packet_digest=sent.pending.digest,
            train_loss=trained.loss,
            train_s=trained.train_s,
            residual_norm=l2_norm(state.residual[name] for name in sorted(state.residual)),
            residual_rounding_norm=sent.rounding_norm,
            unmet_floors=_compact(list(sent.unmet_floors)),
            residuals=_residuals(state, self.layout) if self.strategy.residual.summary else "{}",
        )
        return Reply(report, sent.pending.packet)

    def _base(self, state: BoardState) -> Arrays | None:
        """What the layers that were sent go on top of; None if the board does not have it.

        All layers that changed after ``base_version`` came along, or all packets after it. A later
        version will do as well: a server that died in mid-round does not know that the board has
        taken it.
        """
        base, held = self.order.base_version, state.model_version
        if base == NO_ROUND:
            return {}
        if held is not None:
            return state.model if base <= held <= self.order.model_version else None
        if self.order.initial == NO_TEXT:
            return None
        return own_layers(self.strategy, _named(self.order.initial, self.layout))

    def _led_on(self, came: bytes, base: Arrays, state: BoardState) -> Arrays:
        """``base`` after the packets of the versions that it lacks.

        Raises:
            ProtocolError, PacketError: they do not lead from the base version to the server's.
        """
        order, rule = self.order, packet_rule(self.layout, self.strategy.compression)
        if rule is None or order.base_version == NO_ROUND:
            raise ProtocolError(
                f"got packets of the model from version {order.base_version} on, with downlink = "
                f'"{self.strategy.compression.downlink}"; expected its layers'
            )
        count = order.model_version - order.base_version
        packets = parted(came, count, max_bytes=rule.budget_bytes)
        # A board that is ahead of what the server believes has had the first of them.
        held = order.base_version if state.model_version is None else state.model_version
        lacking = packets[held - order.base_version :]
        return caught_up(base, lacking, held, self.layout, max_bytes=rule.budget_bytes)

    def _difference(self, published: Arrays) -> str | None:
        """How the model that was put together is not the server's; None if it is, or is all new.

        A version number alone does not tell: a server that fell back to an older checkpoint may
        have published another model under the same number.
        """
        expected = self.order.model_digest
        if expected == NO_TEXT or (has := model_digest(self.layout, published)) == expected:
            return None
        return (
            f"expected version {self.order.model_version} with the digest {expected}, "
            f"the board comes to {has}"
        )

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
        self, plan: Plan, delta: Arrays, published: Arrays, state: BoardState
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
        sent = send(
            delta,
            settled if keeps else without_feedback(settled),
            self.layout,
            self.layout.ordered(plan.trained),
            budget_bytes=plan.upload_budget_bytes,
            round_number=number,
            settings=compression.codec(len(self.examples)),
            rules=rules,
            before=published,
            floors=floors_of(self.layout, compression.floors),
            importance=importance_of(self.layout, compression.boost),
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
            residual_rounding_norm=0.0,
            unmet_floors="[]",
            residuals="{}",
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


def _residuals(state: BoardState, layout: Layout) -> str:
    """The report's ``residuals``, after the round that the history ends with."""
    now, since = state.history.trained_round or 0, state.history.since
    # A server that went back to an older checkpoint may be behind the board.
    ages = {layer: max(0, now - number) for layer, number in since.items()}
    return _compact(
        {
            layer: [_six_digits(of.norm), _six_digits(of.largest), of.age_rounds]
            for layer, of in summary(state.residual, layout, ages).items()
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
