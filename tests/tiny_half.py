"""The tiny task with a test half of noise: whoever decides anything by it decides otherwise.

Named ``tests.tiny_half`` in a strategy: as long as ``tests.tiny_task``, so that orders have as many
bytes. The half also has another size.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from tasks.dataset import Examples
from tests.tiny_task import task as tiny

EXAMPLES = 57


def _read(place):
    generator = torch.Generator().manual_seed(0)
    noise = Examples(
        100 * torch.randn(EXAMPLES, 1, 6, 6, generator=generator),
        torch.randint(0, 3, (EXAMPLES,), generator=generator),
    )
    return replace(tiny.read(place), test=noise)


task = replace(tiny, read=_read)
