"""What the audit log says of who was there, who was asked, and what came of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace

from strategies.selection.rule import Record

# Under this status a client did its part and the round had no quorum: it says nothing of it.
VOID = "void"
USED = "used"


@dataclass(frozen=True)
class Attendance:
    """One client until now.

    Attributes:
        picked: rounds in which it was asked.
        used: of these, rounds in which its update was merged.
        vain: of these, rounds in which it sat out, failed or came too late.
        waited: rounds in which it was there since it was last asked.
    """

    picked: int = 0
    used: int = 0
    vain: int = 0
    waited: int = 0

    @property
    def reliability(self) -> float:
        """How likely an order to it is to end in a merged update; 1 for who was never asked.

        The share of its orders that did, with one such order assumed beforehand.

        >>> [Attendance(used=used, vain=3).reliability for used in (0, 2)]
        [0.25, 0.5]
        """
        return (self.used + 1) / (self.used + self.vain + 1)


NEVER = Attendance()


def after(before: Mapping[str, Attendance], records: Iterable[Record]) -> dict[str, Attendance]:
    """The attendance of everybody after the records of one more round."""
    now = dict(before)
    for record in records:
        if "selection" in record:
            for device_id, entry in record["selection"]["clients"].items():
                one = now.get(device_id, NEVER)
                now[device_id] = (
                    replace(one, picked=one.picked + 1, waited=0)
                    if "why" in entry
                    else replace(one, waited=one.waited + 1)
                )
        elif record["status"] != VOID:
            one = now.get(record["device_id"], NEVER)
            now[record["device_id"]] = (
                replace(one, used=one.used + 1)
                if record["status"] == USED
                else replace(one, vain=one.vain + 1)
            )
    return now


def to_json(attendance: Mapping[str, Attendance]) -> dict[str, dict[str, int]]:
    """For a checkpoint."""
    return {device_id: asdict(one) for device_id, one in sorted(attendance.items())}


def from_json(entries: Mapping[str, Mapping[str, int]]) -> dict[str, Attendance]:
    """The inverse of :func:`to_json`."""
    return {device_id: Attendance(**entry) for device_id, entry in entries.items()}
