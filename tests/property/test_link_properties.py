"""A board's downlink, for every rate, clock and delay."""

from hypothesis import given
from hypothesis import strategies as st

from client_app.link_log import Arrival, downlink_bytes_per_s


@given(
    st.floats(1e3, 1e5),
    st.floats(-1e4, 1e4),
    st.lists(st.floats(0.0, 60.0), min_size=1, max_size=20),
)
def test_waiting_only_ever_makes_a_link_look_slower(rate, behind_s, waits_s):
    # One small message came without delay; every large one waited, too.
    large = [Arrival(10**7, 1e7 / rate + wait_s - behind_s) for wait_s in waits_s]
    small = Arrival(1000, 1000 / rate - behind_s)
    found = downlink_bytes_per_s([small, *large])
    assert found is not None
    assert found <= rate * (1 + 1e-6)
    assert found >= 1e7 / (1e7 / rate + 60.0) * (1 - 1e-3)


@given(st.floats(1e3, 1e5), st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=8))
def test_setting_the_clock_never_makes_a_link_look_slower_or_faster(rate, steps_s):
    # A small and a large message before each setting of the clock.
    arrivals, ahead_s = [], 0.0
    for step_s in steps_s:
        arrivals += [Arrival(n, n / rate + ahead_s, ahead_s) for n in (1000, 10**7)]
        ahead_s += step_s
    found = downlink_bytes_per_s(arrivals)
    took_s = (10**7 - 1000) / rate
    # Two settings a second apart may pass for one.
    assert 0.9 * rate <= found <= rate * took_s / (took_s - 1.001)
