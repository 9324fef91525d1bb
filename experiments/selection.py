"""Rules that choose a cohort, held against uniform draws: one fleet, equal share, several seeds.

Every run differs from the others of its seed in `[clients] selection` alone: the same boards with
the same jitter, the same division of the data, the same initial model. The learning rate is
constant, so that a run that is stopped at equal time is not stopped in mid-schedule. A cell that
has its result is not run again, so the command may be stopped and started at will.

Example:
    python experiments/selection.py --out ~/selection --quick
    python experiments/selection.py --out ~/selection --page docs/selection.md
    python experiments/selection.py --out ~/evening --fleet evening --page docs/selection.md
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from in_process import InProcess
from selection_measures import Curve, curve, table

from client_app.app import app as client_app
from device_profiles.fleet import fleet_text
from server_app.round import Run
from server_app.run_config import read
from strategies.tables import SCORED

RULES = ("uniform", *SCORED)
BEGIN, END = "<!-- begin: made by experiments/selection.py --fleet {fleet} -->", "<!-- end -->"


def one_run(rule: str, seed: int, given: argparse.Namespace) -> Curve:
    """Train with one rule and one seed."""
    changes = [
        f"rounds={given.rounds}",
        f"seed={seed}",
        f'clients.selection="{rule}"',
        f"clients.share={given.share}",
        'local.schedule="constant"',
        "local.final-share=0.1",  # the default: nothing reads it now
        f"local.learning-rate={given.learning_rate}",
        *given.set,
    ]
    with tempfile.TemporaryDirectory() as folder:
        request = read(
            {
                "strategy": given.preset,
                "fleet-toml": fleet_text(given.fleet),
                "set": json.dumps(changes),
                "out-dir": folder,
                "start-timeout-s": 1.0,
            }
        )
        run = Run(request, InProcess(client_app, given.clients))
        run.play()
        return curve(list(run.rounds.read()), run.decisions.read(), given.clients)


def identity(given: argparse.Namespace) -> str:
    """Of what the cells of one table have in common."""
    of = [given.preset, given.fleet, given.clients, given.rounds, given.share, given.learning_rate]
    return " ".join(map(str, [*of, *given.set]))


def write_page(page: Path, fleet: str, lines: list[str]) -> None:
    """Put the table between the page's two marks for this fleet."""
    mark = BEGIN.format(fleet=fleet)
    before, begin, rest = page.read_text("utf-8").partition(mark)
    _, end, after = rest.partition(END)
    if not begin or not end:
        sys.exit(f"{page}: expected the marks {mark} and {END}")
    page.write_text(before + begin + "\n".join(["", *lines, ""]) + end + after, encoding="utf-8")


def arguments() -> argparse.Namespace:
    """What the user wants."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="where results are kept")
    parser.add_argument("--preset", default="fedfreeze", help="the strategy")
    parser.add_argument("--fleet", default="mixed", help="name or file, with windows or without")
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--share", type=float, default=0.25, help="of the clients, in a cohort")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--learning-rate", type=float, default=0.05, help="constant")
    parser.add_argument("--target", type=float, default=0.6, help="accuracy to reach")
    parser.add_argument("--seeds", type=int, default=8, help="how many, from 0")
    parser.add_argument("--rules", nargs="+", default=list(RULES), choices=RULES)
    parser.add_argument("--set", action="append", default=[], help="KEY=VALUE of the strategy")
    parser.add_argument("--page", type=Path, help="page to write the table into")
    parser.add_argument("--json", action="store_true", help="print the curves as JSON")
    parser.add_argument("--quick", action="store_true", help="one seed, ten clients, six rounds")
    given = parser.parse_args()
    if given.quick:
        given.seeds, given.clients, given.rounds, given.share = 1, 10, 6, 0.3
    if "uniform" not in given.rules:
        parser.error("--rules: expected uniform among them; the others are held against it")
    return given


def main() -> None:
    """Run what has no result yet, and print the table."""
    given = arguments()
    torch.set_num_threads(1)
    given.out.mkdir(parents=True, exist_ok=True)
    curves: dict[str, dict[int, Curve]] = {rule: {} for rule in given.rules}
    for seed in range(given.seeds):
        for rule in given.rules:
            curves[rule][seed] = found = kept(rule, seed, given)
            print(
                f"{rule} seed {seed}: {found.accuracy[-1]:.3f} after {found.seconds[-1]:.0f} s",
                file=sys.stderr,
                flush=True,
            )
    lines = table(curves, given.target)
    if given.page is not None:
        write_page(given.page, given.fleet, lines)
    if given.json:
        print(
            json.dumps({rule: {s: asdict(c) for s, c in of.items()} for rule, of in curves.items()})
        )
    else:
        print("\n".join(lines))


def kept(rule: str, seed: int, given: argparse.Namespace) -> Curve:
    """The result of an earlier call with the same wishes, or a new one."""
    path = given.out / f"{rule}.{seed}.json"
    wanted = identity(given)
    if path.exists():
        document: dict[str, Any] = json.loads(path.read_text("utf-8"))
        if document.pop("of") == wanted:
            return Curve(**{k: tuple(v) if isinstance(v, list) else v for k, v in document.items()})
    found = one_run(rule, seed, given)
    path.write_text(json.dumps({"of": wanted, **asdict(found)}), encoding="utf-8")
    return found


if __name__ == "__main__":
    main()
