import pytest

from strategies.schedule import learning_rate
from strategies.tables import Local


def rates(rounds, **keys):
    local = Local(learning_rate=0.8, **keys)
    return [learning_rate(local, number, rounds) for number in range(1, rounds + 1)]


def test_a_constant_rate_is_constant():
    assert rates(3) == [0.8, 0.8, 0.8]


def test_the_warm_up_rises_linearly_and_reaches_the_full_rate_in_its_last_round():
    assert rates(5, warm_up_rounds=4) == pytest.approx([0.2, 0.4, 0.6, 0.8, 0.8])


@pytest.mark.parametrize("warm_up_rounds", [0, 1])
def test_without_a_warm_up_round_1_has_the_full_rate(warm_up_rounds):
    for schedule in ("constant", "step", "inverse", "cosine"):
        assert rates(4, schedule=schedule, warm_up_rounds=warm_up_rounds)[0] == 0.8


def test_cosine_is_half_way_in_the_middle_and_ends_at_its_final_share():
    """cos(0) = 1, cos(pi/2) = 0, cos(pi) = -1."""
    falling = rates(5, schedule="cosine", final_share=0.25)
    assert falling[0] == 0.8
    assert falling[2] == pytest.approx((0.8 + 0.2) / 2)
    assert falling[4] == pytest.approx(0.2)


def test_cosine_begins_to_fall_after_the_warm_up():
    rate = rates(5, schedule="cosine", final_share=0.0, warm_up_rounds=3)
    assert rate == pytest.approx([0.8 / 3, 1.6 / 3, 0.8, 0.4, 0.0])


def test_cosine_stays_at_its_end_when_a_run_goes_on():
    local = Local(learning_rate=0.8, schedule="cosine", final_share=0.5)
    assert learning_rate(local, 9, 5) == pytest.approx(0.4)


def test_cosine_of_a_run_that_ends_with_its_warm_up_does_not_fall():
    assert rates(2, schedule="cosine", warm_up_rounds=2) == pytest.approx([0.4, 0.8])
    assert rates(1, schedule="cosine") == [0.8]


def test_a_step_multiplies_after_every_so_many_rounds():
    rate = rates(5, schedule="step", step_rounds=2, step_factor=0.5)
    assert rate == pytest.approx([0.8, 0.8, 0.4, 0.4, 0.2])


def test_inverse_divides_by_one_plus_decay_times_rounds():
    rate = rates(3, schedule="inverse", inverse_decay=1.0)
    assert rate == pytest.approx([0.8, 0.4, 0.8 / 3])
