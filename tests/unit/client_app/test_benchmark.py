"""The small training step that a board is timed with."""

import json

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from client_app.benchmark import TrainingStep, main, measured_flops_per_s

CPU = torch.device("cpu")


def test_its_operations_are_those_that_torch_counts():
    step = TrainingStep(CPU)
    with FlopCounterMode(display=False) as counter:
        step.run()
    assert step.flops == counter.get_total_flops()


def test_it_leaves_no_gradient_behind():
    step = TrainingStep(CPU)
    step.run()
    left = [*step._convolution.parameters(), *step._dense.parameters(), step._image, step._rows]
    assert [tensor.grad for tensor in left] == [None] * 4


def test_this_machine_has_a_speed():
    assert 1e6 < measured_flops_per_s(CPU) < 1e15


def test_it_prints_what_torch_can_do_here(capsys):
    main("cpu")
    report = json.loads(capsys.readouterr().out)
    assert (report["torch"], report["device"]) == (torch.__version__, "cpu")
    assert report["threads"] == torch.get_num_threads()
    assert report["flops_per_s"] > 0


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_cuda_that_is_not_there_is_an_error_in_words(capsys):
    main("cuda")
    assert json.loads(capsys.readouterr().out) == {
        "error": 'local.device: expected a CUDA device, torch sees none; use "auto" or "cpu", or '
        "install a torch build for this board's GPU"
    }
