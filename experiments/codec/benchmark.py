"""The codec on real updates: bytes, error, speed and memory, each beside its target.

Updates are those of a small CNN, a ResNet and a ViT in training (``states.py``); they are trained
once, which takes some minutes, and kept. Times are thread CPU time, so a busy machine changes
them little; pin the process to one core for the steadiest figures.

Example:
    python experiments/codec/benchmark.py --models cnn --only bytes error
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from statistics import median

import numpy as np
from measures import EFFORTS, State, errors, memory, size, speed
from states import MODELS, states

RATIOS = (640, 320, 128, 64)
SPEED_RATIO = 320
ENOUGH_KEPT = 5_000  # a floor without headers is no yardstick for fewer
LARGE, SMALL = 5_000_000, 500_000  # parameters
SECTIONS = ("bytes", "error", "speed", "memory")

Row = dict[str, object]


class Verdicts:
    """Targets as they are met or missed."""

    def __init__(self) -> None:
        self.lines: list[Row] = []

    def judge(
        self, what: str, figures: Iterable[float], limit: float, *, most: bool = True
    ) -> None:
        """Keep the worst of the figures beside its limit."""
        found = list(figures)
        if not found:
            return
        worst = max(found) if most else min(found)
        met = worst <= limit if most else worst >= limit
        self.lines.append(
            {
                "target": f"{what} {'<=' if most else '>='} {limit:g}",
                "worst": worst,
                "median": median(found),
                "met": met,
            }
        )


def bytes_table(found: list[State], verdicts: Verdicts) -> list[Row]:
    """Packets against the floor of independent values."""
    rows: list[Row] = []
    print(f"\nBytes over the floor of independent values, {'/'.join(map(str, RATIOS))}x")
    print(
        f"  {'update':16}{'ratio':>6}{'kept':>9}{'plain':>8}{'classes':>9}{'/ plain':>9}{'own':>7}"
    )
    for state in found:
        for ratio in RATIOS:
            came = size(state, ratio)
            rows.append({"model": state.model, "kind": state.kind, "ratio": ratio, **asdict(came)})
            print(
                f"  {state.model + ' ' + state.kind:16}{ratio:5}x{came.kept:9,}{came.plain:8.3f}"
                f"{came.classes:9.3f}{came.against_plain:9.3f}{came.own:7.3f}",
                flush=True,
            )
    verdicts.judge(
        f"plain over floor, {ENOUGH_KEPT:,} kept or more",
        _column(rows, "plain", lambda r: r["kept"] >= ENOUGH_KEPT),  # type: ignore[operator]
        1.01,
    )
    verdicts.judge(
        "bytes a tensor that classes add to plain", _column(rows, "excess_bytes", lambda _: True), 1
    )
    verdicts.judge(
        "classes over floor, CNN", _column(rows, "classes", lambda r: r["model"] == "cnn"), 0.75
    )
    verdicts.judge(
        "classes over floor, ResNet feedback",
        _column(
            rows,
            "classes",
            lambda r: (r["model"], r["kind"]) == ("resnet", "feedback"),
        ),
        0.98,
    )
    return rows


def error_table(found: list[State], verdicts: Verdicts) -> list[Row]:
    """Error shares at equal bytes."""
    rows: list[Row] = []
    print("\nError share D at equal bytes; last, our bytes over STC's at our D")
    print(
        f"  {'update':16}{'ratio':>6}{'int32+fp32':>12}{'LEB128+8':>10}{'STC':>8}{'fast':>8}"
        f"{'thorough':>10}{'/ STC':>8}{'bytes':>8}"
    )
    for state in found:
        for ratio, came in errors(state, RATIOS).items():
            over_stc = came.thorough / came.stc
            rows.append(
                {
                    "model": state.model,
                    "kind": state.kind,
                    "ratio": ratio,
                    **asdict(came),
                    "over_stc": over_stc,
                    "fast_over_stc": came.fast / came.stc,
                }
            )
            print(
                f"  {state.model + ' ' + state.kind:16}{ratio:5}x{came.int32_fp32:12.3f}"
                f"{came.leb128_8bit:10.3f}{came.stc:8.3f}{came.fast:8.3f}{came.thorough:10.3f}"
                f"{over_stc:8.3f}"
                + ("   never" if came.bytes_of_stc is None else f"{came.bytes_of_stc:8.3f}"),
                flush=True,
            )

    def convolutional(row: Row) -> bool:
        return row["model"] != "vit" and row["kind"] == "feedback" and row["ratio"] in (128, 320)

    def attentive(row: Row) -> bool:
        return row["model"] == "vit" and row["kind"] == "feedback" and row["ratio"] in (128, 320)

    what = "D over STC's, CNN and ResNet feedback, 128x and 320x"
    verdicts.judge(f"{what}, thorough", _column(rows, "over_stc", convolutional), 0.90)
    verdicts.judge(f"{what}, fast", _column(rows, "fast_over_stc", convolutional), 0.90)
    verdicts.judge(
        "bytes over STC's at equal D, ViT feedback, 128x and 320x",
        _column(rows, "bytes_of_stc", attentive),
        0.91,
    )
    return rows


def speed_table(found: list[State], verdicts: Verdicts, repeats: int) -> list[Row]:
    """Thread CPU time."""
    rows: list[Row] = []
    print(
        f"\nSpeed at {SPEED_RATIO}x, thread CPU time, median of {repeats}; passes of np.partition"
    )
    print(
        f"  {'update':16}{'effort':10}{'encode':>11}{'MB/s':>7}{'passes':>8}"
        f"{'decode':>11}{'MB/s':>7}"
    )
    for state in found:
        for effort, settings in EFFORTS.items():
            came = speed(state, SPEED_RATIO, settings, repeats)
            rows.append(
                {
                    "model": state.model,
                    "kind": state.kind,
                    "parameters": len(state.flat),
                    "effort": effort,
                    **asdict(came),
                }
            )
            print(
                f"  {state.model + ' ' + state.kind:16}{effort:10}{came.encode_ms:8.1f} ms"
                f"{came.encode_mb_s:7.0f}{came.encode_passes:8.1f}"
                f"{came.decode_ms:8.1f} ms{came.decode_mb_s:7.0f}",
                flush=True,
            )
    for effort in EFFORTS:

        def of(row: Row, effort: str = effort) -> bool:
            return row["effort"] == effort and row["parameters"] >= LARGE  # type: ignore[operator]

        def small(row: Row, effort: str = effort) -> bool:
            return row["effort"] == effort and row["parameters"] < SMALL  # type: ignore[operator]

        encoded = _column(rows, "encode_mb_s", of)
        verdicts.judge(f"encode MB/s, 5 M or more, {effort}", encoded, 400, most=False)
        verdicts.judge(f"encode ms, small, {effort}", _column(rows, "encode_ms", small), 5)
    decoded = _column(rows, "decode_mb_s", lambda r: r["parameters"] >= LARGE)  # type: ignore[operator]
    verdicts.judge("decode MB/s, 5 M or more", decoded, 1500, most=False)
    return rows


def memory_table(found: list[State], verdicts: Verdicts) -> list[Row]:
    """Peaks of traced memory."""
    rows: list[Row] = []
    print(f"\nPeak memory over the update at {SPEED_RATIO}x")
    print(f"  {'update':16}{'effort':10}{'encode':>8}{'decode':>8}")
    for state in found:
        for effort, settings in EFFORTS.items():
            came = memory(state, SPEED_RATIO, settings)
            rows.append(
                {"model": state.model, "kind": state.kind, "effort": effort, **asdict(came)}
            )
            print(
                f"  {state.model + ' ' + state.kind:16}{effort:10}{came.encode:8.2f}"
                f"{came.decode:8.2f}",
                flush=True,
            )
    verdicts.judge("memory while encoding", _column(rows, "encode", lambda _: True), 3)
    return rows


def _column(rows: list[Row], name: str, chosen: Callable[[Row], bool]) -> list[float]:
    return [float(row[name]) for row in rows if chosen(row) and row[name] is not None]  # type: ignore[arg-type]


def main() -> None:
    """Measure and print."""
    summary, _, rest = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(
        description=summary, epilog=rest, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--states",
        type=Path,
        default=Path("~/.fedfreeze/codec-states").expanduser(),
        metavar="DIR",
        help="where trained updates are kept (default: ~/.fedfreeze/codec-states)",
    )
    parser.add_argument(
        "--models", nargs="+", choices=list(MODELS), default=list(MODELS), help="all by default"
    )
    parser.add_argument(
        "--only", nargs="+", choices=SECTIONS, default=list(SECTIONS), help="all by default"
    )
    parser.add_argument(
        "--repeats", type=int, default=9, metavar="N", help="of a timing (default: 9)"
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write every figure there as well"
    )
    given = parser.parse_args()

    found = []
    for model in given.models:
        layout, updates = states(model, given.states)
        for kind, update in updates.items():
            flat = np.concatenate([array.ravel() for array in update.values()])
            found.append(State(model, kind, layout, update, flat))
            print(f"{model} {kind}: {len(flat):,} parameters", file=sys.stderr)
    verdicts = Verdicts()
    tables: dict[str, list[Row]] = {}
    if "bytes" in given.only:
        tables["bytes"] = bytes_table(found, verdicts)
    if "error" in given.only:
        tables["error"] = error_table(found, verdicts)
    if "speed" in given.only:
        tables["speed"] = speed_table(found, verdicts, given.repeats)
    if "memory" in given.only:
        tables["memory"] = memory_table(found, verdicts)

    print(f"\nTargets on {platform.machine()}, worst (median) of what they are about")
    for line in verdicts.lines:
        mark = "met" if line["met"] else "MISSED"
        print(f"  {mark:8}{line['target']:72}{line['worst']:9.3f} ({line['median']:.3f})")
    if given.json:
        given.json.write_text(json.dumps({"targets": verdicts.lines, **tables}, indent=1) + "\n")


if __name__ == "__main__":
    main()
