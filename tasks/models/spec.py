"""What a model is to a task: how it is built, grouped into layers, prepared for and pretrained."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from torch import nn

from tasks.inputs import Inputs
from tasks.preparation.seams import Preprocessing

# Layer name -> globs over the names of tensors, as in {"body": ("layer1.*", "layer2.*")}.
Groups = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class ModelSpec:
    """A model that can be built for any inputs of its kind.

    Attributes:
        build: ``(inputs, outputs) -> module``, freshly initialised from torch's random state; the
            module takes prepared batches and returns one tensor ``[n, outputs]``.
        groupings: further ways to divide it into layers, by the name that the strategy TOML gives.
        preprocessing: what its (pretrained) weights expect; None leaves it to the task.
        load_pretrained: ``(module, origin) -> source`` fills everything but the head in place from
            ``origin`` ("hub" or a file) and says where the weights came from. None: it has no
            pretrained weights.
    """

    build: Callable[[Inputs, int], nn.Module]
    groupings: Mapping[str, Groups] = field(default_factory=dict)
    preprocessing: Callable[[Inputs], Preprocessing] | None = None
    load_pretrained: Callable[[nn.Module, str], str] | None = None
