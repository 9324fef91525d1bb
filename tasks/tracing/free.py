"""Operators between activations that cost nothing by convention.

They touch every element a few times: everything pointwise, sums and the like along a dimension,
pooling, and what only moves, makes or compares data. Against the matrix products and convolutions
beside them that is a few per cent at most. Whatever is neither here nor among the formulas of
:mod:`tasks.tracing.flops` is an error: an operator that nobody thought of must not count as 0.
"""

from __future__ import annotations

from typing import Any

import torch

# Pointwise, and not marked as that by torch.
_POINTWISE = frozenset(
    {"hardswish", "log_sigmoid_forward", "complex", "polar", "mse_loss", "smooth_l1_loss"}
    | {"huber_loss", "soft_margin_loss", "binary_cross_entropy", "cross", "kl_div"}
    | {"binary_cross_entropy_with_logits", "nll_loss_forward", "nll_loss2d_forward"}
)

# Along a dimension, once over the data.
_REDUCTIONS = frozenset(
    {"sum", "nansum", "mean", "nanmean", "prod", "std", "var", "var_mean", "std_mean", "norm"}
    | {"linalg_vector_norm", "logsumexp", "amax", "amin", "aminmax", "max", "min", "median"}
    | {"nanmedian", "mode", "argmax", "argmin", "any", "all", "count_nonzero", "cumsum", "cumprod"}
    | {"cummax", "cummin", "_cummax_helper", "_cummin_helper", "logcumsumexp", "_logcumsumexp"}
    | {"_softmax", "_log_softmax", "_safe_softmax", "softmax", "log_softmax", "_masked_softmax"}
    | {"sort", "topk", "kthvalue", "bincount", "histc", "unique_dim", "_unique2", "diff"}
    | {"unique_consecutive", "searchsorted", "bucketize", "renorm", "segment_reduce", "equal"}
)

_POOLING = frozenset(
    {"max_pool2d_with_indices", "max_pool3d_with_indices", "max_pool2d", "mkldnn_max_pool2d"}
    | {"mkldnn_max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d", "_adaptive_avg_pool2d"}
    | {"_adaptive_avg_pool3d", "mkldnn_adaptive_avg_pool2d", "adaptive_max_pool2d"}
    | {"adaptive_max_pool3d", "fractional_max_pool2d", "fractional_max_pool3d", "glu"}
)

# Copies, with or without another order, size or type.
_MOVES = frozenset(
    {"copy", "clone", "contiguous", "cat", "stack", "repeat", "repeat_interleave", "roll", "flip"}
    | {"rot90", "take", "take_along_dim", "index", "index_put", "index_copy", "index_add"}
    | {"index_fill", "index_select", "index_reduce", "_unsafe_index", "_unsafe_index_put"}
    | {"_unsafe_masked_index", "_unsafe_masked_index_put_accumulate", "_index_put_impl", "gather"}
    | {"scatter", "scatter_add", "scatter_reduce", "masked_fill", "masked_scatter"}
    | {"masked_select", "put", "slice_scatter", "select_scatter", "diagonal_scatter"}
    | {"as_strided_scatter", "constant_pad_nd", "reflection_pad1d", "reflection_pad2d"}
    | {"reflection_pad3d", "replication_pad1d", "replication_pad2d", "replication_pad3d"}
    | {"pixel_shuffle", "pixel_unshuffle", "channel_shuffle", "native_channel_shuffle", "im2col"}
    | {"col2im", "tril", "triu", "diag_embed", "block_diag", "where", "nonzero", "one_hot"}
    | {"upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d", "upsample_linear1d"}
    | {"upsample_bilinear2d", "upsample_bicubic2d", "upsample_trilinear3d", "grid_sampler_2d"}
    | {"grid_sampler_3d", "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"}
    | {"_upsample_nearest_exact1d", "_upsample_nearest_exact2d", "_upsample_nearest_exact3d"}
    | {"_pack_padded_sequence", "_pad_packed_sequence", "_padded_dense_to_jagged_forward"}
    | {
        "transpose",
        "t",
        "squeeze",
        "unsqueeze",
        "swapdims",
        "swapaxes",
        "as_strided",
        "unsafe_split",
    }
    | {
        "unsafe_split_with_sizes",
        "unsafe_chunk",
        "set",
        "resize",
        "resize_as",
        "lift",
        "lift_fresh",
        "lift_fresh_copy",
        "_unsafe_view",
    }
    | {"view_as_real_copy", "view_as_complex_copy", "_conj_physical", "resolve_conj"}
    | {"_to_copy", "_reshape_copy", "expand_copy", "_local_scalar_dense", "is_nonzero"}
    | {"_assert_async", "_assert_scalar", "_has_same_storage_numel", "is_same_size", "fill", "zero"}
)

_RANDOM = frozenset(
    {"bernoulli", "uniform", "normal", "random", "exponential", "geometric", "log_normal"}
    | {"cauchy", "multinomial", "native_dropout", "_fused_dropout", "rrelu_with_noise"}
    | {"_standard_gamma", "_sample_dirichlet", "poisson", "binomial"}
)

_FREE = _POINTWISE | _REDUCTIONS | _POOLING | _MOVES | _RANDOM
# Of these a new tensor takes at most shape and type.
_FACTORY_PARTS = ("empty", "zeros", "ones", "full", "rand", "arange", "eye", "linspace", "new_")


def is_free(func: Any, name: str) -> bool:
    """Whether the operator may work on activations and count as nothing.

    Args:
        func: torch's overload.
        name: its base name (:func:`tasks.tracing.flops.base_name`).
    """
    if func.namespace not in ("aten", "prims"):
        return False
    return (
        name in _FREE
        or name.startswith(_FACTORY_PARTS)
        or _is_view(func)
        or _is_pointwise(func, name)
    )


def _is_view(func: Any) -> bool:
    returns = func._schema.returns  # noqa: SLF001
    return any(one.alias_info is not None and not one.alias_info.is_write for one in returns)


def _is_pointwise(func: Any, name: str) -> bool:
    """By torch's own mark, which some overloads in place lack."""
    if torch.Tag.pointwise in func.tags:
        return True
    packet = getattr(getattr(torch.ops, func.namespace), name, None)
    return packet is not None and any(
        torch.Tag.pointwise in getattr(packet, overload).tags for overload in packet.overloads()
    )
