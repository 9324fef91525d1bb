"""What control groups leave to a process: both versions, in a container and outside."""

import pytest

from client_app.probes.cgroup import can_limit_memory, free_memory_bytes, groups, processor_quota
from tests.board_trees import (
    CONTAINER_V1,
    CONTAINER_V2,
    JETSON_ORIN,
    LAPTOP,
    MIB,
    PI_4,
    V1_MOUNTS,
    V2_MOUNT,
    planted,
)


@pytest.mark.parametrize(
    ("files", "free_mib"),
    [
        (CONTAINER_V2, 600 - (400 - 100)),
        (CONTAINER_V1, 512 - (200 - 50)),
        (PI_4, None),
        (LAPTOP, None),
        ({}, None),
    ],
    ids=["container of v2", "container of v1", "Pi", "laptop", "no /proc"],
)
def test_free_is_the_limit_less_what_is_used_and_cannot_go(tmp_path, files, free_mib):
    free = free_memory_bytes(planted(tmp_path, files))
    assert free == (None if free_mib is None else free_mib * MIB)


def test_the_tightest_group_on_the_way_up_decides(tmp_path):
    nested = {
        "/proc/self/cgroup": "0::/farm/board/client\n",
        "/proc/self/mountinfo": V2_MOUNT,
        "/sys/fs/cgroup/farm/memory.max": f"{900 * MIB}",
        "/sys/fs/cgroup/farm/memory.current": f"{850 * MIB}",
        "/sys/fs/cgroup/farm/board/memory.max": f"{300 * MIB}",
        "/sys/fs/cgroup/farm/board/memory.current": f"{100 * MIB}",
        "/sys/fs/cgroup/farm/board/client/memory.max": "max",
        "/sys/fs/cgroup/farm/board/client/memory.current": f"{90 * MIB}",
        "/sys/fs/cgroup/farm/cpu.max": "150000 100000",
        "/sys/fs/cgroup/farm/board/cpu.max": "max 100000",
    }
    system = planted(tmp_path, nested)
    assert free_memory_bytes(system) == 50 * MIB
    assert processor_quota(system) == 1.5
    assert [group.folder for group in groups(system, "memory")] == [
        "/sys/fs/cgroup/farm/board/client",
        "/sys/fs/cgroup/farm/board",
        "/sys/fs/cgroup/farm",
        "/sys/fs/cgroup",
    ]


def test_a_group_over_its_limit_leaves_nothing(tmp_path):
    over = {**CONTAINER_V2, "/sys/fs/cgroup/memory.current": f"{900 * MIB}"}
    assert free_memory_bytes(planted(tmp_path, over)) == 0


@pytest.mark.parametrize(("high", "free_mib"), [(450 * MIB, 150), (900 * MIB, 300), ("max", 300)])
def test_where_the_kernel_would_hold_a_process_up_its_memory_ends(tmp_path, high, free_mib):
    files = {**CONTAINER_V2, "/sys/fs/cgroup/memory.high": f"{high}"}
    assert free_memory_bytes(planted(tmp_path, files)) == free_mib * MIB


def test_the_largest_number_of_version_1_limits_nothing(tmp_path):
    files = {
        "/proc/self/cgroup": "4:memory:/a\n9:cpu,cpuacct:/a\n",
        "/proc/self/mountinfo": V1_MOUNTS,
        "/sys/fs/cgroup/memory/a/memory.limit_in_bytes": "9223372036854771712",
        "/sys/fs/cgroup/memory/a/memory.usage_in_bytes": "1000",
        "/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us": "-1",
        "/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us": "100000",
    }
    system = planted(tmp_path, files)
    assert (free_memory_bytes(system), processor_quota(system)) == (None, None)


def test_a_path_outside_the_mount_means_the_mount_itself(tmp_path):
    outside = {**CONTAINER_V2, "/proc/self/cgroup": "0::/../../other\n"}
    system = planted(tmp_path, outside)
    assert groups(system, "memory") == [(2, "/sys/fs/cgroup")]
    assert free_memory_bytes(system) == 300 * MIB


@pytest.mark.parametrize(
    ("files", "quota"),
    [(CONTAINER_V2, 0.5), (CONTAINER_V1, 0.25), (LAPTOP, None)],
    ids=["v2", "v1", "laptop"],
)
def test_a_quota_is_the_time_allowed_over_the_period(tmp_path, files, quota):
    assert processor_quota(planted(tmp_path, files)) == quota


@pytest.mark.parametrize(
    ("files", "can"),
    [(PI_4, False), (JETSON_ORIN, True), ({}, None)],
    ids=["Pi", "Jetson", "no /proc"],
)
def test_a_kernel_that_does_not_count_memory_says_so(tmp_path, files, can):
    assert can_limit_memory(planted(tmp_path, files)) is can


@pytest.mark.parametrize(
    "files",
    [
        {"/proc/self/cgroup": "nonsense\n::\n", "/proc/self/mountinfo": "1 2\n - \n"},
        {**CONTAINER_V2, "/sys/fs/cgroup/memory.max": "many", "/sys/fs/cgroup/cpu.max": "x 0"},
        {**CONTAINER_V2, "/sys/fs/cgroup/memory.max": "", "/sys/fs/cgroup/cpu.max": "5 0"},
    ],
    ids=["lines", "words", "empty"],
)
def test_files_of_another_form_are_passed_over(tmp_path, files):
    system = planted(tmp_path, files)
    assert (free_memory_bytes(system), processor_quota(system)) == (None, None)
