"""Convolutions and a GRU over time."""

import pytest
import torch

from fedfreeze.errors import ConfigError
from tasks.inputs import Tokens, Values
from tasks.models.conv_gru import SENSOR_GRU, SPEECH_GRU
from tasks.preparation.log_mel import LogMel


@pytest.mark.parametrize(
    ("spec", "inputs", "channels", "outputs", "width"),
    [
        (SENSOR_GRU, Values((50, 6), torch.int16), 6, 7, 48),
        (SPEECH_GRU, Values((8000,), torch.int16), 32, 10, 64),
    ],
)
def test_parameters_are_those_of_the_described_network(spec, inputs, channels, outputs, width):
    convolutions = (5 * channels + 1) * width + (5 * width + 1) * width
    norms, gru = 2 * 2 * width, 3 * width * (2 * width + 2)
    expected = convolutions + norms + gru + (width + 1) * outputs
    model = spec.build(inputs, outputs)
    assert sum(p.numel() for p in model.parameters()) == expected


def test_sounds_of_any_length_give_logits():
    torch.manual_seed(0)
    model = SPEECH_GRU.build(Values((8000,), torch.int16), 10)
    for samples in (8000, 3000):
        sound = Values((samples,), torch.int16).example(2)
        assert model(LogMel()(sound)).shape == (2, 10)


def test_an_example_is_not_changed_by_the_others_of_its_batch():
    torch.manual_seed(0)
    model = SENSOR_GRU.build(Values((50, 6)), 7).train()
    series = torch.randn(3, 50, 6)
    torch.testing.assert_close(model(series)[:1], model(series[:1]))


def test_the_direction_of_time_matters():
    torch.manual_seed(0)
    model = SENSOR_GRU.build(Values((50, 6)), 7)
    series = torch.randn(1, 50, 6)
    assert not torch.allclose(model(series), model(series.flip(1)), atol=1e-3)


def test_other_inputs_are_refused():
    with pytest.raises(ConfigError) as caught:
        SENSOR_GRU.build(Values((8000,)), 7)
    assert str(caught.value) == (
        'model.name: "sensor-gru" takes numbers with axes time, channels, the task gives '
        "Values(shape=(8000,), dtype=torch.float32); choose another model"
    )
    with pytest.raises(ConfigError) as caught:
        SPEECH_GRU.build(Tokens(9, 9), 7)
    assert str(caught.value) == (
        'model.name: "speech-gru" takes numbers with axes samples, the task gives '
        "Tokens(vocabulary=9, length=9); choose another model"
    )
