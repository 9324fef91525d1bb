"""Frozen means frozen for every schedule of stages, optimizer and setting."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from client_app.training import stage_starts, train
from fedfreeze.plan import Plan, Reason, Stage
from strategies.local_step import LocalStep
from strategies.tables import Local
from tasks.partition import Split
from tasks.task import initial_arrays
from tests.freezing_cases import CASES
from tests.tiny_task import EXAMPLES, TinyNet, task

LAYOUT = task.layout()
SPLIT = Split("iid", 0.3, 0.1, 0)
PUBLISHED = initial_arrays(task, 0)
PUBLISHED = {name: array + np.asarray(0.01, array.dtype) for name, array in PUBLISHED.items()}


class Seen(LocalStep):
    """Which layers had a gradient, step by step."""

    def __init__(self):
        self.steps = []

    def after_backward(self, parameters):
        self.steps.append(
            {LAYOUT.layer_of[name] for name, p in parameters.items() if p.grad is not None}
        )


@st.composite
def plans(draw):
    sets = st.sets(st.sampled_from(LAYOUT.names), min_size=1)
    stages = [LAYOUT.ordered(layers) for layers in draw(st.lists(sets, min_size=1, max_size=4))]
    weights = [draw(st.integers(1, 5)) for _ in stages]
    trained = {name for layers in stages for name in layers}
    return Plan(
        stages=tuple(
            Stage(weight / sum(weights), layers)
            for weight, layers in zip(weights, stages, strict=True)
        ),
        epochs=draw(st.integers(1, 2)),
        batch_size=draw(st.sampled_from([4, 7, 30])),
        upload_budget_bytes=0,
        frozen={name: Reason("fixed", "") for name in LAYOUT.names if name not in trained},
    )


LOCALS = st.builds(
    Local,
    optimizer=st.sampled_from(["adam", "adamw"]),
    weight_decay=st.sampled_from([0.0, 0.1]),
    clip_norm=st.sampled_from([None, 0.5]),
) | st.builds(
    Local,
    momentum=st.sampled_from([0.0, 0.9]),
    weight_decay=st.sampled_from([0.0, 0.1]),
    clip_norm=st.sampled_from([None, 0.5]),
)


@settings(max_examples=60, deadline=None)
@given(plans(), LOCALS, st.integers(0, 2**63 - 1))
def test_each_layer_trains_in_its_stages_and_is_otherwise_bit_identical(plan, local, seed):
    torch.set_num_threads(1)
    built, seen = [], Seen()

    def build():
        built.append(TinyNet())
        return built[-1]

    trained = train(
        replace(task, model=build),
        PUBLISHED,
        task.client_examples(0, 1, SPLIT, None),
        plan,
        layout=LAYOUT,
        local=local,
        learning_rate=0.01,
        seed=seed,
        device=torch.device("cpu"),
        step=seen,
    )
    whole, left = divmod(EXAMPLES, plan.batch_size)
    in_epoch = whole + (left > 1 or (left == 1 and whole == 0))  # BatchNorm: no batch of one
    steps = plan.epochs * in_epoch
    starts = [*stage_starts(plan, steps), steps]
    expected = [
        set(stage.layers)
        for at, stage in enumerate(plan.stages)
        for _ in range(starts[at + 1] - starts[at])
    ]
    assert seen.steps == expected
    moved = set().union(*seen.steps)
    for name, value in built[-1].state_dict().items():
        if LAYOUT.layer_of[name] not in moved:
            assert value.numpy().tobytes() == PUBLISHED[name].tobytes(), name
    assert set(trained.delta) == {
        t.name for layer in plan.trained for t in LAYOUT[layer].tensors if t.is_float
    }


@settings(max_examples=25, deadline=None)
@given(st.data(), LOCALS)
@pytest.mark.parametrize("case", sorted(CASES))
def test_layers_that_are_no_modules_and_constants_do_not_move_either(case, data, local):
    torch.set_num_threads(1)
    own, batch = CASES[case]
    layout = own.layout()
    able = [layer.name for layer in layout if layer.parameters]
    chosen = layout.ordered(data.draw(st.sets(st.sampled_from(able), min_size=1)))
    published = initial_arrays(own, 0)
    published = {
        n: a + np.asarray(0.01 if a.dtype.kind == "f" else 0, a.dtype) for n, a in published.items()
    }
    built = []

    class Keeping(type(own)):
        def build(self):
            built.append(super().build())
            return built[-1]

    trained = train(
        Keeping(**vars(own)),
        published,
        batch,
        Plan((Stage(1.0, chosen),), 1, 4, 0),
        layout=layout,
        local=local,
        learning_rate=0.01,
        seed=1,
        device=torch.device("cpu"),
        step=LocalStep(),
    )
    moved = set()
    for name, spec in layout.tensors.items():
        value = built[-1].state_dict()[name].numpy()
        is_still = value.tobytes() == published[name].tobytes()
        if layout.layer_of[name] not in chosen or spec.kind == "constant":
            assert is_still, name
        elif spec.kind == "parameter" and not is_still:
            moved.add(layout.layer_of[name])
    assert moved == set(chosen)
    assert set(trained.delta) == {
        spec.name for layer in chosen for spec in layout[layer].tensors if spec.travels
    }
