"""Energies in mel bands, against the formulas and an FFT by numpy."""

import numpy as np
import pytest
import torch

from tasks.preparation.log_mel import LogMel, mel, mel_filters


def tone(hertz, samples=8000, amplitude=8000):
    """A sine at 8 kHz."""
    return (amplitude * np.sin(2 * np.pi * hertz * np.arange(samples) / 8000)).astype(np.int16)


def test_the_scale_has_the_published_fixed_points():
    # The scale is made so that 1000 Hz are 1000 mel, and 700 Hz double the argument of the log.
    assert mel(0.0) == 0.0
    assert mel(1000.0) == pytest.approx(1000.0, abs=0.02)
    assert mel(700.0) == pytest.approx(2595 * np.log10(2))


def test_neighbouring_bands_add_up_to_one_between_the_outer_centres():
    filters = mel_filters(8000, 4096, 32, 60.0, 4000.0)
    frequencies = np.arange(2049) * 8000 / 4096
    pitches = 2595 * np.log10(1 + frequencies / 700)
    step = (mel(4000.0) - mel(60.0)) / 33
    inner = (pitches >= mel(60.0) + step) & (pitches <= mel(4000.0) - step)
    np.testing.assert_allclose(filters.sum(0)[inner], 1.0, atol=1e-12)


def test_bands_have_no_weight_outside_their_range():
    filters = mel_filters(8000, 256, 8, 500.0, 2000.0)
    frequencies = np.arange(129) * 8000 / 256
    assert not filters[:, (frequencies <= 500) | (frequencies >= 2000)].any()
    assert (filters >= 0).all()


def test_every_band_of_the_default_hears_something():
    default = LogMel()
    filters = mel_filters(
        default.rate, default.window, default.bands, default.lowest, default.highest
    )
    assert (filters.sum(1) > 1).all()


@pytest.mark.parametrize("hertz", [250.0, 440.0, 1000.0, 2500.0, 3500.0])
def test_a_tone_is_loudest_in_the_band_whose_centre_is_nearest_in_pitch(hertz):
    prepared = LogMel()(torch.from_numpy(tone(hertz))[None])
    step = (mel(4000.0) - mel(60.0)) / 33
    nearest = round((mel(hertz) - mel(60.0)) / step) - 1
    assert set(prepared[0].argmax(1).tolist()) == {nearest}


def test_the_energies_are_those_of_frame_by_frame_ffts():
    rng = np.random.default_rng(0)
    sound = rng.integers(-20_000, 20_000, 1000).astype(np.int16)
    settings = LogMel(window=128, hop=100, bands=6, lowest=100.0, floor=1e-3, mean=-2.0, std=3.0)
    # The periodic Hann window: sin^2 with one period over the frame.
    window = np.sin(np.pi * np.arange(128) / 128) ** 2
    frames = [sound[start : start + 128] / 32768 * window for start in range(0, 873, 100)]
    power = np.abs(np.fft.rfft(frames)) ** 2
    energy = power @ mel_filters(8000, 128, 6, 100.0, 4000.0).T
    expected = (np.log(energy + 1e-3) + 2.0) / 3.0
    prepared = settings(torch.from_numpy(sound)[None])
    assert prepared.dtype == torch.float32
    np.testing.assert_allclose(prepared[0].numpy(), expected, atol=1e-4)


def test_silence_is_the_floor():
    prepared = LogMel(floor=1e-4, mean=1.0, std=2.0)(torch.zeros(2, 8000, dtype=torch.int16))
    assert prepared.shape == (2, 61, 32)
    torch.testing.assert_close(prepared, torch.full((2, 61, 32), (np.log(1e-4) - 1) / 2).float())


def test_a_louder_sound_has_the_same_shape_higher_up():
    quiet = LogMel(floor=1e-12, mean=0.0, std=1.0)(
        torch.from_numpy(tone(900, amplitude=2000))[None]
    )
    loud = LogMel(floor=1e-12, mean=0.0, std=1.0)(torch.from_numpy(tone(900, amplitude=8000))[None])
    loudest = quiet.argmax(2, keepdim=True)
    louder = loud.gather(2, loudest) - quiet.gather(2, loudest)
    # Four times the amplitude is sixteen times the energy.
    torch.testing.assert_close(louder, torch.full_like(louder, np.log(16)), atol=1e-2, rtol=0)


def test_settings_say_everything_that_the_user_of_an_exported_model_must_do():
    assert LogMel().describe() == {
        "kind": "log_mel",
        "scale": "htk",
        "window_shape": "hann",
        "rate": 8000,
        "window": 256,
        "hop": 128,
        "bands": 32,
        "lowest": 60.0,
        "highest": 4000.0,
        "floor": 1e-5,
        "mean": -8.5,
        "std": 4.2,
    }


def test_equal_settings_are_equal_and_hash_alike():
    assert LogMel(bands=8) == LogMel(bands=8)
    assert hash(LogMel(bands=8)) == hash(LogMel(bands=8))
