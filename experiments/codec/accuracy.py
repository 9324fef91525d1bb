"""What a codec is for: the accuracy of one training, with its updates coded in several ways.

The run of a preset, every layer trained by every client, without Flower and without boards: what
is compared differs in nothing but the bytes of updates. ``rank`` sends the largest values of the
whole update exactly and pays for none of it: so many values as ``fast`` keeps.

Example:
    python experiments/codec/accuracy.py --seeds 8 --coders dense stc fast thorough
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import product
from statistics import fmean, stdev

import numpy as np
import torch
from anchors import largest_first, stc_bits
from numpy.typing import NDArray

from client_app.training import train
from compression import CodecSettings, add, encode, scaled, subtract
from fedfreeze.errors import RunError
from fedfreeze.layout import Arrays, Layout
from fedfreeze.plan import Plan, Stage
from server_app.evaluation import evaluate
from strategies import schema
from strategies.local_step import LocalStep
from strategies.schedule import learning_rate
from tasks.loading import load
from tasks.task import initial_arrays

Update = dict[str, NDArray[np.float32]]
Coder = Callable[[Update, Layout, int], Update]
CLIENTS = 10
LAST_ROUNDS = 3


def _packet(settings: CodecSettings, update: Update, layout: Layout, budget_bytes: int) -> Update:
    sent = encode(
        update,
        layout,
        layout.names,
        budget_bytes=budget_bytes,
        round_number=0,
        settings=settings,
    )
    return {name: sent.decoded.get(name, np.zeros_like(a)) for name, a in update.items()}


def _dense(update: Update, layout: Layout, budget_bytes: int) -> Update:
    del layout, budget_bytes
    return update


def _stc(update: Update, layout: Layout, budget_bytes: int) -> Update:
    """Sparse ternary compression: the largest values as signs of their mean magnitude."""
    del layout
    flat = np.concatenate([array.ravel() for array in update.values()])
    order = largest_first(flat)
    low, high = 0, len(flat)
    while low < high:
        middle = (low + high + 1) // 2
        fits = stc_bits(np.sort(order[:middle]), len(flat)) <= 8 * budget_bytes
        low, high = (middle, high) if fits else (low, middle - 1)
    kept = order[:low]
    sent = np.zeros_like(flat)
    sent[kept] = np.copysign(np.abs(flat[kept]).mean(), flat[kept]) if low else 0
    return _like(update, sent)


def _rank(update: Update, layout: Layout, budget_bytes: int) -> Update:
    """As many exact values as the codec keeps."""
    fast = _packet(CodecSettings(effort="fast"), update, layout, budget_bytes)
    count = sum(int(np.count_nonzero(array)) for array in fast.values())
    flat = np.concatenate([array.ravel() for array in update.values()])
    sent = np.zeros_like(flat)
    kept = largest_first(flat)[:count]
    sent[kept] = flat[kept]
    return _like(update, sent)


def _capped(update: Update, layout: Layout, budget_bytes: int) -> Update:
    """The codec, but no value leaves at more than the mean magnitude of those that do."""
    first = _packet(CodecSettings(effort="fast"), update, layout, budget_bytes)
    sizes = np.concatenate([np.abs(array[array != 0]) for array in first.values()])
    cap = sizes.mean() if len(sizes) else np.inf
    clipped = {name: np.clip(array, -cap, cap) for name, array in update.items()}
    return _packet(CodecSettings(), clipped, layout, budget_bytes)


def _like(update: Update, flat: NDArray[np.float32]) -> Update:
    ends = np.cumsum([array.size for array in update.values()])[:-1]
    return {
        name: part.reshape(array.shape)
        for (name, array), part in zip(update.items(), np.split(flat, ends), strict=True)
    }


CODERS: dict[str, Coder] = {
    "dense": _dense,
    "stc": _stc,
    "rank": _rank,
    "fast": partial(_packet, CodecSettings(effort="fast")),
    "thorough": partial(_packet, CodecSettings()),
    "plain": partial(_packet, CodecSettings(effort="fast", structured=False, affine=False)),
    "plain-thorough": partial(_packet, CodecSettings(structured=False, affine=False)),
    "capped": _capped,
    "finer": partial(_packet, CodecSettings(fineness=1.5)),
}


def accuracy(
    preset: str, changes: Sequence[str], seed: int, *, coder: str, ratio: float, keep: float
) -> tuple[float, float]:
    """Mean test accuracy of the last rounds, and the mean share of error in what was sent."""
    torch.set_num_threads(1)
    settings = schema.load(preset, [*changes, f"seed={seed}"])
    task = load(settings.task, settings.options)
    layout = task.layout()
    parts = [task.client_examples(i, CLIENTS, settings.split, None) for i in range(CLIENTS)]
    test = task.dataset(None).test
    published = initial_arrays(task, settings.seed)
    residuals: list[Update] = [{} for _ in parts]
    budget_bytes = int(4 * layout.parameter_count / ratio)
    plan = Plan((Stage(1.0, layout.names),), settings.local.epochs, settings.local.batch_size, 0)
    found, errors = [], []
    weight = sum(map(len, parts))
    for number in range(1, settings.rounds + 1):
        summed = {name: np.zeros(a.shape) for name, a in published.items()}
        for client, examples in enumerate(parts):
            delta = train(
                task,
                published,
                examples,
                plan,
                layout=layout,
                local=settings.local,
                learning_rate=learning_rate(settings.local, number, settings.rounds),
                seed=int(np.random.SeedSequence([seed, number, client]).generate_state(1)[0]),
                device=torch.device("cpu"),
                step=LocalStep(),
            ).delta
            update = add(scaled(residuals[client], dict.fromkeys(delta, keep)), delta)
            sent = CODERS[coder](update, layout, budget_bytes)
            residuals[client] = subtract(update, sent)
            errors.append(_squares(residuals[client]) / _squares(update))
            for name, array in sent.items():
                summed[name] += len(examples) / weight * array
        rate = settings.method.server_learning_rate
        published = {
            name: (a + rate * summed[name]).astype(a.dtype) for name, a in published.items()
        }
        if number > settings.rounds - LAST_ROUNDS:
            found.append(evaluate(task, published, test).headline)
    return fmean(found), fmean(errors)


def _squares(arrays: Arrays) -> float:
    return float(sum((array.astype(np.float64) ** 2).sum() for array in arrays.values()))


def _cell(job: tuple[str, tuple[str, ...], float, float, str, int]) -> tuple[float, float]:
    preset, changes, ratio, keep, coder, seed = job
    try:
        return accuracy(preset, changes, seed, coder=coder, ratio=ratio, keep=keep)
    except RunError:  # the loss left the finite numbers
        return math.nan, math.nan


def summary(
    cells: dict[str, list[tuple[float, float]]], against: str
) -> Iterable[dict[str, object]]:
    """A line for each coder, over the seeds with which neither it nor ``against`` diverged."""
    for coder, found in cells.items():
        pairs = [
            (a, b, error)
            for (a, error), (b, _) in zip(found, cells[against], strict=True)
            if not math.isnan(a + b)
        ]
        differences = [a - b for a, b, _ in pairs]
        yield {
            "coder": coder,
            "diverged": sum(math.isnan(a) for a, _ in found),
            "seeds": len(pairs),
            "accuracy": fmean(a for a, _, _ in pairs) if pairs else None,
            "against": against,
            "difference": fmean(differences) if pairs else None,
            "standard_error": stdev(differences) / math.sqrt(len(pairs))
            if len(pairs) > 1
            else None,
            "error_share": fmean(error for _, _, error in pairs) if pairs else None,
            "by_seed": [None if math.isnan(a) else a for a, _ in found],
        }


def main() -> None:
    """Train with each coder and each seed, two at once, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--preset", default="full", help="the strategy")
    parser.add_argument("--set", action="append", default=[], help="KEY=VALUE of the strategy")
    parser.add_argument("--ratio", type=float, default=60, help="dense bytes over packet bytes")
    parser.add_argument("--keep", type=float, default=1, help="of a residual, each round")
    parser.add_argument("--seeds", type=int, default=4, help="how many, from 0")
    parser.add_argument("--coders", nargs="+", default=list(CODERS), choices=CODERS)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--json", action="store_true", help="lines of JSON in place of a table")
    given = parser.parse_args()
    jobs = list(
        product(
            [given.preset],
            [tuple(given.set)],
            [given.ratio],
            [given.keep],
            given.coders,
            range(given.seeds),
        )
    )
    with multiprocessing.get_context("spawn").Pool(given.processes) as pool:
        found = []
        for job, cell in zip(jobs, pool.imap(_cell, jobs), strict=True):
            found.append(cell)
            print(f"{job[4]} seed {job[5]}: {cell[0]:.4f}", file=sys.stderr, flush=True)
    cells = {
        coder: found[at * given.seeds : (at + 1) * given.seeds]
        for at, coder in enumerate(given.coders)
    }
    for line in summary(cells, given.coders[0]):
        if given.json:
            print(json.dumps(line))
            continue
        shown = {key: "-" if value is None else value for key, value in line.items()}
        print(
            "{coder:15} {accuracy:<8.4} {difference:<+8.4} +- {standard_error:<8.4} "
            "error share {error_share:.3}  diverged {diverged}".format(**shown)
        )


if __name__ == "__main__":
    main()
