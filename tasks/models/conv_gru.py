"""Convolutions over time, then a GRU: sounds and readings of sensors on small boards."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

from tasks.inputs import Inputs
from tasks.models.fitting import values_of
from tasks.models.spec import ModelSpec
from tasks.preparation.log_mel import LogMel
from tasks.pretrained import from_file


class ConvGru(nn.Module):
    """Two convolutions that each halve the rate, a GRU, and a linear head on its mean state.

    Takes ``float32[n, time, channels]`` of any time from 4 on and gives ``float32[n, outputs]``.
    GroupNorm, not BatchNorm: clients differ too much to share statistics of batches.
    """

    def __init__(self, channels: int, outputs: int, width: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv1d(channels, width, 5, stride=2, padding=2)
        self.norm1 = nn.GroupNorm(4, width)
        self.conv2 = nn.Conv1d(width, width, 5, stride=2, padding=2)
        self.norm2 = nn.GroupNorm(4, width)
        self.gru = nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, outputs)

    def forward(self, series: Tensor) -> Tensor:
        """Logits of a batch."""
        hidden = series.transpose(1, 2)
        hidden = functional.relu(self.norm1(self.conv1(hidden)))
        hidden = functional.relu(self.norm2(self.conv2(hidden)))
        states, _ = self.gru(hidden.transpose(1, 2))
        logits: Tensor = self.head(states.mean(1))
        return logits


def _build_sensor(inputs: Inputs, outputs: int) -> nn.Module:
    _, channels = values_of(inputs, "sensor-gru", ("time", "channels"))
    return ConvGru(channels, outputs, width=48)


def _build_speech(inputs: Inputs, outputs: int) -> nn.Module:
    values_of(inputs, "speech-gru", ("samples",))
    return ConvGru(LogMel().bands, outputs, width=64)


# 27,703 parameters for 6 channels and 7 outputs.
SENSOR_GRU = ModelSpec(build=_build_sensor, load_pretrained=from_file(("head",)))
# Of sounds that :class:`tasks.preparation.log_mel.LogMel` prepares.
SPEECH_GRU = ModelSpec(build=_build_speech, load_pretrained=from_file(("head",)))
