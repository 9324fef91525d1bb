"""What bounds one client's round: what the strategy asks, and what the round carries."""

from __future__ import annotations

from dataclasses import dataclass

from device_profiles.board import Board, boards, load_board


@dataclass(frozen=True)
class Limits:
    """What the strategy asks of every client, before its board is looked at.

    Attributes:
        epochs, batch_size: of local training.
        optimizer_slots: values that the optimizer keeps per parameter.
        upload_time_s: how long a board's uplink may be busy with the update.
        full_upload_bytes: packet size that the strategy allows a board with ample uplink.
        dense_bits: bits per value of a dense packet; None for a sparse one.
        deadline_s: simulated seconds for download, training and upload.
        smallest_packet_bytes: below it a packet carries nothing; float buffers come on top.
        splits: into how many parts a batch may be computed, ascending from 1.
        flops_per_round: most operations that training may take; None for no limit, as below.
        upload_bytes_per_round: most bytes of a reply, with everything that it holds.
        energy_j_per_round: most joules that transfers and training may take.
    """

    epochs: int
    batch_size: int
    optimizer_slots: int
    upload_time_s: float
    full_upload_bytes: int
    dense_bits: int | None
    deadline_s: float
    smallest_packet_bytes: int
    splits: tuple[int, ...] = (1,)
    flops_per_round: float | None = None
    upload_bytes_per_round: int | None = None
    energy_j_per_round: float | None = None


@dataclass(frozen=True)
class Load:
    """What one client's round carries.

    Attributes:
        examples: that the client trains on.
        download_bytes: of the message that brings the plan and the layers.
        envelope_bytes: of the reply without its packet, as last measured.
        board: whose watts joules are counted with; None where nobody knows them.
    """

    examples: int
    download_bytes: int
    envelope_bytes: int
    board: Board | None = None


def splits_of(batch_size: int, *, least: int) -> tuple[int, ...]:
    """Into how many parts a batch can be computed: 1, 2, 4, ... and as many as there can be.

    Args:
        batch_size: examples in a step.
        least: examples that a part must have.

    >>> splits_of(10, least=1), splits_of(10, least=2)
    ((1, 2, 4, 8, 10), (1, 2, 4, 5))
    """
    most = max(1, batch_size // least)
    powers = tuple(2**n for n in range(most.bit_length()) if 2**n < most)
    return (*powers, most)


def board_for(limits: Limits, profile: str) -> Board | None:
    """The board whose watts count: of a profile that ships, and only where joules are limited."""
    if limits.energy_j_per_round is None or profile not in boards():
        return None
    return load_board(profile)
