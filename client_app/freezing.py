"""Freezing layers of a torch model so that not one bit of them moves.

Done once, here, for every policy: flags, gradients and modes. A frozen layer's parameters get no
gradient (``grad`` is None, which every optimizer skips, weight decay and momentum included), and
its modules run in eval mode, so that running statistics stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable

from torch import nn

from fedfreeze.layout import Layout


class Freezer:
    """Switches layers of one model on and off, and remembers how it found them.

    Parameters that the user had frozen before stay frozen, also within a trained layer, and a
    module with none but such parameters stays in eval mode.
    """

    def __init__(self, model: nn.Module, layout: Layout) -> None:
        self._model = model
        self._layout = layout
        self._flags = {name: p.requires_grad for name, p in model.named_parameters()}
        self._modes = {name: module.training for name, module in model.named_modules()}

    def train(self, layers: Iterable[str]) -> None:
        """Train these layers and freeze all others, until the next call."""
        trained = set(self._layout.ordered(layers))
        for name, parameter in self._model.named_parameters():
            layer = self._layout.layer_of.get(name)
            parameter.requires_grad_(self._flags[name] and layer in trained)
            if not parameter.requires_grad:
                parameter.grad = None
        self._model.train()
        for name, module in self._model.named_modules():
            if self._is_the_users(name, module) or self._is_frozen(name, module, trained):
                module.train(mode=False)

    def restore(self) -> None:
        """Put flags and modes back as they were found, and drop all gradients."""
        for name, parameter in self._model.named_parameters():
            parameter.requires_grad_(self._flags[name])
            parameter.grad = None
        for name, module in self._model.named_modules():
            module.training = self._modes[name]

    def _is_the_users(self, module_name: str, module: nn.Module) -> bool:
        """Whether the user froze the module: it has parameters of its own, and none may train."""
        prefix = f"{module_name}." if module_name else ""
        own = [prefix + name for name, _ in module.named_parameters(recurse=False)]
        return bool(own) and not any(self._flags.get(name, True) for name in own)

    def _is_frozen(self, module_name: str, module: nn.Module, trained: set[str]) -> bool:
        """Whether the module belongs to a frozen layer: by its own tensors, else by its path."""
        own = [name for name, _ in module.named_parameters(recurse=False)]
        own += [name for name, _ in module.named_buffers(recurse=False)]
        prefix = f"{module_name}." if module_name else ""
        layers = {self._layout.layer_of.get(prefix + name) for name in own} - {None}
        if layers:
            return not layers & trained
        parents = {
            layer
            for layer in self._layout.names
            if module_name == layer or module_name.startswith(f"{layer}.")
        }
        return bool(parents) and not parents & trained
