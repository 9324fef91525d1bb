"""Why a plan is as it is: a reason for each layer that was given up, and the limit that binds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from fedfreeze.errors import PlanError
from fedfreeze.plan import Reason, ReasonCode
from fedfreeze.units import Dimension, written
from strategies.choice import Choice
from strategies.means import Means, Terms
from strategies.pieces import Pieces, summed
from strategies.shortages import Shortage, Use, most_strained, shortages

# Which limit is named as the one that binds, where several do.
PRECEDENCE: tuple[ReasonCode, ...] = ("memory", "uplink", "upload", "compute", "flops", "energy")


def given_up(means: Means, pieces: Pieces, choice: Choice) -> dict[str, Reason]:
    """Per free layer that does not train, the first limit that is short if it trained as well.

    At the easiest terms; for a layer that is worth nothing, at the plan's own.
    """
    others = [at for at in range(len(pieces.free)) if at not in choice.places]
    if not others:
        return {}
    chosen = np.zeros((len(pieces.free), len(others)), bool)
    chosen[list(choice.places)] = True
    chosen[others, np.arange(len(others))] = True
    flops = pieces.epoch_flops(chosen).tolist()
    packets = pieces.least_packet_bytes(chosen).tolist()
    parameters = summed(pieces.parameters, chosen).tolist()
    at_easiest, as_planned = (
        pieces.memory_bytes(chosen, splits).tolist()
        for splits in (means.limits.splits[-1], choice.terms.splits)
    )
    reasons = {}
    for column, at in enumerate(others):
        name, reaches = pieces.free[at], at < choice.places[0]
        rest = (flops[column], parameters[column], packets[column])
        use = Use(name, reaches, at_easiest[column], *rest)
        planned = Use(name, reaches, as_planned[column], *rest)
        short = next(shortages(means, use), None)
        if short is None:
            epochs, packet = choice.terms.epochs, choice.terms.packet_bytes
            short = next(shortages(means, planned, epochs, packet), None)
        reasons[name] = _reason(means, planned, short)
    return reasons


def binding(
    means: Means, trained: Sequence[str], terms: Terms, reasons: Iterable[Reason]
) -> ReasonCode | None:
    """The limit that shaped the plan: that took layers, epochs or bytes, or split batches."""
    limits = means.limits
    codes = {reason.code for reason in reasons}
    if terms.splits > limits.splits[0]:
        codes.add("memory")
    use = _use(means, trained, terms.splits)
    if terms.epochs < limits.epochs:
        more = shortages(means, use, terms.epochs + 1)
        codes |= {_code(short) for short in more}
    if terms.packet_bytes < limits.full_upload_bytes:
        if terms.packet_bytes == means.most_packet_bytes:
            codes.add(means.packet_limit)
        else:
            more = shortages(means, use, terms.epochs, terms.packet_bytes + 1)
            codes |= {_code(short) for short in more}
    return next((code for code in PRECEDENCE if code in codes), None)


def refusal(means: Means, free: Sequence[str]) -> PlanError:
    """Why not even one of these layers can train: the first limit of the one that comes closest."""
    tried = [(name, lacking(means, name)) for name in free]
    name, short = max(tried, key=lambda pair: (pair[1].turn, pair[1].has / pair[1].needs))
    if short.is_general:
        return PlanError(short.detail, short.limit)
    if means.limits.dense_bits is not None and short.limit == means.packet_limit:
        budget = written(means.most_packet_bytes, Dimension.BYTES)
        return PlanError(
            f'a dense update of no layer fits {budget}, that of "{name}" has '
            f'{written(short.needs, Dimension.BYTES)}; use mode = "sparse"',
            short.limit,
        )
    return PlanError(f'"{name}" alone: {short.detail}', short.limit)


def lacking(means: Means, layer: str) -> Shortage:
    """The first limit that keeps the board from training one layer alone, where one does."""
    return next(shortages(means, _use(means, [layer], means.limits.splits[-1])))


def _use(means: Means, trained: Sequence[str], splits: int) -> Use:
    return Use(
        layer=trained[0],
        reaches=True,
        memory_bytes=means.memory_bytes(trained, splits),
        epoch_flops=means.epoch_flops(trained),
        parameters=sum(means.layout[name].parameter_count for name in trained),
        least_packet_bytes=means.least_packet_bytes(trained),
    )


def _reason(means: Means, use: Use, short: Shortage | None) -> Reason:
    if short is None:  # to the last bit, and the arrays round otherwise
        return Reason(most_strained(means, use), "with this layer the limit would be passed")
    return Reason(_code(short), short.detail)


def _code(short: Shortage) -> ReasonCode:
    """A plan is not to blame for its download: it is the packet that a layer makes longer."""
    return next((code for code in PRECEDENCE if code == short.limit), "uplink")
