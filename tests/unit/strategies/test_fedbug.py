import pytest

from strategies.freeze.fedbug import FedBug, FedBugSettings
from strategies.freeze.policy import RoundView
from tests.unit.strategies.samples import client_of, stack

LAYOUT = stack(stem=100, body=200, tail=300, head=50)
CLIENT = client_of(LAYOUT)


def advice(**keys):
    policy = FedBug(FedBugSettings(**keys), LAYOUT)
    return policy.advise(RoundView(3, 30, 0.1), CLIENT)


def test_modules_are_unfrozen_from_below_and_nothing_is_frozen_for_the_whole_round():
    found = advice(unfreezing_share=0.4)
    assert found.frozen == {}
    assert [(round(stage.share, 12), stage.layers) for stage in found.stages] == [
        (0.1, ("stem",)),
        (0.1, ("stem", "body")),
        (0.1, ("stem", "body", "tail")),
        (0.7, ("stem", "body", "tail", "head")),
    ]


def test_the_log_says_for_how_long_each_layer_waits():
    inputs = advice(unfreezing_share=0.4).inputs
    assert {name: of["module"] for name, of in inputs.items()} == {
        "stem": 0,
        "body": 1,
        "tail": 2,
        "head": 3,
    }
    assert [of["frozen_share"] for of in inputs.values()] == pytest.approx([0, 0.1, 0.2, 0.3])


def test_groups_of_layers_are_unfrozen_together():
    found = advice(unfreezing_share=0.5, modules=[["stem", "body"], ["tail", "head"]])
    assert [stage.layers for stage in found.stages] == [("stem", "body"), LAYOUT.names]


def test_a_share_of_0_is_fedavg():
    assert advice(unfreezing_share=0.0).stages == ()
