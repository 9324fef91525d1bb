"""A section of the benchmark: what it measured, its target, and whether that holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Say = Callable[[str], None]


@dataclass(frozen=True)
class Section:
    """The end of a section.

    Attributes:
        target: in words.
        found: what stands against it, in words.
        holds: None where no target was agreed on.
        figures: for ``--json``.
    """

    target: str
    found: str
    holds: bool | None
    figures: dict[str, Any] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        """One line.

        >>> Section("within 2 %", "worst 1.3 %", True).verdict
        'target: within 2 %; worst 1.3 %: holds'
        """
        ends = {True: ": holds", False: ": DOES NOT HOLD", None: ""}
        return f"target: {self.target}; {self.found}{ends[self.holds]}"
