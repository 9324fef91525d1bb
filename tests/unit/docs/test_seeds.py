"""docs/seeds.md against the code: what it names exists, and what it calls not built does not."""

import pkgutil
import re
from pathlib import Path

import pytest

from fedfreeze.code_digest import ROOMS as ROOMS_OF_BOARDS
from strategies import reference
from strategies.freeze import POLICIES
from strategies.methods import METHODS
from strategies.schema import Strategy, presets

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "seeds.md"
ROOMS = (*ROOMS_OF_BOARDS, "cli")
REGISTRIES = {"policy": POLICIES, "method": METHODS, "preset": presets()}
CLAIM = re.compile(r"(?:(policy|method|preset) )?`([^`]+)`")


def rows():
    """The rows of all tables but their heads, as lists of cells."""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        is_head = cells[0] in {"section", "part"} or set(line) <= set("|- ")
        if line.startswith("|") and not is_head:
            yield cells


def claims(cells):
    """Each name of a row, and whether the row says that it is there."""
    for cell in cells:
        there, _, absent = cell.partition("not built:")
        # A further half sentence after a semicolon speaks of what there is.
        absent, _, rest = absent.partition(";")
        for text, is_there in ((there, True), (absent, False), (rest, True)):
            for kind, name in CLAIM.findall(text):
                yield kind, name, is_there


def keys_of(table):
    """Every key that a table of the strategy TOML can have."""
    if table in reference.REGISTRIES:
        forms = [entry.Settings for entry in reference.REGISTRIES[table][1].values()]
    else:
        forms = [form for name, form in reference.tables(Strategy).items() if name == table]
    return {key.name for form in forms for key in reference.keys(form)}


def is_in_a_file(path, inner):
    """Whether there is this file, and in it a function, class or constant of this name."""
    pattern = rf"^(def|class) {inner}\b|^([A-Z_]+, )*{inner}\b.* = "
    if not (ROOT / path).exists():
        return False
    return not inner or bool(re.search(pattern, (ROOT / path).read_text("utf-8"), re.MULTILINE))


def resolves(name):
    """Whether a name with dots is an object of the rooms."""
    try:
        pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        return False
    return True


def exists(kind, name):
    """Whether there is such a thing; None for words that name nothing in the code."""
    if kind:
        return name in REGISTRIES[kind]
    if match := re.fullmatch(r"\[(\w+)\](?: ([\w-]+))?", name):
        keys = keys_of(match[1])
        return bool(keys) if match[2] is None else match[2] in keys
    if "/" in name:
        return is_in_a_file(*name.partition(":")[::2])
    return resolves(name) if name.partition(".")[0] in ROOMS else None


def test_the_page_has_a_table_for_each_text():
    text = PAGE.read_text(encoding="utf-8")
    for name in ("FedFreeze", "FedBug", "FedFrozen"):
        section = text.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
        assert section.count("\n|") > 20, name


@pytest.mark.parametrize("cells", list(rows()), ids=lambda cells: f"{cells[0]}: {cells[1]}"[:60])
def test_what_a_row_names_is_there_and_what_it_calls_not_built_is_not(cells):
    assert len(cells) == 4
    assert cells[2] or cells[3], "a row says where it is, or why it is not"
    for kind, name, is_there in claims(cells[2:]):
        found = exists(kind, name)
        if found is None:
            continue
        what = f"{kind} {name}".strip()
        if is_there:
            assert found, f"docs/seeds.md names {what}, which is not there"
        else:
            assert not found, f"docs/seeds.md says that {what} is not built; say where it is"


def test_a_name_that_is_wrong_is_found():
    assert exists("", "strategies.freeze.unfreezing.period")
    assert not exists("", "strategies.freeze.unfreezing.periods")
    assert not exists("", "strategies.freeze.unfreezings")
    assert exists("", "[freeze] modules")
    assert not exists("", "[freeze] module")
    assert not exists("", "[frost]")
    assert exists("policy", "fedbug")
    assert not exists("policy", "fedbag")
    assert exists("", "experiments/fedbug_toy/claims.py:ROUNDS")
    assert not exists("", "experiments/fedbug_toy/claims.py:ROUND")
    assert not exists("", "docs/seed.md")
    assert exists("", "sparse") is None


def test_what_follows_not_built_is_claimed_to_be_absent_up_to_a_semicolon():
    cell = "`fedfreeze/plan.py`; a probe is not built: policy `x`, `y/z.py`; `docs/` is"
    assert list(claims([cell])) == [
        ("", "fedfreeze/plan.py", True),
        ("policy", "x", False),
        ("", "y/z.py", False),
        ("", "docs/", True),
    ]
