"""``fedfreeze train-central``: the same task on pooled data, the ceiling for a federated run."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Annotated, Any

import torch
import typer

from cli.chosen import chosen
from cli.named_files import data_folder
from client_app.pooled import Epoch, pooled_examples, train_pooled
from client_app.training import chosen_device
from fedfreeze import plain_json
from server_app.evaluation import Score, evaluate
from tasks.metric import Metric
from tasks.rehearsal import rehearse

# As many as `fedfreeze run` averages, so that the two final figures can be compared.
LAST = 3


def train_central(
    *,
    strategy: Annotated[
        str, typer.Option(help="Preset or TOML file: its task, model, seed, local settings.")
    ] = "fedfreeze",
    epochs: Annotated[
        int | None,
        typer.Option(min=1, help="Passes over the data (default: rounds x local.epochs)."),
    ] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change one key of the strategy."),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Same seed, same numbers.")] = None,
    data_dir: Annotated[
        str | None, typer.Option(help="Folder with data sets (else $FEDFREEZE_DATA_DIR).")
    ] = None,
    threads: Annotated[
        int, typer.Option(min=1, help="CPU threads; another number changes last bits.")
    ] = 1,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object at the end.")
    ] = False,
) -> None:
    """Train the strategy's task on the data of all clients at once.

    This is the ceiling for whoever keeps the data apart: the same initial
    weights and local settings, on the same examples. By default it makes as many
    passes over them as a client does that is asked in every round: rounds times
    local.epochs. The learning rate follows the schedule over them.

    Example: fedfreeze train-central --strategy fedfreeze --epochs 10 --set task=fashion-cnn
    """
    torch.set_num_threads(threads)
    settings, task = chosen(strategy, overrides or [], seed=seed)
    folder = data_folder(data_dir)
    device = chosen_device(settings.local.device)
    rehearse(task, folder)
    examples = pooled_examples(task, settings.split, folder)
    validation, test = task.validation(settings.split, folder), task.test(folder)
    initial, weights = task.initial(settings.seed)
    source = task.dataset(folder).source
    wanted = epochs or settings.rounds * settings.local.epochs
    out = sys.stderr if as_json else sys.stdout
    print(
        f"{task.name} on {source}: {len(examples)} training, {len(validation)} validation and "
        f"{len(test)} test examples, {weights}; {wanted} epochs, as a client makes in "
        f"{wanted / settings.local.epochs:g} rounds",
        file=out,
        flush=True,
    )
    begin_s = time.monotonic()
    lines: list[dict[str, Any]] = []
    for epoch in train_pooled(
        task,
        initial,
        examples,
        local=settings.local,
        epochs=wanted,
        seed=settings.seed,
        device=device,
    ):
        on_validation = evaluate(task, epoch.arrays, validation)
        on_test = evaluate(task, epoch.arrays, test)
        lines.append(record(epoch, wanted, on_validation, on_test))
        print(epoch_line(lines[-1], task.metric.name), file=out, flush=True)
    elapsed_s = time.monotonic() - begin_s
    if as_json:
        result = {
            "success": True,
            "task": task.name,
            "source": source,
            "weights": weights,
            "seed": settings.seed,
            "threads": threads,
            "examples": {
                "train": len(examples),
                "validation": len(validation),
                "test": len(test),
            },
            "epochs": lines,
            **final(lines),
            "best": best(lines, task.metric),
            "elapsed_s": elapsed_s,
        }
        print(plain_json.text(result))
        return
    for line in ["", *final_lines(lines, task.metric), f"{'time':<10} {elapsed_s:.0f} s"]:
        print(line)


def record(epoch: Epoch, epochs: int, validation: Score, test: Score) -> dict[str, Any]:
    """An epoch's figures, by the names that a round's record has."""
    return {
        "epoch": epoch.number,
        "epochs": epochs,
        **{f"test_{name}": value for name, value in test.values.items()},
        "test_loss": test.loss,
        **{f"validation_{name}": value for name, value in validation.values.items()},
        "validation_loss": validation.loss,
        "train_loss": epoch.loss,
        "learning_rate": epoch.learning_rate,
        "train_s": epoch.train_s,
    }


def epoch_line(figures: dict[str, Any], metric: str) -> str:
    """One line about an epoch.

    >>> epoch_line({"epoch": 7, "epochs": 30, "train_loss": 0.512, "validation_accuracy": 0.8,
    ...             "test_accuracy": 0.7912}, "accuracy")
    'epoch  7/30  loss 0.51  accuracy: validation 0.800  test 0.791'
    """
    total = str(figures["epochs"])
    return (
        f"epoch {figures['epoch']:>{len(total)}}/{total}  loss {figures['train_loss']:.2f}  "
        f"{metric}: validation {figures[f'validation_{metric}']:.3f}  "
        f"test {figures[f'test_{metric}']:.3f}"
    )


def final_lines(epochs: Sequence[dict[str, Any]], metric: Metric) -> list[str]:
    """What came out, for a person."""
    name = f"test_{metric.name}"
    stopped = best(epochs, metric)
    last = min(LAST, len(epochs))
    when = f"after epoch {stopped['epoch']}, the best one by validation"
    return [
        f"{metric.name:<10} {final(epochs)[name]:.3f}  (test, mean of the last {last} epochs)",
        f"{'at best':<10} {stopped[name]:.3f}  (test, {when})",
    ]


def final(epochs: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Each test figure as the mean of the last epochs.

    >>> final([{"test_r2": value, "validation_r2": 0.9} for value in (0.0, 0.25, 0.5, 0.75)])
    {'test_r2': 0.5}
    """
    last = epochs[-LAST:]
    names = [name for name in last[-1] if name.startswith("test_")]
    return {name: sum(epoch[name] for epoch in last) / len(last) for name in names}


def best(epochs: Sequence[dict[str, Any]], metric: Metric) -> dict[str, Any]:
    """The first epoch whose validation score is the best: its number and test figures.

    Long training on little data overfits; this is the ceiling of whoever stops in time. The test
    half has no say in which epoch it is.
    """
    sign = 1 if metric.higher_is_better else -1
    found = max(epochs, key=lambda epoch: sign * epoch[f"validation_{metric.name}"])
    return {key: value for key, value in found.items() if key == "epoch" or key.startswith("test_")}
