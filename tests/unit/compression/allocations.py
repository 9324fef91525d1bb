"""The largest single allocation of a call, or rather a bound on it from above.

Python is traced instruction by instruction, and ``tracemalloc``'s peak is started anew at each. By
how much memory grew within one instruction bounds every block that was taken in it: names and
temporaries die between instructions, so within one hardly anything is given back before something
is taken. What numpy's functions written in Python do is traced as well; only what one function in
C takes in several blocks counts as one.
"""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass


@dataclass
class Growth:
    """By how many bytes memory grew most within one instruction, and in which line."""

    nbytes: int = 0
    where: str = "nowhere"


def largest_growth(function: Callable[[], object]) -> Growth:
    """Run the function; what it raises is raised."""
    found = Growth()
    base, place = 0, ""

    def look(frame, event, argument):
        nonlocal base, place
        _, peak = tracemalloc.get_traced_memory()
        if peak - base > found.nbytes:
            found.nbytes, found.where = peak - base, place
        if event == "call":
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
        code = frame.f_code
        place = f"{code.co_filename}:{frame.f_lineno} ({code.co_name})"
        tracemalloc.reset_peak()
        base, _ = tracemalloc.get_traced_memory()
        return look

    before = sys.gettrace()
    tracemalloc.start()
    base, _ = tracemalloc.get_traced_memory()
    sys.settrace(look)
    try:
        function()
    finally:
        sys.settrace(before)
        tracemalloc.stop()
    return found
