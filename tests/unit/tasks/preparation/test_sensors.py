"""Readings of sensors."""

import torch

from tasks.preparation.sensors import Scale


def test_each_channel_is_multiplied_by_its_factor():
    readings = torch.tensor([[[256, -3], [512, 4]]], dtype=torch.int16)
    prepared = Scale((1 / 256, 2.0))(readings)
    assert prepared.dtype == torch.float32
    assert prepared.tolist() == [[[1.0, -6.0], [2.0, 8.0]]]


def test_the_factors_are_told():
    assert Scale((0.5, 2.0)).describe() == {"kind": "scale", "factors": (0.5, 2.0)}
