"""A Flower grid of simulated nodes within this process: quick to start, and one after another."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from flwr.app import Context, Error, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid
from flwr.supercore.run import Run
from flwr.supercore.task_identity import TaskIdentity

RAISED = 2  # Flower's code for a ClientApp that raised


class InProcess(Grid):
    """Nodes 1, 2, ... around one ClientApp; node i has the partition i - 1.

    Args:
        client_app: what runs on every node.
        nodes: how many.
    """

    def __init__(self, client_app: ClientApp, nodes: int) -> None:
        TaskIdentity.task_id, TaskIdentity.run_id, TaskIdentity.node_id = 1, 1, 1
        self._run = Run.create_empty(run_id=1)
        self._client_app = client_app
        self._contexts = {
            node: Context(
                1, node, {"partition-id": node - 1, "num-partitions": nodes}, RecordDict(), {}
            )
            for node in range(1, nodes + 1)
        }
        self._numbers = itertools.count(1)
        self._replies: dict[str, Message] = {}

    def set_run(self, run: Run) -> None:
        """Of which run the nodes are."""
        self._run = run

    @property
    def run(self) -> Run:
        """Of which run the nodes are."""
        return self._run

    def create_message(
        self,
        content: RecordDict,
        message_type: str,
        dst_node_id: int,
        group_id: str,
        ttl: float | None = None,
    ) -> Message:
        """A message, as Flower's older grids made it."""
        return Message(content, dst_node_id, message_type, ttl=ttl, group_id=group_id)

    def get_node_ids(self) -> Iterable[int]:
        """Of every node."""
        return list(self._contexts)

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        """Let the nodes answer at once."""
        return [self._push(message) for message in messages]

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """The answers to these."""
        return [self._replies.pop(i) for i in message_ids if i in self._replies]

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        """Both."""
        del timeout
        return self.pull_messages(self.push_messages(messages))

    def _push(self, message: Message) -> str:
        message_id = str(next(self._numbers))
        message.metadata.__dict__["_message_id"] = message_id
        context = self._contexts[message.metadata.dst_node_id]
        try:
            reply = self._client_app(message=message, context=context)
        except Exception as error:  # noqa: BLE001 - every runtime turns it into a reply
            reply = Message(Error(RAISED, f"{type(error).__name__}: {error}"), reply_to=message)
        self._replies[message_id] = reply
        return message_id
