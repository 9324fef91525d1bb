"""Packets of every kind, as bytes that must be read the same on every platform and for as long as
the version stays.

Each entry builds its layout and positions; the bytes are in ``golden_packets.json`` and were
written by this package. What they mean is for the reference decoder to say.
"""

import json
from functools import partial
from pathlib import Path

import numpy as np

from compression import CodecSettings, encode
from tests.unit.compression.sample_layouts import crowded_update, heavy_update, mixed, network

FILE = Path(__file__).with_name("golden_packets.json")


def _mask(layout):
    return {t.name: np.arange(0, t.size, 7) for t in layout.tensors.values()}


def _one_sign(layout, seed):
    return {
        name: np.abs(array) + np.float32(2) for name, array in heavy_update(layout, seed).items()
    }


# Layout, update, and what else `encode` is given.
CASES = {
    "plain": (mixed, heavy_update, {}),
    "tails": (mixed, heavy_update, {"step": 0.001}),
    "shared": (mixed, heavy_update, {"positions": _mask}),
    "classes": (network, crowded_update, {"budget_bytes": 600}),
    "classes and tails": (network, crowded_update, {"budget_bytes": 2400, "step": 0.05}),
    "affine": (network, _one_sign, {"budget_bytes": 2500}),
    "gain": (network, crowded_update, {"importance": lambda _: {"head": 64.0}}),
    "row gains": (
        network,
        crowded_update,
        {"importance": lambda _: {"body.weight": 4.0 ** np.arange(40).clip(0, 3)}},
    ),
    "literal": (mixed, heavy_update, {"settings": CodecSettings("literal")}),
    "dense of 8 bits": (mixed, heavy_update, {"settings": CodecSettings("dense", 8)}),
    "dense of 16 bits": (mixed, heavy_update, {"settings": CodecSettings("dense", 16)}),
    "dense of 32 bits": (mixed, heavy_update, {"settings": CodecSettings("dense", 32)}),
}


def write(name):
    """The packet as it is written now."""
    layout, update, options = CASES[name]
    given = {key: value(layout()) if callable(value) else value for key, value in options.items()}
    settings = given.get("settings", CodecSettings())
    given.setdefault("budget_bytes", 20_000 if settings.mode == "dense" else 500)
    sent = encode(update(layout(), 3), layout(), layout().names, round_number=77, **given)
    assert not sent.empty, name
    return sent.packet


def _golden(name):
    layout = CASES[name][0]()
    positions = CASES[name][2].get("positions")
    packet = bytes.fromhex(json.loads(FILE.read_text())[name])
    return layout, packet, positions and positions(layout)


GOLDEN = {name: partial(_golden, name) for name in CASES}

if __name__ == "__main__":
    FILE.write_text(json.dumps({name: write(name).hex() for name in CASES}, indent=1) + "\n")
