"""How many bytes a model takes on its way down, without a model.

A dense model travels as a safetensors file: a length, a header of JSON padded to eight bytes, and
the values of all tensors, those of the widest types first and by name among those of one type.
"""

from __future__ import annotations

import json
from collections.abc import Collection

from fedfreeze.layout import Layout

# safetensors 0.4 to 0.8: dtype in a layout to dtype in a header, in the order of the file.
_DTYPES = {
    "uint64": "U64",
    "int64": "I64",
    "float64": "F64",
    "complex64": "C64",
    "float32": "F32",
    "uint32": "U32",
    "int32": "I32",
    "bfloat16": "BF16",
    "float16": "F16",
    "uint16": "U16",
    "int16": "I16",
    "int8": "I8",
    "uint8": "U8",
    "bool": "BOOL",
}
_ORDER = {dtype: at for at, dtype in enumerate(_DTYPES)}
_LENGTH_BYTES = 8
_ALIGNMENT = 8


def blob_bytes(layout: Layout, layers: Collection[str]) -> int:
    """Length of :meth:`strategies.published.Published.blob` for these layers.

    Raises:
        LayoutError: one is not of the layout.
    """
    specs = [spec for name in layout.ordered(layers) for spec in layout[name].tensors]
    header, at = {}, 0
    for spec in sorted(specs, key=lambda spec: (_ORDER[spec.dtype], spec.name)):
        entry = {
            "dtype": _DTYPES[spec.dtype],
            "shape": list(spec.shape),
            "data_offsets": [at, at + spec.nbytes],
        }
        header[spec.name] = entry
        at += spec.nbytes
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False)
    written = len(text.encode())
    return _LENGTH_BYTES + written + -written % _ALIGNMENT + at
