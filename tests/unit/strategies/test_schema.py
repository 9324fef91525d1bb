from typing import Annotated, Literal

import pytest
from pydantic import Field, TypeAdapter

from fedfreeze import strict_toml
from fedfreeze.errors import ConfigError
from fedfreeze.settings import PositiveInt, Settings
from strategies.mask_rule import MaskRule
from strategies.schema import Strategy, from_text, load, presets, read_text, tagged_union


def problems(text):
    with pytest.raises(ConfigError) as caught:
        from_text(f"version = 1\nrounds = 1\n{text}", file="s.toml")
    return caught.value.problems


class FakePolicy:
    class Settings(Settings):
        policy: Literal["fake"] = "fake"
        window: PositiveInt = 1


class OtherPolicy:
    class Settings(Settings):
        policy: Literal["other"] = "other"


def test_the_shortest_strategy_states_its_version_and_rounds():
    strategy = from_text("version = 1\nrounds = 3")
    assert strategy == Strategy(version=1, rounds=3)
    assert strategy.task == "fashion-cnn"
    assert strategy.clients.round_deadline == 60.0
    assert strategy.clients.round_timeout == 600.0
    assert strategy.compression.upload_time == 10.0


@pytest.mark.parametrize("key", ["frozen", "missed", "layout-change"])
def test_any_rule_that_decays_reads_the_rate(key):
    text = f'version = 1\nrounds = 3\n[residual]\n{key} = "decay"\ndecay = 0.5'
    assert from_text(text).residual.decay == 0.5


def test_by_default_a_residual_waits_and_goes_with_its_layout():
    rules = from_text("version = 1\nrounds = 3").residual
    assert (rules.frozen, rules.missed, rules.layout_change) == ("keep", "keep", "drop")
    assert (rules.precision, rules.summary) == ("float32", False)


def test_a_document_without_error_feedback_may_hold_every_key_of_the_residual():
    strategy = from_text("version = 1\nrounds = 3\n[compression]\nerror-feedback = false")
    assert from_text(strict_toml.write(strategy)) == strategy


def test_a_registry_of_two_gives_a_table_that_its_tag_chooses():
    adapter = TypeAdapter(
        tagged_union({"fake": FakePolicy, "other": OtherPolicy}, "policy"),
    )
    assert adapter.validate_python({"policy": "other"}) == OtherPolicy.Settings()
    assert adapter.validate_python({"policy": "fake", "window": 2}).window == 2


def test_a_registry_of_one_gives_its_table():
    assert tagged_union({"fake": FakePolicy}, "policy") is FakePolicy.Settings


def test_a_key_of_another_policy_is_an_unknown_key():
    assert problems('[freeze]\npolicy = "full"\nthreshold = 0.5') == [
        "s.toml:5: freeze.threshold: unknown key; expected policy"
    ]


@pytest.mark.parametrize("written", ["true", "1.0", "2", '"1"'])
def test_only_the_whole_number_one_is_a_version(written):
    with pytest.raises(ConfigError) as caught:
        from_text(f"version = {written}\nrounds = 1", file="s.toml")
    assert caught.value.problems == [f"s.toml:1: version: expected 1, got {written}"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "[clients]\nshare = 0.5",
            (
                's.toml:4: clients.share: only selection = "uniform" or "bernoulli" or "resource" '
                'or "gain" or "oort" reads this key, got 0.5; remove it'
            ),
        ),
        (
            '[clients]\nselection = "uniform"\nexploration = 0.5',
            (
                's.toml:5: clients.exploration: only selection = "resource" or "gain" or "oort" '
                "reads this key, got 0.5; remove it"
            ),
        ),
        (
            '[data]\nalpha = 1.0\npartition = "iid"',
            (
                's.toml:4: data.alpha: only partition = "dirichlet" or "dirichlet-quantity" reads '
                "this key, got 1.0; remove it"
            ),
        ),
        (
            "[compression]\nbits = 8",
            's.toml:4: compression.bits: only mode = "dense" reads this key, got 8; remove it',
        ),
        (
            '[compression]\ndownlink = "quantised"\ndownlink-ratio = 20',
            (
                's.toml:5: compression.downlink-ratio: only downlink = "sparse" reads this key, '
                "got 20.0; remove it"
            ),
        ),
        (
            '[local]\noptimizer = "adam"\nmomentum = 0.9',
            's.toml:5: local.momentum: only optimizer = "sgd" reads this key, got 0.9; remove it',
        ),
        (
            "[local]\nstep-factor = 0.5",
            (
                's.toml:4: local.step-factor: only schedule = "step" reads this key, got 0.5; '
                "remove it"
            ),
        ),
        (
            '[clients]\nround-deadline = "0 s"',
            's.toml:4: clients.round-deadline: expected more than 0, got "0 s"',
        ),
        (
            "[compression]\nupload-time = -1",
            (
                "s.toml:4: compression.upload-time: "
                'expected a quantity with its unit such as "60 s", got -1'
            ),
        ),
        (
            "[data]\nvalidation-share = 0.5",
            "s.toml:4: data.validation-share: expected less than 0.5, got 0.5",
        ),
        (
            "[compression]\nn-min = 9",
            (
                's.toml:4: compression.n-min: only few-examples = "finer-step" or "damped-weight" '
                "reads this key, got 9; remove it"
            ),
        ),
        (
            '[compression]\nmode = "dense"\nboost-by = "importance"',
            (
                's.toml:5: compression.boost-by: only mode = "sparse" reads this key, got '
                '"importance"; remove it'
            ),
        ),
        (
            '[compression]\nboost-by = "gradients"',
            (
                's.toml:4: compression.boost-by: expected one of "globs" or "importance", got '
                '"gradients"'
            ),
        ),
        (
            '[compression]\nmode = "dense"\nfew-examples = "finer-step"',
            (
                's.toml:5: compression.few-examples: mode = "dense" sends every value, so no step '
                'can be finer; expected "plain" or "damped-weight"'
            ),
        ),
        (
            "[compression]\nboost = { head = 0.0 }",
            (
                's.toml:4: compression.boost: "head": expected a weight from 1/16384 to 16384, got '
                "0; what no glob names has a weight of 1"
            ),
        ),
        (
            '[compression]\nmode = "dense"\nmask = "shared"',
            (
                's.toml:5: compression.mask: only mode = "sparse" reads this key, got "shared"; '
                "remove it"
            ),
        ),
        (
            '[compression]\nmask = "shared"\neffort = "fast"',
            (
                's.toml:5: compression.effort: only mask = "chosen" reads this key, got "fast"; '
                "remove it"
            ),
        ),
        (
            '[compression]\nmask = "shared"\nvalue-bits = 2',
            (
                's.toml:5: compression.value-bits: only mask = "chosen" reads this key, got 2; '
                "remove it"
            ),
        ),
        (
            '[compression]\nmask = "shared"\nfloors = { head = 0.1 }',
            (
                's.toml:5: compression.floors: only mask = "chosen" reads this key, got '
                '{"head": 0.1}: a shared mask takes the same share of every layer; remove it'
            ),
        ),
        (
            '[compression]\nmask = "shared"\nfew-examples = "finer-step"',
            (
                's.toml:5: compression.few-examples: mask = "shared" sends every value of the '
                'mask, so no step can be finer; expected "plain" or "damped-weight"'
            ),
        ),
        (
            '[residual]\nfrozen = "drop"\ndecay = 0.5',
            (
                's.toml:5: residual.decay: only frozen or missed or layout-change = "decay" reads '
                "this key, got 0.5; remove it"
            ),
        ),
        (
            '[compression]\nerror-feedback = false\n[residual]\nfrozen = "drop"',
            (
                "s.toml:5: residual: only compression.error-feedback = true leaves a residual; "
                "remove this table"
            ),
        ),
        (
            "[clients]\ncoverage-rounds = 3",
            (
                "s.toml:4: clients.coverage-rounds: only q-min above 0 reads this key, got 3; "
                "remove it"
            ),
        ),
        (
            "[limits]\nupload-bytes-per-round = 0",
            "s.toml:4: limits.upload-bytes-per-round: expected 1 or more, got 0",
        ),
        (
            '[compression]\nmode = "dense"\nbits = 4',
            "s.toml:5: compression.bits: expected one of 8, 16 or 32, got 4",
        ),
    ],
)
def test_a_key_that_is_out_of_range_or_that_nothing_reads_is_refused(text, problem):
    assert problems(text) == [problem]


def test_a_key_is_taken_with_the_setting_that_reads_it():
    strategy = from_text(
        'version = 1\nrounds = 1\n[clients]\nselection = "uniform"\nshare = 0.5\n'
        'q-min = 2\ncoverage-rounds = 3\n[compression]\nmode = "dense"\nbits = 8\n'
        '[local]\nschedule = "step"\nstep-rounds = 4\n[limits]\nflops-per-round = 5e9\n'
        "energy-j-per-round = 40"
    )
    assert strategy.clients.share == 0.5
    assert strategy.compression.bits == 8
    assert strategy.local.step_rounds == 4
    assert (strategy.clients.q_min, strategy.clients.coverage_rounds) == (2, 3)
    assert strategy.limits.flops_per_round == 5e9
    assert strategy.limits.energy_j_per_round == 40.0


def test_weights_of_errors_may_be_below_1():
    strategy = from_text(
        "version = 1\nrounds = 1\n[compression]\nboost = { stem = 0.25, head = 4 }"
    )
    assert strategy.compression.boost == {"stem": 0.25, "head": 4.0}


def test_the_density_of_a_shared_mask_is_that_of_the_mask_and_not_of_the_codec():
    text = 'version = 1\nrounds = 1\n[compression]\nmask = "shared"\ndensity = 0.05'
    compression = from_text(text).compression
    assert compression.mask_rule(seed=3) == MaskRule(3, 0.05)
    assert compression.codec(10).density is None
    assert from_text(text.replace("shared", "chosen")).compression.mask_rule(seed=3) is None


def test_a_wrong_choice_of_selector_is_one_mistake_and_not_two():
    assert problems('[clients]\nselection = "unifrom"\nshare = 0.5') == [
        (
            's.toml:4: clients.selection: expected one of "all", "uniform", "bernoulli", '
            '"resource", "gain" or "oort", got "unifrom"; did you mean "uniform"?'
        )
    ]


PRESETS = [
    "fedavg",
    "fedbug",
    "fedfreeze",
    "fedfreeze-literal",
    "fedfrozen",
    "fedpart",
    "fix-last-layer",
    "fix-last-two",
    "full",
    "random",
    "top-down",
]


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_valid_names_its_command_and_reads_back_equal(name):
    strategy = load(name)
    first_line = presets()[name].read_text(encoding="utf-8").partition("\n")[0]
    assert first_line == f"# fedfreeze run --strategy {name}"
    assert from_text(strict_toml.write(strategy)) == strategy


def test_there_are_no_other_presets():
    assert list(presets()) == PRESETS


def test_the_literal_preset_differs_from_fedfreeze_in_how_updates_are_packed_alone():
    literal, ours = load("fedfreeze-literal"), load("fedfreeze")
    assert literal.compression.mode == "literal"
    assert literal.model_copy(update={"compression": ours.compression}) == ours


def test_the_fedavg_preset_is_dense_fedavg_as_published():
    strategy = load("fedavg")
    assert strategy.freeze.policy == "full"
    assert strategy.method.name == "fedavg"
    assert strategy.method.server_learning_rate == 1.0
    assert (strategy.compression.mode, strategy.compression.bits) == ("dense", 32)
    assert strategy.compression.compression_ratio == 1
    assert strategy.compression.downlink == "dense"


def test_the_presets_differ_from_fedavg_in_what_they_are_about_and_not_in_local_training():
    assert load("full").local == load("fedfreeze").local == load("fedavg").local
    assert load("full").freeze.policy == "full"
    assert load("fedfreeze").freeze.policy == "fedfreeze"


def test_an_unknown_preset_is_answered_with_those_there_are():
    with pytest.raises(ConfigError) as caught:
        load("fedfreez")
    assert str(caught.value) == (
        'no strategy file or preset "fedfreez"; did you mean "fedfreeze"?\n'
        f"The presets are {', '.join(PRESETS)}; `fedfreeze init` writes a file to start from."
    )


def test_mistakes_in_a_file_carry_the_path_as_it_was_given(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("version = 1\n", encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load(str(path))
    assert caught.value.problems == [f"{path}:1: rounds: missing; this key must be set"]


def test_overrides_reach_a_preset():
    assert load("fedavg", ["rounds=2", "local.epochs = 5"]).local.epochs == 5


def test_a_file_that_is_not_utf_8_is_refused(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_bytes(b"version = 1 # \xff")
    with pytest.raises(ConfigError) as caught:
        read_text(str(path))
    assert str(caught.value) == f"{path}: expected UTF-8 text, got byte 0xff at offset 14"


def test_a_folder_is_no_strategy(tmp_path):
    with pytest.raises(ConfigError) as caught:
        load(str(tmp_path))
    assert str(caught.value) == f"{tmp_path}: cannot be read: Is a directory"


def test_settings_that_code_builds_obey_the_same_ranges():
    with pytest.raises(ValueError, match="greater than 0"):
        Strategy(version=1, rounds=1, local={"learning_rate": 0.0})


def test_a_discriminated_table_may_stand_in_an_array():
    union = tagged_union({"fake": FakePolicy, "other": OtherPolicy}, "policy")
    adapter = TypeAdapter(Annotated[tuple[union, ...], Field(min_length=1)])
    assert adapter.validate_json('[{"policy": "fake"}]') == (FakePolicy.Settings(),)
