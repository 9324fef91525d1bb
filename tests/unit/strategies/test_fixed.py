import pytest

from fedfreeze.errors import ConfigError
from strategies.freeze.fixed import Fixed, FixedSettings
from strategies.freeze.policy import RoundView
from tests.unit.strategies.samples import client_of, stack

LAYOUT = stack(embed=10, block0=20, block1=20, head=5)
CLIENT = client_of(LAYOUT)


def frozen(**keys):
    advice = Fixed(FixedSettings(**keys), LAYOUT).advise(RoundView(1, 9, 0.1), CLIENT)
    assert {reason.code for reason in advice.frozen.values()} <= {"fixed"}
    return tuple(advice.frozen)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({}, ()),
        ({"last": 1}, ("head",)),
        ({"last": 2}, ("block1", "head")),
        ({"first": 2}, ("embed", "block0")),
        ({"frozen": ["block*"]}, ("block0", "block1")),
        ({"frozen": ["block1"], "first": 1}, ("embed", "block1")),
    ],
)
def test_layers_are_frozen_by_globs_and_from_either_end(keys, expected):
    assert frozen(**keys) == expected


def test_a_glob_that_matches_nothing_lists_the_layers():
    with pytest.raises(ConfigError) as caught:
        frozen(frozen=["encoder.*"])
    assert str(caught.value) == (
        'freeze.frozen: no layer is called "encoder.*"; the layers are embed, block0, block1, head'
    )


def test_a_model_of_which_nothing_trains_is_refused():
    with pytest.raises(ConfigError) as caught:
        frozen(frozen=["block*"], first=1, last=1)
    assert str(caught.value) == (
        "freeze: expected a layer that trains, these keys freeze all of embed, block0, block1, "
        "head; freeze fewer"
    )
