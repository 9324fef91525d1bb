"""From the replies of a round to its result: who answered, failed or sat out, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from logging import WARNING

from flwr.app import Message
from flwr.common.logger import log

from fedfreeze.errors import FedFreezeError, RunError
from fedfreeze.layout import Layout
from fedfreeze.messages import NO_TEXT, WORKER_DIED
from fedfreeze.wire_size import wire_bytes
from strategies import schema
from strategies.bounds import Limits
from strategies.clients import Client, Clients
from strategies.envelope import EnvelopeBound
from strategies.orders import Asked
from strategies.published import Published
from strategies.replies import Answer, check_movement, understand
from strategies.round_result import RoundResult


@dataclass(frozen=True)
class Reception:
    """Takes replies in for one run; what is wrong with one costs its sender the round.

    Attributes:
        settings: the strategy.
        layout: of the model.
        limits: that every order was planned with.
        clients: of the run, who are what they last said of themselves.
        code_digest: that every reply must carry.
    """

    settings: schema.Strategy
    layout: Layout
    limits: Limits
    clients: Clients
    code_digest: str

    def take(self, replies: Iterable[Message], result: RoundResult, published: Published) -> None:
        """Note each reply in ``result``; ``published`` is what the orders were for.

        Raises:
            RunError: a simulation worker died.
        """
        nodes = {order.node_id: device_id for device_id, order in result.asked.items()}
        for reply in replies:
            if reply.has_error():
                _note_error(result, reply, nodes)
            else:
                self._note(result, reply, nodes, published)

    def _note(
        self,
        result: RoundResult,
        reply: Message,
        nodes: Mapping[int, str],
        published: Published,
    ) -> None:
        device_id = nodes.get(reply.metadata.src_node_id)
        if device_id is None or device_id in result.answers:
            log(WARNING, "dropped a reply nobody waits for, node %d", reply.metadata.src_node_id)
            return
        asked = result.asked[device_id]
        result.reply_bytes[device_id] = wire_bytes(reply)
        try:
            answer = self._understood(reply, asked, published)
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
        elif answer.report.status == "sat-out":
            result.sat_out[device_id] = answer.report.detail
            self.clients.ask_again(device_id)
        else:
            client.envelope_bytes = self._next_envelope_bytes(client, answer)
            result.answers[device_id] = answer

    def _understood(self, reply: Message, asked: Asked, published: Published) -> Answer:
        answer = understand(
            reply.content,
            asked,
            self.layout,
            upload_bytes=wire_bytes(reply),
            code_digest=self.code_digest,
            optimizer_slots=self.limits.optimizer_slots,
            few_examples=self.settings.compression.small_clients,
            mask_rule=self.settings.compression.mask_rule(self.settings.seed),
        )
        # Whatever becomes of its update, it has taken the model.
        asked.client.held_version = answer.held_version
        if answer.update is not None:
            check_movement(answer.update, published.arrays, self.layout)
        return answer

    def _next_envelope_bytes(self, client: Client, answer: Answer) -> int:
        """What the client's next envelope may weigh: as much as this one, or more if it grows."""
        bound = EnvelopeBound(self.settings, self.layout, client.device_id)
        most = bound.most_bytes(self.layout.names, self.limits.full_upload_bytes)
        return max(answer.envelope_bytes, most)


def _note_error(result: RoundResult, reply: Message, nodes: Mapping[int, str]) -> None:
    reason = f"code {reply.error.code}: {reply.error.reason}"
    if reply.error.code == WORKER_DIED:
        raise RunError(f"a simulation worker died in round {result.number}: {reason}")
    device_id = nodes.get(reply.metadata.src_node_id)
    if device_id is not None:
        result.failed[device_id] = reason
