"""From a model to its layout: fused attention split, tensors grouped into layers, costs traced."""

from tasks.tracing.attention import split_attention
from tasks.tracing.trace import trace

__all__ = ["split_attention", "trace"]
