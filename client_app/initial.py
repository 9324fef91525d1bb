"""The model that a pretrained run begins with, as this node can make it by itself.

Whoever has the same file of weights need not be sent the layers that nobody trains: the node says
by digest which layers it has, and the server names those instead of sending them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from logging import INFO

from flwr.common.logger import log

from fedfreeze.errors import ConfigError, StateError
from fedfreeze.layer_digest import layer_digests
from fedfreeze.layout import Arrays
from fedfreeze.messages import NO_TEXT
from strategies.schema import Strategy
from tasks.loading import load


def initial_digests(strategy: Strategy) -> str:
    """Digests by layer as JSON; NO_TEXT without pretrained weights, here or in the strategy.

    A file that is not here, or is another one, is no error: the layers are then sent.
    """
    if strategy.model.pretrained is None:
        return NO_TEXT
    try:
        arrays = _initial(strategy)
    except (ConfigError, StateError) as error:
        log(INFO, "the pretrained layers will be sent: %s", error)
        return NO_TEXT
    digests = layer_digests(load(strategy.task, strategy.options).layout(), arrays)
    return json.dumps(digests, separators=(",", ":"))


def own_layers(strategy: Strategy, named: Mapping[str, str]) -> Arrays | None:
    """The tensors of the layers in ``named``, or None if this node has others by these names."""
    layout = load(strategy.task, strategy.options).layout()
    try:
        arrays = _initial(strategy)
    except (ConfigError, StateError):
        return None
    digests = layer_digests(layout, arrays)
    if any(digests.get(layer) != digest for layer, digest in named.items()):
        return None
    return {t.name: arrays[t.name] for layer in named for t in layout[layer].tensors}


@lru_cache(maxsize=1)
def _cached(text: str) -> Arrays:
    strategy = Strategy.model_validate_json(text)
    return load(strategy.task, strategy.options).initial(strategy.seed)[0]


def _initial(strategy: Strategy) -> Arrays:
    return _cached(strategy.model_dump_json(by_alias=True))
