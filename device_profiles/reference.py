"""The table of boards in ``docs/boards.md``, made from their files.

It stands between two marks; after a change of a board::

    python -m device_profiles.reference docs/boards.md
"""

from __future__ import annotations

import sys
from pathlib import Path

from device_profiles.board import Board, Rated, boards, load_board
from fedfreeze.units import Dimension, written

BEGIN = "<!-- made by `python -m device_profiles.reference docs/boards.md`; do not edit -->"
END = "<!-- end -->"

_HEADER = ("board", "RAM", "speed", "memory to train", "up", "down", "idle, compute, radio")


def table() -> str:
    """One row a board; an asterisk marks an estimate."""
    rows = [_HEADER, ("---",) * len(_HEADER), *(_row(load_board(name)) for name in boards())]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def with_table(page: str) -> str:
    """A page with the table of now between its marks.

    >>> with_table(f"Boards: {BEGIN} old {END}").startswith(f"Boards: {BEGIN}")
    True
    """
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


def _row(board: Board) -> tuple[str, ...]:
    power = (board.power.idle, board.power.compute, board.power.radio)
    hardware = board.hardware
    return (
        f"`{board.name}`",
        "" if hardware is None else _cell(hardware.ram, Dimension.BYTES),
        _cell(board.flops, Dimension.FLOPS_PER_S),
        _cell(board.memory, Dimension.BYTES),
        _cell(board.uplink, Dimension.BYTES_PER_S),
        _cell(board.downlink, Dimension.BYTES_PER_S),
        ", ".join(_cell(rated, Dimension.WATTS) for rated in power),
    )


def _cell(rated: Rated[float], dimension: Dimension) -> str:
    mark = "*" if rated.source.startswith("estimate") else ""
    return f"{written(rated.value, dimension)}{mark}"


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(with_table(path.read_text("utf-8")), encoding="utf-8")
