"""Who this node is and what it can do now.

A simulated client has no ``device-id`` in its node config; it stands for a board of the fleet that
the server names, and its capacity is that board's profile with seeded jitter. A real board is
started with
``--node-config 'device-id="cam-07" profile="rpi-4b-4gb"'``; it measures what it can of itself, and
the rest comes from the profile, or is assumed from the fleet's weakest board.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from flwr.app import Context

from client_app.machine import Machine, ThisMachine
from client_app.store import folder_name
from device_profiles.board import Board, load_board
from device_profiles.fleet import fleet_from_text
from device_profiles.simulated import simulated_capacity
from fedfreeze.capacity import Capacity, Known, Source
from fedfreeze.errors import ConfigError
from fedfreeze.messages import SIMULATED
from fedfreeze.run_folder import home


@dataclass(frozen=True)
class Identity:
    """One node.

    Attributes:
        index, clients: which part of the data it holds, of how many.
        simulated: whether its capacity comes from a profile with jitter.
        state_dir, data_dir: what the node was started with; None if nothing was said.
    """

    device_id: str
    index: int
    clients: int
    simulated: bool
    profile: str | None
    state_dir: str | None
    data_dir: str | None


def identify(context: Context) -> Identity:
    """Read the node config.

    Raises:
        ConfigError: a key has a wrong type, or the node has neither a device-id nor a partition.
    """
    config = context.node_config
    text = {}
    for key in ("device-id", "profile", "state-dir", "data-dir"):
        value = config.get(key)
        if value is not None and not isinstance(value, str):
            raise ConfigError(f'node-config {key}: expected text, got {value!r}; write {key}="..."')
        text[key] = value or None
    whole = {}
    for key in ("partition-id", "num-partitions"):
        value = config.get(key)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            raise ConfigError(f"node-config {key}: expected a whole number, got {value!r}")
        whole[key] = value
    index, clients = whole["partition-id"], whole["num-partitions"]
    simulated = text["device-id"] is None
    if simulated and index is None:
        raise ConfigError(
            "this node has no name; start it with --node-config 'device-id=\"...\"' "
            "(simulated nodes are named by their partition-id)"
        )
    return Identity(
        device_id=text["device-id"] or f"{SIMULATED}{index:04d}",
        index=0 if index is None else index,
        clients=1 if clients is None else clients,
        simulated=simulated,
        profile=text["profile"],
        state_dir=text["state-dir"],
        data_dir=text["data-dir"],
    )


def state_dir(who: Identity) -> Path:
    """Where a real board keeps what it must not forget.

    Raises:
        ConfigError: nothing was said, and the user has no home.
    """
    return home() / "state" if who.state_dir is None else Path(who.state_dir)


def measured_dir(who: Identity) -> Path:
    """Where a real board keeps what it measured of itself, apart from others on its machine."""
    return state_dir(who) / "measured" / folder_name(who.device_id)


def capacity_now(
    who: Identity,
    *,
    fleet: str,
    seed: int,
    round_number: int,
    device: str,
    machine: Machine | None = None,
) -> tuple[Capacity, str]:
    """What the node can do now, and the name of the profile that this rests on.

    Args:
        who: the node.
        fleet: TOML of the simulated fleet.
        seed: of the run.
        round_number: of the round that is planned.
        device: ``local.device`` of the strategy; a simulated node does not look.
        machine: what a real board is; the one that this process runs on unless given.

    Raises:
        ConfigError: the fleet or the node's profile is wrong or unknown, or cuda was asked for and
            is not there.
    """
    boards = fleet_from_text(fleet, "fleet.toml")
    if who.simulated:
        board = boards.board(who.index, who.clients)
        capacity = simulated_capacity(
            board, seed=seed, device_id=who.device_id, round_number=round_number
        )
        return capacity, board.name
    named = who.profile is not None
    board = boards.weakest if who.profile is None else load_board(who.profile)
    if machine is None:
        machine = ThisMachine(measured_dir(who), device)
    return _measured(machine, board, "profile" if named else "assumed"), board.name


def _measured(machine: Machine, board: Board, otherwise: Source) -> Capacity:
    """What the machine says of itself, and the board's profile where it says nothing."""

    def known(measured: float | None, profile: float) -> Known:
        return Known(profile, otherwise) if measured is None else Known(measured, "measured")

    link = machine.link()
    return Capacity(
        flops_per_s=known(machine.flops_per_s(), board.flops.value),
        memory_bytes=known(machine.memory_bytes(), board.memory.value),
        uplink_bytes_per_s=known(link.uplink_bytes_per_s, board.uplink.value),
        downlink_bytes_per_s=known(link.downlink_bytes_per_s, board.downlink.value),
    )
