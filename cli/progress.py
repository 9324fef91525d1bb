"""What a person reads while a run goes on and at its end. Pure: records in, text out."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from cli.rounds import Record, RunFigures, score_of
from fedfreeze import units
from fedfreeze.units import Dimension

_J_A_KWH = 3.6e6

_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_BOILERPLATE = re.compile(
    r"^(\s*|Using SuperLink: .*|INFO\s.*|.*Exit Code: .*|An unhandled exception occurred .*|"
    r"For more information, visit.*)$"
)


def round_line(record: Record) -> str:
    """One line about a round; what the record does not hold is left out.

    >>> round_line({"round": 7, "rounds": 30, "test_accuracy": 0.712, "upload_bytes": 58_000,
    ...             "dense_upload_bytes": 4_118_000})
    'round  7/30  accuracy 0.712  up 58 kB (71x less than dense)'
    """
    width = len(str(record.get("rounds", "")))
    parts = [f"round {record['round']:>{width}}/{record.get('rounds', '?')}"]
    if record.get("void") is True:
        parts.append(_void(record))
    if (score := score_of(record)) is not None:
        parts.append(f"{score[0]} {score[1]:.3f}")
    if (loss := record.get("test_loss")) is not None:
        parts.append(f"loss {loss:.2f}")
    clients = [
        f"{record[key]} {word}"
        for key, word, always in (
            ("clients_used", "used", True),
            ("clients_failed", "failed", True),
            ("clients_late", "late", False),
            ("clients_lost", "lost", False),
            ("clients_sat_out", "sat out", False),
            ("clients_away", "away", False),
        )
        if record.get(key) is not None and (always or record[key])
    ]
    if clients:
        parts.append(f"clients {' '.join(clients)}")
    if (frozen := record.get("frozen_share")) is not None:
        parts.append(f"frozen {100 * frozen:.0f} %")
    if (upload_bytes := record.get("upload_bytes")) is not None:
        up = f"up {units.written(upload_bytes, Dimension.BYTES)}"
        dense_bytes = record.get("dense_upload_bytes")
        if dense_bytes and upload_bytes:
            up += f" ({_against('dense', dense_bytes / upload_bytes)})"
        parts.append(up)
    if (simulated_s := record.get("simulated_s")) is not None:
        parts.append(f"simulated {simulated_s:.1f} s")
    return "  ".join(parts)


def summary_lines(
    run: RunFigures, elapsed_s: float, files: Mapping[str, Path], predicted: Sequence[str] = ()
) -> list[str]:
    """The end of a finished run: figures, how far they were predicted, then where everything is."""
    lines = []
    if run.score is not None:
        counted = min(run.rounds, 3)
        of = f"mean of the last {counted} rounds" if counted > 1 else "of the one round"
        lines.append(f"{run.metric:<10} {run.score:.3f}  ({of})")
    if run.worst_tenth is not None:
        lines.append(f"{'worst':<10} {run.worst_tenth:.3f}  (mean of the worst tenth of clients)")
    if run.upload_bytes is not None:
        line = f"uplink     {units.written(run.upload_bytes, Dimension.BYTES)}"
        if run.upload_ratio is not None:
            line += f"  ({_against('dense FedAvg', run.upload_ratio)})"
        lines.append(line)
    if run.traffic_bytes is not None and run.traffic_ratio is not None:
        sent = units.written(run.traffic_bytes, Dimension.BYTES)
        lines.append(f"both ways  {sent}  ({_against('dense FedAvg', run.traffic_ratio)})")
    line = f"time       {elapsed_s:.0f} s here"
    if run.simulated_s is not None:
        line += f"  ({units.written(run.simulated_s, Dimension.SECONDS)} on the simulated boards)"
    lines.append(line)
    if (energy_j := run.modelled_energy_total_j) is not None:
        lines.append(f"energy     {_energy(energy_j)} modelled on the simulated boards")
    lines += predicted
    width = max((len(name) for name in files), default=0)
    lines += [f"{name:<{max(width, 10)}} {path}" for name, path in files.items()]
    return lines


def without_colours(text: str) -> str:
    """The text without terminal escapes; Flower writes them into its log."""
    return _ANSI.sub("", text)


def last_words(log: str, lines: int = 12) -> list[str]:
    r"""The last lines of a log that say something about a failure.

    >>> last_words("INFO : fine\nTraceback:\nValueError: no\nERROR : Exit Code: 700\n")
    ['Traceback:', 'ValueError: no']
    """
    kept = [line for line in without_colours(log).splitlines() if not _BOILERPLATE.match(line)]
    return kept[-lines:]


def last_lines(text: str, characters: int) -> str:
    r"""The last whole lines that fit; one line that is longer alone is cut, and says so.

    >>> last_lines("Traceback:\n  File a\nValueError: no\n", 24)
    '  File a\nValueError: no'
    """
    lines = without_colours(text).strip("\n").split("\n")
    kept: list[str] = []
    for line in reversed(lines):
        if sum(len(other) + 1 for other in kept) + len(line) > characters:
            break
        kept.insert(0, line)
    return "\n".join(kept) if kept else f"... {lines[-1][-characters:]}"


def times(ratio: float) -> str:
    """How much less or more was sent.

    Args:
        ratio: what it is compared to over what was sent.

    >>> times(58.3), times(1.5), times(0.53), times(1.0)
    ('58x less', '1.5x less', '1.9x more', 'as much')
    """
    factor = max(ratio, 1 / ratio) if ratio > 0 else math.inf
    words = f"{factor:.0f}x" if factor >= 10 else f"{factor:.1f}x"
    return "as much" if words == "1.0x" else f"{words} {'less' if ratio > 1 else 'more'}"


def _against(name: str, ratio: float) -> str:
    words = times(ratio)
    return f"{words} {'as' if words == 'as much' else 'than'} {name}"


def _energy(energy_j: float) -> str:
    """Joules, and kilowatt-hours from a tenth of one on."""
    if energy_j >= 0.1 * _J_A_KWH:
        return f"{energy_j / _J_A_KWH:.3g} kWh"
    return units.written(energy_j, Dimension.JOULES)


def _void(record: Record) -> str:
    """A void round changed nothing; say how many of those asked answered in time."""
    asked, failed = record.get("clients_asked"), record.get("clients_failed")
    if asked is None or failed is None:
        return "void"
    missed = (record.get("clients_late") or 0) + (record.get("clients_lost") or 0)
    answered = asked - failed - missed
    return f"void: {answered} of {asked} answered" + (" in time" if missed else "")
