"""Fused attention, rewritten into separate projections with identical outputs.

One matrix that holds query, key and value cannot freeze by thirds: weight decay and momentum would
move the frozen rows, and an update would carry them. So it is split before anything else sees the
model, after pretrained weights were loaded:

- timm's attentions keep their class; their ``qkv`` becomes a module with the children ``q``, ``k``
  and ``v`` that gives the same tensor;
- ``torch.nn.MultiheadAttention`` becomes :class:`tasks.tracing.multihead.SplitMultiheadAttention`;
- torchvision's Swin attention becomes :class:`tasks.tracing.swin.SplitWindowAttention`.

What is fused otherwise stays whole, its block is one layer, and the log says why.
"""

from __future__ import annotations

import logging

from torch import nn

from tasks.tracing.globs import listed
from tasks.tracing.multihead import SplitMultiheadAttention
from tasks.tracing.projections import SplitProjection
from tasks.tracing.swin import SplitWindowAttention, is_window_attention
from tasks.tracing.units import tensors_of

log = logging.getLogger(__name__)

# Attentions of timm that call ``self.qkv(x)`` once and read query, key and value from its thirds.
_THIRDS = frozenset(
    {
        "timm.layers.attention.Attention",
        "timm.layers.attention.AttentionRope",
        "timm.layers.diff_attention.DiffAttention",
        "timm.models.beit.Attention",
        "timm.models.cait.TalkingHeadAttn",
        "timm.models.coat.FactorAttnConvRelPosEnc",
        "timm.models.convit.MHSA",
        "timm.models.edgenext.CrossCovarianceAttn",
        "timm.models.eva.EvaAttention",
        "timm.models.fastvit.Attention",
        "timm.models.metaformer.Attention",
        "timm.models.nest.Attention",
        "timm.models.swin_transformer.WindowAttention",
        "timm.models.swin_transformer_v2.WindowAttention",
        "timm.models.swin_transformer_v2_cr.WindowMultiHeadAttention",
        "timm.models.twins.LocallyGroupedAttn",
        "timm.models.vision_transformer.Attention",
        "timm.models.vision_transformer_sam.Attention",
        "timm.models.volo.Attention",
        "timm.models.xcit.XCA",
    }
)
_FUSED_NAMES = frozenset(
    {"qkv", "to_qkv", "Wqkv", "qkv_proj", "in_proj", "c_attn", "query_key_value"}
    | {"kv", "to_kv", "kv_proj"}
)


def split_attention(model: nn.Module) -> nn.Module:
    """The model with every fused attention split, in place; a new one if it is itself attention.

    Hooks on what is replaced are lost; put them on afterwards.
    """
    whole: dict[tuple[str, str], list[str]] = {}
    replaced: dict[nn.Module, nn.Module] = {}
    for path, module in list(model.named_modules()):
        if (split := _replacement(module)) is not None:
            replaced[module] = split.train(module.training)
        elif _is_thirds(module):
            _split_thirds(module)
        elif why := _why_whole(module):
            whole.setdefault((type(module).__name__, why), []).append(path)
    for parent in list(model.modules()):
        # named_children() passes over a module that stands under two names.
        for name, child in list(parent._modules.items()):  # noqa: SLF001
            if child in replaced:
                setattr(parent, name, replaced[child])
    for module in model.modules():
        if isinstance(module, nn.TransformerEncoder) and not _has_fused(module):
            # Its short cut for padded batches reads the fused weights.
            module.enable_nested_tensor = module.use_nested_tensor = False
    for (kind, why), paths in whole.items():
        log.info(
            "attention of class %s is not split into query, key and value, because %s; "
            "it freezes as a whole: %s",
            kind,
            why,
            listed(paths),
        )
    return replaced.get(model, model)


def _replacement(module: nn.Module) -> nn.Module | None:
    """What stands in for the module; None if it stays."""
    if isinstance(module, nn.MultiheadAttention) and not _is_changed(module):
        return SplitMultiheadAttention(module)
    return SplitWindowAttention(module) if is_window_attention(module) else None


def _is_changed(attention: nn.MultiheadAttention) -> bool:
    return type(attention).forward is not nn.MultiheadAttention.forward


def _why_whole(module: nn.Module) -> str:
    """Why an attention is not split; empty if it is none, or nothing in it is fused."""
    if isinstance(module, nn.MultiheadAttention):
        return "the class changes what torch's MultiheadAttention computes"
    fused = [name for name, child in module.named_children() if name in _FUSED_NAMES]
    if any(tensors_of(module.get_submodule(name), "") for name in fused):
        known = isinstance(module.get_submodule(fused[0]), SplitProjection)
        return "" if known else f'it is not known how "{fused[0]}" is laid out'
    return ""


def _is_thirds(module: nn.Module) -> bool:
    known = [
        kind for kind in type(module).__mro__ if f"{kind.__module__}.{kind.__qualname__}" in _THIRDS
    ]
    fused = getattr(module, "qkv", None)
    return (
        bool(known)
        and type(module).forward is vars(known[0])["forward"]
        and isinstance(fused, nn.Linear)
        and fused.out_features % 3 == 0
    )


def _split_thirds(module: nn.Module) -> None:
    fused = module.qkv
    assert isinstance(fused, nn.Linear)
    query, value = getattr(module, "q_bias", None), getattr(module, "v_bias", None)
    if query is None or value is None:
        module.qkv = SplitProjection(fused).train(module.training)
        return
    # The bias of the keys is a buffer of zeros: it would shift all scores of a query alike.
    module.qkv = SplitProjection(fused, (query, None, value)).train(module.training)
    module.register_parameter("q_bias", None)
    module.register_parameter("v_bias", None)


def _has_fused(module: nn.Module) -> bool:
    return any(isinstance(below, nn.MultiheadAttention) for below in module.modules())
