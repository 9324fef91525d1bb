import pathlib

import pytest

from strategies import reference
from strategies.freeze import POLICIES
from strategies.methods import METHODS
from strategies.schema import Strategy
from strategies.tables import Clients, Compression, Data, Local, Model, Residual

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "strategy.md"
TABLES = [
    Strategy,
    Clients,
    Data,
    Compression,
    Residual,
    Local,
    *(entry.Settings for entry in (*POLICIES.values(), *METHODS.values())),
]


def test_the_page_says_what_the_schema_says():
    assert PAGE.read_text(encoding="utf-8") == reference.page(), (
        "run: python -m strategies.reference > docs/strategy.md"
    )


@pytest.mark.parametrize("table", TABLES)
def test_every_key_of_every_table_has_a_row_on_the_page_and_a_meaning(table):
    inner = reference.tables(table)
    wanted = {name.replace("_", "-") for name in table.model_fields if name not in inner}
    listed = reference.keys(table)
    assert {key.name for key in listed} == wanted
    page = PAGE.read_text(encoding="utf-8")
    for key in listed:
        assert f"| `{key.name}` | {key.kind} |" in page
        assert key.description, f"{table.__name__}.{key.name} needs Field(description=...)"


def row(table, name):
    return next(key for key in reference.keys(table) if key.name == name)


def test_a_row_states_values_default_and_the_condition():
    assert row(Clients, "share") == reference.Key(
        name="share",
        kind="number, > 0, ≤ 1",
        default="1.0",
        required=False,
        description="share of the clients that is asked",
        only_with='selection = "uniform" or "bernoulli" or "resource" or "gain" or "oort"',
        is_active=False,
    )
    assert row(Clients, "share").meaning == (
        'share of the clients that is asked; only with selection = "uniform" or "bernoulli" or '
        '"resource" or "gain" or "oort"'
    )


def test_quantities_choices_and_absent_defaults_are_said_in_words():
    assert row(Clients, "round-timeout").kind == 'quantity such as "60 s"'
    assert row(Clients, "round-timeout").default == '"600 s"'
    assert row(Compression, "bits").kind == "one of 8, 16 or 32"
    assert row(Compression, "error-feedback").kind == "true or false"
    assert row(Local, "clip-norm").kind == "number, > 0"
    assert row(Local, "clip-norm").default is None
    assert row(Local, "clip-norm").required is False
    assert row(Strategy, "rounds").required is True
    assert row(Strategy, "task").kind == "text"


def test_a_key_is_active_when_the_default_of_its_selector_reads_it():
    assert row(Data, "alpha").is_active
    assert not row(Local, "step-rounds").is_active
    assert not row(Residual, "decay").is_active
    assert row(Residual, "decay").only_with == 'frozen or missed or layout-change = "decay"'


def test_the_summary_of_a_policy_is_the_first_line_of_its_module():
    assert reference.summary(POLICIES["full"]) == (
        "every layer trains in every round; what FedAvg does."
    )


def test_a_table_says_what_its_values_are():
    kinds = {key.name: key.kind for key in reference.keys(Compression)}
    assert kinds["floors"] == kinds["boost"] == "a table of numbers"
    assert {key.name: key.kind for key in reference.keys(Model)}["layers"] == (
        "text or a table of arrays of text"
    )
