"""What a person reads while a run goes on and at its end. Pure: records in, text out."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedfreeze import units
from fedfreeze.errors import StateError
from fedfreeze.units import Dimension

Record = Mapping[str, Any]

_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_BOILERPLATE = re.compile(
    r"^(\s*|Using SuperLink: .*|INFO\s.*|.*Exit Code: .*|An unhandled exception occurred .*|"
    r"For more information, visit.*)$"
)


@dataclass(frozen=True)
class RunFigures:
    """The figures of a run; a figure that no round reported is None.

    Attributes:
        rounds: that are complete.
        accuracy: mean test accuracy of the last three rounds.
        upload_bytes: what all clients handed to Flower, in all rounds.
        dense_upload_bytes: what dense FedAvg would have sent in the same rounds.
        wall_s: measured seconds of all rounds.
        simulated_s: seconds on the boards' virtual clock.
    """

    rounds: int
    accuracy: float | None
    upload_bytes: int | None
    dense_upload_bytes: int | None
    wall_s: float | None
    simulated_s: float | None

    @property
    def upload_ratio(self) -> float | None:
        """How many times less was sent than by dense FedAvg."""
        if not self.upload_bytes or self.dense_upload_bytes is None:
            return None
        return self.dense_upload_bytes / self.upload_bytes


def read_rounds(path: Path) -> list[Record]:
    """The complete lines of ``rounds.jsonl``; a last line without its end is still being written.

    Raises:
        StateError: a complete line is not a JSON object.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    records: list[Record] = []
    for number, line in enumerate(text.split("\n")[:-1], start=1):
        try:
            record = json.loads(line)
        except ValueError:
            record = None
        if not isinstance(record, dict):
            raise StateError(f"{path}:{number}: expected a JSON object, got {line!r:.100}")
        records.append(record)
    return records


def figures(records: Sequence[Record]) -> RunFigures:
    """The figures of a run from its rounds.

    >>> figures([{"test_accuracy": a, "upload_bytes": 10, "dense_upload_bytes": 500}
    ...          for a in (0.0, 0.25, 0.5, 0.75)])  # doctest: +ELLIPSIS
    RunFigures(rounds=4, accuracy=0.5, upload_bytes=40, dense_upload_bytes=2000, ...)
    """
    accuracies = [r["test_accuracy"] for r in records if r.get("test_accuracy") is not None][-3:]
    totals = [r["simulated_total_s"] for r in records if r.get("simulated_total_s") is not None]
    return RunFigures(
        rounds=len(records),
        accuracy=sum(accuracies) / len(accuracies) if accuracies else None,
        upload_bytes=_sum(records, "upload_bytes"),
        dense_upload_bytes=_sum(records, "dense_upload_bytes"),
        wall_s=_sum(records, "wall_s"),
        simulated_s=totals[-1] if totals else None,
    )


def round_line(record: Record) -> str:
    """One line about a round; what the record does not hold is left out.

    >>> round_line({"round": 7, "rounds": 30, "test_accuracy": 0.712, "upload_bytes": 58_000,
    ...             "dense_upload_bytes": 4_118_000})
    'round  7/30  accuracy 0.712  up 58 kB (71x less than dense)'
    """
    width = len(str(record.get("rounds", "")))
    parts = [f"round {record['round']:>{width}}/{record.get('rounds', '?')}"]
    if (accuracy := record.get("test_accuracy")) is not None:
        parts.append(f"accuracy {accuracy:.3f}")
    if (loss := record.get("test_loss")) is not None:
        parts.append(f"loss {loss:.2f}")
    clients = [
        f"{record[key]} {word}"
        for key, word, always in (
            ("clients_used", "used", True),
            ("clients_failed", "failed", True),
            ("clients_late", "late", False),
            ("clients_sat_out", "sat out", False),
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
        parts.append(
            up
            + (
                f" ({_times(dense_bytes / upload_bytes)} less than dense)"
                if dense_bytes and upload_bytes
                else ""
            )
        )
    if (simulated_s := record.get("simulated_s")) is not None:
        parts.append(f"simulated {simulated_s:.1f} s")
    return "  ".join(parts)


def summary_lines(run: RunFigures, elapsed_s: float, files: Mapping[str, Path]) -> list[str]:
    """The end of a finished run: figures, then where everything is."""
    lines = []
    if run.accuracy is not None:
        lines.append(f"accuracy   {run.accuracy:.3f}  (mean of the last three rounds)")
    if run.upload_bytes is not None:
        line = f"uplink     {units.written(run.upload_bytes, Dimension.BYTES)}"
        if run.upload_ratio is not None:
            line += f"  ({_times(run.upload_ratio)} less than dense FedAvg)"
        lines.append(line)
    line = f"time       {elapsed_s:.0f} s here"
    if run.simulated_s is not None:
        line += f"  ({units.written(run.simulated_s, Dimension.SECONDS)} on the simulated boards)"
    lines.append(line)
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


def _sum(records: Sequence[Record], key: str) -> Any:
    values = [record[key] for record in records if record.get(key) is not None]
    return sum(values) if values else None


def _times(ratio: float) -> str:
    return f"{ratio:.0f}x" if ratio >= 10 else f"{ratio:.1f}x"
