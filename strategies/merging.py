"""From the answers of a round to the next published model, or to a void round."""

from __future__ import annotations

from logging import WARNING

from flwr.common.logger import log

from fedfreeze.errors import FleetError
from fedfreeze.layout import Layout
from strategies.aggregation.alignment import collaborative_gains
from strategies.aggregation.step import global_step
from strategies.clients import Clients
from strategies.freeze.policy import ClientOutcome, RoundOutcome
from strategies.methods import Method
from strategies.published import Published
from strategies.round_result import RoundResult

# After so many void rounds in a row nothing is going to get better by itself.
MOST_VOID_ROUNDS = 3


class Quorum:
    """Says which rounds are void, and ends a run in which too many of them are in a row.

    Args:
        share: of the clients asked that must answer in time; who sat out does not count, nor who
            was away and was not asked.

    Attributes:
        void_rounds: in a row until now.
    """

    def __init__(self, share: float) -> None:
        self._share = share
        self.void_rounds = 0

    def is_met(self, arrived: int, expected: int, *, others_come: bool) -> bool:
        """Whether so many updates are enough to merge; counts the round if it is void.

        Args:
            arrived: in time.
            expected: that the server waited for.
            others_come: whether somebody who is away may come. Where nobody who was there could
                train, it may get better by itself then, and the round does not count.
        """
        if arrived and arrived >= self._share * expected:
            self.void_rounds = 0
            return True
        if expected or not others_come:
            self.void_rounds += 1
        return False

    @property
    def is_over(self) -> bool:
        """Whether the run ends for it."""
        return self.void_rounds >= MOST_VOID_ROUNDS

    def meets(self, result: RoundResult) -> bool:
        """Whether enough answered in time to merge; sets ``result.void``.

        Raises:
            FleetError: this is the third void round in a row.
        """
        arrived, expected = len(_in_time(result)), result.expected
        others_come = result.awaited_s is not None
        result.void = not self.is_met(arrived, expected, others_come=others_come)
        if not result.void:
            return True
        why = "; ".join(
            [f"{i}: {reason}" for i, reason in sorted(result.failed.items())]
            + [f"{i}: late" for i in result.late]
            + [f"{i} lost: {reason}" for i, reason in sorted(result.lost.items())]
            + [f"{i} sat out: {reason}" for i, reason in sorted(result.sat_out.items())]
            + [f"{i} away: {reason}" for i, reason in sorted(result.away.items())]
        )
        text = (
            f"round {result.number} is void: {arrived} of {expected} clients answered in time, "
            f"the quorum is {self._share:g} ({why or 'nobody was asked'})"
        )
        log(WARNING, text)
        if self.is_over:
            raise FleetError(f"{self.void_rounds} void rounds in a row; the last one: {text}")
        return False


def merged(
    result: RoundResult,
    published: Published,
    *,
    layout: Layout,
    method: Method,
    clients: Clients,
    learning_rate: float,
    reads_gains: bool = False,
) -> RoundOutcome:
    """Publish the next version from the updates that came in time, and accept their packets.

    The outcome is what the policy learns from; its validation loss is for others to measure.
    What each update brought is measured where somebody ``reads_gains``.

    Raises:
        RunError: the model would leave the finite numbers.
    """
    result.used = _in_time(result)
    updates = [u for i in result.used if (u := result.answers[i].update) is not None]
    step = global_step(layout, updates, method, published.arrays)
    if reads_gains:
        result.gains = collaborative_gains(layout, updates)
    published.advance(step.steps)
    for device_id in result.used:
        report = result.answers[device_id].report
        clients[device_id].accepted = (result.number, report.packet_digest)
    return RoundOutcome(
        number=result.number,
        learning_rate=learning_rate,
        clients={
            i: ClientOutcome(
                result.answers[i].plan,
                float(result.answers[i].report.examples),
                result.answers[i].measures,
            )
            for i in result.used
        },
        movement=step.movement,
        step_norm=step.norm,
        validation_loss=None,
    )


def _in_time(result: RoundResult) -> tuple[str, ...]:
    """In device-id order, so that the order of arrival changes no bit."""
    return tuple(sorted(set(result.answers) - set(result.late) - set(result.lost)))
