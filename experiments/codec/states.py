"""What a codec sees: updates of a CNN, a ResNet and a ViT in training with error feedback.

Four clients with Dirichlet(0.3) parts of Fashion-MNIST as it ships with the project train for five
rounds of ten steps each. Every round each client sends the largest hundredth of its accumulator,
delta plus residual, exactly; the server adds the mean. Kept are, of the first client, the first
delta (``delta``) and the accumulator of the last round (``feedback``), which is what production
sends.

Example:
    python experiments/codec/states.py --out ~/codec-states
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from fedfreeze.layout import Layout
from tasks.loading import load
from tasks.options import Options
from tasks.partition import Split
from tasks.task import Task

State = dict[str, NDArray[np.float32]]

CLIENTS, ROUNDS, STEPS, BATCH = 4, 5, 10, 20
KEPT = 0.01
MODELS: dict[str, tuple[str | None, Callable[..., torch.optim.Optimizer], float]] = {
    "cnn": (None, torch.optim.SGD, 0.1),
    "resnet": ("resnet18-gn", torch.optim.SGD, 0.05),
    "vit": ("vit-tiny", torch.optim.AdamW, 5e-4),
}
KINDS = ("delta", "feedback")


def task_of(model: str) -> Task:
    """Fashion-MNIST with one of the three models."""
    return load("fashion-cnn", Options(model=MODELS[model][0]))


def states(model: str, folder: Path) -> tuple[Layout, dict[str, State]]:
    """The layout and the states by kind, from the folder or trained now."""
    task = task_of(model)
    paths = {kind: folder / f"{model}-{kind}.safetensors" for kind in KINDS}
    if not all(path.exists() for path in paths.values()):
        print(f"training the {model} for its states ...", file=sys.stderr, flush=True)
        folder.mkdir(parents=True, exist_ok=True)
        for kind, state in _trained(task, model).items():
            save_file(state, paths[kind])
    return task.layout(), {kind: load_file(path) for kind, path in paths.items()}


def _trained(task: Task, model: str) -> dict[str, State]:
    _, optimizer, rate = MODELS[model]
    layout = task.layout()
    names = [t.name for t in layout.tensors.values() if t.travels and t.kind == "parameter"]
    arrays, _ = task.initial(0)
    published = {name: np.array(arrays[name], np.float32) for name in names}
    split = Split("dirichlet", 0.3, validation_share=0.0, seed=0)
    parts = [task.client_examples(i, CLIENTS, split, None) for i in range(CLIENTS)]
    residuals: list[State] = [{n: np.zeros_like(published[n]) for n in names} for _ in parts]
    module = task.build()
    found: dict[str, State] = {}
    torch.manual_seed(0)
    for number in range(ROUNDS):
        sent: list[State] = []
        for client, examples in enumerate(parts):
            with torch.no_grad():
                for name, parameter in module.named_parameters():
                    parameter.copy_(torch.from_numpy(published[name]))
            steps = optimizer(module.parameters(), lr=rate)
            module.train()
            for _ in range(STEPS):
                chosen = torch.randint(len(examples), (BATCH,))
                batch = examples.at(chosen.numpy())
                loss = task.loss(module(task.prepare(batch.inputs)), batch.targets)
                steps.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(module.parameters(), 5.0)
                steps.step()
            after = {n: p.detach().numpy() for n, p in module.named_parameters()}
            delta = {n: after[n] - published[n] for n in names}
            meant = {n: delta[n] + residuals[client][n] for n in names}
            if client == 0 and number == 0:
                found["delta"] = delta
            if client == 0 and number == ROUNDS - 1:
                found["feedback"] = meant
            flat = np.concatenate([np.abs(meant[n]).ravel() for n in names])
            kept = max(1, int(KEPT * len(flat)))
            threshold = np.partition(flat, -kept)[-kept]
            sent.append({n: np.where(np.abs(meant[n]) >= threshold, meant[n], 0) for n in names})
            residuals[client] = {n: meant[n] - sent[-1][n] for n in names}
        published = {n: published[n] + np.mean([s[n] for s in sent], axis=0) for n in names}
        print(f"  round {number + 1}/{ROUNDS}  loss {loss.item():.3f}", file=sys.stderr, flush=True)
    return {
        k: {n: np.ascontiguousarray(a, np.float32) for n, a in s.items()} for k, s in found.items()
    }


def main() -> None:
    """Train what the folder lacks."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="where the states are kept")
    given = parser.parse_args()
    for model in MODELS:
        layout, found = states(model, given.out)
        norms = {
            kind: float(np.sqrt(sum((a**2).sum() for a in s.values()))) for kind, s in found.items()
        }
        print(f"{model}: {layout.parameter_count:,} parameters, norms {norms}")


if __name__ == "__main__":
    main()
