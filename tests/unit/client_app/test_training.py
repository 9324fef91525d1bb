"""Local training under a plan, on a model with norms, running statistics and dropout."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from client_app.training import chosen_device, movements, stage_starts, train
from fedfreeze.errors import ConfigError, PlanError, RunError
from fedfreeze.layout import Layer, Layout, TensorSpec
from fedfreeze.plan import Plan, Reason, Stage
from fedfreeze.wall_clock import FakeClock
from strategies.local_step import LocalStep
from strategies.tables import Local
from tasks.dataset import Examples
from tasks.partition import Split
from tasks.task import initial_arrays
from tests.tiny_task import EXAMPLES, TinyNet, layout_of, task

CPU = torch.device("cpu")
LAYERS = ("stem", "body", "norm", "head")
OPTIMIZERS = {
    "sgd": {"optimizer": "sgd"},
    "sgd with momentum": {"optimizer": "sgd", "momentum": 0.9},
    "adam": {"optimizer": "adam"},
    "adamw": {"optimizer": "adamw"},
}


class Watch(LocalStep):
    """Keeps the model's parameters, what they were in each step, and the gradients seen."""

    def __init__(self):
        self.steps = []

    def begin(self, parameters):
        self.parameters = parameters

    def after_backward(self, parameters):
        assert parameters is self.parameters
        self.steps.append(
            {
                name: (p.detach().clone(), None if p.grad is None else p.grad.clone())
                for name, p in parameters.items()
            }
        )


class Kept:
    """A tiny task that remembers the model it built last, and may change it first."""

    def __init__(self, change=lambda model: None, **fields):
        self.change = change
        self.task = replace(task, model=self.build, **fields)

    def build(self):
        self.model = TinyNet()
        self.change(self.model)
        return self.model


def plan_of(*stages, epochs=2, batch_size=4):
    trained = {name for _, layers in stages for name in layers}
    frozen = {name: Reason("fixed", "") for name in LAYERS if name not in trained}
    return Plan(tuple(Stage(*stage) for stage in stages), epochs, batch_size, 1_000, frozen)


def run(
    plan,
    *,
    task=None,
    local=None,
    step=None,
    seed=1,
    rate=0.1,
    examples=None,
    clock=None,
    wants_rms=False,
):
    kept = task or Kept()
    published = initial_arrays(kept.task, 0)
    trained = train(
        kept.task,
        published,
        examples or kept.task.client_examples(0, 1, SPLIT, None),
        plan,
        layout=kept.task.layout(),
        local=local or Local(),
        learning_rate=rate,
        seed=seed,
        device=CPU,
        step=step or LocalStep(),
        clock=clock,
        wants_rms=wants_rms,
    )
    after = {name: value.numpy().copy() for name, value in kept.model.state_dict().items()}
    return trained, published, after


SPLIT = Split("iid", 0.3, 0.1, 0)


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("layers", [("head",), ("norm", "head"), ("stem",), ("body",)])
def test_frozen_layers_are_bit_identical_and_trained_ones_move(layers, optimizer, weight_decay):
    local = Local(weight_decay=weight_decay, **OPTIMIZERS[optimizer])
    trained, before, after = run(plan_of((1.0, layers)), local=local, rate=0.01)
    layout = task.layout()
    for name, spec in layout.tensors.items():
        same = after[name].tobytes() == before[name].tobytes()
        assert same == (layout.layer_of[name] not in layers), name
        if layout.layer_of[name] in layers and spec.is_float:
            assert np.array_equal(trained.delta[name], after[name] - before[name])
    assert set(trained.delta) == {
        t.name for name in layers for t in layout[name].tensors if t.is_float
    }


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_layer_that_had_momentum_stops_at_the_step_in_which_its_stage_ends(
    optimizer, weight_decay
):
    """Six steps of an epoch: the body trains in the first three, the head in the last three."""
    local = Local(weight_decay=weight_decay, **OPTIMIZERS[optimizer])
    watch = Watch()
    run(
        plan_of((0.5, ("body",)), (0.5, ("head",)), epochs=1),
        local=local,
        step=watch,
        rate=0.01,
    )
    last = {name: p.detach() for name, p in watch.parameters.items()}
    values = [{n: v for n, (v, _) in step.items()} for step in watch.steps] + [last]
    assert len(watch.steps) == 6
    for name in watch.parameters:
        moves = [not torch.equal(values[at][name], values[at + 1][name]) for at in range(6)]
        has_gradient = [step[name][1] is not None for step in watch.steps]
        expected = [name.startswith("body")] * 3 + [name.startswith("head")] * 3
        assert has_gradient == expected, name
        assert moves == expected, name


def test_a_layer_thawed_again_within_the_round_goes_on_with_its_momentum():
    watch = Watch()
    run(
        plan_of((1 / 3, ("head",)), (1 / 3, ("norm",)), (1 / 3, ("head",)), epochs=1),
        local=Local(momentum=0.9),
        step=watch,
        rate=0.1,
    )
    name = "head.1.bias"
    velocity, value = 0.0, watch.steps[0][name][0]
    for at, step in enumerate(watch.steps):
        torch.testing.assert_close(step[name][0], value)
        if at not in (2, 3):
            velocity = 0.9 * velocity + step[name][1]
            value = value - 0.1 * velocity
    torch.testing.assert_close(watch.parameters[name].detach(), value)


def test_what_the_user_froze_in_the_model_stays_as_it_was():
    task = Kept(lambda model: model.norm.requires_grad_(False))
    _, before, after = run(plan_of((1.0, LAYERS)), task=task, local=Local(weight_decay=0.1))
    for name in before:
        same = after[name].tobytes() == before[name].tobytes()
        assert same == name.startswith("norm."), name


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others():
    first, second, other = (run(plan_of((1.0, LAYERS)), seed=seed)[0] for seed in (5, 5, 6))
    for name, array in first.delta.items():
        assert array.tobytes() == second.delta[name].tobytes()
    assert first.loss == second.loss
    assert any(first.delta[name].tobytes() != other.delta[name].tobytes() for name in first.delta)


def test_the_random_numbers_of_a_round_do_not_depend_on_what_ran_before():
    torch.manual_seed(1)
    first, _, _ = run(plan_of((1.0, LAYERS)))
    torch.manual_seed(2)
    second, _, _ = run(plan_of((1.0, LAYERS)))
    assert first.delta["stem.0.weight"].tobytes() == second.delta["stem.0.weight"].tobytes()


class CountingTask(Kept):
    """Its loss is the first pixel's mean, so that it can be worked out by hand."""

    def __init__(self):
        super().__init__(loss=self.loss)
        self.batches = []

    def loss(self, outputs, targets):
        self.batches.append(targets.tolist())
        return targets.float().mean() + 0.0 * outputs.sum()


def test_every_example_is_seen_once_an_epoch_the_last_partial_batch_included():
    task = CountingTask()
    examples = Examples(torch.randn(EXAMPLES, 1, 6, 6), torch.arange(EXAMPLES))
    run(plan_of((1.0, LAYERS), epochs=3, batch_size=4), task=task, examples=examples)
    assert [len(batch) for batch in task.batches] == [4, 4, 4, 4, 4, 2] * 3
    epochs = [list(itertools.chain(*task.batches[at : at + 6])) for at in (0, 6, 12)]
    assert all(sorted(seen) == list(range(EXAMPLES)) for seen in epochs)
    assert epochs[0] != epochs[1]


def test_a_model_with_batch_norm_and_a_single_example_cannot_train():
    examples = Examples(torch.randn(1, 1, 6, 6), torch.zeros(1, dtype=torch.int64))
    with pytest.raises(PlanError) as caught:
        run(plan_of((1.0, LAYERS)), examples=examples)
    assert str(caught.value) == (
        "BatchNorm has no statistics of a single example, and 1 is all there is"
    )
    assert caught.value.limit == "examples"


def test_batch_norm_gets_two_examples_where_a_batch_of_one_was_asked_for():
    task = CountingTask()
    examples = Examples(torch.randn(EXAMPLES, 1, 6, 6), torch.arange(EXAMPLES))
    run(plan_of((1.0, LAYERS), epochs=1, batch_size=1), task=task, examples=examples)
    assert [len(batch) for batch in task.batches] == [2] * (EXAMPLES // 2)


def test_the_loss_is_the_mean_over_the_examples_of_the_last_epoch():
    """The mean of 0 ... 21 is 10.5; a mean over batches would weigh the partial one too much."""
    examples = Examples(torch.randn(EXAMPLES, 1, 6, 6), torch.arange(EXAMPLES))
    trained, _, _ = run(plan_of((1.0, LAYERS)), task=CountingTask(), examples=examples)
    assert trained.loss == pytest.approx(10.5)
    assert trained.loss_rms is None


def test_the_root_mean_square_is_over_the_same_losses_of_single_examples():
    examples = Examples(torch.randn(EXAMPLES, 1, 6, 6), torch.arange(EXAMPLES))
    trained, _, _ = run(
        plan_of((1.0, LAYERS)), task=CountingTask(), examples=examples, wants_rms=True
    )
    assert trained.loss == pytest.approx(10.5)
    mean_square = sum(n * n for n in range(EXAMPLES)) / EXAMPLES
    assert trained.loss_rms == pytest.approx(mean_square**0.5)


def test_measuring_the_losses_of_single_examples_changes_no_bit():
    plan = plan_of((0.5, ("head",)), (0.5, LAYERS))
    plain, _, before = run(plan)
    measured, _, after = run(plan, wants_rms=True)
    assert measured.loss == plain.loss <= measured.loss_rms
    assert {n: a.tobytes() for n, a in before.items()} == {n: a.tobytes() for n, a in after.items()}


def test_clipping_bounds_the_gradient_of_the_trained_layers_alone():
    """Clipped to 1e-3, one step of rate 0.1 moves the body by 1e-4.

    The hook sees the gradient as it was: a policy's measures must not depend on the clipping.
    """
    watch = Watch()
    trained, _, _ = run(
        plan_of((1.0, ("body",)), epochs=1, batch_size=EXAMPLES),
        local=Local(clip_norm=1e-3),
        step=watch,
    )
    moved = np.sqrt(
        sum(np.square(array, dtype=np.float64).sum() for array in trained.delta.values())
    )
    (step,) = watch.steps
    assert set(step) == {name for name in step if name.startswith("body.")}
    seen = torch.sqrt(sum(gradient.square().sum() for _, gradient in step.values()))
    assert float(seen) > 1e-2
    assert moved == pytest.approx(0.1 * 1e-3, rel=1e-2)


class Lost(Kept):
    def __init__(self):
        super().__init__(loss=self.loss)
        self.calls = 0

    def loss(self, outputs, targets):
        self.calls += 1
        lost = float("nan") if self.calls == 3 else 1
        return nn.functional.cross_entropy(outputs, targets) * lost


def test_a_loss_that_is_not_finite_says_in_which_step_and_what_to_change():
    with pytest.raises(RunError) as caught:
        run(plan_of((1.0, LAYERS)), task=Lost())
    assert str(caught.value) == (
        "local training diverged in step 3: the loss is nan; lower local.learning-rate, lengthen "
        "local.warm-up-rounds or set local.clip-norm"
    )


def test_the_seconds_are_the_clocks():
    clock = FakeClock()

    class Slow(LocalStep):
        def after_backward(self, parameters):
            clock.sleep(0.5)

    trained, _, _ = run(plan_of((1.0, LAYERS), epochs=1), step=Slow(), clock=clock)
    assert trained.train_s == 3.0


@pytest.mark.parametrize(
    ("shares", "steps", "starts"),
    [
        ((1.0,), 7, (0,)),
        ((0.5, 0.5), 6, (0, 3)),
        ((0.1,) * 10, 10, tuple(range(10))),
        ((1 / 6,) * 6, 18, tuple(range(0, 18, 3))),  # rounded, a sum falls short
        ((1 / 3,) * 3, 3, (0, 1, 2)),
        ((0.2, 0.2, 0.6), 2, (0, 0, 0)),  # too few steps: the last of those that begin together
    ],
)
def test_stages_begin_where_their_shares_say(shares, steps, starts):
    plan = Plan(tuple(Stage(share, ("a",)) for share in shares), 1, 1, 0)
    assert stage_starts(plan, steps) == starts


def test_cuda_that_is_asked_for_and_absent_is_no_silent_cpu():
    if torch.cuda.is_available():
        assert chosen_device("cuda") == torch.device("cuda")
        return
    with pytest.raises(ConfigError) as caught:
        chosen_device("cuda")
    assert str(caught.value) == (
        'local.device: expected a CUDA device, torch sees none; use "auto" or "cpu", or install a '
        "torch build for this board's GPU"
    )
    assert chosen_device("auto") == chosen_device("cpu") == CPU


def test_a_movement_is_the_norm_of_the_update_over_the_norm_before_for_parameters_alone():
    layout = Layout(
        "m",
        (
            Layer("a", (TensorSpec("w", (2,), "float32"), TensorSpec("v", (), "float32"))),
            Layer("b", (TensorSpec("x", (1,), "float32"),)),
            Layer("c", (TensorSpec("mean", (1,), "float32", "buffer"),)),
        ),
    )
    before = {"w": np.float32([3, 0]), "v": np.float32(4), "x": np.float32([1])}
    delta = {"w": np.float32([0, 1]), "v": np.float32(0), "mean": np.float32([9])}
    assert movements(delta, before | {"mean": np.float32([1])}, layout) == {
        "a": pytest.approx(1 / 5)
    }


# ---- batches in parts


class PlainNet(nn.Module):
    """``float32[n, 1, 6, 6]`` to logits ``float32[n, 3]``, each example by itself."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(36, 5), nn.Tanh(), nn.LayerNorm(5))
        self.head = nn.Linear(5, 3)

    def forward(self, images):
        return self.head(self.body(images))


def plain(plan, sizes=None, step=None):
    """Trained with a model that sees no more of a batch than its own example."""

    def loss(outputs, targets):
        if sizes is not None:
            sizes.append(len(targets))
        return nn.functional.cross_entropy(outputs, targets)

    kept = replace(task, model=PlainNet, loss=loss)
    torch.manual_seed(0)
    return train(
        kept,
        {name: value.numpy() for name, value in PlainNet().state_dict().items()},
        kept.client_examples(0, 1, SPLIT, None),
        plan,
        layout=layout_of(PlainNet()),
        local=Local(momentum=0.9, clip_norm=0.5),
        learning_rate=0.1,
        seed=1,
        device=CPU,
        step=step or LocalStep(),
    )


def split_in(parts):
    return Plan((Stage(1.0, ("body", "head")),), 2, 8, 1_000, micro_batches=parts)


@pytest.mark.parametrize("parts", [2, 3, 8])
def test_batches_in_parts_train_as_whole_ones_do(parts):
    """22 examples: two batches of 8 and one of 6, each of them one step of the optimizer."""
    whole, watch = plain(split_in(1)), Watch()
    split = plain(split_in(parts), step=watch)
    assert len(watch.steps) == 6
    assert split.loss == pytest.approx(whole.loss, rel=1e-6)
    for name, array in whole.delta.items():
        np.testing.assert_allclose(split.delta[name], array, rtol=1e-4, atol=1e-7)


def test_no_part_of_a_batch_is_larger_than_planned():
    sizes = []
    plain(split_in(3), sizes)
    assert sizes == [3, 3, 2, 3, 3, 2, 3, 3] * 2


def test_with_batch_norm_no_part_of_a_batch_is_larger_than_planned_either():
    counting = CountingTask()
    examples = Examples(torch.randn(EXAMPLES, 1, 6, 6), torch.arange(EXAMPLES))
    plan = replace(plan_of((1.0, LAYERS), epochs=1, batch_size=10), micro_batches=4)
    run(plan, task=counting, examples=examples)
    assert plan.micro_batch_size == 3
    assert [len(part) for part in counting.batches] == [3, 3, 2, 2] * 2 + [2]


def test_parts_of_a_batch_hold_two_examples_where_batch_norm_needs_them():
    counting = CountingTask()
    examples = Examples(torch.randn(EXAMPLES, 1, 6, 6), torch.arange(EXAMPLES))
    plan = replace(plan_of((1.0, LAYERS), epochs=1, batch_size=5), micro_batches=5)
    run(plan, task=counting, examples=examples)
    assert [len(part) for part in counting.batches] == [3, 2] * 4 + [2]


def test_a_stage_begins_at_the_step_that_a_hook_says():
    class Late(Watch):
        def stage_starts(self, stages, steps):
            assert [stage.layers for stage in stages] == [("body",), ("body", "head")]
            assert steps == 6
            return (0, 5)

    watch = Late()
    run(plan_of((0.5, ("body",)), (0.5, ("body", "head")), epochs=1), step=watch)
    head = [step["head.1.weight"][1] is not None for step in watch.steps]
    assert head == [False] * 5 + [True]


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_layer_learns_at_the_rate_that_a_hook_scales(optimizer):
    """A scale of 0 in each step but one: the layer moves in that step alone."""

    class Scaled(Watch):
        def rate_scales(self, at, steps):
            return {"stem": 1.0, "body": float(at == 2), "norm": 1.0, "head": 1.0}

    watch = Scaled()
    local = Local(**OPTIMIZERS[optimizer])
    run(plan_of((1.0, LAYERS), epochs=1), step=watch, local=local, rate=0.01)
    last = {name: p.detach() for name, p in watch.parameters.items()}
    values = [{n: v for n, (v, _) in step.items()} for step in watch.steps] + [last]
    moves = {
        name: {at for at in range(6) if not torch.equal(values[at][name], values[at + 1][name])}
        for name in watch.parameters
    }
    of_body = [at for name, at in moves.items() if name.startswith("body.")]
    of_others = [at for name, at in moves.items() if not name.startswith("body.")]
    assert set.union(*of_body) == {2}
    assert set.union(*of_others) == set(range(6))


def test_equal_scales_of_all_layers_are_a_lower_rate_to_the_bit():
    class Half(LocalStep):
        def rate_scales(self, at, steps):
            return dict.fromkeys(LAYERS, 0.5)

    scaled, _, _ = run(plan_of((1.0, LAYERS)), step=Half(), rate=0.125)
    lower, _, _ = run(plan_of((1.0, LAYERS)), rate=0.0625)
    for name, array in scaled.delta.items():
        assert array.tobytes() == lower.delta[name].tobytes()
