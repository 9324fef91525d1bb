"""Right values: the authors' schedule ``factor = ratio * iterations // M``, worked out by hand."""

import logging

import pytest

from fedfreeze.plan import Stage
from strategies.freeze.unfreezing import Unfreezing, unfrozen_in_turn
from strategies.stages import merged

FIVE = [["a"], ["b"], ["c"], ["d"], ["e"]]
EIGHT = [[name] for name in "abcdefgh"]


def starts(share, modules, steps, trained=None):
    trained = trained or [name for module in modules for name in module]
    stages = merged(unfrozen_in_turn(share, modules), trained)
    return Unfreezing(share, modules).stage_starts(stages, steps)


@pytest.mark.parametrize(
    ("steps", "share", "modules", "expected"),
    [
        (50, 0.2, FIVE, (0, 2, 4, 6, 8)),
        (50, 0.4, FIVE, (0, 4, 8, 12, 16)),
        (100, 0.5, FIVE[:4], (0, 12, 24, 36)),
        (100, 0.5, EIGHT, (0, 6, 12, 18, 24, 30, 36, 42)),
        (100, 0.29, [["a"], ["b"]], (0, 14)),
        (10, 1.0, [["a"], ["b"]], (0, 5)),
    ],
)
def test_a_module_is_unfrozen_after_each_period(steps, share, modules, expected):
    assert starts(share, modules, steps) == expected


def test_too_few_steps_freeze_nothing_and_say_so(caplog):
    with caplog.at_level(logging.WARNING, logger="fedfreeze"):
        assert starts(0.1, FIVE, 7) == (0, 0, 0, 0, 0)
    assert caplog.messages == [
        (
            "7 local steps are too few to unfreeze 5 modules one by one in 0.1 of them; all of "
            "them train from the start"
        )
    ]


@pytest.mark.parametrize(("share", "modules"), [(0.0, FIVE), (0.5, FIVE[:1])])
def test_nothing_waits_without_a_share_or_with_one_module(share, modules, caplog):
    assert unfrozen_in_turn(share, modules) == ()
    assert starts(share, modules, 7) == (0,)
    assert not caplog.messages


@pytest.mark.parametrize("share", [0.1, 0.2, 1 / 3, 1.0])
@pytest.mark.parametrize("modules", [FIVE, EIGHT])
def test_the_shares_of_the_stages_add_up_to_the_round(share, modules):
    stages = unfrozen_in_turn(share, modules)
    assert sum(stage.share for stage in stages) == pytest.approx(1, abs=1e-12)
    assert [len(stage.layers) for stage in stages] == list(range(1, len(modules) + 1))


def test_a_board_without_the_first_modules_begins_with_the_first_that_it_has():
    assert starts(0.4, FIVE, 50, ["c", "d", "e"]) == (0, 12, 16)


def test_a_board_without_a_module_in_between_unfreezes_the_others_when_it_is_their_turn():
    assert starts(0.4, FIVE, 50, ["a", "b", "e"]) == (0, 4, 16)


def test_a_plan_of_one_stage_begins_at_once():
    assert Unfreezing(0.4, FIVE).stage_starts((Stage(1.0, ("e",)),), 50) == (0,)
