"""Memory that a program can get."""

import psutil
import pytest

from client_app.probes.memory import Memory, free_memory_bytes, memory_now
from tests.board_trees import CONTAINER_V1, CONTAINER_V2, JETSON_ORIN, MIB, PI_4, planted


@pytest.mark.parametrize(
    ("files", "free_mib"),
    [(PI_4, 3000), (JETSON_ORIN, 5000), (CONTAINER_V2, 300), (CONTAINER_V1, 362)],
    ids=["Pi", "Jetson", "container of v2", "container of v1"],
)
def test_free_is_the_smaller_of_the_systems_and_the_groups(tmp_path, files, free_mib):
    assert free_memory_bytes(planted(tmp_path, files)) == free_mib * MIB


def test_a_group_may_allow_more_than_there_is(tmp_path):
    wide = {**CONTAINER_V2, "/sys/fs/cgroup/memory.max": f"{90_000 * MIB}"}
    assert free_memory_bytes(planted(tmp_path, wide)) == 6000 * MIB


def test_what_is_not_said_is_none_and_no_swap_is_0(tmp_path):
    assert memory_now(planted(tmp_path / "a", {})) == Memory(None, None, None, None)
    assert memory_now(planted(tmp_path / "b", PI_4)) == Memory(3792 * MIB, 3000 * MIB, 0, None)


def test_no_memory_at_all_is_still_a_capacity(tmp_path):
    full = {**CONTAINER_V2, "/sys/fs/cgroup/memory.current": f"{700 * MIB}"}
    assert free_memory_bytes(planted(tmp_path, full)) == 1.0


def test_this_machine_answers_as_psutil_does_or_less():
    # Both read the same file at two moments; a limit of a control group only lowers it.
    assert 1e6 < free_memory_bytes() < 1.2 * psutil.virtual_memory().total


def test_a_machine_without_proc_asks_psutil(tmp_path):
    assert 1e6 < free_memory_bytes(planted(tmp_path, {})) < psutil.virtual_memory().total
