"""``fedfreeze plan --totals``: what the whole run would take, by kind of board and in all."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from cli.text_table import columns, figure, widths_of
from strategies.run_forecast import ASSUMPTIONS, BoardTotals, RunForecast

_HEADER = ("board", "rounds", "lost", "away", "hours busy", "MB up", "MB down", "Wh")
_J_PER_WH = 3600.0


def totals(run: RunForecast, *, width: int, each: bool = False) -> list[str]:
    """Lines: the sums of each kind of board, those of all, and what they assume."""
    kinds: dict[str, list[BoardTotals]] = {}
    for board in run.boards:
        kinds.setdefault(board.device_id if each else board.profile, []).append(board)
    rows = [
        (_name(boards, each=each), *_sums(boards), _wh(sum(board.energy_j for board in boards)))
        for boards in kinds.values()
    ]
    rows.append(("in all", *_sums(run.boards), _wh(run.energy_j)))
    wh = run.energy_j / _J_PER_WH
    head = (
        f"{run.rounds} rounds: {run.simulated_s / 3600:.3g} h on the virtual clock, "
        f"{run.upload_bytes / 1e6:.3g} MB up, {run.download_bytes / 1e6:.3g} MB down, "
        f"{wh / 1e3:.3g} kWh ({run.energy_j / 1e3:.3g} kJ). Rows of several boards are their sums."
    )
    said = f"This assumes: {'; '.join(ASSUMPTIONS)}."
    ends = [] if run.end is None else [f"The run would end early. {run.end}."]
    narrow = sum(widths_of(_HEADER, rows)) + 2 * (len(_HEADER) - 1) > width
    return [
        *(line for text in [head, *ends] for line in textwrap.wrap(text, width)),
        "",
        *columns(_HEADER, rows, gap=1 if narrow else 2),
        "",
        *textwrap.wrap(said, width),
    ]


def _name(boards: Sequence[BoardTotals], *, each: bool) -> str:
    if each:
        return f"{boards[0].device_id} {boards[0].profile}"
    count = f"{len(boards)} x " if len(boards) > 1 else ""
    return f"{count}{boards[0].profile}"


def _sums(boards: Sequence[BoardTotals]) -> tuple[str, str, str, str, str, str]:
    return (
        str(sum(board.rounds for board in boards)),
        str(sum(board.rounds_lost for board in boards)),
        str(sum(board.rounds_away for board in boards)),
        figure(sum(board.busy_s for board in boards) / 3600),
        figure(sum(board.upload_bytes for board in boards) / 1e6),
        figure(sum(board.download_bytes for board in boards) / 1e6),
    )


def _wh(energy_j: float) -> str:
    return figure(energy_j / _J_PER_WH)
