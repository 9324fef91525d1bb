"""Layers that a client has from the same pretrained file are named by digest, not sent."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from client_app import initial
from fedfreeze.errors import ConfigError
from fedfreeze.messages import MODEL_FORMAT, NO_TEXT, unpacked
from fedfreeze.plan import Reason
from tasks.registry import MODELS
from tests.conftest import records
from tests.tiny_pretrained import BODY

NODES = 2


@pytest.fixture
def weights(tmp_path, monkeypatch):
    """The path of a file of weights for the tiny model's two lower layers."""
    monkeypatch.setitem(MODELS, "tiny", "tests.tiny_pretrained:TINY")
    initial._cached.cache_clear()  # files of other tests have the same strategy but other values
    rng = np.random.default_rng(0)
    path = tmp_path / "weights.safetensors"
    save_file(
        {name: rng.normal(0, 0.1, shape).astype(np.float32) for name, shape in BODY.items()}, path
    )
    return path


@pytest.fixture
def run_of(small_run, weights):
    """Makes a run of the tiny model, and keeps the orders that it sends."""

    def make(*overrides, orders=None, **more):
        return small_run(
            "model.name=tiny",
            f"model.pretrained={json.dumps(str(weights))}",
            "fleet=high",
            "compression.compression-ratio=4",
            *overrides,
            nodes=NODES,
            grid={} if orders is None else {"on_order": orders.append},
            **more,
        )

    return make


def sent(message):
    """Which layers an order carries, and which it names."""
    order = message.content["order"]
    blob = unpacked(message.content, "model", MODEL_FORMAT)
    header = json.loads(blob[8 : 8 + int.from_bytes(blob[:8], "little")]) if blob else {}
    carried = {name.split(".")[0] for name in header if name != "__metadata__"}
    named = {} if order["initial"] == NO_TEXT else json.loads(order["initial"])
    return carried, set(named)


def train_orders(orders):
    return [message for message in orders if "order" in message.content]


def test_a_client_with_the_same_file_is_sent_no_layer_at_first(run_of):
    orders = []
    run = run_of("rounds=1", orders=orders)
    run.play()
    assert [sent(m) for m in train_orders(orders)] == [(set(), {"1", "3", "5"})] * NODES
    assert records(run.folder)[0]["clients_used"] == NODES


def test_layers_that_nobody_trains_are_never_sent(run_of):
    """The layer in the middle is out of every plan; afterwards its values are the file's."""
    orders = []
    run = run_of("rounds=3", orders=orders)
    advise = run.strategy.policy.advise

    def without_the_middle(view, client):
        advice = advise(view, client)
        return replace(advice, frozen={**advice.frozen, "3": Reason("fixed", "never")})

    run.strategy.policy.advise = without_the_middle
    run.play()
    assert not any("3" in sent(message)[0] for message in train_orders(orders))
    assert any("1" in sent(message)[0] for message in train_orders(orders))
    assert np.array_equal(
        load_file(run.folder.model)["3.weight"], run.task.initial(0)[0]["3.weight"]
    )


def test_a_client_without_the_file_is_sent_everything_and_trains_alike(run_of, monkeypatch):
    with_file = run_of("rounds=2", name="with")
    with_file.play()

    def gone(strategy):
        raise ConfigError("model.pretrained: expected a file, it is gone")

    orders = []
    monkeypatch.setattr(initial, "_initial", gone)
    without = run_of("rounds=2", name="without", orders=orders)
    without.play()
    first = train_orders(orders)[:NODES]
    assert [sent(message) for message in first] == [({"1", "3", "5"}, set())] * NODES
    assert without.folder.model.read_bytes() == with_file.folder.model.read_bytes()


def test_a_client_whose_file_changed_under_it_asks_for_the_model(run_of, monkeypatch):
    orders = []
    run = run_of("rounds=2", orders=orders)
    own_layers = initial.own_layers
    refused = []

    def changed_once(strategy, named):
        if not refused:
            refused.append(named)
            return None
        return own_layers(strategy, named)

    monkeypatch.setattr("client_app.assembly.own_layers", changed_once)
    run.play()
    first, second = records(run.folder)
    (failure,) = first["failures"].values()
    assert failure == (
        "lost the published model: expected version 0, the board holds none, and not the "
        "pretrained layers that were named"
    )
    assert second["clients_used"] == NODES
    late = [m for m in train_orders(orders)[NODES:] if sent(m)[0] == {"1", "3", "5"}]
    assert len(late) == 1


def test_a_stopped_run_goes_on_naming_layers(run_of):
    whole = run_of("rounds=3", name="whole")
    whole.play()
    run_of("rounds=3", name="parts").play(until=1)
    run_of("rounds=3", name="parts", resume=True).play()
    assert (whole.folder.path.parent / "parts" / "model.safetensors").read_bytes() == (
        whole.folder.model.read_bytes()
    )


def test_the_config_says_where_the_weights_came_from(run_of):
    run = run_of("rounds=1")
    run.play()
    assert "# initial weights: weights of weights.safetensors" in run.folder.config.read_text()


def test_weights_that_are_not_there_end_the_run_by_name(run_of, weights):
    run = run_of("rounds=1")
    weights.unlink()
    with pytest.raises(ConfigError) as caught:
        run.play()
    assert str(caught.value) == f"model.pretrained: expected a file, {weights} is none"
