"""Who this node is and what it can do now.

A simulated client has no ``device-id`` in its node config; it stands for a board of the fleet that
the server names, and its capacity is that board's profile with seeded jitter. A real board is
started with ``--node-config 'device-id="cam-07" profile="rpi-4b-4gb"'``; its free memory is
measured, the rest comes from the profile, or is assumed from the fleet's weakest board.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import psutil
from flwr.app import Context

from device_profiles.board import Board, load_board
from device_profiles.fleet import fleet_from_text
from device_profiles.simulated import simulated_capacity
from fedfreeze.capacity import Capacity, Known, Source
from fedfreeze.errors import ConfigError
from fedfreeze.messages import SIMULATED


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


def free_memory_bytes() -> float:
    """What the operating system could give to a program now."""
    return float(psutil.virtual_memory().available)


def capacity_now(
    who: Identity,
    *,
    fleet: str,
    seed: int,
    round_number: int,
    measure: Callable[[], float] = free_memory_bytes,
) -> tuple[Capacity, str]:
    """What the node can do now, and the name of the profile that this rests on.

    Raises:
        ConfigError: the fleet or the node's profile is wrong or unknown.
    """
    boards = fleet_from_text(fleet, "fleet.toml")
    if who.simulated:
        board = boards.board(who.index, who.clients)
        capacity = simulated_capacity(
            board, seed=seed, device_id=who.device_id, round_number=round_number
        )
        return capacity, board.name
    if who.profile is not None:
        board = load_board(who.profile)
        capacity = _of(board, "profile")
    else:
        board = min(boards.entries, key=lambda b: b.memory.value)
        capacity = _of(board, "assumed")
    return replace(capacity, memory_bytes=Known(measure(), "measured")), board.name


def _of(board: Board, source: Source) -> Capacity:
    return Capacity(
        flops_per_s=Known(board.flops.value, source),
        memory_bytes=Known(board.memory.value, source),
        uplink_bytes_per_s=Known(board.uplink.value, source),
        downlink_bytes_per_s=Known(board.downlink.value, source),
    )
