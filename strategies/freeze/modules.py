"""Modules: the groups of layers that unfreezing policies switch together, in forward order."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from fedfreeze.errors import ConfigError
from fedfreeze.layout import Layout


def layers_called(
    layout: Layout, globs: Sequence[str], *, key: str, hint: str = ""
) -> tuple[str, ...]:
    """Names of the layers that any of the globs matches, in forward order.

    Args:
        layout: of the model.
        globs: over layer names.
        key: of the strategy TOML that they come from, for messages.
        hint: what to do about it, for messages.

    Raises:
        ConfigError: a glob that matches no layer; lists the layers that there are.
    """
    for glob in globs:
        if not any(fnmatchcase(name, glob) for name in layout.names):
            raise ConfigError(
                f'{key}: no layer is called "{glob}"; the layers are {", ".join(layout.names)}'
                f"{hint}"
            )
    return tuple(name for name in layout.names if any(fnmatchcase(name, glob) for glob in globs))


def modules_of(
    layout: Layout, wanted: Sequence[Sequence[str]] | None, *, key: str = "freeze.modules"
) -> tuple[tuple[str, ...], ...]:
    """The modules that globs describe, or one for each layer that has parameters.

    Layers without parameters are in no module, for nothing can switch them.

    Args:
        layout: of the model.
        wanted: globs over layer names for each module; None for a module of each layer.
        key: of the strategy TOML, for messages.

    Raises:
        ConfigError: a glob that matches nothing, a module of nothing, a layer in none or in two
            modules, or modules that are not in forward order.
    """
    trainable = [layer.name for layer in layout if layer.parameters]
    if wanted is None:
        return tuple((name,) for name in trainable)
    modules = [
        tuple(name for name in layers_called(layout, globs, key=key) if name in trainable)
        for globs in wanted
    ]
    for globs, module in zip(wanted, modules, strict=True):
        if not module:
            raise ConfigError(
                f"{key}: expected a module with a layer that can train, got {list(globs)}"
            )
    named = [name for module in modules for name in module]
    for name in trainable:
        if named.count(name) != 1:
            found = "none" if name not in named else f"{named.count(name)}"
            raise ConfigError(
                f'{key}: expected layer "{name}" in one module, it is in {found}; '
                f"the layers are {', '.join(trainable)}"
            )
    if named != trainable:
        raise ConfigError(
            f"{key}: expected modules in forward order, {', '.join(trainable)}, got "
            f"{', '.join(named)}"
        )
    return tuple(modules)
