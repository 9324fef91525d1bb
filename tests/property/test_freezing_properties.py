"""Frozen means frozen for every schedule of stages, optimizer and setting."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from client_app.training import stage_starts, train
from fedfreeze.plan import Plan, Reason, Stage
from strategies.local_step import LocalStep
from strategies.tables import Local
from tasks.task import initial_arrays
from tests.tiny_task import EXAMPLES, task

LAYOUT = task.layout()
SPLIT = {"partition": "iid", "alpha": 0.3, "validation_share": 0.1, "seed": 0, "data_dir": None}
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

    class Keeping(type(task)):
        def build(self):
            built.append(super().build())
            return built[-1]

    trained = train(
        Keeping(),
        PUBLISHED,
        task.client_examples(0, 1, **SPLIT),
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
