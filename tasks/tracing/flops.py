"""Floating-point operations of torch's own operators, forward and towards each operand.

A multiplication and an addition count as two operations. Left out by convention, because they are
a few per cent at most: adding a parameter (a bias, a position embedding), everything pointwise
between activations, pooling, and what moves data. What a fused kernel computes a second time in the
backward pass is left out too, so that every platform gives the same numbers.

``torch.utils.flop_counter`` is no substitute: it miscounts the weight gradient of depthwise
convolutions and leaves out attention on the CPU.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

# Per element: mean 1, variance 3, normalise 2, scale and shift 2; as much for the input's gradient.
NORM_FLOPS = 8.0
# Per element: multiply and add for the scale's gradient, add for the shift's.
NORM_WEIGHT_FLOPS = 3.0


@dataclass(frozen=True)
class Work:
    """What one call of an operator costs, for the whole batch.

    Attributes:
        forward: operations of the forward pass.
        gradients: pairs of an operand and the operations of the gradient towards it.
        inner: operations of the gradient through what lies inside, whoever wants it.
        weighs: whether it multiplies by matrices or kernels.
        pointwise: whether it is left out unless an operand is a parameter.
        spares: whether autograd keeps an operand for the gradients of the others alone, so not
            beside a weight that is frozen.
        workspace_bytes: of the library, beside operands and result, while it runs.
    """

    forward: float = 0.0
    gradients: tuple[tuple[Tensor, float], ...] = ()
    inner: float = 0.0
    weighs: bool = False
    pointwise: bool = False
    spares: bool = False
    workspace_bytes: int = 0

    def gradient(self, operand: Tensor) -> float:
        """Operations of the gradient towards one operand."""
        return sum(flops for tensor, flops in self.gradients if tensor is operand)


def base_name(func: Any) -> str:
    """``aten::mul_.Tensor`` is ``mul``: in place or not, an operator costs the same."""
    name: str = func.name().partition(".")[0].removeprefix("aten::")
    return name.rstrip("_") if not name.startswith("__") else name


def is_known(name: str) -> bool:
    """Whether an operator may use a parameter: it has a formula, or is free by convention."""
    return name in _FORMULAS or name in _FREE


def work_of(name: str, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> Work:
    """What a call costs; nothing for an operator without a formula."""
    formula = _FORMULAS.get(name)
    return Work() if formula is None else formula(args, kwargs, result)


def _product(first: Tensor, second: Tensor, flops: float) -> Work:
    """A bilinear operator: each gradient costs as much as the forward pass.

    A product of complex numbers, added to another, is four multiply-adds of real ones.
    """
    flops = 4 * flops if first.is_complex() or second.is_complex() else flops
    return Work(flops, ((first, flops), (second, flops)), weighs=True, spares=True)


def _matmul(first: Tensor, second: Tensor) -> Work:
    """``[..., m, k] @ [..., k, n]``, vectors included."""
    columns = second.shape[-1] if second.dim() > 1 else 1
    return _product(first, second, 2.0 * first.numel() * columns)


def _mm(args: Sequence[Any], _: Any, __: Any) -> Work:
    return _matmul(args[0], args[1])


def _addmm(args: Sequence[Any], _: Any, __: Any) -> Work:
    return _matmul(args[1], args[2])


def _linear(args: Sequence[Any], _: Any, result: Tensor) -> Work:
    return _product(args[0], args[1], 2.0 * result.numel() * args[1].shape[-1])


def _convolution(args: Sequence[Any], _: Any, result: Tensor) -> Work:
    """The kernel is ``[out, in / groups, *taps]``, transposed ``[in, out / groups, *taps]``.

    One multiply-add for each tap and channel of the kernel at each place of the output, or of the
    input if transposed; taps on the padding count. On a CPU, oneDNN copies input and output into
    blocks of channels and back, forward and for either gradient.
    """
    inputs, kernel, transposed = args[0], args[1], args[6]
    places = inputs if transposed else result
    flops = 2.0 * places.numel() * math.prod(kernel.shape[1:])
    blocked = inputs.numel() * inputs.element_size() + result.numel() * result.element_size()
    gradients = ((inputs, flops), (kernel, flops))
    return Work(flops, gradients, weighs=True, workspace_bytes=blocked)


def _attention(args: Sequence[Any], _: Any, __: Any) -> Work:
    """``softmax(Q K') V`` in one kernel: two products, each with two gradients.

    The gradient towards Q and K needs that of the scores first, which is charged to Q.
    """
    query, key, value = args[:3]
    pairs = query.numel() // query.shape[-1] * key.shape[-2]
    scores, mixing = 2.0 * pairs * query.shape[-1], 2.0 * pairs * value.shape[-1]
    gradients = ((query, scores + mixing), (key, scores), (value, mixing))
    return Work(scores + mixing, gradients)


def _embedding(args: Sequence[Any], _: Any, result: Tensor) -> Work:
    """Looking up is free; the gradient adds every looked-up row to the table's."""
    return Work(0.0, ((args[0], float(result.numel())),), weighs=True)


def _embedding_bag(args: Sequence[Any], _: Any, __: Any) -> Work:
    table, indices = args[:2]
    flops = float(indices.numel() * table.shape[-1])
    return Work(flops, ((table, flops),), weighs=True)


def _norm(scale: int) -> Callable[[Sequence[Any], Any, Any], Work]:
    """A norm whose scale is the argument of that number."""

    def formula(args: Sequence[Any], _: Any, __: Any) -> Work:
        inputs = args[0]
        gradients = [(inputs, NORM_FLOPS * inputs.numel())]
        if len(args) > scale and args[scale] is not None:
            gradients.append((args[scale], NORM_WEIGHT_FLOPS * inputs.numel()))
        return Work(NORM_FLOPS * inputs.numel(), tuple(gradients))

    return formula


def _lstm(args: Sequence[Any], _: Any, __: Any) -> Work:
    """One direction of one layer of an LSTM over ``[steps, n, features]``, as oneDNN runs it.

    ``args``: input, W_ih ``[4 h, features]``, W_hh ``[4 h, h]``, two biases, h_0, c_0. The first
    step multiplies a state of zeros, which is no function of the input: it is left out, as it is
    where torch runs a recurrent module step by step.
    """
    inputs, w_input, w_hidden = args[:3]
    steps = inputs.shape[0]
    rows = inputs.numel() / inputs.shape[-1]
    from_input = 2.0 * rows * w_input.numel()
    from_hidden = 2.0 * rows * w_hidden.numel() * (steps - 1) / steps
    gradients = ((inputs, from_input), (w_input, from_input), (w_hidden, from_hidden))
    return Work(from_input + from_hidden, gradients, inner=from_hidden, weighs=True)


def _fft(args: Sequence[Any], _: Any, result: Tensor) -> Work:
    """``5 N log2 N`` for each transform of N complex numbers, half of that for real ones.

    The radix-2 algorithm of Cooley and Tukey (1965), as FFT libraries count themselves.
    """
    inputs, dims = args[0], args[1]
    real = not (inputs.is_complex() and result.is_complex())
    longer = max((inputs, result), key=Tensor.numel)
    flops = 5.0 * longer.numel() * math.log2(math.prod(longer.shape[dim] for dim in dims))
    flops = flops / 2 if real else flops
    return Work(flops, ((inputs, flops),))


def _pointwise(args: Sequence[Any], _: Any, result: Any) -> Work:
    """One operation an element, and one for each gradient."""
    flops = float(result.numel()) if isinstance(result, Tensor) else 0.0
    gradients = tuple((arg, flops) for arg in args if isinstance(arg, Tensor))
    return Work(flops, gradients, pointwise=True, spares=True)


_FORMULAS: dict[str, Callable[[Sequence[Any], Any, Any], Work]] = {
    **dict.fromkeys(("mm", "mv", "dot", "vdot", "bmm", "matmul"), _mm),
    **dict.fromkeys(("addmm", "addmv", "baddbmm", "addbmm", "_addmm_activation"), _addmm),
    "linear": _linear,
    "convolution": _convolution,
    "convolution_overrideable": _convolution,
    **dict.fromkeys(
        (
            "scaled_dot_product_attention",
            "_scaled_dot_product_flash_attention_for_cpu",
            "_scaled_dot_product_flash_attention",
            "_scaled_dot_product_efficient_attention",
            "_scaled_dot_product_cudnn_attention",
            "_scaled_dot_product_fused_attention_overrideable",
        ),
        _attention,
    ),
    "embedding": _embedding,
    **dict.fromkeys(("_embedding_bag", "_embedding_bag_forward_only"), _embedding_bag),
    **dict.fromkeys(
        (
            "native_batch_norm",
            "_native_batch_norm_legit",
            "_batch_norm_with_update",
            "cudnn_batch_norm",
            "native_group_norm",
        ),
        _norm(1),
    ),
    **dict.fromkeys(("native_layer_norm", "rms_norm", "_fused_rms_norm"), _norm(2)),
    "mkldnn_rnn_layer": _lstm,
    **dict.fromkeys(("_fft_r2c", "_fft_c2r", "_fft_c2c"), _fft),
    **dict.fromkeys(("mul", "div", "pow", "addcmul", "addcdiv", "lerp"), _pointwise),
    **dict.fromkeys(("maximum", "minimum", "clamp", "clamp_min", "clamp_max"), _pointwise),
    "_prelu_kernel": _pointwise,
}

# May touch a parameter and data together, and cost nothing: sums with a bias, and moving data.
_FREE = frozenset(
    {"add", "sub", "rsub", "cat", "stack", "where", "copy", "masked_fill", "masked_scatter"}
    | {"index", "index_put", "index_copy", "index_add", "index_select", "gather", "scatter"}
    | {"scatter_add", "slice_scatter", "select_scatter", "fill", "expand_as", "view_as", "lift"}
)
