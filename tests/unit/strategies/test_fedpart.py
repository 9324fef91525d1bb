from strategies.freeze.fedpart import FedPart, FedPartSettings
from strategies.freeze.policy import RoundView
from tests.unit.strategies.samples import client_of, stack

LAYOUT = stack(stem=100, body=200, head=50)
CLIENT = client_of(LAYOUT)


def schedule(rounds, **keys):
    """What each round trains; "" stands for all."""
    policy = FedPart(FedPartSettings(**keys), LAYOUT)
    found = []
    for number in range(1, rounds + 1):
        frozen = policy.advise(RoundView(number, rounds, 0.1), CLIENT).frozen
        assert len(frozen) in {0, 2}
        found.append("".join(set(LAYOUT.names) - set(frozen)) if frozen else "")
    return found


def test_full_rounds_then_one_module_a_round_shallow_to_deep_in_cycles():
    cycle = ["stem", "body", "head"]
    assert schedule(9, full_rounds=2) == ["", "", *cycle, *cycle, "stem"]


def test_a_module_may_have_several_rounds_and_cycles_full_rounds_between_them():
    keys = {"full_rounds": 0, "rounds_per_module": 2, "full_rounds_between": 1}
    cycle = ["stem", "stem", "body", "body", "head", "head", ""]
    assert schedule(14, **keys) == [*cycle, *cycle]
