"""FedBug's claims about its two-client toy, each computed and checked.

Prints a table of claims with what was found, and writes ``claims.json`` and ``ratios.svg``. Takes
some seconds; the same numbers on every machine.

Example:
    python experiments/fedbug_toy/run.py --out /tmp/fedbug-toy
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from claims import Claim, all_claims
from figure import ratios_svg


def main(arguments: list[str] | None = None) -> int:
    """The command; 0 if every claim holds that is marked as one that must."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=50, help="initial values (default: 50)")
    parser.add_argument("--out", type=Path, help="folder for claims.json and ratios.svg")
    parser.add_argument("--json", action="store_true", help="print one JSON array")
    wanted = parser.parse_args(arguments)
    claims = all_claims(wanted.seeds)
    if wanted.out is not None:
        wanted.out.mkdir(parents=True, exist_ok=True)
        (wanted.out / "claims.json").write_text(_text(claims), encoding="utf-8")
        (wanted.out / "ratios.svg").write_text(ratios_svg(wanted.seeds), encoding="utf-8")
    if wanted.json:
        print(_text(claims))
    else:
        for claim in claims:
            print(f"{claim.verdict:<14} {claim.number}  {claim.paper}\n{'':<14}   {claim.found}")
    return 0 if all(claim.holds for claim in claims if claim.must) else 1


def _text(claims: list[Claim]) -> str:
    return json.dumps([asdict(claim) | {"verdict": claim.verdict} for claim in claims], indent=1)


if __name__ == "__main__":
    sys.exit(main())
