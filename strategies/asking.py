"""What one client is asked: the policy's advice, fitted to its board, and the message."""

from __future__ import annotations

from dataclasses import dataclass

from flwr.app import Message, MessageType

from fedfreeze.errors import RunError
from fedfreeze.wire_size import wire_bytes
from strategies.bounds import Limits, Load, board_for
from strategies.clients import Client
from strategies.coverage import Wanted, covering
from strategies.freeze.policy import Advice, ClientView, FreezePolicy, RoundView
from strategies.means import Means
from strategies.orders import ORDER_BYTES, Asked, Desk, Parcels
from strategies.outlook import Outlook
from strategies.planner import feasible, fit


@dataclass(frozen=True)
class Asking:
    """Asks the clients of one round.

    Attributes:
        view: of the round.
        policy: gives the advice.
        limits: of every client.
        desk: writes orders.
        parcels: the model parts of the round.
        ttl_s: seconds for which the messages live.
    """

    view: RoundView
    policy: FreezePolicy
    limits: Limits
    desk: Desk
    parcels: Parcels
    ttl_s: float

    def load(self, client: Client) -> Load:
        """What the client's round would carry."""
        shipment = self.desk.shipment(client, self.parcels.published)
        return Load(
            client.examples,
            self.parcels.model_bytes(shipment) + ORDER_BYTES,
            client.envelope_bytes,
            board_for(self.limits, client.profile),
        )

    def wanted(self, client: Client) -> Wanted:
        """What the client would be planned from."""
        load = self.load(client)
        return Wanted(client.capacity, self._advice(client, load), load)

    def ask(self, client: Client, to_cover: tuple[str, ...] = ()) -> tuple[Asked, Message]:
        """One client's suggestion and the message that carries it.

        Args:
            client: who is asked.
            to_cover: layers that it must train before all others.

        Raises:
            PlanError: no plan fits the client's board.
            RunError: the client has no node.
        """
        load = self.load(client)
        advice = covering(self._advice(client, load), to_cover)
        plan = fit(
            advice,
            layout=self.policy.layout,
            capacity=client.capacity,
            limits=self.limits,
            load=load,
        )
        published = self.parcels.published
        shipment = self.desk.shipment(client, published)
        order = self.desk.order(client, plan, published, self.view.number, shipment)
        node_id = client.node_id
        if node_id is None:
            raise RunError(f'"{client.device_id}" was planned for while it is offline')
        message = Message(
            self.parcels.content(order, shipment),
            node_id,
            MessageType.TRAIN,
            ttl=self.ttl_s,
            group_id=str(self.view.number),
        )
        return Asked(client, node_id, advice, plan, order, load, wire_bytes(message)), message

    def _advice(self, client: Client, load: Load) -> Advice:
        layout, limits, capacity = self.policy.layout, self.limits, client.capacity
        return self.policy.advise(
            self.view,
            ClientView(
                client.device_id,
                capacity,
                client.examples,
                feasible(layout, capacity, limits),
                Outlook(Means(layout, capacity, limits, load)),
            ),
        )
