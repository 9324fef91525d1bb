"""Digests of a model's values, so that it can be named instead of sent, layer by layer or whole."""

from __future__ import annotations

import hashlib

import numpy as np

from fedfreeze.layout import Arrays, Layout


def layer_digests(layout: Layout, arrays: Arrays) -> dict[str, str]:
    """32 hex digits for each layer, over its tensors' names, types, shapes and bytes.

    Raises:
        LayoutError: the arrays are not the tensors of the layout.
    """
    layout.check(arrays)
    digests = {}
    for layer in layout:
        digest = hashlib.sha256()
        for spec in layer.tensors:
            array = np.ascontiguousarray(arrays[spec.name], np.dtype(spec.dtype).newbyteorder("<"))
            digest.update(f"{spec.name}\0{spec}\0".encode())
            digest.update(array.tobytes())
        digests[layer.name] = digest.hexdigest()[:32]
    return digests


def model_digest(layout: Layout, arrays: Arrays) -> str:
    """32 hex digits for all layers together.

    Raises:
        LayoutError: the arrays are not the tensors of the layout.
    """
    return hashlib.sha256("".join(layer_digests(layout, arrays).values()).encode()).hexdigest()[:32]
