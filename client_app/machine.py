"""What a real board measures of itself, behind a seam."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Protocol

from client_app.accelerator import Accelerator, accelerator_now
from client_app.link_log import Link, link_of
from client_app.probes.heat import heat_now
from client_app.probes.memory import free_memory_bytes
from client_app.speed import speed_key, sustained_flops_per_s
from device_profiles.system_files import SystemFiles

_log = logging.getLogger("fedfreeze")


class Machine(Protocol):
    """What a board can find out about itself; None is what it cannot."""

    def flops_per_s(self) -> float | None:
        """Sustained speed of a training step, in FLOP/s."""

    def memory_bytes(self) -> float | None:
        """What training may allocate now."""

    def link(self) -> Link:
        """How fast its last transfers were."""


class FakeMachine:
    """A machine that says what it was told.

    >>> FakeMachine(memory_bytes=1e9).flops_per_s() is None
    True
    """

    def __init__(
        self,
        *,
        flops_per_s: float | None = None,
        memory_bytes: float | None = None,
        link: Link | None = None,
    ) -> None:
        self._flops_per_s = flops_per_s
        self._memory_bytes = memory_bytes
        self._link = Link() if link is None else link

    def flops_per_s(self) -> float | None:
        """See :class:`Machine`."""
        return self._flops_per_s

    def memory_bytes(self) -> float | None:
        """See :class:`Machine`."""
        return self._memory_bytes

    def link(self) -> Link:
        """See :class:`Machine`."""
        return self._link


class ThisMachine:
    """The board that this process runs on.

    Args:
        state_dir: where the board keeps what it measured.
        device: ``local.device`` of the strategy: "auto", "cpu" or "cuda".
        system: its files.

    Raises:
        ConfigError: cuda was asked for and is not there.
    """

    def __init__(self, state_dir: Path, device: str, system: SystemFiles | None = None) -> None:
        self._folder = state_dir
        self._system = SystemFiles() if system is None else system
        self._gpu: Accelerator | None = accelerator_now(device)

    def flops_per_s(self) -> float | None:
        """See :class:`Machine`; the first time takes about a second."""
        device = "cpu" if self._gpu is None else "cuda"
        key = speed_key(self._system, device)
        if key.is_slowed:
            heat = heat_now(self._system)
            why = ", ".join(sorted(heat.flags or ())) or "heat"
            _log.warning(
                "this board runs below its clock (%s); `fedfreeze doctor` says what to do", why
            )

        def measure() -> float:
            import torch  # noqa: PLC0415  # costs a second and 150 MB: only to measure

            from client_app.benchmark import measured_flops_per_s  # noqa: PLC0415  # as above

            return measured_flops_per_s(torch.device(device))

        return sustained_flops_per_s(self._folder, key, measure)

    def memory_bytes(self) -> float | None:
        """See :class:`Machine`."""
        free_bytes = free_memory_bytes(self._system)
        return free_bytes if self._gpu is None else self._gpu.training_bytes(free_bytes)

    def link(self) -> Link:
        """See :class:`Machine`."""
        return link_of(self._folder)
