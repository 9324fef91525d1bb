"""Hand-written orders for one board of the tiny task, and what it stores of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from safetensors.numpy import save

from client_app.resources import Identity
from client_app.round import BoardRound
from client_app.store import BoardStore
from device_profiles.fleet import fleet_text
from fedfreeze.messages import NO_ROUND, NO_TEXT, PROTOCOL, TrainOrder
from fedfreeze.plan import Plan, Stage
from strategies import schema
from tasks.task import initial_arrays
from tests.tiny_task import task

LAYOUT = task.layout()
WHO = Identity("sim-0000", 0, 1, True, None, None, None)
INITIAL = initial_arrays(task, 0)
BLOB = save(INITIAL)
WHOLE = Plan((Stage(1.0, LAYOUT.names),), 2, 8, 400)


def strategy(*overrides):
    toml = 'version = 1\nrounds = 9\ntask = "tests.tiny_task"\nfleet = "high"'
    return schema.from_text(toml, overrides=overrides).model_dump_json(by_alias=True)


def first_order(state_dir):
    return TrainOrder(
        protocol=PROTOCOL,
        run="run",
        round_number=1,
        device_id="sim-0000",
        fingerprint=LAYOUT.fingerprint,
        strategy=strategy("compression.compression-ratio=1"),
        fleet=fleet_text("high"),
        plan=json.dumps(WHOLE.to_json()),
        model_version=0,
        base_version=NO_ROUND,
        accepted_round=NO_ROUND,
        accepted_digest=NO_TEXT,
        envelope_bytes=2_000,
        state_dir=str(state_dir),
        data_dir=NO_TEXT,
        initial=NO_TEXT,
    )


def play(order, blob=BLOB, who=WHO, *, by_packets=False):
    return BoardRound(order, who).play(blob, by_packets=by_packets)


def stored(order):
    return BoardStore(
        Path(order.state_dir), order.device_id, run=order.run, fingerprint=LAYOUT.fingerprint
    ).load()


def files_of(order):
    return sorted(path.name for path in Path(order.state_dir).rglob("*"))


def refusal(error, order, blob=BLOB, who=WHO):
    """The words with which a board refuses an order."""
    with pytest.raises(error) as caught:
        play(order, blob, who)
    return str(caught.value)
