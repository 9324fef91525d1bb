"""The published model's loss and score on the server's own data."""

import numpy as np
import pytest
import torch

from server_app import evaluation
from tasks.task import Examples, initial_arrays
from tests.tiny_task import TinyNet, TinyTask

SPLIT = {"partition": "iid", "alpha": 0.3, "validation_share": 0.1, "seed": 0, "data_dir": None}


def test_loss_and_score_are_means_over_the_examples_in_eval_mode():
    task = TinyTask()
    arrays = initial_arrays(task, 4)
    examples = task.test(None)
    model = TinyNet()
    model.load_state_dict({n: torch.from_numpy(a.copy()) for n, a in arrays.items()})
    logits = model.eval()(examples.inputs).detach().double().numpy()
    targets = examples.targets.numpy()
    log_sum = np.log(np.exp(logits).sum(1))
    expected = (log_sum - logits[np.arange(len(targets)), targets]).mean()
    found = evaluation.evaluate(task, arrays, examples)
    assert found.loss == pytest.approx(expected, rel=1e-5)
    assert found.score == (logits.argmax(1) == targets).mean()


def test_the_last_partial_batch_weighs_what_it_holds():
    """One more example than a batch: a mean over two batches would give it half of the weight."""

    class Target(TinyTask):
        def loss(self, outputs, targets):
            return targets.double().mean()

        def score(self, outputs, targets):
            return float(targets.sum())

    count = evaluation.BATCH + 1
    targets = torch.arange(count)
    task = Target()
    examples = Examples(torch.zeros(count, 1, 6, 6), targets)
    found = evaluation.evaluate(task, initial_arrays(task, 0), examples)
    assert found.loss == found.score == pytest.approx((count - 1) / 2)


def test_evaluating_changes_neither_the_arrays_nor_the_random_state():
    task = TinyTask()
    arrays = initial_arrays(task, 0)
    before = {name: array.tobytes() for name, array in arrays.items()}
    state = torch.get_rng_state()
    first = evaluation.evaluate(task, arrays, task.test(None))
    assert evaluation.evaluate(task, arrays, task.test(None)) == first
    assert {name: array.tobytes() for name, array in arrays.items()} == before
    assert torch.equal(torch.get_rng_state(), state)
