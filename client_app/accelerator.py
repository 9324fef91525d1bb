"""The memory of the GPU that torch would train on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Accelerator:
    """A GPU as the planner needs to know it.

    Attributes:
        free_bytes: of its memory, now.
        is_shared: whether that is the board's own memory, as on a Jetson.
    """

    free_bytes: int
    is_shared: bool

    def training_bytes(self, host_free_bytes: float) -> float:
        """What training may allocate: the GPU's own memory, or the tighter view of a shared one.

        SuperNode and this very process are running while it is asked, so that what they hold is
        not free any more.

        >>> Accelerator(free_bytes=6_000, is_shared=False).training_bytes(2_000)
        6000.0
        >>> Accelerator(free_bytes=6_000, is_shared=True).training_bytes(2_000)
        2000.0
        """
        return float(min(self.free_bytes, host_free_bytes) if self.is_shared else self.free_bytes)


def accelerator_now(wanted: str) -> Accelerator | None:
    """The GPU that ``local.device`` chooses; None where it chooses the processor.

    Args:
        wanted: "auto", "cpu" or "cuda"; only "cpu" does not import torch.

    Raises:
        ConfigError: cuda was asked for and is not there.
    """
    if wanted == "cpu":
        return None
    import torch  # noqa: PLC0415  # costs a second and 150 MB: only where a GPU may be

    from client_app.training import chosen_device  # noqa: PLC0415  # imports torch

    device = chosen_device(wanted)
    if device.type != "cuda":
        return None
    free_bytes, _ = torch.cuda.mem_get_info(device)
    shared = bool(torch.cuda.get_device_properties(device).is_integrated)
    return Accelerator(free_bytes=int(free_bytes), is_shared=shared)
