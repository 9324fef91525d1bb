"""Train every task whose data is at hand under two policies, and write the table in docs/tasks.md.

Each cell is one `fedfreeze run` of a strategy in experiments/tasks/. A cell that has its result is
not run again, so the command may be stopped and started at will.

Example:
    python experiments/task_table.py --data-dir ~/data --out ~/task-table
    python experiments/task_table.py --out ~/task-table --only reuters --page docs/tasks.md
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from fedfreeze.errors import ConfigError
from strategies import schema
from tasks.loading import load
from tasks.sources import VARIABLE

STRATEGIES = Path(__file__).parent / "tasks"
POLICIES = ("full", "fedfreeze")
BEGIN, END = "<!-- begin: made by experiments/task_table.py -->", "<!-- end -->"
HEAD = (
    "| strategy | model | parameters | layers | clients | policy | majority | accuracy | macro-F1 "
    "| worst tenth | uplink ratio | seconds |"
)


def cells(only: str) -> list[tuple[Path, str]]:
    """Every strategy with every policy."""
    paths = sorted(path for path in STRATEGIES.glob("*.toml") if only in path.stem)
    return [(path, policy) for path in paths for policy in POLICIES]


def run_cell(path: Path, policy: str, out: Path) -> dict[str, Any]:
    """One run, and what the table says of it."""
    strategy = schema.load(str(path))
    task = load(strategy.task, strategy.options)
    data = task.dataset(None)  # before minutes of training: it may not be there
    first = path.read_text("utf-8").partition("\n")[0]
    clients = first.partition("--clients ")[2].split()
    command = [
        *(sys.executable, "-m", "cli", "run", "--json", "--strategy", str(path)),
        *("--set", f'freeze={{policy="{policy}"}}'),
        *(("--clients", clients[0]) if clients else ()),
    ]
    home = {**os.environ, "FEDFREEZE_HOME": str(out / "runs")}
    ended = subprocess.run(command, env=home, stdout=subprocess.PIPE, text=True, check=False)
    outcome = json.loads(ended.stdout)
    if not outcome["success"]:
        sys.exit(f"{path.stem} under {policy}: {outcome['error']['message']}")
    lines = Path(outcome["files"]["rounds"]).read_text("utf-8").splitlines()
    last = [json.loads(line) for line in lines][-3:]
    _, counts = np.unique(data.test.targets.numpy(), return_counts=True)
    layout = task.layout()

    def mean(key: str) -> float | None:
        values = [record[key] for record in last if key in record]
        return sum(values) / len(values) if values else None

    return {
        "strategy": path.stem,
        "model": strategy.model.name or task.model,
        "source": _anywhere(data.source),
        "parameters": layout.parameter_count,
        "layers": len(layout),
        "clients": last[-1]["clients_asked"] if not clients else int(clients[0]),
        "policy": policy,
        "majority": counts.max() / counts.sum(),
        "accuracy": mean("test_accuracy"),
        "macro_f1": mean("test_macro_f1"),
        "worst_tenth": mean("client_accuracy_worst_tenth"),
        "upload_ratio": outcome["upload_ratio"],
        "elapsed_s": outcome["elapsed_s"],
    }


def _anywhere(source: str) -> str:
    """Where the data came from, without this machine's own folders."""
    source = source.replace(os.environ.get(VARIABLE, "data-dir"), "data-dir")
    return re.sub(r"/\S*/site-packages/", "", source)


def row(cell: dict[str, Any]) -> str:
    """The cell as a line of the table."""

    def share(key: str) -> str:
        return "" if cell[key] is None else f"{cell[key]:.3f}"

    values = [
        f"[{cell['strategy']}](../experiments/tasks/{cell['strategy']}.toml)",
        cell["model"],
        f"{cell['parameters']:,}",
        cell["layers"],
        cell["clients"],
        cell["policy"],
        *map(share, ("majority", "accuracy", "macro_f1", "worst_tenth")),
        f"{cell['upload_ratio']:.0f}x",
        f"{cell['elapsed_s']:.0f}",
    ]
    return f"| {' | '.join(map(str, values))} |"


def write_page(page: Path, found: list[dict[str, Any]]) -> None:
    """Put the table between the page's two marks."""
    before, begin, rest = page.read_text("utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        sys.exit(f"{page}: expected the marks {BEGIN} and {END}")
    sources = dict.fromkeys((cell["strategy"], cell["source"]) for cell in found)
    lines = [
        "",
        HEAD,
        f"|{'---|' * (HEAD.count('|') - 1)}",
        *map(row, found),
        "",
        *(f"- {strategy}: {source}" for strategy, source in sources),
        "",
    ]
    page.write_text(before + begin + "\n".join(lines) + end + after, encoding="utf-8")


def main() -> None:
    """Read the arguments, run what has no result yet, write the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data-dir", help="folder with data sets")
    parser.add_argument("--out", type=Path, required=True, help="where results are kept")
    parser.add_argument("--only", default="", help="strategies with this in their name")
    parser.add_argument("--page", type=Path, help="page to write the table into")
    given = parser.parse_args()
    if given.data_dir is not None:
        # A place to look, so that what ships with the project is found, too.
        os.environ[VARIABLE] = str(Path(given.data_dir).expanduser().absolute())
    given.out.mkdir(parents=True, exist_ok=True)
    for path, policy in cells(given.only):
        result = given.out / f"{path.stem}.{policy}.json"
        if result.exists():
            continue
        print(f"{path.stem} under {policy} ...", file=sys.stderr, flush=True)
        try:
            cell = run_cell(path, policy, given.out)
        except ConfigError as error:
            print(f"{path.stem}: left out: {error}", file=sys.stderr)
            continue
        result.write_text(json.dumps(cell, indent=1), encoding="utf-8")
        print(row(cell), file=sys.stderr, flush=True)
    found = [
        json.loads(result.read_text("utf-8"))
        for path, policy in cells("")
        if (result := given.out / f"{path.stem}.{policy}.json").exists()
    ]
    if given.page is not None:
        write_page(given.page, found)
    else:
        print("\n".join([HEAD, *map(row, found)]))


if __name__ == "__main__":
    main()
