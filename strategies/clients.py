"""What the server knows of every client, by device id. Flower's node ids change with each start."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fedfreeze.capacity import Capacity
from fedfreeze.condition import Condition

# The reply of a client that has not replied yet; measured from then on.
ASSUMED_ENVELOPE_BYTES = 4_096


@dataclass
class Client:
    """One client.

    Attributes:
        node_id: Flower's, while the client is online.
        held_version: of the published model that it stores; None when it stores none.
        accepted: (round, packet digest) of its last merged packet.
        envelope_bytes: its last reply on the wire, without the packet.
        outdated: the capacity is not to be planned with any more.
        initial: digests of the layers that it has from the same pretrained file.
        condition: what it last said of its battery and its heat.
    """

    device_id: str
    profile: str
    capacity: Capacity
    examples: int
    node_id: int | None = None
    held_version: int | None = None
    accepted: tuple[int, str] | None = None
    envelope_bytes: int = ASSUMED_ENVELOPE_BYTES
    outdated: bool = False
    initial: Mapping[str, str] = field(default_factory=dict)
    condition: Condition = field(default_factory=Condition)


class Clients:
    """All clients that ever answered."""

    def __init__(self) -> None:
        self._by_id: dict[str, Client] = {}

    def __getitem__(self, device_id: str) -> Client:
        return self._by_id[device_id]

    def __len__(self) -> int:
        return len(self._by_id)

    def ids(self) -> list[str]:
        """Every device id, sorted."""
        return sorted(self._by_id)

    def online(self) -> list[str]:
        """Device ids with a node, sorted."""
        return sorted(c.device_id for c in self._by_id.values() if c.node_id is not None)

    def unknown_nodes(self, node_ids: Iterable[int]) -> list[int]:
        """Nodes that have not said who they are; forgets the nodes that left."""
        present = set(node_ids)
        for client in self._by_id.values():
            if client.node_id not in present:
                client.node_id = None
        known = {client.node_id for client in self._by_id.values()}
        return sorted(present - known)

    def enrol(self, client: Client) -> None:
        """Add a client, or give a known one its new node.

        A known one keeps the capacity of its last reply, unless that is outdated: a server that
        was stopped and resumed plans with the same numbers as one that was not.
        """
        known = self._by_id.setdefault(client.device_id, client)
        known.node_id, known.profile = client.node_id, client.profile
        known.initial, known.condition = client.initial, client.condition
        if known.outdated:
            known.capacity, known.examples = client.capacity, client.examples
            known.outdated = False

    def ask_again(self, device_id: str) -> None:
        """Take the client's node for new, so that it is asked what it can do by then."""
        self._by_id[device_id].node_id = None
        self._by_id[device_id].outdated = True

    def to_json(self) -> list[dict[str, Any]]:
        """What must outlive the server, without node ids."""
        return [
            {
                "device_id": c.device_id,
                "profile": c.profile,
                "capacity": c.capacity.to_json(),
                "examples": c.examples,
                "held_version": c.held_version,
                "accepted": None if c.accepted is None else list(c.accepted),
                "envelope_bytes": c.envelope_bytes,
                "outdated": c.outdated,
            }
            for _, c in sorted(self._by_id.items())
        ]

    def restore(self, entries: Iterable[Mapping[str, Any]]) -> None:
        """Take back :meth:`to_json`; everybody is offline until enrolled again."""
        self._by_id = {}
        for entry in entries:
            accepted = entry["accepted"]
            self._by_id[entry["device_id"]] = Client(
                device_id=entry["device_id"],
                profile=entry["profile"],
                capacity=Capacity.from_json(entry["capacity"]),
                examples=entry["examples"],
                held_version=entry["held_version"],
                accepted=None if accepted is None else (accepted[0], accepted[1]),
                envelope_bytes=entry["envelope_bytes"],
                outdated=entry["outdated"],
            )
