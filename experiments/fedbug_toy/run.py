"""FedBug's claims about its two-client toy, each computed and checked.

Prints a table of claims with what was found, and writes ``claims.json`` and ``ratios.svg``. Takes
some seconds; the same numbers on every machine.

Example:
    python experiments/fedbug_toy/run.py --out /tmp/fedbug-toy --page experiments/README.md
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from claims import Claim, all_claims
from figure import ratios_svg

BEGIN, END = "<!-- begin: made by experiments/fedbug_toy/run.py -->", "<!-- end of the toy -->"


def main(arguments: list[str] | None = None) -> int:
    """The command; 0 if every claim holds that is marked as one that must."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=50, help="initial values (default: 50)")
    parser.add_argument("--out", type=Path, help="folder for claims.json and ratios.svg")
    parser.add_argument("--page", type=Path, help="page to write the table into")
    parser.add_argument("--json", action="store_true", help="print one JSON array")
    wanted = parser.parse_args(arguments)
    claims = all_claims(wanted.seeds)
    if wanted.out is not None:
        wanted.out.mkdir(parents=True, exist_ok=True)
        (wanted.out / "claims.json").write_text(_text(claims), encoding="utf-8")
        (wanted.out / "ratios.svg").write_text(ratios_svg(wanted.seeds), encoding="utf-8")
    if wanted.page is not None:
        write_page(wanted.page, table(claims))
    if wanted.json:
        print(_text(claims))
    else:
        for claim in claims:
            print(f"{claim.verdict:<14} {claim.number}  {claim.paper}\n{'':<14}   {claim.found}")
    return 0 if all(claim.holds for claim in claims if claim.must) else 1


def table(claims: list[Claim]) -> list[str]:
    """The claims as lines of Markdown."""
    rows = [f"| {c.number} | {_cell(c.paper)} | {_cell(c.found)} | {c.verdict} |" for c in claims]
    return ["| claim | what it says | what came out | |", "|---|---|---|---|", *rows]


def write_page(page: Path, lines: list[str]) -> None:
    """Put the table between the page's two marks."""
    before, begin, rest = page.read_text("utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        sys.exit(f"{page}: expected the marks {BEGIN} and {END}")
    page.write_text(before + begin + "\n".join(["", *lines, ""]) + end + after, encoding="utf-8")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _text(claims: list[Claim]) -> str:
    return json.dumps([asdict(claim) | {"verdict": claim.verdict} for claim in claims], indent=1)


if __name__ == "__main__":
    sys.exit(main())
