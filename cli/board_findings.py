"""What is wrong with a board, and what to do about it: the judgement of ``fedfreeze doctor``.

A *problem* keeps the board from training; a *warning* makes it slower, its figures suspect, or
its next start a surprise. Every judgement is pure, and says nothing where a sensor says nothing.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from cli.board_facts import BoardFacts
from device_profiles.board import SUPERNODE_BYTES, Board, boards, load_board
from fedfreeze.units import Dimension, written

_HOT_C = 80.0  # where a Raspberry Pi begins to slow down
_LITTLE_RAM_BYTES = 2.5e9
_LITTLE_DISK_BYTES, _NO_DISK_BYTES = 500e6, 50e6
_LOW_BATTERY = 0.2
# flwr 1.42: two objects at a time share the link, and each must arrive within 30 s.
_CHUNK_BYTES, _TRANSFER_S = 5 * 2**20, 30.0 / 2
_CHUNK_KEY = "FLWR_PRIVATE_MAX_ARRAY_CHUNK_SIZE"
# A profile's RAM is what is soldered on; the kernel and the firmware keep some for themselves.
_LEAST_OF_RAM, _MOST_OF_RAM = 0.75, 1.01
_FLOWER_USER = 49999  # in Flower's own images


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong.

    Attributes:
        level: "problem" or "warning".
        about: a word for what it concerns.
        text: what was found.
        fix: what to do.
    """

    level: Literal["problem", "warning"]
    about: str
    text: str
    fix: str


def findings(facts: BoardFacts) -> list[Finding]:
    """Everything that is wrong, problems first."""
    judges = (_torch, _state, _power, _processor, _threads, _memory, _clock, _profile, _link, _rest)
    found = [finding for judge in judges for finding in judge(facts)]
    return sorted(found, key=lambda finding: finding.level != "problem")


def fitting_profiles(model: str | None, total_bytes: int | None) -> list[str]:
    """Boards that a machine may be, by what it calls itself and how much memory it has."""
    found = []
    for name in boards():
        hardware = load_board(name).hardware
        if hardware is None or hardware.device_tree is None or model is None:
            continue
        if model.startswith(hardware.device_tree) and _has_ram(load_board(name), total_bytes):
            found.append(name)
    return found


def _torch(facts: BoardFacts) -> Iterator[Finding]:
    torch = facts.torch
    if torch is None:
        return
    if torch.state == "missing":
        fix = "pip install torch --index-url https://download.pytorch.org/whl/cpu"
        if facts.architecture.startswith(("armv6", "armv7", "i386", "i686")):
            fix = "install a 64-bit system: there is no torch for a 32-bit one"
        yield Finding("problem", "torch", f"no torch for Python on {facts.architecture}", fix)
    elif torch.state == "crashed":
        what = f"torch {torch.version} ends with {torch.detail} on {facts.processor.model or 'it'}"
        if torch.detail == "SIGILL":
            fix = "it was built for newer processors; install torch 2.11 or later, or 2.3.1"
        else:
            fix = "is there memory for it? otherwise install another build of torch"
        yield Finding("problem", "torch", what, fix)
    elif torch.state == "failed":
        fix = "mend what the message names, or install torch anew"
        yield Finding("problem", "torch", f"torch {torch.version}: {torch.detail}", fix)
    elif torch.cuda_build and torch.device == "cpu" and _is_small(facts):
        yield Finding(
            "warning",
            "torch",
            f"torch {torch.version} is built for CUDA {torch.cuda_build} and trains on the "
            "processor: about 150 MB more than needed are taken once it is loaded",
            "pip install torch --index-url https://download.pytorch.org/whl/cpu",
        )


def _state(facts: BoardFacts) -> Iterator[Finding]:
    if not facts.can_write:
        user = _FLOWER_USER if facts.user is None else facts.user
        folder = shlex.quote(str(facts.state_dir))
        yield Finding(
            "problem",
            "disk",
            f"{facts.state_dir} cannot be written, and what a board has not sent yet lives there",
            f"sudo mkdir -p {folder} && sudo chown {user} {folder}  (Flower's "
            f"images run as user {_FLOWER_USER})",
        )
    if facts.free_disk_bytes is not None and facts.free_disk_bytes < _LITTLE_DISK_BYTES:
        level: Literal["problem", "warning"] = "warning"
        if facts.free_disk_bytes < _NO_DISK_BYTES:
            level = "problem"
        free = written(facts.free_disk_bytes, Dimension.BYTES)
        yield Finding(level, "disk", f"{free} are free at {facts.state_dir}", "make room there")


def _power(facts: BoardFacts) -> Iterator[Finding]:
    heat, now = facts.heat, facts.heat.flags or frozenset()
    before = heat.flags_before or frozenset()
    supply = "use the board's own supply and a short, thick cable; unplug what draws from its USB"
    cool = "give it a heat sink, a fan or more air"
    if "under-voltage" in now:
        text = "the supply is too weak now: the board slows down, and its timings are suspect"
        yield Finding("warning", "power", text, supply)
    elif "under-voltage" in before:
        text = "the supply was too weak since the board was started"
        yield Finding("warning", "power", text, supply)
    slowed = sorted(_by_heat(now)) or (["clock held down"] if heat.cooling else [])
    if slowed:
        text = f"slowed by heat now ({', '.join(slowed)}): its timings are suspect"
        yield Finding("warning", "heat", text, cool)
    elif hot := sorted(_by_heat(before)):
        text = f"slowed since the board was started ({', '.join(hot)})"
        yield Finding("warning", "heat", text, cool)
    elif heat.hottest_c is not None and heat.hottest_c >= _HOT_C:
        text = f"{heat.hottest_c:.0f} °C at {heat.zone}: it is about to slow down"
        yield Finding("warning", "heat", text, cool)


def _by_heat(flags: frozenset[str]) -> frozenset[str]:
    """A weak supply slows the processor as well: with it only one flag speaks of heat for sure."""
    return flags & {"soft temperature limit"} if "under-voltage" in flags else flags


def _processor(facts: BoardFacts) -> Iterator[Finding]:
    # Under these drivers "powersave" is the name of what others call "ondemand".
    own_governor = facts.scaling_driver in {"intel_pstate", "amd-pstate-epp"}
    if "powersave" in facts.processor.governors and not own_governor:
        yield Finding(
            "warning",
            "processor",
            "the governor powersave keeps the clock at its lowest",
            "echo ondemand | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
        )


def _threads(facts: BoardFacts) -> Iterator[Finding]:
    quota = facts.processor.quota
    if quota is None:
        return
    asked = facts.env.get("OMP_NUM_THREADS", "")
    allowed = facts.processor.allowed or facts.processor.cores
    threads = int(asked) if asked.isdecimal() else allowed
    if threads is not None and threads > max(1, math.ceil(quota)):
        yield Finding(
            "warning",
            "threads",
            f"{threads} threads share the time of {quota:g} processors and wait for each other",
            f"start the SuperNode with OMP_NUM_THREADS={max(1, int(quota))}",
        )


def _memory(facts: BoardFacts) -> Iterator[Finding]:
    memory = facts.memory
    if facts.can_limit_memory is False:
        yield Finding(
            "warning",
            "memory",
            "the kernel does not count memory by control group: a container's mem_limit does "
            "nothing",
            "add cgroup_enable=memory cgroup_memory=1 to the one line of "
            "/boot/firmware/cmdline.txt and restart",
        )
    if memory.swap_bytes == 0 and _is_small(facts):
        yield Finding(
            "warning",
            "memory",
            "no swap: the first peak above the free memory ends the client",
            "sudo apt install zram-tools, or set up a swap file of 1 GB",
        )
    if memory.free_bytes is not None and facts.profile is not None and not _own_vram(facts):
        left = training_bytes(facts)
        rated = facts.profile.memory
        if left is not None and left < rated.value * (1 - rated.spread):
            yield Finding(
                "warning",
                "memory",
                f"{written(max(0.0, left), Dimension.BYTES)} are left for training, the profile "
                f"{facts.profile.name} says {written(rated.value, Dimension.BYTES)}",
                "stop what else runs, or raise the container's mem_limit",
            )


def training_bytes(facts: BoardFacts) -> float | None:
    """Free memory, less what SuperNode and SuperExec will take if they do not run yet."""
    free = facts.memory.free_bytes
    if free is None:
        return None
    return free - (0.0 if facts.supernode_runs else SUPERNODE_BYTES)


def _clock(facts: BoardFacts) -> Iterator[Finding]:
    fix = "sudo timedatectl set-ntp true, and see that the board reaches a time server"
    if facts.clock_is_behind:
        text = "the clock is behind this release: certificates and message times fail"
        yield Finding("problem", "clock", text, fix)
    elif facts.clock_is_set is False:
        text = "the clock was not set by a time server since the board was started"
        yield Finding("warning", "clock", text, fix)


def _profile(facts: BoardFacts) -> Iterator[Finding]:
    fitting = fitting_profiles(facts.model, facts.memory.total_bytes)
    use = f'--node-config \'device-id="..." profile="{fitting[0]}"\'' if fitting else ""
    profile = facts.profile
    if profile is None:
        if fitting:
            text = "no profile was named: what is not measured is taken from the weakest board"
            yield Finding("warning", "profile", text, f"start the SuperNode with {use}")
        return
    hardware = profile.hardware
    other = f"start it with {use}" if use else "name another, or write one for this board"
    if hardware is None:
        return
    called = facts.model
    if hardware.device_tree and called is not None and not called.startswith(hardware.device_tree):
        text = f"this is a {called}, the profile {profile.name} is for a {hardware.device_tree}"
        yield Finding("warning", "profile", text, other)
    elif not _has_ram(profile, facts.memory.total_bytes):
        has = written(facts.memory.total_bytes or 0, Dimension.BYTES)
        wants = written(hardware.ram.value, Dimension.BYTES)
        text = f"this board has {has} of memory, the profile {profile.name} says {wants}"
        yield Finding("warning", "profile", text, other)


def _link(facts: BoardFacts) -> Iterator[Finding]:
    if facts.profile is None:
        return
    set_to = facts.env.get(_CHUNK_KEY, "")
    chunk_bytes = int(set_to) if set_to.isdecimal() else _CHUNK_BYTES
    uplink = facts.profile.uplink.value * (1 - facts.profile.uplink.spread)
    most = uplink * _TRANSFER_S
    if chunk_bytes > most:
        good = 2 ** max(13, math.floor(math.log2(most)))
        yield Finding(
            "warning",
            "link",
            f"chunks of {written(chunk_bytes, Dimension.BYTES)} do not pass an uplink of "
            f"{written(uplink, Dimension.BYTES_PER_S)} before Flower gives up",
            f"start SuperNode and SuperLink with {_CHUNK_KEY}={min(good, 262_144)}",
        )


def _rest(facts: BoardFacts) -> Iterator[Finding]:
    battery = facts.battery
    share = None if battery is None or not battery.is_discharging else battery.share
    if share is not None and share < _LOW_BATTERY:
        text = f"it runs on its battery, which is {share:.0%} full"
        yield Finding("warning", "battery", text, "charge it")
    if facts.rapl_is_denied:
        yield Finding(
            "warning",
            "energy",
            "the processor counts its energy, and this user may not read it",
            "sudo chmod a+r /sys/class/powercap/intel-rapl:*/energy_uj",
        )


def _is_small(facts: BoardFacts) -> bool:
    total = facts.memory.total_bytes
    return total is not None and total < _LITTLE_RAM_BYTES


def _own_vram(facts: BoardFacts) -> bool:
    hardware = facts.profile.hardware if facts.profile is not None else None
    return hardware is not None and hardware.gpu is not None and hardware.gpu.memory == "own"


def _has_ram(board: Board, total_bytes: int | None) -> bool:
    """Whether a machine may hold the board's memory; yes, where it does not say."""
    if board.hardware is None or total_bytes is None:
        return True
    share = total_bytes / board.hardware.ram.value
    return _LEAST_OF_RAM <= share <= _MOST_OF_RAM
