"""What the kernel says of a processor."""

import pytest

from client_app.probes.processor import Processor, board_model, processor_now
from tests.board_trees import (
    CONTAINER_V2,
    JETSON_ORIN,
    LAPTOP,
    PHONE,
    PI_4,
    arm_cpuinfo,
    planted,
)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (PI_4, Processor("Cortex-A72", 4, None, ("ondemand",), 1_500_000_000)),
        (JETSON_ORIN, Processor("Cortex-A78AE", 6, None, ("schedutil",), 1_510_400_000)),
        (PHONE, Processor("Cortex-A55 + Cortex-A78", 3, None, (), None)),
        (
            LAPTOP,
            Processor(
                "11th Gen Intel(R) Core(TM) i7-1165G7 @ 2.80GHz",
                8,
                None,
                ("powersave",),
                4_700_000_000,
            ),
        ),
        (CONTAINER_V2, Processor("Cortex-A76", 4, 0.5, (), None)),
        ({}, Processor(None, None, None, (), None)),
    ],
    ids=["Pi", "Jetson", "phone", "laptop", "container", "nothing"],
)
def test_a_processor_is_what_the_kernel_says(tmp_path, files, expected):
    assert processor_now(planted(tmp_path, files)) == expected


@pytest.mark.parametrize(
    ("mask", "allowed"),
    [("f", 4), ("00000000,0000000c", 2), ("ffffffff,ffffffff", 64), ("0", None), ("many", None)],
)
def test_the_cores_that_a_process_may_run_on_are_counted(tmp_path, mask, allowed):
    status = f"Name:\tpython\nCpus_allowed:\t{mask}\nCpus_allowed_list:\t0-3\n"
    system = planted(tmp_path, {**PI_4, "/proc/self/status": status})
    assert (processor_now(system).cores, processor_now(system).allowed) == (4, allowed)


def test_an_arm_core_that_nobody_listed_keeps_its_number(tmp_path):
    files = {"/proc/cpuinfo": arm_cpuinfo("0xabc", maker="0x51")}
    assert processor_now(planted(tmp_path, files)).model == "Arm core 0xabc of maker 0x51"


@pytest.mark.parametrize(
    ("files", "model"),
    [
        (PI_4, "Raspberry Pi 4 Model B Rev 1.4"),
        (JETSON_ORIN, "NVIDIA Jetson Orin Nano Developer Kit"),
        (LAPTOP, "LENOVO 20XW"),
        (CONTAINER_V2, None),
    ],
    ids=["Pi", "Jetson", "laptop", "container"],
)
def test_a_board_calls_itself_by_its_device_tree_or_its_firmware(tmp_path, files, model):
    assert board_model(planted(tmp_path, files)) == model
