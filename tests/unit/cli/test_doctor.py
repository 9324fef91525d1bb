"""``fedfreeze doctor`` on trees of files as boards have them."""

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from cli.board_facts import Host, facts_of, this_host
from cli.board_findings import Finding, findings, fitting_profiles
from cli.command_line import exit_code
from cli.doctor import document, lines, page
from cli.torch_probe import TorchReport, report_of
from client_app.link_log import Arrival, remember
from device_profiles.board import load_board
from tests.board_trees import (
    CONTAINER_V1,
    CONTAINER_V2,
    JETSON_ORIN,
    LAPTOP,
    MIB,
    PHONE,
    PI_4,
    Locked,
    meminfo,
    planted,
)

WORKS = TorchReport("works", "", "2.14.1", None, "cpu", 4, 5.2e9)
STATE = Path("/var/lib/fedfreeze")
PYTORCH_CPU = "pip install torch --index-url https://download.pytorch.org/whl/cpu"


def host(root, files, *, torch=WORKS, **changes):
    """A machine of files; whatever else the doctor looks at is in order unless changed."""
    fine = Host(
        system=planted(root, files),
        architecture="aarch64",
        env={},
        now_s=2.0e9,
        made_s=1.9e9,
        free_disk_bytes=lambda folder: 10**10,
        can_write=lambda folder: True,
        torch=lambda device: torch,
        user=1000,
    )
    return replace(fine, **changes)


def facts(root, files, profile=None, **changes):
    return facts_of(
        host(root, files, **changes),
        state_dir=STATE,
        profile=load_board(profile) if profile else None,
        device="auto",
        with_torch=True,
    )


def found(root, files, profile=None, **changes):
    return findings(facts(root, files, profile, **changes))


def without(files, *endings):
    return {name: text for name, text in files.items() if not name.endswith(endings)}


SOUND = {
    **without(PI_4, "get_throttled", "cgroup.controllers", "/proc/cgroups"),
    "/sys/fs/cgroup/cgroup.controllers": "cpu memory pids\n",
}

WEAK_SUPPLY = Finding(
    "warning",
    "power",
    "the supply is too weak now: the board slows down, and its timings are suspect",
    "use the board's own supply and a short, thick cable; unplug what draws from its USB",
)
NO_LIMITS = Finding(
    "warning",
    "memory",
    "the kernel does not count memory by control group: a container's mem_limit does nothing",
    (
        "add cgroup_enable=memory cgroup_memory=1 to the one line of /boot/firmware/cmdline.txt "
        "and restart"
    ),
)


def test_a_pi_is_described_row_by_row_with_sources_and_what_to_mend(tmp_path):
    told = facts(tmp_path, PI_4, "rpi-4b-4gb")
    rows = page(told, findings(told))
    end = rows.index("")
    assert [re.split("  +", row) for row in rows[:end]] == [
        ["board", "Raspberry Pi 4 Model B Rev 1.4", "firmware"],
        ["system", "aarch64", "kernel"],
        ["profile", "rpi-4b-4gb", "command line"],
        ["may be", "rpi-4b-4gb", "firmware, memory"],
        ["processor", "Cortex-A72, 4 cores, governor ondemand", "kernel"],
        ["clock up to", "1.5 GHz", "cpufreq"],
        ["torch", "2.14.1", "installed"],
        ["speed", "5.2 GFLOP/s", "measured: small training step, cpu, 4 threads"],
        [
            "rated speed",
            "6 GFLOP/s",
            "profile: estimate: four Cortex-A72 at 1.5 GHz, small float32 convolutions",
        ],
        ["memory", "3.98 GB", "kernel"],  # 3792 MiB
        ["free memory", "3.15 GB", "measured: kernel"],  # 3000 MiB
        ["for training", "3.02 GB", "measured: less SuperNode and SuperExec"],
        ["swap", "0 B", "kernel"],
        ["free disk", "10 GB", "/var/lib/fedfreeze"],
        ["hottest", "61.8 °C", "thermal zone cpu-thermal"],
        ["slowed down", "yes", "firmware, kernel"],
    ]
    assert rows[end:] == [
        "",
        f"warning: power: {WEAK_SUPPLY.text}",
        f"    {WEAK_SUPPLY.fix}",
        "",
        f"warning: memory: {NO_LIMITS.text}",
        f"    {NO_LIMITS.fix}",
        "",
        "2 warnings.",
    ]


def test_the_columns_stand_below_each_other(tmp_path):
    told = facts(tmp_path, PI_4, "rpi-4b-4gb")
    shown = lines(told)
    rows = page(told, [])[: len(shown)]
    assert [row[:14].rstrip() for row in rows] == [line.label for line in shown]
    assert len({len(row) - len(line.source) for row, line in zip(rows, shown, strict=True)}) == 1


def test_a_board_in_order_has_nothing_to_mend(tmp_path):
    told = facts(tmp_path, SOUND, "rpi-4b-4gb")
    assert page(told, findings(told))[-2:] == ["", "Nothing to mend."]


@pytest.mark.parametrize(
    ("files", "profile", "about"),
    [
        (PI_4, "rpi-4b-4gb", ["power", "memory"]),
        (JETSON_ORIN, "jetson-orin-nano", []),
        (PHONE, "phone-new", ["heat", "battery"]),
        (LAPTOP, "laptop", ["memory"]),
        (CONTAINER_V2, "rpi-5-8gb", ["threads", "memory"]),
        (CONTAINER_V1, "rpi-4b-8gb", ["threads", "memory"]),
        ({}, None, []),
    ],
    ids=["Pi", "Jetson", "phone", "laptop", "container of v2", "container of v1", "nothing"],
)
def test_each_kind_of_board_is_warned_of_what_it_has(tmp_path, files, profile, about):
    assert [finding.about for finding in found(tmp_path, files, profile)] == about


def test_the_answer_in_json_says_what_is_known_and_leaves_out_what_is_not(tmp_path):
    told = facts(tmp_path, JETSON_ORIN)
    answer = json.loads(json.dumps(document(told, findings(told))))
    assert answer["can_train"] is True
    assert answer["facts"]["training_memory_bytes"] == {
        "value": 5000 * MIB - 125e6,
        "source": "measured: less SuperNode and SuperExec",
    }
    assert answer["facts"]["fitting_profiles"]["value"] == ["jetson-orin-nano"]
    assert answer["facts"]["energy_sensor"] == {"value": "ina3221", "source": "sensor"}
    assert answer["facts"]["is_slowed"]["value"] is False
    assert not {"battery_share", "quota", "downlink_bytes_per_s", "profile"} & set(answer["facts"])
    (finding,) = answer["findings"]
    assert finding == {
        "level": "warning",
        "about": "profile",
        "text": "no profile was named: what is not measured is taken from the weakest board",
        "fix": 'start the SuperNode with --node-config \'device-id="..." '
        'profile="jetson-orin-nano"\'',
    }


def test_a_supernode_that_runs_has_taken_its_memory_already(tmp_path):
    running = {**SOUND, "/proc/812/comm": "flower-supernod\n"}
    told = document(facts(tmp_path, running), [])
    assert told["facts"]["training_memory_bytes"] == {
        "value": 3000 * MIB,
        "source": "measured: SuperNode runs",
    }


def test_the_downlink_of_the_only_node_is_shown(tmp_path):
    folder = tmp_path / "state/measured/cam-07"
    remember(folder, Arrival(1_000, 0.0))
    remember(folder, Arrival(101_000, 20.0))

    def known():
        told = facts_of(
            host(tmp_path, SOUND),
            state_dir=tmp_path / "state",
            profile=None,
            device="auto",
            with_torch=False,
        )
        return document(told, [])["facts"]

    assert known()["downlink_bytes_per_s"] == {
        "value": 5000.0,
        "source": "measured: last messages",
    }
    (tmp_path / "state/measured/cam-08").mkdir()
    assert "downlink_bytes_per_s" not in known()


# ---- what is found, each alone


def only(findings_):
    (finding,) = findings_
    return finding


@pytest.mark.parametrize(
    ("architecture", "fix"),
    [
        ("aarch64", PYTORCH_CPU),
        ("armv7l", "install a 64-bit system: there is no torch for a 32-bit one"),
    ],
)
def test_a_board_without_torch_cannot_train(tmp_path, architecture, fix):
    torch = TorchReport("missing")
    told = found(tmp_path, SOUND, "rpi-4b-4gb", torch=torch, architecture=architecture)
    assert only(told) == Finding("problem", "torch", f"no torch for Python on {architecture}", fix)


def test_a_torch_that_the_processor_cannot_run_is_named_with_the_releases_that_it_can(tmp_path):
    torch = report_of(-4, "", "", "2.6.0")
    assert only(found(tmp_path, SOUND, "rpi-4b-4gb", torch=torch)) == Finding(
        "problem",
        "torch",
        "torch 2.6.0 ends with SIGILL on Cortex-A72",
        "it was built for newer processors; install torch 2.11 or later, or 2.3.1",
    )


def test_a_torch_that_is_killed_may_lack_memory(tmp_path):
    torch = report_of(-9, "", "", "2.14.1")
    assert only(found(tmp_path, SOUND, "rpi-4b-4gb", torch=torch)) == Finding(
        "problem",
        "torch",
        "torch 2.14.1 ends with SIGKILL on Cortex-A72",
        "is there memory for it? otherwise install another build of torch",
    )


@pytest.mark.parametrize(
    ("code", "out", "err", "detail"),
    [
        (1, "", "Traceback\nImportError: libgomp.so.1", "ImportError: libgomp.so.1"),
        (0, "", "", "it printed nothing"),
        (0, "[]\n", "", "it printed nothing"),
        (0, '{"error": "local.device: no CUDA"}\n', "", "local.device: no CUDA"),
    ],
)
def test_a_torch_that_fails_is_reported_in_its_last_words(tmp_path, code, out, err, detail):
    torch = report_of(code, out, err, "2.14.1")
    assert only(found(tmp_path, SOUND, "rpi-4b-4gb", torch=torch)) == Finding(
        "problem",
        "torch",
        f"torch 2.14.1: {detail}",
        "mend what the message names, or install torch anew",
    )


def test_a_torch_that_works_says_what_it_did():
    out = (
        'a line of somebody else\n{"torch": "2.14.1", "cuda_build": null, "device": "cpu", '
        '"threads": 4, "flops_per_s": 5.2e9}\n'
    )
    assert report_of(0, out, "a warning", "2.14.1") == WORKS


def test_a_cuda_build_on_a_small_board_without_gpu_wastes_memory(tmp_path):
    small = {**SOUND, "/proc/meminfo": meminfo(920, 700, swap_mib=1000)}
    torch = replace(WORKS, version="2.14.1+cu130", cuda_build="13.0")
    assert only(found(tmp_path / "a", small, "rpi-3b-plus", torch=torch)[:1]) == Finding(
        "warning",
        "torch",
        "torch 2.14.1+cu130 is built for CUDA 13.0 and trains on the processor: about 150 MB more "
        "than needed are taken once it is loaded",
        PYTORCH_CPU,
    )
    assert found(tmp_path / "b", SOUND, "rpi-4b-4gb", torch=torch) == []


def test_a_state_folder_that_cannot_be_written_is_given_to_the_user(tmp_path):
    told = found(tmp_path, SOUND, "rpi-4b-4gb", can_write=lambda folder: folder != STATE)
    assert only(told) == Finding(
        "problem",
        "disk",
        "/var/lib/fedfreeze cannot be written, and what a board has not sent yet lives there",
        "sudo mkdir -p /var/lib/fedfreeze && sudo chown 1000 /var/lib/fedfreeze  (Flower's images "
        "run as user 49999)",
    )


def test_a_folder_with_blanks_in_its_name_is_quoted_for_the_shell(tmp_path):
    told = facts_of(
        host(tmp_path, SOUND, can_write=lambda folder: False),
        state_dir=Path("/media/my disk"),
        profile=load_board("rpi-4b-4gb"),
        device="auto",
        with_torch=False,
    )
    assert only(findings(told)).fix == (
        "sudo mkdir -p '/media/my disk' && sudo chown 1000 '/media/my disk'  (Flower's images run "
        "as user 49999)"
    )


@pytest.mark.parametrize(
    ("free_bytes", "level", "shown"),
    [(499 * 10**6, "warning", "499 MB"), (49 * 10**6, "problem", "49 MB")],
)
def test_a_full_disk_is_a_warning_before_it_is_a_problem(tmp_path, free_bytes, level, shown):
    told = found(tmp_path, SOUND, "rpi-4b-4gb", free_disk_bytes=lambda folder: free_bytes)
    text = f"{shown} are free at /var/lib/fedfreeze"
    assert only(told) == Finding(level, "disk", text, "make room there")


THROTTLED = "/sys/devices/platform/soc/soc:firmware/get_throttled"
COOL = "give it a heat sink, a fan or more air"


@pytest.mark.parametrize(
    ("bits", "about", "text"),
    [
        ("50005", "power", WEAK_SUPPLY.text),
        ("50000", "power", "the supply was too weak since the board was started"),
        (
            "e000e",
            "heat",
            (
                "slowed by heat now (frequency capped, soft temperature limit, "
                "throttled): its timings are suspect"
            ),
        ),
        ("40000", "heat", "slowed since the board was started (throttled)"),
    ],
)
def test_the_firmwares_flags_are_told_as_power_or_heat(tmp_path, bits, about, text):
    finding = only(found(tmp_path, {**SOUND, THROTTLED: bits}, "rpi-4b-4gb"))
    assert (finding.level, finding.about, finding.text) == ("warning", about, text)
    assert finding.fix == (COOL if about == "heat" else WEAK_SUPPLY.fix)


def test_a_board_may_be_short_of_power_and_hot_at_once(tmp_path):
    told = found(tmp_path, {**SOUND, THROTTLED: "d"}, "rpi-4b-4gb")
    assert [finding.about for finding in told] == ["power", "heat"]


def test_a_hot_board_is_warned_before_it_slows_down(tmp_path):
    hot = {**SOUND, "/sys/class/thermal/thermal_zone0/temp": "81200"}
    assert only(found(tmp_path, hot, "rpi-4b-4gb")) == Finding(
        "warning", "heat", "81 °C at cpu-thermal: it is about to slow down", COOL
    )


def test_the_lowest_clock_is_seen_unless_the_driver_means_something_else(tmp_path):
    slow = {name: "powersave" if name.endswith("governor") else t for name, t in SOUND.items()}
    assert only(found(tmp_path / "a", slow, "rpi-4b-4gb")) == Finding(
        "warning",
        "processor",
        "the governor powersave keeps the clock at its lowest",
        "echo ondemand | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
    )
    roomy = {**LAPTOP, "/proc/meminfo": meminfo(15_800, 12_000, swap_mib=2048)}
    assert found(tmp_path / "b", roomy, "laptop") == []


QUOTA = {
    "/proc/self/cgroup": "0::/\n",
    "/proc/self/mountinfo": CONTAINER_V2["/proc/self/mountinfo"],
    "/sys/fs/cgroup/cpu.max": "25000 100000",
}


@pytest.mark.parametrize(
    ("quota", "threads", "text"),
    [
        ("25000 100000", None, "4 threads share the time of 0.25 processors"),
        ("25000 100000", "2", "2 threads share the time of 0.25 processors"),
        ("25000 100000", "1", None),
        ("25000 100000", "²", "4 threads share the time of 0.25 processors"),
        ("150000 100000", "2", None),
        ("150000 100000", "3", "3 threads share the time of 1.5 processors"),
        ("max 100000", None, None),
    ],
)
def test_more_threads_than_the_quota_has_processors_wait_for_each_other(
    tmp_path, quota, threads, text
):
    env = {} if threads is None else {"OMP_NUM_THREADS": threads}
    files = {**SOUND, **QUOTA, "/sys/fs/cgroup/cpu.max": quota}
    told = found(tmp_path, files, "rpi-4b-4gb", env=env)
    assert [finding.text for finding in told] == (
        [] if text is None else [f"{text} and wait for each other"]
    )
    assert all(f.fix == "start the SuperNode with OMP_NUM_THREADS=1" for f in told)


def test_a_process_that_may_run_on_one_core_has_one_thread(tmp_path):
    files = {**SOUND, **QUOTA, "/proc/self/status": "Cpus_allowed:\t8\n"}
    assert found(tmp_path, files, "rpi-4b-4gb") == []


def test_a_small_board_without_swap_is_warned(tmp_path):
    small = {**SOUND, "/proc/meminfo": meminfo(1860, 1700)}
    assert only(found(tmp_path, small, "rpi-4b-2gb")) == Finding(
        "warning",
        "memory",
        "no swap: the first peak above the free memory ends the client",
        "sudo apt install zram-tools, or set up a swap file of 1 GB",
    )


def test_less_memory_than_the_profile_promises_is_told(tmp_path):
    # 1000 MiB less 125 MB are 924 MB; the profile promises 2.8 GB, 5 % less at worst.
    full = {**SOUND, "/proc/meminfo": meminfo(3792, 1000)}
    assert only(found(tmp_path, full, "rpi-4b-4gb")) == Finding(
        "warning",
        "memory",
        "924 MB are left for training, the profile rpi-4b-4gb says 2.8 GB",
        "stop what else runs, or raise the container's mem_limit",
    )


def test_a_clock_before_this_release_is_a_problem_and_one_never_set_a_warning(tmp_path):
    fix = "sudo timedatectl set-ntp true, and see that the board reaches a time server"
    assert only(found(tmp_path / "a", SOUND, "rpi-4b-4gb", now_s=1.0e9)) == Finding(
        "problem",
        "clock",
        "the clock is behind this release: certificates and message times fail",
        fix,
    )
    unset = {**without(SOUND, "/synchronized"), "/run/systemd/timesync/clock": ""}
    assert only(found(tmp_path / "b", unset, "rpi-4b-4gb")) == Finding(
        "warning",
        "clock",
        "the clock was not set by a time server since the board was started",
        fix,
    )


@pytest.mark.parametrize(
    ("profile", "text"),
    [
        (
            "rpi-3b-plus",
            (
                "this is a Raspberry Pi 4 Model B Rev 1.4, the profile rpi-3b-plus is for a "
                "Raspberry Pi 3 Model B Plus"
            ),
        ),
        (
            "rpi-4b-2gb",
            "this board has 3.98 GB of memory, the profile rpi-4b-2gb says 2.15 GB",
        ),
    ],
)
def test_a_profile_of_another_board_is_told_with_the_right_one(tmp_path, profile, text):
    assert only(found(tmp_path, SOUND, profile)) == Finding(
        "warning",
        "profile",
        text,
        'start it with --node-config \'device-id="..." profile="rpi-4b-4gb"\'',
    )


def test_chunks_that_a_thin_uplink_cannot_carry_in_time_are_told(tmp_path):
    # 42 kbit/s less 40 % are 3.15 kB/s; two objects in 30 s: 47 kB at most, so 32 KiB.
    pi_3 = {
        **SOUND,
        "/proc/device-tree/model": "Raspberry Pi 3 Model B Plus Rev 1.3\0",
        "/proc/meminfo": meminfo(920, 700, swap_mib=1000),
    }
    assert only(found(tmp_path / "a", pi_3, "rpi-3b-plus-nbiot")) == Finding(
        "warning",
        "link",
        "chunks of 5.24 MB do not pass an uplink of 3.15 kB/s before Flower gives up",
        "start SuperNode and SuperLink with FLWR_PRIVATE_MAX_ARRAY_CHUNK_SIZE=32768",
    )
    env = {"FLWR_PRIVATE_MAX_ARRAY_CHUNK_SIZE": "32768"}
    assert found(tmp_path / "b", pi_3, "rpi-3b-plus-nbiot", env=env) == []
    env = {"FLWR_PRIVATE_MAX_ARRAY_CHUNK_SIZE": "3²"}
    assert only(found(tmp_path / "c", pi_3, "rpi-3b-plus-nbiot", env=env)).about == "link"


def test_counters_of_energy_that_may_not_be_read_are_told(tmp_path):
    roomy = {**LAPTOP, "/proc/meminfo": meminfo(15_800, 12_000, swap_mib=2048)}
    locked = Locked(planted(tmp_path, roomy), "energy_uj")
    told = facts(tmp_path, roomy, "laptop", system=locked)
    assert told.energy_sensor is None
    assert only(findings(told)) == Finding(
        "warning",
        "energy",
        "the processor counts its energy, and this user may not read it",
        "sudo chmod a+r /sys/class/powercap/intel-rapl:*/energy_uj",
    )
    assert facts(tmp_path, roomy, "laptop").energy_sensor == "rapl"


def test_a_battery_that_runs_low_is_told(tmp_path):
    told = found(tmp_path, PHONE, "phone-new")
    text = "it runs on its battery, which is 15% full"
    assert told[-1] == Finding("warning", "battery", text, "charge it")


def test_problems_stand_before_warnings(tmp_path):
    told = found(tmp_path, PI_4, "rpi-4b-4gb", now_s=0.0)
    assert [finding.level for finding in told] == ["problem", "warning", "warning"]


@pytest.mark.parametrize(
    ("files", "profiles"),
    [
        (PI_4, ["rpi-4b-4gb"]),
        (without(PI_4, "meminfo"), ["rpi-4b-2gb", "rpi-4b-4gb", "rpi-4b-8gb"]),
        (JETSON_ORIN, ["jetson-orin-nano"]),
        (LAPTOP, []),
        (PHONE, []),
    ],
    ids=["Pi", "Pi of unknown memory", "Jetson", "laptop", "phone"],
)
def test_a_board_is_known_by_what_it_calls_itself_and_its_memory(tmp_path, files, profiles):
    told = facts(tmp_path, files)
    assert fitting_profiles(told.model, told.memory.total_bytes) == profiles


# ---- the command


def test_the_command_answers_for_the_machine_it_runs_on(capsys, tmp_path):
    arguments = ["doctor", "--state-dir", str(tmp_path), "--no-torch", "--json"]
    code = exit_code(arguments)
    answer = json.loads(capsys.readouterr().out)
    assert code == (0 if answer["can_train"] else 7)
    assert answer["facts"]["free_memory_bytes"]["value"] > 1e6
    assert "torch" not in answer["facts"]


def test_the_command_trains_a_small_step_in_a_process_of_its_own(capsys, tmp_path):
    exit_code(["doctor", "--state-dir", str(tmp_path), "--device", "cpu", "--json"])
    speed = json.loads(capsys.readouterr().out)["facts"]["flops_per_s"]
    assert speed["value"] > 1e6
    assert speed["source"].startswith("measured: small training step, cpu, ")


def test_a_board_that_cannot_train_ends_with_7(capsys, tmp_path):
    (tmp_path / "file").write_text("")
    # Nothing can be made below a file, whoever asks.
    arguments = ["doctor", "--state-dir", str(tmp_path / "file/state"), "--no-torch"]
    assert exit_code(arguments) == 7
    assert "problem: disk: " in capsys.readouterr().out


def test_an_unknown_profile_is_refused_with_the_nearest(capsys):
    assert exit_code(["doctor", "--profile", "rpi-4b-4g"]) == 3
    assert capsys.readouterr().err.endswith('; did you mean "rpi-4b-4gb"?\n')


def test_a_state_folder_that_this_user_may_not_look_into_is_no_end(tmp_path):
    """As a folder of Flower's user is to the one who asks; too long a name is refused likewise."""
    here = this_host()
    hidden = tmp_path / ("x" * 300)
    told = facts_of(
        replace(
            host(tmp_path, SOUND), can_write=here.can_write, free_disk_bytes=here.free_disk_bytes
        ),
        state_dir=hidden,
        profile=None,
        device="auto",
        with_torch=False,
    )
    assert told.link.downlink_bytes_per_s is None
    assert (told.can_write, told.free_disk_bytes is None) == (True, False)


@pytest.mark.skipif(os.name != "posix" or os.getuid() == 0, reason="root may look everywhere")
def test_a_state_folder_of_another_user_cannot_be_written(tmp_path):
    state = tmp_path / "state"
    (state / "measured").mkdir(parents=True)
    state.chmod(0)
    told = facts_of(
        replace(host(tmp_path, SOUND), can_write=this_host().can_write),
        state_dir=state,
        profile=None,
        device="auto",
        with_torch=False,
    )
    state.chmod(0o700)
    assert (told.link.downlink_bytes_per_s, told.can_write) == (None, False)
