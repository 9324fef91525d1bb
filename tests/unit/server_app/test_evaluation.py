"""The published model's loss and metrics on the server's own data."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from fedfreeze.errors import ConfigError
from server_app import evaluation
from tasks.dataset import Examples
from tasks.inputs import Values
from tasks.metric import ACCURACY, MACRO_F1, Metric
from tasks.task import initial_arrays
from tests.tiny_task import TinyNet
from tests.tiny_task import task as tiny


def logits_of(arrays, inputs):
    model = TinyNet()
    model.load_state_dict({n: torch.from_numpy(a.copy()) for n, a in arrays.items()})
    return model.eval()(inputs).detach()


def test_loss_and_metrics_are_means_over_the_examples_in_eval_mode():
    task = replace(tiny, metrics=(ACCURACY, MACRO_F1))
    arrays = initial_arrays(task, 4)
    examples = task.test(None)
    logits = logits_of(arrays, examples.inputs).double().numpy()
    targets = examples.targets.numpy()
    log_sum = np.log(np.exp(logits).sum(1))
    expected = (log_sum - logits[np.arange(len(targets)), targets]).mean()
    found = evaluation.evaluate(task, arrays, examples)
    assert found.loss == pytest.approx(expected, rel=1e-5)
    assert list(found.values) == ["accuracy", "macro_f1"]
    assert found.headline == found.values["accuracy"] == (logits.argmax(1) == targets).mean()


class Halved:
    """A preprocessing that can be seen in the outputs."""

    def __call__(self, inputs):
        return inputs.float() / 2

    def describe(self):
        return {}


def test_raw_inputs_are_prepared_as_the_task_says():
    task = replace(tiny, preprocessing=Halved())
    arrays = initial_arrays(task, 4)
    inputs = torch.randint(0, 9, (evaluation.BATCH + 3, 1, 6, 6))
    found = evaluation.predict(task, arrays, inputs)
    assert torch.allclose(found, logits_of(arrays, inputs.float() / 2), atol=1e-6)


def test_a_metric_sees_all_examples_at_once_and_a_batch_weighs_what_it_holds_in_the_loss():
    """One more example than a batch: a mean over two batches would give it half of the weight."""
    spans = Metric("spans", lambda outputs, targets: float(targets.max() - targets.min()))
    task = replace(tiny, loss=lambda _, targets: targets.double().mean(), metrics=(spans,))
    count = evaluation.BATCH + 1
    examples = Examples(torch.zeros(count, 1, 6, 6), torch.arange(count))
    found = evaluation.evaluate(task, initial_arrays(task, 0), examples)
    assert found.loss == pytest.approx((count - 1) / 2)
    assert found.headline == count - 1


def test_outputs_that_are_there_are_scored_without_the_model():
    outputs = torch.tensor([[3.0, 0.0, 0.0], [0.0, 3.0, 0.0], [3.0, 0.0, 0.0]])
    targets = torch.tensor([0, 1, 1])
    found = evaluation.score(replace(tiny, model="no-such-model"), outputs, targets)
    assert found.headline == pytest.approx(2 / 3)
    assert found.loss == pytest.approx(float(nn.functional.cross_entropy(outputs, targets)))


def test_no_examples_are_refused():
    with pytest.raises(ConfigError) as caught:
        evaluation.evaluate(tiny, {}, tiny.test(None).at(np.empty(0, np.int64)))
    assert str(caught.value) == (
        'task "tests.tiny_task": expected examples to evaluate on, got none; raise '
        "data.validation-share, or see that the task has a test half"
    )


class Doubling(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(4, 2)

    def forward(self, values):
        return self.head(values.mul_(2.0))


def test_a_model_that_works_in_place_does_not_change_what_it_is_evaluated_on():
    doubling = replace(tiny, model=Doubling, inputs=Values((4,)))
    arrays = {name: value.numpy() for name, value in Doubling().state_dict().items()}
    inputs = torch.ones(3, 4)
    first = evaluation.predict(doubling, arrays, inputs)
    assert torch.equal(inputs, torch.ones(3, 4))
    assert torch.equal(evaluation.predict(doubling, arrays, inputs), first)


def test_evaluating_changes_neither_the_arrays_nor_the_random_state():
    arrays = initial_arrays(tiny, 0)
    before = {name: array.tobytes() for name, array in arrays.items()}
    state = torch.get_rng_state()
    first = evaluation.evaluate(tiny, arrays, tiny.test(None))
    assert evaluation.evaluate(tiny, arrays, tiny.test(None)) == first
    assert {name: array.tobytes() for name, array in arrays.items()} == before
    assert torch.equal(torch.get_rng_state(), state)
