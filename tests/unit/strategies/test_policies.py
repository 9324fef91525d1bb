"""The registry of freeze policies, and a policy that comes from outside."""

import importlib.util
import sys
from typing import ClassVar, Literal

import pytest
from flwr.app import Array, ArrayRecord

from fedfreeze import settings
from fedfreeze.errors import ConfigError
from fedfreeze.plan import Reason
from strategies import schema
from strategies.flower import FedFreeze
from strategies.freeze import POLICIES, Advice, FreezePolicy, policy_for
from strategies.freeze.policy import RoundView
from strategies.local_step import LocalStep
from tests.grid import InProcessGrid
from tests.unit.strategies.fake_boards import FakeBoards
from tests.unit.strategies.samples import client_of, constant, stack

LAYOUT = stack(stem=100, body=200, head=50)
CLIENT = client_of(LAYOUT)
# A model of vectors has no attention.
TABLES = {"fedfrozen": POLICIES["fedfrozen"].Settings(kernel=["stem"], value=["body"])}


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_is_found_by_the_name_that_its_settings_carry(name):
    table = TABLES.get(name) or POLICIES[name].Settings()
    policy = policy_for(table, LAYOUT)
    assert type(policy) is POLICIES[name]
    assert table.policy == name


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_lets_a_layer_train_in_the_first_round(name):
    policy = policy_for(TABLES.get(name) or POLICIES[name].Settings(), LAYOUT)
    advice = policy.advise(RoundView(1, 30, 0.1), CLIENT)
    assert set(advice.frozen) < set(LAYOUT.names)
    assert isinstance(policy.watch(RoundView(1, 30, 0.1)), LocalStep)


def test_full_freezes_nothing_and_has_nothing_to_remember():
    policy = policy_for(POLICIES["full"].Settings(), LAYOUT)
    assert policy.advise(RoundView(9, 30, 0.1), CLIENT) == Advice(
        frozen={}, values={"stem": 1.0, "body": 1.0, "head": 1.0}
    )
    assert policy.state() == {}


class Every(FreezePolicy):
    """Freezes everything but the head in all rounds but every n-th."""

    class Settings(settings.Settings):
        policy: Literal["every"] = "every"
        nth: settings.PositiveInt = 2

    name: ClassVar[str] = "every"

    def advise(self, view, client):
        resting = () if view.number % self.settings.nth == 0 else self.layout.names[:-1]
        return Advice(
            frozen={name: Reason("fixed", "resting") for name in resting},
            values=dict.fromkeys(self.layout.names, 1.0),
        )


TOML = 'version = 1\nrounds = 3\n[freeze]\npolicy = "every"\n[compression]\ncompression-ratio = 1'


@pytest.fixture
def schema_with_one_line_more(monkeypatch):
    """The schema as it would be imported with one more line in the registry."""
    monkeypatch.setitem(POLICIES, Every.name, Every)
    spec = importlib.util.spec_from_file_location("schema_with_one_line_more", schema.__file__)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    spec.loader.exec_module(module)
    return module


def test_a_policy_from_outside_needs_one_line_in_the_registry(schema_with_one_line_more):
    table = schema_with_one_line_more.from_text(TOML)
    boards = FakeBoards(LAYOUT)
    server = FedFreeze(table, LAYOUT)
    arrays = {name: Array(array) for name, array in constant(LAYOUT, 1.0).items()}
    server.start(InProcessGrid(boards.app(), 2), ArrayRecord(arrays), num_rounds=3)
    assert isinstance(server.policy, Every)
    assert server.published.changed_at == {"stem": 2, "body": 2, "head": 3}


def test_the_keys_of_a_policy_from_outside_are_checked_as_any_other(schema_with_one_line_more):
    with pytest.raises(ConfigError) as caught:
        schema_with_one_line_more.from_text(TOML, overrides=["freeze.nth=0"])
    assert caught.value.problems == ["--set freeze.nth: expected 1 or more, got 0"]


def test_without_its_line_it_is_unknown():
    with pytest.raises(ConfigError) as caught:
        schema.from_text(TOML, file="s.toml")
    assert caught.value.problems == [f's.toml:4: freeze.policy: expected {_choices()}, got "every"']


def _choices():
    *rest, last = [f'"{name}"' for name in POLICIES]
    return f"one of {', '.join(rest)} or {last}"
