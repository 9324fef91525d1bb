"""A division into layers by globs over tensor names, as people write it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from fedfreeze.errors import LayoutError

# So many names are listed in a message before the rest is only counted.
_MOST_NAMES = 12


def by_globs(
    names: Sequence[str], groups: Mapping[str, Sequence[str]], model: str
) -> dict[str, str]:
    """Layer name of every tensor name.

    ``*`` matches dots as well: ``layer1.*`` is all of ``layer1``.

    Raises:
        LayoutError: a glob matches nothing, or a tensor matches no layer or two.

    >>> by_globs(["a.weight", "a.bias", "b.weight"], {"front": ["a.*"], "back": ["b.*"]}, "m")
    {'a.weight': 'front', 'a.bias': 'front', 'b.weight': 'back'}
    """
    layer_of: dict[str, str] = {}
    for layer, globs in groups.items():
        for glob in globs:
            matching = [name for name in names if fnmatchcase(name, glob)]
            if not matching:
                raise LayoutError(
                    f'model "{model}": layer "{layer}": no tensor matches "{glob}"; '
                    f"the tensors are {listed(names)}"
                )
            for name in matching:
                if layer_of.setdefault(name, layer) != layer:
                    raise LayoutError(
                        f'model "{model}": layers "{layer_of[name]}" and "{layer}" both claim the '
                        f'tensor "{name}"; every tensor belongs to one layer'
                    )
    if left := [name for name in names if name not in layer_of]:
        raise LayoutError(
            f'model "{model}": no layer claims {listed(left)}; add a glob that matches, or a layer'
        )
    return {name: layer_of[name] for name in names}


def listed(names: Iterable[str]) -> str:
    """The names, or the first of them and how many more there are.

    >>> listed(["a", "b"])
    'a, b'
    """
    every = list(names)
    more = len(every) - _MOST_NAMES
    return ", ".join(every[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
