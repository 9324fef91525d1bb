"""A task that trains in milliseconds and whose packets are not lost among their envelopes.

Named ``tests.wide_task`` in a strategy. Its layers differ a hundredfold in size; two of them hold
running statistics.
"""

from __future__ import annotations

from dataclasses import replace

from torch import nn

from tests import tiny_task


class WideNet(nn.Module):
    """``float32[n, 1, 6, 6]`` to logits ``float32[n, 3]``, with about 7,000 parameters."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Flatten(), nn.Linear(36, 64, bias=False), nn.BatchNorm1d(64))
        self.body = nn.Sequential(nn.ReLU(), nn.Linear(64, 64), tiny_task.Scale())
        self.norm = nn.BatchNorm1d(64)
        self.head = nn.Sequential(nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 3))

    def forward(self, images):
        return self.head(self.norm(self.body(self.stem(images))))


task = replace(tiny_task.task, name="tests.wide_task", model=WideNet)
