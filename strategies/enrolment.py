"""Learning who is there: waiting for nodes, and asking each new one what it can do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from logging import WARNING

from flwr.app import Message, RecordDict
from flwr.common.logger import log
from flwr.serverapp import Grid

from fedfreeze.capacity import Capacity
from fedfreeze.condition import Condition
from fedfreeze.errors import FleetError, ProtocolError
from fedfreeze.messages import (
    NO_TEXT,
    PROTOCOL,
    QUERY,
    ResourceQuery,
    ResourceReport,
    check_protocol,
    from_json,
    printable,
)
from fedfreeze.wall_clock import WallClock
from strategies.clients import Client, Clients

Exchange = Callable[[Grid, Sequence[Message], float], tuple[list[Message], dict[int, str]]]
"""Sends messages and returns the good replies, and for each failed node why it failed."""

POLL_S = 0.5


def through_grid(
    grid: Grid, messages: Sequence[Message], timeout_s: float
) -> tuple[list[Message], dict[int, str]]:
    """The exchange of an app that has no better one: Flower's own ``send_and_receive``."""
    asked = {message.metadata.dst_node_id for message in messages}
    replies = list(grid.send_and_receive(messages, timeout=timeout_s))
    good = [reply for reply in replies if not reply.has_error()]
    answered = {reply.metadata.src_node_id for reply in good}
    failed = {
        reply.metadata.src_node_id: f"code {reply.error.code}: {reply.error.reason}"
        for reply in replies
        if reply.has_error() and reply.metadata.src_node_id in asked
    }
    return good, {node: failed.get(node, "no reply") for node in sorted(asked - answered)}


def wait_for_nodes(
    grid: Grid, *, minimum: int, wanted: int, timeout_s: float, clock: WallClock
) -> int:
    """Wait until enough nodes are online; returns how many.

    With a ``minimum`` (above 0) it waits for that many. Without one it goes on as soon as
    ``wanted`` are there, or some are and no more came within two polls.

    Raises:
        FleetError: after ``timeout_s``, with the numbers and the fix.
    """
    start = clock.now()
    before = 0
    while True:
        online = len(list(grid.get_node_ids()))
        if minimum > 0 and online >= minimum:
            return online
        if minimum == 0 and online and (online >= wanted or online == before):
            return online
        if clock.now() - start >= timeout_s:
            needed = max(1, minimum)
            raise FleetError(
                f"expected {needed} node(s) within {timeout_s:g} s, got {online}; start more "
                "nodes (in a simulation: --federation-config "
                f'"num-supernodes={max(needed, wanted)} client-resources-num-cpus=1"), or lower '
                "min-nodes"
            )
        before = online
        clock.sleep(POLL_S)


def enrol(
    grid: Grid,
    clients: Clients,
    *,
    exchange: Exchange,
    query: ResourceQuery,
    code_digest: str,
    timeout_s: float,
) -> None:
    """Ask every node that is new, and note its answer.

    Raises:
        FleetError: nobody at all is there, with the reason of each node that was refused.
    """
    new = clients.unknown_nodes(grid.get_node_ids())
    messages = [
        Message(RecordDict({"query": query.to_record()}), node, QUERY, ttl=timeout_s)
        for node in new
    ]
    replies, refused = exchange(grid, messages, timeout_s) if messages else ([], {})
    # In a fixed order: of two nodes with one device-id the same one is refused each time.
    for reply in sorted(replies, key=lambda reply: reply.metadata.src_node_id):
        node = reply.metadata.src_node_id
        try:
            client = _client(reply, code_digest, clients.online())
            clients.enrol(client)
            _warn(client)
        except ProtocolError as error:
            refused[node] = str(error)
    for node, why in sorted(refused.items()):
        log(WARNING, "node %d is left out: %s", node, why)
    if not clients.online():
        reasons = "; ".join(f"node {node}: {why}" for node, why in sorted(refused.items()))
        raise FleetError(f"no client is there: {reasons or 'no node is online'}")


def new_query(round_number: int, strategy: str, fleet: str, data_dir: str) -> ResourceQuery:
    """The question of this round."""
    return ResourceQuery(PROTOCOL, round_number, strategy, fleet, data_dir)


def check_digest(came: str, expected: str) -> None:
    """Refuse a reply that other code wrote.

    Raises:
        ProtocolError: always names both digests.
    """
    if came != expected:
        raise ProtocolError(
            f"expected code {expected}, got {came!r:.40}: the node runs another client_app than "
            "the server's app; install the same release there, and start the SuperLink in an "
            "empty folder"
        )


def _client(reply: Message, code_digest: str, taken: Sequence[str]) -> Client:
    report = ResourceReport.from_record(reply.content.get("report"))
    check_protocol(report.protocol)
    check_digest(report.code_digest, code_digest)
    if report.device_id in taken:
        raise ProtocolError(
            f'two nodes call themselves "{report.device_id}"; give each its own device-id in '
            "--node-config"
        )
    if report.examples < 1:
        raise ProtocolError(f'"{report.device_id}" has {report.examples} examples; 1 is the least')
    capacity = Capacity.from_json(from_json("capacity", report.capacity))
    return Client(
        device_id=report.device_id,
        profile=report.profile,
        capacity=capacity,
        examples=report.examples,
        node_id=reply.metadata.src_node_id,
        initial=_digests(report.initial),
        condition=Condition.from_json(from_json("condition", report.condition)),
    )


def _warn(client: Client) -> None:
    """Say what makes a board's timings suspect, or its end likely."""
    now, name = client.condition, printable(client.device_id, most=80)
    if now.is_slowed:
        log(WARNING, '"%s" is slowed down by heat or a weak supply: its timings are suspect', name)
    if now.is_discharging and now.battery_share is not None:
        share = 100 * now.battery_share
        log(WARNING, '"%s" runs on its battery, which is %.0f %% full', name, share)


def _digests(text: str) -> dict[str, str]:
    if text == NO_TEXT:
        return {}
    digests = from_json("initial", text)
    if not isinstance(digests, dict) or not all(isinstance(v, str) for v in digests.values()):
        raise ProtocolError(f"initial: expected digests by layer, got {text!r:.80}")
    return digests
