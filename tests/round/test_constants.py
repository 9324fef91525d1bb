"""What a model's author froze stays as it is through whole rounds, and never travels up."""

import pytest

from tasks.task import initial_arrays
from tests.conftest import records
from tests.freezing_cases import task

LAYOUT = task.layout()
CONSTANTS = {name for name, spec in LAYOUT.tensors.items() if spec.kind == "constant"}


SPARSE = ("compression.compression-ratio=2",)
DENSE = ("compression.mode=dense",)


@pytest.mark.parametrize(("preset", "mode"), [("fedfreeze", SPARSE), ("fedavg", DENSE)])
def test_constants_stay_and_a_layer_of_nothing_else_is_never_trained(small_run, preset, mode):
    of_task = ("task=tests.freezing_cases", "fleet=high", "rounds=2")
    run = small_run(*of_task, *mode, preset=preset, nodes=2)
    before = initial_arrays(task, run.strategy.settings.seed)
    run.play()
    after = run.strategy.published.arrays
    same = {name for name in after if after[name].tobytes() == before[name].tobytes()}
    assert {"0.weight", "0.bias", "1.weight", "1.bias", "4.bias"} == CONSTANTS
    # The first layer holds nothing but constants and statistics, which rest with it.
    assert same == CONSTANTS | {
        "1.running_mean",
        "1.running_var",
        "1.num_batches_tracked",
        "5.num_batches_tracked",
    }
    decisions = records(run.folder, "decisions")
    assert decisions
    for decision in decisions:
        assert decision["layers"]["0"]["reason"] == "fixed"
