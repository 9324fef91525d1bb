"""Reading ``rounds.jsonl``, and the figures of a run that come out of it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedfreeze import plain_json
from fedfreeze.errors import StateError

Record = Mapping[str, Any]

_LAST = 3
_SCORE = re.compile(r"test_(?!loss$)([a-z][a-z0-9_]{0,39})")
_WORST = re.compile(r"client_[a-z][a-z0-9_]{0,39}_worst_tenth")
_FIGURE = re.compile(r"(test|validation|clients?)_.*|.*_(bytes|s|j|share)|rounds")


@dataclass(frozen=True)
class RunFigures:
    """The figures of a run; a figure that no round reported is None.

    Attributes:
        rounds: that are complete.
        metric: what the task calls its score, such as "accuracy".
        score: mean test score of the last three rounds.
        upload_bytes: what all clients handed to Flower, in all rounds.
        dense_upload_bytes: what dense FedAvg would have sent in the same rounds.
        wall_s: measured seconds of all rounds.
        simulated_s: seconds on the boards' virtual clock.
        worst_tenth: mean over the last three rounds of what the worst served tenth of clients get.
        download_bytes: what the server handed to Flower for all clients, in all rounds.
        dense_download_bytes: what it would have been with the whole model in each order.
        modelled_energy_total_j: of the simulated boards in all rounds; None where boards are real.
    """

    rounds: int
    metric: str | None
    score: float | None
    upload_bytes: int | None
    dense_upload_bytes: int | None
    wall_s: float | None
    simulated_s: float | None
    worst_tenth: float | None = None
    download_bytes: int | None = None
    dense_download_bytes: int | None = None
    modelled_energy_total_j: float | None = None

    @property
    def upload_ratio(self) -> float | None:
        """How many times less was sent than by dense FedAvg; below 1 it was more."""
        if not self.upload_bytes or not self.dense_upload_bytes:
            return None
        return self.dense_upload_bytes / self.upload_bytes

    @property
    def traffic_ratio(self) -> float | None:
        """The same for both directions together."""
        sent_bytes = self.traffic_bytes
        if not sent_bytes or not self.dense_upload_bytes or not self.dense_download_bytes:
            return None
        return (self.dense_upload_bytes + self.dense_download_bytes) / sent_bytes

    @property
    def traffic_bytes(self) -> int | None:
        """Up and down together."""
        if not self.upload_bytes or not self.download_bytes:
            return None
        return self.upload_bytes + self.download_bytes


def read_rounds(path: Path) -> list[Record]:
    """The complete lines of ``rounds.jsonl``; a last line without its end is still being written.

    A figure that is not finite is absent.

    Raises:
        StateError: the file cannot be read, or a complete line is no record of a round.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StateError(
            f"{path}: expected a file that can be read, got: {error.strerror}; move it away"
        ) from error
    records: list[Record] = []
    for number, line in enumerate(content.split(b"\n")[:-1], start=1):
        try:
            record = plain_json.parse(line.decode("utf-8"))
        except ValueError:
            record = None
        if not isinstance(record, dict):
            text = line.decode("utf-8", errors="replace")
            raise StateError(f"{path}:{number}: expected a JSON object, got {text!r:.100}")
        if fault := _fault(record):
            raise StateError(f"{path}:{number}: {fault}")
        records.append(record)
    return records


def figures(records: Sequence[Record]) -> RunFigures:
    """The figures of a run from its rounds.

    >>> figures([{"test_accuracy": a, "upload_bytes": 10, "dense_upload_bytes": 500}
    ...          for a in (0.0, 0.25, 0.5, 0.75)])  # doctest: +ELLIPSIS
    RunFigures(rounds=4, metric='accuracy', score=0.5, upload_bytes=40, ...)
    """
    scores = [score for record in records if (score := score_of(record)) is not None]
    metric = scores[-1][0] if scores else None
    last = [value for name, value in scores if name == metric][-_LAST:]
    worst = [r[key] for r in records for key in r if _WORST.fullmatch(key)][-_LAST:]
    return RunFigures(
        rounds=len(records),
        metric=metric,
        score=sum(last) / len(last) if last else None,
        worst_tenth=sum(worst) / len(worst) if worst else None,
        upload_bytes=_sum(records, "upload_bytes"),
        dense_upload_bytes=_sum(records, "dense_upload_bytes"),
        download_bytes=_sum(records, "download_bytes"),
        dense_download_bytes=_sum(records, "dense_download_bytes"),
        wall_s=_sum(records, "wall_s"),
        simulated_s=_latest(records, "simulated_total_s"),
        modelled_energy_total_j=_latest(records, "modelled_energy_total_j"),
    )


def score_of(record: Record) -> tuple[str, float] | None:
    """The test metric's name and value, or None where the round reported none.

    >>> score_of({"test_loss": 0.2, "test_r2": 0.91})
    ('r2', 0.91)
    """
    for key, value in record.items():
        if value is not None and (named := _SCORE.fullmatch(key)):
            return named[1], value
    return None


def _fault(record: Record) -> str | None:
    """What keeps a record from being one of a round."""
    if not isinstance(record.get("round"), int):
        return f"round: expected a whole number, got {record.get('round')!r:.50}"
    for key, value in record.items():
        wrong = isinstance(value, bool) or not isinstance(value, int | float | None)
        if wrong and _FIGURE.fullmatch(key):
            return f"{key}: expected a number, got {value!r:.50}"
    return None


def _sum(records: Sequence[Record], key: str) -> Any:
    values = [record[key] for record in records if record.get(key) is not None]
    return sum(values) if values else None


def _latest(records: Sequence[Record], key: str) -> Any:
    values = [record[key] for record in records if record.get(key) is not None]
    return values[-1] if values else None
