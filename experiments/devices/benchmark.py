"""Costs, plans and their predictions, held against formulas, brute force, bounds and real training.

Five sections: FLOPs against formulas; memory against the peaks of fresh processes; plans against
every set of layers; plans of 60 layers against a bound and the clock; seconds against the clock.
All of it took 19 minutes on a busy machine of two cores, --quick three.

Example:
    python experiments/devices/benchmark.py --sections memory --models vit-tiny --batch-sizes 8
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import exactness
import memory
import operations
import planner
import seconds
from case import TASK_OF
from section import Say, Section

NAMES = ("flops", "memory", "exact", "planner", "seconds")
QUICK_MODELS = ["fashion-cnn", "resnet18-gn"]


def chosen(arguments: argparse.Namespace) -> dict[str, tuple[str, Callable[[Say], Section]]]:
    """Of each section that is wanted, its title and what runs it."""
    quick = arguments.quick
    models = arguments.models or list(TASK_OF)
    few = arguments.models or (QUICK_MODELS if quick else list(TASK_OF))
    batch_sizes = arguments.batch_sizes or ([8] if quick else [8, 32])
    about_s, repeats = (0.1, 1) if quick else (1.0, 3)
    every: dict[str, tuple[str, Callable[[Say], Section]]] = {
        "flops": ("FLOPs, traced against formulas", lambda say: operations.run(say, models)),
        "memory": (
            "Memory of training, predicted against measured",
            lambda say: memory.run(say, few, batch_sizes),
        ),
        "exact": (
            "Plans against every set of layers",
            lambda say: exactness.run(say, 120 if quick else 1_000),
        ),
        "planner": (
            "Plans of 60 layers against a Lagrangian bound",
            lambda say: planner.run(say, 5 if quick else 20),
        ),
        "seconds": (
            "Seconds of training, predicted against measured",
            lambda say: seconds.run(say, few, about_s=about_s, repeats=repeats),
        ),
    }
    return {name: every[name] for name in arguments.sections or NAMES}


def played(
    sections: Mapping[str, tuple[str, Callable[[Say], Section]]], say: Say
) -> dict[str, Section]:
    """Run the sections one after another, and say each one's verdict."""
    found = {}
    for name, (title, run) in sections.items():
        say(f"{title} ({name})\n")
        found[name] = run(say)
        say(f"\n{found[name].verdict}\n")
    return found


def parsed(words: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sections", nargs="+", choices=NAMES, help="these alone")
    parser.add_argument("--models", nargs="+", choices=TASK_OF, help="these alone")
    parser.add_argument("--batch-sizes", nargs="+", type=int, help="for memory (default: 8 32)")
    parser.add_argument("--quick", action="store_true", help="fewer models and cases")
    parser.add_argument("--json", type=Path, help="write all figures there as well")
    return parser.parse_args(words)


def main() -> int:
    """Print every section; 1 if a target is missed."""
    arguments = parsed()
    found = played(chosen(arguments), lambda line: print(line, flush=True))
    if arguments.json:
        document = {
            name: {
                "target": section.target,
                "found": section.found,
                "holds": section.holds,
                **section.figures,
            }
            for name, section in found.items()
        }
        arguments.json.write_text(json.dumps(document, indent=1) + "\n", "utf-8")
    missed = [name for name, section in found.items() if section.holds is False]
    print(f"missed: {', '.join(missed)}" if missed else "every target holds")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
