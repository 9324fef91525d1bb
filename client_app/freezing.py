"""Freezing layers of a torch model so that not one bit of them moves.

Done once, here, for every policy: flags, gradients and modes. A frozen layer's parameters get no
gradient (``grad`` is None, which every optimizer skips, weight decay and momentum included), and
its modules run in eval mode, so that running statistics stay as they are.

A layer's name need not be the path of a module: what belongs to a layer is what its tensors say.
"""

from __future__ import annotations

from collections.abc import Iterable

from torch import Tensor, nn

from fedfreeze.layout import Layout


class Freezer:
    """Switches layers of one model on and off, and remembers how it found them.

    Parameters that the user had frozen before stay frozen, also within a trained layer, and a
    module that owns parameters stays in eval mode if none in it and below may train.
    """

    def __init__(self, model: nn.Module, layout: Layout) -> None:
        self._model = model
        self._layout = layout
        self._flags = {name: p.requires_grad for name, p in model.named_parameters()}
        self._modes = {name: module.training for name, module in model.named_modules()}
        self._the_users = {
            name
            for name, module in model.named_modules()
            if any(True for _ in module.parameters(recurse=False))
            and not any(parameter.requires_grad for parameter in module.parameters())
        }
        # By the tensor itself: a tied one has several names, of which the layout lists one.
        state = model.state_dict(keep_vars=True)
        self._layer_of = {
            id(tensor): layout.layer_of[name]
            for name, tensor in state.items()
            if name in layout.layer_of
        }
        self._layers_of = {
            name: self._nearest_layers(name, module) for name, module in model.named_modules()
        }
        self._buffers_of = {
            name: self._layers(module.buffers(recurse=False))
            for name, module in model.named_modules()
        }

    def train(self, layers: Iterable[str]) -> None:
        """Train these layers and freeze all others, until the next call."""
        trained = set(self._layout.ordered(layers))
        for name, parameter in self._model.named_parameters():
            layer = self._layer_of.get(id(parameter))
            parameter.requires_grad_(self._flags[name] and layer in trained)
            if not parameter.requires_grad:
                parameter.grad = None
        self._model.train()
        for name, module in self._model.named_modules():
            if name in self._the_users or self._is_frozen(name, trained):
                # Not module.train(False): what lies below is judged by itself.
                module.training = False

    def restore(self) -> None:
        """Put flags and modes back as they were found, and drop all gradients."""
        for name, parameter in self._model.named_parameters():
            parameter.requires_grad_(self._flags[name])
            parameter.grad = None
        for name, module in self._model.named_modules():
            module.training = self._modes[name]

    def _is_frozen(self, module_name: str, trained: set[str]) -> bool:
        """Whether the module must not be in training mode while these layers train.

        One with buffers: if any of them lies in a frozen layer, because nothing but its mode keeps
        them still. Any other: if none of its layers trains.
        """
        layers = self._layers_of[module_name]
        return not self._buffers_of[module_name] <= trained or (
            bool(layers) and not layers & trained
        )

    def _nearest_layers(self, module_name: str, module: nn.Module) -> frozenset[str]:
        """The layers of all tensors in the module and below.

        A module without any belongs to the layers of the nearest module around it that has some:
        the dropout of an attention is that of its query, key, value and output alike.
        """
        around = module_name
        while not (found := self._layers([*module.parameters(), *module.buffers()])) and around:
            around = around.rpartition(".")[0]
            module = self._model.get_submodule(around)
        return found

    def _layers(self, tensors: Iterable[Tensor]) -> frozenset[str]:
        return frozenset(
            layer for tensor in tensors if (layer := self._layer_of.get(id(tensor))) is not None
        )
