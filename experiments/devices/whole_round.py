"""Predicted against measured: the peak memory of a board's whole round.

The board plays a round, loses its packet on the way, and plays another one: the state comes from
disk, the model comes whole, the packet comes back into the residual. The second round counts.

Example:
    python experiments/devices/whole_round.py resnet18-gn --layers head
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
from resident import peak_above
from safetensors.numpy import save

from client_app.resources import Identity
from client_app.round import BoardRound
from device_profiles.fleet import fleet_text
from device_profiles.memory import training_memory_bytes
from fedfreeze.layout import Layout
from fedfreeze.messages import NO_ROUND, NO_TEXT, PROTOCOL, TrainOrder
from fedfreeze.plan import Plan, Reason, Stage
from strategies import schema
from tasks.loading import load

TASK = Path(__file__).parent.resolve() / "random_images.py"
RATIO = 100
BOARD = Identity("sim-0000", 0, 1, True, None, None, None)


def strategy(model: str, batch_size: int) -> schema.Strategy:
    """One epoch of SGD without momentum."""
    return schema.from_text(
        f'version = 1\nrounds = 2\ntask = "{TASK}"\nfleet = "high"\n'
        f'[model]\nname = "{model}"\n[data]\npartition = "iid"\n'
        f'[compression]\ndownlink = "delta"\ncompression-ratio = {RATIO}\n'
        f'upload-time = "1000 s"\n[local]\nbatch-size = {batch_size}\nepochs = 1\n'
        "learning-rate = 0.001\n"
    )


def second_round(
    model: str, layers: str, batch_size: int, folder: str
) -> tuple[Layout, tuple[str, ...], Callable[[], None]]:
    """The layout, the trained layers, and a round that is ready to be played."""
    wanted = strategy(model, batch_size)
    task = load(wanted.task, wanted.options)
    layout = task.layout()
    blob = Path(folder) / "model"
    blob.write_bytes(save(task.initial(0)[0]))
    trained = layout.names if layers == "all" else layout.names[-1:]
    frozen = {name: Reason("fixed", "") for name in layout.names if name not in trained}
    budget = layout.parameter_bytes // RATIO
    plan = Plan((Stage(1.0, trained),), 1, batch_size, budget, frozen)

    def play(number: int, version: int, base: int) -> None:
        order = TrainOrder(
            protocol=PROTOCOL,
            run="run",
            round_number=number,
            device_id=BOARD.device_id,
            fingerprint=layout.fingerprint,
            strategy=wanted.model_dump_json(by_alias=True),
            fleet=fleet_text("high"),
            plan=json.dumps(plan.to_json()),
            model_version=version,
            base_version=base,
            accepted_round=NO_ROUND,
            accepted_digest=NO_TEXT,
            envelope_bytes=2_000,
            state_dir=folder,
            data_dir=NO_TEXT,
            initial=NO_TEXT,
        )
        report = BoardRound(order, BOARD).play(blob.read_bytes()).report
        if report.status != "trained":
            raise RuntimeError(f"expected a round that trains, got {report.detail}")

    play(1, 0, NO_ROUND)
    return layout, trained, lambda: play(2, 1, 0)


def main() -> None:
    """Print one line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", help="any model that takes 32x32 colour images")
    parser.add_argument("--layers", choices=("all", "head"), default="all")
    parser.add_argument("--batch-size", type=int, default=8)
    args = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        *_, warm_up = second_round("fedbug-cnn", args.layers, args.batch_size, folder)
        warm_up()
    with tempfile.TemporaryDirectory() as folder:
        layout, trained, play = second_round(args.model, args.layers, args.batch_size, folder)
        measured = peak_above(play)
    modelled = training_memory_bytes(layout, trained, args.batch_size, optimizer_slots=0)
    print(
        f"{args.model}, {args.layers}, batch {args.batch_size}: modelled {modelled / 1e6:.0f} MB, "
        f"measured {measured / 1e6:.0f} MB, ratio {modelled / measured:.2f}"
    )


if __name__ == "__main__":
    main()
