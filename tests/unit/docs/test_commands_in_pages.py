"""Commands and keys on the pages for operators and researchers are those that there are."""

import re
import shlex
from pathlib import Path

import click
import pytest
import typer

from cli.command_line import app
from device_profiles.fleet import load_fleet
from fedfreeze.errors import ConfigError
from strategies import reference
from strategies.schema import Strategy, load

ROOT = Path(__file__).parents[3]
PAGES = ("docs/tuning.md", "experiments/README.md")


def text_of(page):
    return (ROOT / page).read_text(encoding="utf-8")


def commands(first):
    """Every command of the pages' shell blocks that begins with these words."""
    for page in PAGES:
        for block in re.findall(r"^```bash\n(.*?)^```", text_of(page), re.MULTILINE | re.DOTALL):
            yield from (line for line in block.splitlines() if line.startswith(first))


def parsed(line):
    """The values of a command's options, read as the command itself reads them."""
    _, name, *arguments = shlex.split(line)
    group = typer.main.get_command(app)
    command = group.get_command(click.Context(group), name)
    return name, command.make_context(name, arguments).params


@pytest.mark.parametrize("line", list(commands("fedfreeze ")))
def test_every_command_has_options_strategies_and_keys_that_there_are(line, monkeypatch):
    monkeypatch.chdir(ROOT)
    name, given = parsed(line)
    if name in {"run", "plan", "train-central"}:
        strategy = load(given["strategy"], given["overrides"] or [])
        load_fleet(given.get("fleet") or strategy.fleet)


def test_a_command_with_a_key_that_there_is_not_is_found():
    _, given = parsed("fedfreeze run --set freeze.treshold=0.5")
    with pytest.raises(ConfigError) as caught:
        load(given["strategy"], given["overrides"])
    assert "freeze.treshold: unknown key" in str(caught.value)
    with pytest.raises(click.NoSuchOption, match="--sett"):
        parsed("fedfreeze run --sett freeze.threshold=0.5")


@pytest.mark.parametrize("line", list(commands("python ")))
def test_every_script_is_there_and_says_how_to_start_it(line):
    script = shlex.split(line)[1]
    assert f"python {script}" in (ROOT / script).read_text(encoding="utf-8")


@pytest.mark.parametrize("line", list(commands("make ")))
def test_every_target_of_make_is_there(line):
    target = shlex.split(line)[1]
    assert f"\n{target}: " in (ROOT / "Makefile").read_text(encoding="utf-8")


def test_every_key_that_the_tuning_page_turns_is_one():
    known = {key.name for key in reference.keys(Strategy)}
    for table, form in reference.tables(Strategy).items():
        registry = reference.REGISTRIES.get(table)
        forms = [form] if registry is None else [e.Settings for e in registry[1].values()]
        known |= {f"{table}.{key.name}" for form in forms for key in reference.keys(form)}
    tables = "|".join(reference.tables(Strategy))
    named = set(re.findall(rf"`((?:{tables})\.[a-z-]+)`", text_of("docs/tuning.md")))
    assert len(named) > 30
    assert named <= known, named - known


def test_every_field_of_a_record_that_the_tuning_page_reads_is_written_down_somewhere():
    written = "".join(
        path.read_text(encoding="utf-8")
        for folder in ("server_app", "tasks", "strategies")
        for path in (ROOT / folder).rglob("*.py")
    )
    named = set(re.findall(r"`([a-z]+(?:_[a-z]+)+)`", text_of("docs/tuning.md")))
    assert len(named) > 10
    for name in named:
        stem = name.removeprefix("client_accuracy")  # client_ and the metric's name
        assert stem in written, name


@pytest.mark.parametrize("page", [*PAGES, "docs/seeds.md"])
def test_every_link_leads_to_a_page_that_is_there_and_to_a_heading_in_it(page):
    for target, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", text_of(page)):
        path = (ROOT / page).parent / target if target else ROOT / page
        assert path.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
            slugs = {re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in headings}
            assert anchor in slugs, anchor
