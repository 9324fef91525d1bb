"""The highest moment of a process's memory, on kernels that tell it and on others."""

import mmap
from pathlib import Path

import pytest

from client_app.probes.peak import ProcessPeak
from device_profiles.system_files import SystemFiles
from tests.board_trees import MIB, planted

STATUS = "/proc/self/status"


def status(resident_mib, highest_mib):
    return (
        f"Name:\tpython\nVmPeak:\t {9_000 * 1024} kB\nVmHWM:\t {highest_mib * 1024} kB\n"
        f"VmRSS:\t {resident_mib * 1024} kB\nThreads:\t1\n"
    )


class Kernel:
    """A process of which the test says what is resident; ``can_reset`` as the mount allows."""

    def __init__(self, folder, resident_mib, highest_mib, *, can_reset=True):
        self.system = planted(folder, {STATUS: status(resident_mib, highest_mib)})
        clear = self.system.path("/proc/self/clear_refs")
        if not can_reset:
            clear.mkdir()  # what cannot be written as a file

    def grows_to(self, resident_mib, highest_mib):
        self.system.path(STATUS).write_text(status(resident_mib, highest_mib))

    def measured(self, *, after, brought=0):
        """The peak over a piece of work that ends with these numbers."""
        peak = ProcessPeak(self.system, trim=lambda: None)
        peak.start(brought * MIB)
        self.grows_to(*after)
        stopped = peak.stop()
        return None if stopped is None else stopped / MIB


def test_the_peak_is_what_is_above_the_memory_before(tmp_path):
    assert Kernel(tmp_path, 200, 200).measured(after=(220, 290)) == 90


def test_what_was_brought_along_counts_as_the_works_own(tmp_path):
    assert Kernel(tmp_path, 200, 200).measured(after=(220, 290), brought=40) == 130


def test_the_kernel_is_asked_to_forget_the_peak_before(tmp_path):
    kernel = Kernel(tmp_path, 200, 500)
    kernel.measured(after=(200, 200))
    assert kernel.system.path("/proc/self/clear_refs").read_text() == "5"


def test_work_within_the_memory_before_took_nothing(tmp_path):
    assert Kernel(tmp_path, 200, 200).measured(after=(190, 200)) == 0


def test_a_peak_that_cannot_be_set_back_is_known_only_where_it_grew(tmp_path):
    grown = Kernel(tmp_path / "a", 200, 250, can_reset=False)
    assert grown.measured(after=(220, 290)) == 90
    may_be_older = Kernel(tmp_path / "b", 200, 250, can_reset=False)
    assert may_be_older.measured(after=(220, 250)) is None


@pytest.mark.parametrize(
    "text", [None, "", "VmRSS:\t 5 kB\n", "VmHWM:\t 5 kB\n", "VmHWM:\t much\nVmRSS:\t 5 kB\n"]
)
def test_a_system_that_does_not_say_both_tells_nothing(tmp_path, text):
    system = planted(tmp_path, {} if text is None else {STATUS: text})
    (tmp_path / "proc/self").mkdir(parents=True, exist_ok=True)
    peak = ProcessPeak(system, trim=lambda: None)
    peak.start()
    assert peak.stop() is None


def test_a_peak_that_was_not_started_is_unknown(tmp_path):
    assert ProcessPeak(Kernel(tmp_path, 1, 1).system).stop() is None


@pytest.mark.skipif(not Path(STATUS).exists(), reason="only Linux keeps a peak")
def test_this_process_takes_what_it_touches():
    """64 MiB, mapped for itself and given back before the peak is read."""
    peak = ProcessPeak(SystemFiles())
    peak.start()
    with mmap.mmap(-1, 64 * MIB) as block:
        block.write(b"x" * MIB * 64)
    found = peak.stop()
    if found is not None:  # a container may not allow it to be set back
        assert found + MIB >= 64 * MIB
        assert found < 160 * MIB
