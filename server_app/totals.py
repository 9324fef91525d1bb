"""Running totals of a run, and the summary that they give."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from fedfreeze.layout import Layout
from strategies.round_result import RoundResult

LAST = 3


@dataclass(frozen=True)
class DenseBytes:
    """What dense FedAvg would send for the same replies and orders, without envelopes."""

    upload: int
    download: int

    @classmethod
    def of(cls, result: RoundResult, layout: Layout) -> DenseBytes:
        """Up, all that travels for each reply; down, the whole model for each order."""
        tensors = layout.tensors.values()
        return cls(
            upload=sum(t.nbytes for t in tensors if t.travels) * len(result.answers),
            download=sum(t.nbytes for t in tensors) * len(result.asked),
        )


@dataclass
class Totals:
    """What the summary needs of every round so far.

    Attributes:
        last_scores: test scores of the last three rounds.
    """

    upload_bytes: int = 0
    upload_packet_bytes: int = 0
    download_bytes: int = 0
    dense_upload_bytes: int = 0
    dense_download_bytes: int = 0
    wall_s: float = 0.0
    void_rounds: int = 0
    last_scores: list[float] = field(default_factory=list)

    def add(self, result: RoundResult, dense: DenseBytes, score: float, wall_s: float) -> None:
        """Count one round."""
        self.upload_bytes += result.upload_bytes
        self.upload_packet_bytes += result.upload_packet_bytes
        self.download_bytes += result.download_bytes
        self.dense_upload_bytes += dense.upload
        self.dense_download_bytes += dense.download
        self.wall_s += wall_s
        self.void_rounds += result.void
        self.last_scores = [*self.last_scores, score][-LAST:]

    def to_json(self) -> dict[str, Any]:
        """For the checkpoint."""
        return asdict(self)

    def summary(self, metric: str) -> dict[str, Any]:
        """For ``status.json``; the ratios are absent while nothing was sent up."""
        summary: dict[str, Any] = {
            "upload_bytes": self.upload_bytes,
            "upload_packet_bytes": self.upload_packet_bytes,
            "download_bytes": self.download_bytes,
            "dense_upload_bytes": self.dense_upload_bytes,
            "dense_download_bytes": self.dense_download_bytes,
            "wall_s": self.wall_s,
            "void_rounds": self.void_rounds,
        }
        if self.last_scores:
            summary[f"test_{metric}_last_three"] = sum(self.last_scores) / len(self.last_scores)
        if self.upload_bytes:
            summary["times_less_than_dense"] = self.dense_upload_bytes / self.upload_bytes
            dense_bytes = self.dense_upload_bytes + self.dense_download_bytes
            traffic_bytes = self.upload_bytes + self.download_bytes
            summary["traffic_times_less_than_dense"] = dense_bytes / traffic_bytes
        return summary
