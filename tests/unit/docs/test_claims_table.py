"""experiments/README.md has every claim of the three texts once, with a verdict."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "experiments" / "README.md"
CLAIMS = [
    *(f"FB{number}" for number in range(1, 13)),
    *(f"FF{number}" for number in range(1, 8)),
    *(f"FZ{number}" for number in range(1, 9)),
]
VERDICTS = ("holds", "does not hold", "not run yet")


def rows():
    """The tables of claims, up to what is made by a script."""
    text = PAGE.read_text(encoding="utf-8").partition("## The papers' set-ups")[0]
    for line in text.splitlines():
        if match := re.match(r"\| (F[BFZ]\d+) ", line):
            yield match[1], [cell.strip() for cell in line.strip("|").split("|")]


def test_every_claim_has_one_row():
    assert [number for number, _ in rows()] == CLAIMS


@pytest.mark.parametrize(("number", "cells"), list(rows()))
def test_a_verdict_is_one_of_three_and_what_was_run_says_what_came_out(number, cells):
    assert len(cells) == 4
    _, paper, ours, verdict = cells
    assert paper
    assert verdict.startswith(VERDICTS)
    if not verdict.startswith("not run yet"):
        assert ours, f"{number} has a verdict and nothing that came out"


def test_the_table_of_the_toy_is_made_by_its_script_and_has_the_claims_of_theory():
    text = PAGE.read_text(encoding="utf-8")
    made = text.partition("<!-- begin: made by experiments/fedbug_toy/run.py -->")[2]
    made = made.partition("<!-- end of the toy -->")[0]
    verdicts = dict(re.findall(r"^\| (FB\w+) \|.*\| ([a-z ]+) \|$", made, re.MULTILINE))
    wanted = ["FB1", "FB2", "FB3", "FB3g", "FB4", "FB5", "FB6", "FB7", "FB12"]
    assert verdicts == dict.fromkeys(wanted, "holds")
