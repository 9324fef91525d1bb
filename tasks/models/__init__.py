"""The models of the project: one file a family, each an entry of ``tasks.registry.MODELS``."""

from __future__ import annotations

import importlib

from fedfreeze.errors import ConfigError
from tasks.models.spec import ModelSpec
from tasks.registry import MODELS, TIMM, known_model


def load_spec(name: str) -> ModelSpec:
    """The model of that name; its family's file is imported now.

    Raises:
        ConfigError: there is no such model, or it needs an extra that is not installed.
    """
    try:
        known_model(name)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    if name.startswith(TIMM):
        from tasks.models.timm_model import timm_spec  # noqa: PLC0415  # timm takes a while

        return timm_spec(name.removeprefix(TIMM))
    module, attribute = MODELS[name].split(":")
    spec: ModelSpec = getattr(importlib.import_module(module), attribute)
    return spec
