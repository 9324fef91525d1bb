"""The line finder against an oracle, and the reader against nonsense."""

import re

import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st

from fedfreeze.errors import ConfigError
from fedfreeze.strict_toml import read, write
from fedfreeze.toml_lines import key_lines
from strategies.schema import Strategy

# Each number stands once in a document, so a text search finds the line of its key.
MARK = 7_000_000_000_000
KEYS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=6)
WORDS = st.one_of(st.text("a #=[]{}\"'\\,.\n\t", max_size=12), st.booleans(), st.floats())
DOCUMENTS = st.dictionaries(
    KEYS,
    st.recursive(
        st.one_of(WORDS, st.just(MARK)),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
        max_leaves=12,
    ),
    max_size=4,
)


def numbered(value, marks, path=()):
    """The document with every mark made unique; ``marks`` takes path and number."""
    if isinstance(value, dict):
        return {key: numbered(item, marks, (*path, key)) for key, item in value.items()}
    if isinstance(value, list):
        return [numbered(item, marks, (*path, i)) for i, item in enumerate(value)]
    if value == MARK:
        marks[path] = MARK + len(marks)
        return marks[path]
    return value


@given(DOCUMENTS, st.booleans())
def test_every_key_is_found_on_the_line_on_which_a_text_search_finds_its_value(document, multi):
    marks = {}
    text = tomli_w.dumps(numbered(document, marks), multiline_strings=multi)
    lines = key_lines(text)
    for path, number in marks.items():
        (expected,) = [
            at for at, line in enumerate(text.split("\n"), 1) if re.search(rf"\b{number}\b", line)
        ]
        assert lines[path] == expected


VALUES = st.one_of(
    st.integers(-2, 40),
    st.floats(),
    st.booleans(),
    st.sampled_from(["full", "fedfreeze", "cosine", "10 s", "-1 s", "x", ""]),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.just("policy"), st.sampled_from(["full", "x", 1]), max_size=1),
)
NAMES = st.sampled_from(
    ["version", "rounds", "freeze", "policy", "local", "epochs", "schedule", "share", "name", "zz"]
)
STRATEGIES = st.dictionaries(NAMES, VALUES | st.dictionaries(NAMES, VALUES, max_size=3), max_size=5)


@given(STRATEGIES, st.lists(st.text("version.rounds=1[{'\" ", max_size=15), max_size=2))
def test_whatever_a_person_writes_is_read_or_refused_with_a_place_in_every_line(written, overrides):
    refused = []
    try:
        read(tomli_w.dumps(written), Strategy, file="f.toml", overrides=overrides)
    except ConfigError as error:
        refused = error.problems or ["a refusal without a reason"]
    assert all(re.match(r"f\.toml:[0-9]+: |--set ", line) for line in refused)


@settings(max_examples=50)
@given(
    st.builds(
        dict,
        rounds=st.integers(1, 10**6),
        seed=st.integers(0, 2**63 - 1),
        clients=st.fixed_dictionaries({}, optional={"quorum": st.floats(0, 1)}),
    ),
    st.floats(1e-9, 1e12),
)
def test_a_written_strategy_reads_back_equal_to_the_last_digit(values, deadline_s):
    clients = {**values.pop("clients"), "round_deadline": deadline_s}
    strategy = Strategy(version=1, clients=clients, **values)
    assert read(write(strategy), Strategy, file="f.toml") == strategy
