"""Local training under a plan: stage by stage, trained layers only."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm as BatchNorm

from client_app.example_losses import squares_of
from client_app.freezing import Freezer
from client_app.optimizer import optimizer_of
from fedfreeze.errors import ConfigError, PlanError, RunError
from fedfreeze.layout import Arrays, Layout
from fedfreeze.plan import Plan
from fedfreeze.wall_clock import SystemClock, WallClock
from strategies.aggregation.step import l2_norm
from strategies.local_step import LocalStep
from strategies.tables import Local
from tasks.dataset import Examples
from tasks.task import Task, load_arrays

# A stream of its own: the order of the examples is the same with and without augmentation.
_AUGMENTATION = 1


@dataclass(frozen=True)
class Trained:
    """What local training gave.

    Attributes:
        delta: trained minus published, for the float tensors of the trained layers.
        loss: mean over the examples of the last epoch, as they were seen.
        train_s: measured wall-clock seconds.
        loss_rms: root mean square over the same losses of single examples; None if nobody asked.
    """

    delta: dict[str, NDArray[Any]]
    loss: float
    train_s: float
    loss_rms: float | None = None


def chosen_device(wanted: str) -> torch.device:
    """``auto`` is cuda where there is one.

    Raises:
        ConfigError: cuda was asked for and is not there.
    """
    there = torch.cuda.is_available()
    if wanted == "cuda" and not there:
        raise ConfigError(
            'local.device: expected a CUDA device, torch sees none; use "auto" or "cpu", or '
            "install a torch build for this board's GPU"
        )
    return torch.device("cuda" if there and wanted != "cpu" else "cpu")


def stage_starts(plan: Plan, steps: int) -> tuple[int, ...]:
    """The step at which each stage begins; stages shorter than a step may begin together.

    >>> from fedfreeze.plan import Stage
    >>> halves = Plan((Stage(0.5, ("a",)), Stage(0.5, ("a", "b"))), 1, 8, 0)
    >>> stage_starts(halves, 5)
    (0, 2)
    """
    before = [
        math.fsum(stage.share for stage in plan.stages[:at]) for at in range(len(plan.stages))
    ]
    # The last bits of a sum of shares must not decide in which step a stage begins.
    return tuple(math.floor(share * steps + 1e-9) for share in before)


def batches(order: Tensor, size: int, *, at_least: int) -> tuple[Tensor, ...]:
    """The examples in this order, ``size`` at a time, or ``at_least`` if that is more.

    A last batch of fewer than ``at_least`` joins the one before it: BatchNorm has no statistics of
    a single example.

    >>> [len(batch) for batch in batches(torch.arange(21), 10, at_least=2)]
    [10, 11]
    >>> [len(batch) for batch in batches(torch.arange(5), 1, at_least=2)]
    [2, 3]
    """
    parts: tuple[Tensor, ...] = torch.split(order, max(size, at_least))
    if len(parts) > 1 and len(parts[-1]) < at_least:
        return (*parts[:-2], torch.cat(parts[-2:]))
    return parts


def parts(batch: Tensor, size: int, *, at_least: int) -> tuple[Tensor, ...]:
    """A batch in as few parts as have ``size`` examples at most, as even as they can be.

    Larger ones only where one of them would have fewer than ``at_least``.

    >>> [len(part) for part in parts(torch.arange(10), 3, at_least=2)]
    [3, 3, 2, 2]
    >>> [len(part) for part in parts(torch.arange(3), 2, at_least=2)]
    [3]
    """
    count = min(-(-len(batch) // size), max(1, len(batch) // at_least))
    return tuple(torch.tensor_split(batch, count))


def train(
    task: Task,
    published: Arrays,
    examples: Examples,
    plan: Plan,
    *,
    layout: Layout,
    local: Local,
    learning_rate: float,
    seed: int,
    device: torch.device,
    step: LocalStep,
    wants_rms: bool = False,
    clock: WallClock | None = None,
) -> Trained:
    """Train the plan's layers from the published model.

    A batch that the plan splits is computed part by part, and the optimizer steps once for it; the
    gradient is that of the whole batch but for rounding, dropout and BatchNorm.

    The optimizer lives for one round: within it, a layer keeps its momentum over a stage in which
    it is frozen; between rounds nothing is kept.

    Raises:
        PlanError: the model needs more examples in a batch than there are at all.
        RunError: the loss left the finite numbers.
    """
    clock = clock or SystemClock()
    begin_s = clock.now()
    torch.manual_seed(seed)
    model = task.build().to(device)
    load_arrays(model, published)
    freezer = Freezer(model, layout)
    freezer.train(plan.trained)
    parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
    least = 2 if any(isinstance(m, BatchNorm) for m in model.modules()) else 1
    if len(examples) < least:
        raise PlanError(
            f"BatchNorm has no statistics of a single example, and {len(examples)} is all there is",
            "examples",
        )
    in_epoch = len(batches(torch.arange(len(examples)), plan.batch_size, at_least=least))
    steps = plan.epochs * in_epoch
    own = step.stage_starts(plan.stages, steps)
    starts = stage_starts(plan, steps) if own is None else own
    # One group where one rate serves all: fewer, larger operations.
    groups = _by_layer(parameters, layout) if step.rate_scales(0, steps) else {"": parameters}
    optimizer = optimizer_of(
        [list(group.values()) for group in groups.values()], local, learning_rate
    )
    step.begin(parameters)
    prepare = task.prepare
    inputs, targets = examples.inputs.to(device), examples.targets.to(device)
    order, chance = np.random.default_rng(seed), np.random.default_rng([seed, _AUGMENTATION])
    part_size = len(examples) if plan.micro_batches == 1 else plan.micro_batch_size
    at, stage, loss_sum, square_sum = 0, -1, 0.0, 0.0
    for epoch in range(1, plan.epochs + 1):
        permutation = torch.from_numpy(order.permutation(len(examples))).to(device)
        loss_sum = 0.0
        for chosen in batches(permutation, plan.batch_size, at_least=least):
            while stage + 1 < len(starts) and starts[stage + 1] <= at:
                stage += 1
                freezer.train(plan.stages[stage].layers)
            optimizer.zero_grad(set_to_none=True)
            for part in parts(chosen, part_size, at_least=least):
                batch = prepare(task.augmented(inputs[part], chance))
                outputs = model(batch)
                loss = task.loss(outputs, targets[part])
                if not torch.isfinite(loss):
                    raise RunError(
                        f"local training diverged in step {at + 1}: the loss is {loss.item()}; "
                        "lower local.learning-rate, lengthen local.warm-up-rounds or set "
                        "local.clip-norm"
                    )
                # The loss of a batch is the mean over its examples.
                share = len(part) / len(chosen)
                (loss if share == 1 else loss * share).backward()  # type: ignore[no-untyped-call]
                loss_sum += loss.item() * len(part)
                if wants_rms and epoch == plan.epochs:
                    square_sum += squares_of(task.loss, outputs, targets[part])
            step.after_backward(parameters)
            if local.clip_norm is not None:
                nn.utils.clip_grad_norm_(list(parameters.values()), local.clip_norm)
            if scales := step.rate_scales(at, steps):
                for layer, group in zip(groups, optimizer.param_groups, strict=True):
                    group["lr"] = learning_rate * scales[layer]
            optimizer.step()
            at += 1
    return Trained(
        delta=_delta(model, published, plan, layout),
        loss=loss_sum / len(examples),
        train_s=clock.now() - begin_s,
        loss_rms=math.sqrt(square_sum / len(examples)) if wants_rms else None,
    )


def _by_layer(
    parameters: Mapping[str, nn.Parameter], layout: Layout
) -> dict[str, dict[str, nn.Parameter]]:
    groups: dict[str, dict[str, nn.Parameter]] = {}
    for name, parameter in parameters.items():
        groups.setdefault(layout.layer_of[name], {})[name] = parameter
    return groups


def _delta(
    model: nn.Module, published: Arrays, plan: Plan, layout: Layout
) -> dict[str, NDArray[Any]]:
    state = model.state_dict()
    return {
        tensor.name: state[tensor.name].cpu().numpy() - published[tensor.name]
        for layer in layout.ordered(plan.trained)
        for tensor in layout[layer].tensors
        if tensor.travels
    }


def movements(delta: Mapping[str, Any], published: Arrays, layout: Layout) -> dict[str, float]:
    """Per layer in ``delta``, the norm of its parameters' update over their norm before."""
    result = {}
    for layer in layout:
        names = [tensor.name for tensor in layer.parameters if tensor.name in delta]
        if names:
            moved = l2_norm(delta[name] for name in names)
            result[layer.name] = moved / (l2_norm(published[name] for name in names) + 1e-12)
    return result
