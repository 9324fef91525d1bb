"""From power to energy."""

import pytest

from device_profiles.energy.integral import Sample, energy_j, gaps_s, sample_rate_hz


def test_power_that_grows_evenly_is_integrated_exactly():
    # P = 3 t + 1 over 0 ... 10 s: 3/2 100 + 10 J, wherever the samples lie.
    times = [0.0, 0.5, 1.0, 4.0, 9.5, 10.0]
    assert energy_j([Sample(t, 3 * t + 1) for t in times]) == pytest.approx(160.0)


def test_a_curved_power_is_integrated_to_the_rules_error():
    # P = t^2 over 0 ... 1 s in n steps: 1/3 + 1/(6 n^2) by the trapezoid rule.
    steps = 50
    samples = [Sample(k / steps, (k / steps) ** 2) for k in range(steps + 1)]
    assert energy_j(samples) == pytest.approx(1 / 3 + 1 / (6 * steps**2))


@pytest.mark.parametrize("samples", [[], [Sample(5.0, 3.0)]])
def test_fewer_than_two_samples_are_no_energy(samples):
    assert energy_j(samples) is None
    assert sample_rate_hz([s.at_s for s in samples]) is None


def test_a_rate_is_the_intervals_over_their_time():
    assert sample_rate_hz([10.0, 10.5, 11.5, 12.0]) == 1.5
    assert sample_rate_hz([10.0, 10.0]) is None


def test_gaps_are_what_lies_more_than_three_intervals_apart():
    assert gaps_s([0.0, 1.0, 4.0, 7.5, 8.0, 20.0], interval_s=1.0) == 3.5 + 12.0
    assert gaps_s([0.0, 1.0, 2.0], interval_s=1.0) == 0.0
    assert gaps_s([], interval_s=1.0) == 0.0
