"""How large packets can be and must be, without encoding any."""

from __future__ import annotations

from compression import EMPTY_PACKET_BYTES
from fedfreeze.layout import Layer, Layout, TensorSpec

# A sparse packet of fewer bytes than this above its header cannot carry a value.
LEAST_PAYLOAD_BYTES = 16

# Header, segment table and scales of a dense packet, at most.
DENSE_OVERHEAD_BYTES = 1_024

SMALLEST_SPARSE_BYTES = EMPTY_PACKET_BYTES + LEAST_PAYLOAD_BYTES


def float_bytes(spec: TensorSpec) -> int:
    """Bytes of a tensor as 32-bit floats; 0 for an integer or constant one: it never travels."""
    return 4 * spec.size if spec.travels else 0


def float_buffer_bytes(layer: Layer) -> int:
    """Bytes of a layer's float buffers, which travel as 32-bit floats in every packet of it."""
    return sum(float_bytes(t) for t in layer.tensors if t.kind == "buffer")


def dense_update_bytes(layout: Layout) -> int:
    """Bytes of every tensor that travels, as 32-bit floats."""
    return sum(float_bytes(tensor) for tensor in layout.tensors.values())


def buffer_bytes(layout: Layout) -> int:
    """Bytes of the float buffers of all layers."""
    return sum(float_buffer_bytes(layer) for layer in layout)


def dense_overhead_bytes(layout: Layout) -> int:
    """Bytes of a dense packet beside its values, at most."""
    return DENSE_OVERHEAD_BYTES + 16 * sum(t.travels for t in layout.tensors.values())


def dense_packet_bytes(layout: Layout, bits: int) -> int:
    """Bytes of a dense packet of all layers, at most."""
    buffers = buffer_bytes(layout)
    parameters = (dense_update_bytes(layout) - buffers) * bits // 32
    return dense_overhead_bytes(layout) + parameters + buffers
