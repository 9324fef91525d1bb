"""A Flower grid within the test's own process: no Ray, no SuperLink, no waiting.

Every message is deflated and inflated by Flower's own serialisation on its way, in both
directions, so that what a test sees is what would have crossed the network, and its bytes are
counted. Faults are injected by a hook that may change, delay or refuse a message.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from flwr.app import Context, Error, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid
from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects
from flwr.supercore.inflatable.inflatable_utils import inflate_object_from_contents
from flwr.supercore.run import Run
from flwr.supercore.task_identity import TaskIdentity

RAISED = 2  # Flower's code for a ClientApp that raised

FIRST_NODE = 100

OnReply = Callable[[Message], Message | None]
OnOrder = Callable[[Message], None]
OnWire = Callable[[Message, int], None]


def over_the_wire(message: Message) -> tuple[Message, int]:
    """The message as the other side gets it, and how many bytes it was."""
    objects = {key: part.deflate() for key, part in get_all_nested_objects(message).items()}
    size = sum(map(len, objects.values()))
    arrived = inflate_object_from_contents(message.object_id, objects)  # empties `objects`
    assert isinstance(arrived, Message)
    arrived.metadata.__dict__["_message_id"] = message.metadata.message_id
    return arrived, size


class InProcessGrid(Grid):
    """Simulated nodes ``FIRST_NODE``, ``FIRST_NODE + 1``, ... around one ClientApp.

    Args:
        client_app: what runs on every node.
        nodes: how many; node i gets partition-id i.
        on_order: called with each message before the client; an exception becomes its reply.
        on_reply: may replace a reply, or lose it by returning None.
        on_wire: told of each message that crossed, in either direction, and of its bytes.
        reply_order: permutes the replies of one pull.
    """

    def __init__(
        self,
        client_app: ClientApp,
        nodes: int,
        *,
        on_order: OnOrder | None = None,
        on_reply: OnReply | None = None,
        on_wire: OnWire = lambda message, size: None,
        reply_order: Callable[[list[Message]], list[Message]] = list,
        node_configs: Sequence[dict[str, Any]] | None = None,
    ) -> None:
        TaskIdentity.task_id, TaskIdentity.run_id, TaskIdentity.node_id = 1, 1, 1
        self._run = Run.create_empty(run_id=1)
        self._client_app = client_app
        self.on_order = on_order
        self.on_reply = on_reply
        self._on_wire = on_wire
        self._reply_order = reply_order
        configs = node_configs or [
            {"partition-id": index, "num-partitions": nodes} for index in range(nodes)
        ]
        self.contexts = {
            FIRST_NODE + index: Context(1, FIRST_NODE + index, dict(config), RecordDict(), {})
            for index, config in enumerate(configs)
        }
        self._replies: dict[str, Message] = {}
        self.upload_bytes = 0
        self.download_bytes = 0

    def set_run(self, run: Run) -> None:
        self._run = run

    @property
    def run(self) -> Run:
        return self._run

    def create_message(
        self,
        content: RecordDict,
        message_type: str,
        dst_node_id: int,
        group_id: str,
        ttl: float | None = None,
    ) -> Message:
        return Message(content, dst_node_id, message_type, ttl=ttl, group_id=group_id)

    def get_node_ids(self) -> Iterable[int]:
        return list(self.contexts)

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        return [self._push(message) for message in messages]

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        found = [self._replies.pop(i) for i in list(message_ids) if i in self._replies]
        return self._reply_order(found)

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        return self.pull_messages(list(self.push_messages(messages)))

    def _push(self, message: Message) -> str:
        message_id = str(uuid.uuid4())
        message.metadata.__dict__["_message_id"] = message_id
        arrived, size = over_the_wire(message)
        self.download_bytes += size
        self._on_wire(arrived, size)
        try:
            if self.on_order is not None:
                self.on_order(arrived)
            context = self.contexts[arrived.metadata.dst_node_id]
            reply, size = over_the_wire(self._client_app(message=arrived, context=context))
            self.upload_bytes += size
            self._on_wire(reply, size)
        except Exception as error:  # noqa: BLE001 - every runtime turns it into a reply
            reason = f"{type(error).__name__}: {error}"
            self._replies[message_id] = Message(Error(RAISED, reason), reply_to=arrived)
            return message_id
        kept = reply if self.on_reply is None else self.on_reply(reply)
        if kept is not None:
            self._replies[message_id] = kept
        return message_id
