"""What a real board measures of itself."""

import logging

import pytest
import torch

from client_app.link_log import Arrival, Link, remember
from client_app.machine import ThisMachine
from client_app.speed import speed_key, sustained_flops_per_s
from fedfreeze.errors import ConfigError
from tests.board_trees import CONTAINER_V1, JETSON_ORIN, MIB, PI_4, planted


def never():
    raise AssertionError("the speed was kept")


def test_memory_is_what_the_tightest_limit_leaves(tmp_path):
    machine = ThisMachine(tmp_path / "state", "cpu", planted(tmp_path, CONTAINER_V1))
    assert machine.memory_bytes() == 362 * MIB


def test_a_board_is_as_fast_as_it_was_when_nothing_has_changed(tmp_path):
    system = planted(tmp_path, JETSON_ORIN)
    sustained_flops_per_s(tmp_path / "state", speed_key(system, "cpu"), lambda: 7e9)
    assert ThisMachine(tmp_path / "state", "cpu", system).flops_per_s() == 7e9


def test_a_new_board_is_measured(tmp_path):
    system = planted(tmp_path, JETSON_ORIN)
    speed = ThisMachine(tmp_path / "state", "cpu", system).flops_per_s()
    assert speed == sustained_flops_per_s(tmp_path / "state", speed_key(system, "cpu"), never)


def test_a_board_that_is_slowed_down_says_so_in_its_log(tmp_path, caplog):
    system = planted(tmp_path, PI_4)
    sustained_flops_per_s(tmp_path / "state", speed_key(system, "cpu"), lambda: 2e9)
    with caplog.at_level(logging.WARNING, logger="fedfreeze"):
        assert ThisMachine(tmp_path / "state", "cpu", system).flops_per_s() == 2e9
    assert caplog.messages == [
        "this board runs below its clock (under-voltage); `fedfreeze doctor` says what to do"
    ]


def test_a_link_is_what_its_messages_tell(tmp_path):
    machine = ThisMachine(tmp_path / "state", "cpu", planted(tmp_path, PI_4))
    assert machine.link() == Link()
    remember(tmp_path / "state", Arrival(1_000, 0.0))
    remember(tmp_path / "state", Arrival(101_000, 20.0))
    assert machine.link() == Link(uplink_bytes_per_s=None, downlink_bytes_per_s=5_000.0)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_cuda_that_is_not_there_is_refused_before_anything_is_measured(tmp_path):
    with pytest.raises(ConfigError) as caught:
        ThisMachine(tmp_path, "cuda", planted(tmp_path, JETSON_ORIN))
    assert str(caught.value) == (
        'local.device: expected a CUDA device, torch sees none; use "auto" or "cpu", or install a '
        "torch build for this board's GPU"
    )
