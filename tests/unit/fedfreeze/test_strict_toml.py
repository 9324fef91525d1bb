from typing import Annotated, Literal

import pytest
from pydantic import Field

from fedfreeze.errors import ConfigError
from fedfreeze.settings import (
    Bytes,
    FlopsPerS,
    Natural,
    Positive,
    PositiveInt,
    Seconds,
    Settings,
    Share,
)
from fedfreeze.strict_toml import read, write


class Windowed(Settings):
    policy: Literal["windowed"] = "windowed"
    layers: tuple[str, ...] = ()
    window: PositiveInt = 1


class Plain(Settings):
    policy: Literal["plain"] = "plain"


class Device(Settings):
    name: str
    ram: Bytes = 1e6


class Example(Settings):
    version: Literal[1]
    rounds: PositiveInt = 1
    seed: Natural = 0
    rate: Positive = 0.1
    share: Share = 1.0
    below_half: Annotated[float, Field(lt=0.5)] = 0.1
    verbose: bool = False
    title: str = ""
    optimizer: Literal["sgd", "adam", "adamw"] = "sgd"
    workers: PositiveInt | Literal["auto"] = "auto"
    clip_norm: Positive | None = None
    deadline: Seconds = 60.0
    speed: FlopsPerS = 1e9
    freeze: Annotated[Windowed | Plain, Field(discriminator="policy")] = Plain()
    device: tuple[Device, ...] = ()
    stages: tuple[Annotated[Windowed | Plain, Field(discriminator="policy")], ...] = ()
    weights: dict[str, Positive] = Field(default_factory=dict)


def refusal(text, *overrides):
    with pytest.raises(ConfigError) as caught:
        read(text, Example, file="x.toml", overrides=overrides)
    assert str(caught.value).endswith(". Nothing was started.")
    assert caught.value.exit_code == 3
    return caught.value.problems


def value(line, key, *overrides):
    return getattr(read(f"version = 1\n{line}", Example, file="x.toml", overrides=overrides), key)


def test_an_unknown_key_is_answered_with_the_nearest_known_one():
    text = 'version = 1\n\n[freeze]\npolicy = "windowed"\nlayrs = ["a"]'
    assert refusal(text) == ['x.toml:5: freeze.layrs: unknown key; did you mean "layers"?']


def test_an_unknown_key_that_is_near_to_none_is_answered_with_all_of_that_table():
    text = 'version = 1\nfreeze = {policy = "windowed", zzz = 1}'
    assert refusal(text) == [
        "x.toml:2: freeze.zzz: unknown key; expected one of policy, layers or window"
    ]


def test_the_known_keys_are_those_of_the_chosen_policy():
    assert refusal('version = 1\n[freeze]\npolicy = "plain"\nwindow = 1') == [
        "x.toml:4: freeze.window: unknown key; expected policy"
    ]


def test_pythons_spelling_of_a_key_is_an_unknown_key():
    assert refusal("version = 1\nclip_norm = 1.0") == [
        'x.toml:2: clip_norm: unknown key; did you mean "clip-norm"?'
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("rounds = true", "rounds: expected a whole number, got true"),
        ("rounds = 1.5", "rounds: expected a whole number, got 1.5"),
        ('rounds = "3"', 'rounds: expected a whole number, got "3"'),
        ("rate = true", "rate: expected a number, got true"),
        ('rate = "fast"', 'rate: expected a number, got "fast"'),
        ("verbose = 1", "verbose: expected true or false, got 1"),
        ("title = 5", "title: expected text in quotes, got 5"),
        ("title = []", "title: expected text in quotes, got an array"),
        ("freeze = 3", "freeze: expected a table, got 3"),
        ("device = 3", "device: expected an array, got 3"),
        ("device = [3]", "device[0]: expected a table, got 3"),
        ("weights = 1", "weights: expected a table, got 1"),
        (
            "title = 2020-01-01",
            "title: no key holds a date or time; write text in quotes",
        ),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_by_name(line, message):
    assert refusal(f"version = 1\n{line}") == [f"x.toml:2: {message}"]


def test_a_whole_number_is_a_fine_float_and_an_array_a_fine_tuple():
    assert value("rate = 1", "rate") == 1.0
    assert value('freeze = {policy = "windowed", layers = ["a"]}', "freeze") == Windowed(
        layers=("a",)
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("rate = nan", "rate: expected a finite number, got nan"),
        ("rate = inf", "rate: expected a finite number, got inf"),
        ("rate = -inf", "rate: expected a finite number, got -inf"),
        ("rate = 0", "rate: expected more than 0, got 0"),
        ("rate = -0.5", "rate: expected more than 0, got -0.5"),
        ("rounds = 0", "rounds: expected 1 or more, got 0"),
        ("seed = -1", "seed: expected 0 or more, got -1"),
        ("share = 1.5", "share: expected 1 or less, got 1.5"),
        ("below-half = 0.5", "below-half: expected less than 0.5, got 0.5"),
        ("clip-norm = 0", "clip-norm: expected more than 0, got 0"),
    ],
)
def test_a_number_out_of_range_is_refused_with_the_range(line, message):
    assert refusal(f"version = 1\n{line}") == [f"x.toml:2: {message}"]


@pytest.mark.parametrize(
    ("written", "bytes_"), [("4 MB", 4e6), ("4 MiB", 4 * 2**20), ("4kB", 4e3), ("8 B", 8)]
)
def test_a_size_carries_its_unit(written, bytes_):
    read_device = value(f'device = [{{name = "a", ram = "{written}"}}]', "device")
    assert read_device == (Device(name="a", ram=float(bytes_)),)


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("4", 'expected a quantity with its unit such as "2 MB", got 4'),
        ("4.0", 'expected a quantity with its unit such as "2 MB", got 4.0'),
        ("true", 'expected a quantity with its unit such as "2 MB", got true'),
        ('"4"', 'expected a quantity such as "2 MB", got "4"'),
        ('"-4 MB"', 'expected a quantity of 0 or more, got "-4 MB"'),
        (
            '"4 MX"',
            '"4 MX": unknown unit "MX"; use one of B, kB, MB, GB, TB, KiB, MiB, GiB',
        ),
    ],
)
def test_a_size_without_a_known_unit_is_refused(written, problem):
    text = f'version = 1\n[[device]]\nname = "a"\n[[device]]\nname = "b"\nram = {written}'
    assert refusal(text) == [f"x.toml:6: device[1].ram: {problem}"]


def test_a_syntax_error_has_its_line_and_column():
    assert refusal("version = 1\nrounds = = 2") == ["x.toml:2:10: invalid value"]


def test_a_key_that_stands_twice_is_said_in_plain_words():
    assert refusal("version = 1\nseed = 1\nseed = 2\n[freeze]") == [
        "x.toml:3:9: this key is set a second time"
    ]


def test_a_document_that_nests_without_end_is_refused():
    assert refusal(f"title = {'[' * 100_000}") == ["x.toml: tables or arrays are nested too deeply"]


def test_a_number_that_no_program_reads_is_refused():
    digits = "9" * 5_000
    too_long = "expected a number, got one of thousands of digits"
    assert refusal(f"version = {digits}") == [f"x.toml: {too_long}"]
    assert refusal("version = 1\n[freeze]", f"rounds={digits}")[-1] == (f"--set rounds: {too_long}")


def test_all_mistakes_come_at_once_in_the_order_of_the_file_with_one_summary():
    text = """rounds = 0
[freeze]
policy = "windowed"
window = 1.5
[weights]
"a b" = -1
"""
    with pytest.raises(ConfigError) as caught:
        read(text, Example, file="strategy.toml")
    assert str(caught.value) == (
        "strategy.toml:1: version: missing; this key must be set\n"
        "strategy.toml:1: rounds: expected 1 or more, got 0\n"
        "strategy.toml:4: freeze.window: expected a whole number, got 1.5\n"
        'strategy.toml:6: weights."a b": expected more than 0, got -1\n'
        "4 errors in strategy.toml. Nothing was started."
    )


def test_one_mistake_is_counted_in_the_singular():
    with pytest.raises(ConfigError) as caught:
        read("version = 2", Example, file="x.toml")
    assert str(caught.value) == (
        "x.toml:1: version: expected 1, got 2\n1 error in x.toml. Nothing was started."
    )


def test_a_missing_key_is_reported_at_its_table():
    assert refusal("version = 1\n\n[[device]]\n[[device]]\nname = 'b'") == [
        "x.toml:3: device[0].name: missing; this key must be set"
    ]


def test_a_wrong_choice_is_answered_with_all_choices_and_the_nearest():
    assert refusal('version = 1\noptimizer = "adm"') == [
        (
            'x.toml:2: optimizer: expected one of "sgd", "adam" or "adamw", got "adm"; '
            'did you mean "adam"?'
        )
    ]


def test_a_key_of_several_types_names_them_all():
    assert refusal('version = 1\nworkers = "atuo"') == [
        'x.toml:2: workers: expected a whole number or "auto", got "atuo"; did you mean "auto"?'
    ]


def test_a_wrong_policy_is_reported_at_its_key():
    assert refusal('version = 1\n[freeze]\n\npolicy = "windwed"') == [
        (
            'x.toml:4: freeze.policy: expected one of "windowed" or "plain", got "windwed"; '
            'did you mean "windowed"?'
        )
    ]


def test_a_table_that_names_no_policy_lacks_that_key():
    assert refusal("version = 1\n[freeze]\nwindow = 1") == [
        "x.toml:2: freeze.policy: missing; this key must be set"
    ]


def test_a_choice_inside_an_array_keeps_its_index_and_loses_pydantics_tag():
    text = 'version = 1\n[[stages]]\npolicy = "plain"\n[[stages]]\npolicy = "windowed"\nwindow = 0'
    assert refusal(text) == ["x.toml:6: stages[1].window: expected 1 or more, got 0"]


@pytest.mark.parametrize(
    ("override", "key", "expected"),
    [
        ("rounds=3", "rounds", 3),
        ("rounds = 3 ", "rounds", 3),
        ("title=bare words", "title", "bare words"),
        ('title="7"', "title", "7"),
        ("title=a=b", "title", "a=b"),
        ("deadline=2 min", "deadline", 120.0),
        ("verbose=true", "verbose", True),
        ("weights={a = 2}", "weights", {"a": 2.0}),
        ("weights.a=2", "weights", {"a": 2.0}),
        ('weights."a b" = 2', "weights", {"a b": 2.0}),
        ("freeze.policy=windowed", "freeze", Windowed()),
        ("title=1\nrounds = 9", "title", "1\nrounds = 9"),
    ],
)
def test_an_override_sets_a_key(override, key, expected):
    assert value("", key, override) == expected


def test_an_override_wins_over_the_file_and_a_later_one_over_an_earlier_one():
    assert value("", "rounds") == 1
    assert value("rounds = 2", "rounds") == 2
    assert value("rounds = 2", "rounds", "rounds=3") == 3
    assert value("rounds = 2", "rounds", "rounds=3", "rounds=4") == 4


@pytest.mark.parametrize(
    ("override", "problem"),
    [
        ("ronds=3", '--set ronds: unknown key; did you mean "rounds"?'),
        ("rounds=many", '--set rounds: expected a whole number, got "many"'),
        ("rounds", '--set "rounds": expected KEY=VALUE such as local.epochs=2'),
        ("rounds=", '--set "rounds=": expected KEY=VALUE such as local.epochs=2'),
        ("=3", '--set "=3": expected KEY=VALUE such as local.epochs=2'),
        ("a b=3", '--set "a b": expected a key such as local.epochs'),
        ("rounds.x=3", "--set rounds.x: rounds is a value, not a table"),
        ("title.x=3", "--set title: expected text in quotes, got a table"),
        (
            'title="open',
            '--set title: "open is not a TOML value; is a quote or bracket missing?',
        ),
    ],
)
def test_a_wrong_override_is_reported_as_an_override(override, problem):
    assert refusal("version = 1\nrounds = 1", override) == [problem]


def test_mistakes_in_overrides_follow_those_of_the_file():
    with pytest.raises(ConfigError) as caught:
        read("version = 1\nseed = -1", Example, file="x.toml", overrides=["rate=0", "rounds=0"])
    assert str(caught.value) == (
        "x.toml:2: seed: expected 0 or more, got -1\n"
        "--set rate: expected more than 0, got 0\n"
        "--set rounds: expected 1 or more, got 0\n"
        "3 errors in x.toml and --set. Nothing was started."
    )


def test_an_override_repairs_what_is_wrong_in_the_file():
    assert value("rounds = 0", "rounds", "rounds=1") == 1


def test_what_is_written_states_every_key_and_its_unit_and_reads_back_equal():
    settings = Example(
        version=1,
        title='say "no"\nand go',
        deadline=0.1 + 0.2,
        speed=3.0e9,
        freeze=Windowed(layers=("a", "b")),
        device=(Device(name="a", ram=1.0), Device(name="b")),
        weights={"a b": 0.1},
    )
    text = write(settings)
    assert 'deadline = "0.30000000000000004 s"\nspeed = "3000000000 FLOP/s"\n' in text
    assert "clip-norm" not in text
    assert read(text, Example, file="x.toml") == settings
