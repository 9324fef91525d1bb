"""The tasks on texts, speech and sensors: whole, and learnable from a few examples."""

import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tasks.loading import load
from tasks.options import Options
from tasks.sources import Place

REAL = os.environ.get("FEDFREEZE_TEST_DATA")
MODELS = [
    ("reuters-r8", "gru-text"),
    ("reuters-r8", "lstm-text"),
    ("reuters-r8", "text-transformer"),
    ("sentiment", None),
    ("ag-news", None),
    ("sst2", None),
    ("spoken-digits", None),
    ("watch-activity", None),
]


def tones(count):
    """One second each of a tone of its own: random samples would all sound alike."""
    hertz = torch.linspace(200, 3000, count)[:, None]
    return (9000 * torch.sin(2 * math.pi * hertz * torch.arange(8000) / 8000)).to(torch.int16)


@pytest.mark.parametrize(("name", "model"), MODELS)
def test_a_model_tells_a_few_made_up_examples_apart_after_some_steps(name, model):
    torch.manual_seed(0)
    task = load(name, Options(model=model))
    inputs = task.prepare(tones(4) if name == "spoken-digits" else task.inputs.example(4))
    targets = torch.arange(4) % len(task.labels)
    net = task.build()
    optimizer = torch.optim.Adam(net.parameters(), 5e-3)
    for _ in range(30):
        optimizer.zero_grad()
        task.loss(net(inputs), targets).backward()
        optimizer.step()
    assert torch.equal(net(inputs).argmax(1), targets)


@pytest.mark.parametrize(
    ("name", "model", "layers"),
    [
        ("reuters-r8", "gru-text", ["embedding", "rnn", "head"]),
        ("reuters-r8", "lstm-text", ["embedding", "rnn", "head"]),
        ("spoken-digits", None, ["conv1", "conv2", "gru", "head"]),
        ("watch-activity", None, ["conv1", "conv2", "gru", "head"]),
    ],
)
def test_a_model_divides_into_its_layers_in_forward_order(name, model, layers):
    assert [layer.name for layer in load(name, Options(model=model)).layout().layers] == layers


def test_attention_of_the_transformer_freezes_apart_from_the_rest_of_its_block():
    names = [layer.name for layer in load("sst2").layout().layers]
    assert (names[0], names[-1]) == ("embeddings", "head")
    assert {"blocks.0.attn.qk", "blocks.0.attn.v", "blocks.0.attn.out", "blocks.0.mlp"} <= {*names}


@pytest.mark.skipif(REAL is None, reason="FEDFREEZE_TEST_DATA names no folder with real data")
@pytest.mark.parametrize("name", ["reuters-r8", "sentiment", "spoken-digits", "watch-activity"])
def test_real_examples_are_what_the_task_says(name):
    task = load(name)
    data = task.read(Place(Path(REAL), demanded=True))
    example = task.inputs.example(1)
    for half in (data.train, data.test):
        assert half.inputs.dtype == example.dtype
        assert half.inputs.shape[1:] == example.shape[1:]
        assert half.targets.unique().tolist() == list(range(len(task.labels)))
    assert task.prepare(data.test.inputs[:4]).isfinite().all()


@pytest.mark.skipif(REAL is None, reason="FEDFREEZE_TEST_DATA names no folder with real data")
@pytest.mark.parametrize(("name", "mean", "std"), [("spoken-digits", 0.0, 1.0)])
def test_prepared_sounds_are_about_standard_normal(name, mean, std):
    task = load(name)
    data = task.read(Place(Path(REAL), demanded=True))
    prepared = task.prepare(data.train.inputs[::5])
    assert float(prepared.mean()) == pytest.approx(mean, abs=0.1)
    assert float(prepared.std()) == pytest.approx(std, abs=0.1)


BLOCKED = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"transformers", "tokenizers", "scipy", "librosa", "torchaudio"}:
            raise ImportError(name)

sys.meta_path.insert(0, Blocked())
from tasks.loading import load
from tasks.models import load_spec
from tasks.registry import MODELS, TASKS
for name in TASKS:
    load(name)
for name in MODELS:
    load_spec(name)
for name in ("reuters-r8", "spoken-digits", "watch-activity"):
    task = load(name)
    task.build()(task.prepare(task.inputs.example(1)))
"""


def test_nothing_but_minilm_needs_a_library_for_texts_or_sounds():
    finished = subprocess.run(
        [sys.executable, "-c", BLOCKED], capture_output=True, text=True, check=False, timeout=120
    )
    assert (finished.returncode, finished.stderr) == (0, "")
