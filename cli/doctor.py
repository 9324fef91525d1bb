"""``fedfreeze doctor``: what this board can do, how it is known, and what to mend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from cli.board_facts import BoardFacts, facts_of, this_host
from cli.board_findings import Finding, findings, fitting_profiles, training_bytes
from device_profiles.board import load_board
from fedfreeze import plain_json
from fedfreeze.errors import RunError
from fedfreeze.run_folder import home
from fedfreeze.units import Dimension, written


@dataclass(frozen=True)
class Line:
    """One fact as it is printed.

    Attributes:
        label: what a person reads.
        key: its name in JSON, with its unit.
        value: in JSON.
        shown: what a person reads beside the label.
        source: where it is known from.
    """

    label: str
    key: str
    value: Any
    shown: str
    source: str


def doctor(
    *,
    profile: Annotated[
        str | None, typer.Option(help="The profile of the node config that is to be checked.")
    ] = None,
    state_dir: Annotated[
        str | None, typer.Option(help="The state-dir of the node config (default: as a node's).")
    ] = None,
    device: Annotated[
        Literal["auto", "cpu", "cuda"], typer.Option(help="The strategy's local.device.")
    ] = "auto",
    with_torch: Annotated[
        bool, typer.Option("--torch/--no-torch", help="Train a small step, too: some seconds.")
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say what this board can do and how that is known, and what to mend before it trains.

    It ends with 0 unless something keeps the board from training.

    Example: fedfreeze doctor --profile rpi-4b-4gb --state-dir /var/lib/fedfreeze
    """
    facts = facts_of(
        this_host(),
        state_dir=Path(state_dir) if state_dir else home() / "state",
        profile=load_board(profile) if profile else None,
        device=device,
        with_torch=with_torch,
    )
    found = findings(facts)
    problems = [finding for finding in found if finding.level == "problem"]
    if as_json:
        print(plain_json.text(document(facts, found)))
    else:
        print("\n".join(page(facts, found)))
    if problems:
        raise typer.Exit(RunError.exit_code)


def document(facts: BoardFacts, found: Sequence[Finding]) -> dict[str, Any]:
    """The answer as plain values: facts by name with their source, then what was found."""
    return {
        "can_train": all(finding.level != "problem" for finding in found),
        "facts": {line.key: {"value": line.value, "source": line.source} for line in lines(facts)},
        "findings": [asdict(finding) for finding in found],
    }


def page(facts: BoardFacts, found: Sequence[Finding]) -> list[str]:
    """The answer for a person."""
    known = lines(facts)
    widths = [max(len(getattr(line, part)) for line in known) for part in ("label", "shown")]
    text = [
        f"{line.label.ljust(widths[0])}  {line.shown.ljust(widths[1])}  {line.source}"
        for line in known
    ]
    for finding in found:
        text += ["", f"{finding.level}: {finding.about}: {finding.text}", f"    {finding.fix}"]
    counts = [
        f"{count} {level}{'' if count == 1 else 's'}"
        for level in ("problem", "warning")
        if (count := sum(finding.level == level for finding in found))
    ]
    return [*text, "", f"{' and '.join(counts)}." if counts else "Nothing to mend."]


def lines(facts: BoardFacts) -> list[Line]:
    """Every fact that is known, in the order in which it is printed."""
    found = [*_board(facts), *_speed(facts), *_memory(facts), *_sensors(facts)]
    return [line for line in found if line.value is not None]


def _board(facts: BoardFacts) -> list[Line]:
    processor = facts.processor
    parts = [
        processor.model,
        f"{processor.cores} cores" if processor.cores else None,
        f"governor {'/'.join(processor.governors)}" if processor.governors else None,
    ]
    fitting = fitting_profiles(facts.model, facts.memory.total_bytes) or None
    name = facts.profile.name if facts.profile else None
    clock = _shown(processor.most_hz, Dimension.HERTZ)
    return [
        Line("board", "model", facts.model, f"{facts.model}", "firmware"),
        Line("system", "architecture", facts.architecture, facts.architecture, "kernel"),
        Line("profile", "profile", name, f"{name}", "command line"),
        Line("may be", "fitting_profiles", fitting, ", ".join(fitting or ()), "firmware, memory"),
        Line(
            "processor",
            "processor",
            processor.model,
            ", ".join(part for part in parts if part),
            "kernel",
        ),
        Line("clock up to", "most_hz", processor.most_hz, clock, "cpufreq"),
        Line("quota", "quota", processor.quota, f"{processor.quota:g} processors", "control group")
        if processor.quota is not None
        else Line("quota", "quota", None, "", ""),
    ]


def _speed(facts: BoardFacts) -> list[Line]:
    torch = facts.torch
    down = facts.link.downlink_bytes_per_s
    found = [
        Line(
            "downlink",
            "downlink_bytes_per_s",
            down,
            _shown(down, Dimension.BYTES_PER_S),
            "measured: last messages",
        )
    ]
    if torch is not None and torch.flops_per_s is not None:
        threads = f"{torch.threads} thread{'' if torch.threads == 1 else 's'}"
        step = f"measured: small training step, {torch.device}, {threads}"
        speed = _shown(torch.flops_per_s, Dimension.FLOPS_PER_S)
        found = [
            Line("torch", "torch", torch.version, f"{torch.version}", "installed"),
            Line("speed", "flops_per_s", torch.flops_per_s, speed, step),
            *found,
        ]
    if facts.profile is not None:
        rated = facts.profile.flops
        shown = _shown(rated.value, Dimension.FLOPS_PER_S)
        found.append(
            Line("rated speed", "rated_flops_per_s", rated.value, shown, f"profile: {rated.source}")
        )
    return found


def _memory(facts: BoardFacts) -> list[Line]:
    memory = facts.memory
    tight = memory.group_free_bytes is not None and memory.free_bytes == memory.group_free_bytes
    left = training_bytes(facts)
    beside = "SuperNode runs" if facts.supernode_runs else "less SuperNode and SuperExec"
    rows: list[tuple[str, str, float | None, str]] = [
        ("memory", "memory_bytes", memory.total_bytes, "kernel"),
        (
            "free memory",
            "free_memory_bytes",
            memory.free_bytes,
            f"measured: {'control group' if tight else 'kernel'}",
        ),
        ("for training", "training_memory_bytes", left, f"measured: {beside}"),
        ("swap", "swap_bytes", memory.swap_bytes, "kernel"),
        ("free disk", "free_disk_bytes", facts.free_disk_bytes, f"{facts.state_dir}"),
    ]
    return [Line(label, key, v, _shown(v, Dimension.BYTES), src) for label, key, v, src in rows]


def _sensors(facts: BoardFacts) -> list[Line]:
    heat, battery = facts.heat, facts.battery
    slowed = heat.is_slowed
    found = [
        Line(
            "hottest",
            "hottest_c",
            heat.hottest_c,
            "" if heat.hottest_c is None else f"{heat.hottest_c:.1f} °C",
            f"thermal zone {heat.zone}",
        ),
        Line("slowed down", "is_slowed", slowed, "yes" if slowed else "no", "firmware, kernel"),
        Line("energy", "energy_sensor", facts.energy_sensor, f"{facts.energy_sensor}", "sensor"),
    ]
    if battery is not None and battery.share is not None:
        state = " discharging" if battery.is_discharging else ""
        shown = f"{battery.share:.0%}{state}"
        found.append(Line("battery", "battery_share", battery.share, shown, "power supply"))
    return found


def _shown(value: float | None, dimension: Dimension) -> str:
    return "" if value is None else written(value, dimension)
