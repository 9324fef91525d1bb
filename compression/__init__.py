"""Arrays to packet and back, under a hard byte budget; ``docs/packet-format.md`` is the format.

>>> import numpy as np
>>> from fedfreeze.layout import Layer, Layout, TensorSpec
>>> layout = Layout("line", (Layer("head", (TensorSpec("w", (1000,), "float32"),)),))
>>> update = {"w": np.linspace(-1, 1, 1000, dtype=np.float32)}
>>> sent = encode(update, layout, ["head"], budget_bytes=200, round_number=7)
>>> received = decode(sent.packet, layout, max_bytes=200)
>>> received.layers, received.round_number, len(sent.packet) <= 200
(('head',), 7, True)
>>> residual = subtract(update, received.update)
"""

from compression.decode import Decoded, decode
from compression.encode import Encoded, encode
from compression.halves import Half, Halves, halved
from compression.packet import EMPTY_PACKET_BYTES, packet_digest
from compression.residual import add, scaled, subtract
from compression.residual_summary import LayerResidual, summary
from compression.settings import CodecSettings
from compression.shared_mask import SharedMask
from compression.value_ranges import value_ranges

__all__ = [
    "EMPTY_PACKET_BYTES",
    "CodecSettings",
    "Decoded",
    "Encoded",
    "Half",
    "Halves",
    "LayerResidual",
    "SharedMask",
    "add",
    "decode",
    "encode",
    "halved",
    "packet_digest",
    "scaled",
    "subtract",
    "summary",
    "value_ranges",
]
