"""Running totals and the summary they give."""

import pytest

from server_app.totals import DenseBytes, Totals
from strategies.round_result import RoundResult
from tests.unit.strategies.samples import with_buffers


class Sent(RoundResult):
    """A round of which only the byte counts matter."""

    upload_bytes = 30
    upload_packet_bytes = 20
    download_bytes = 500


def after(scores):
    totals = Totals()
    for score in scores:
        totals.add(Sent(1), DenseBytes(600, 1_520), score, wall_s=0.5)
    return totals


def test_bytes_and_seconds_add_up_and_the_ratio_is_that_of_the_sums():
    assert after([0.1, 0.2]).summary("accuracy") == {
        "upload_bytes": 60,
        "upload_packet_bytes": 40,
        "download_bytes": 1_000,
        "dense_upload_bytes": 1_200,
        "dense_download_bytes": 3_040,
        "wall_s": 1.0,
        "void_rounds": 0,
        "test_accuracy_last_three": pytest.approx(0.15),
        "times_less_than_dense": 20.0,
        "traffic_times_less_than_dense": 4.0,
    }


def test_the_score_is_the_mean_of_the_last_three_rounds():
    summary = after([0.9, 0.1, 0.2, 0.6]).summary("accuracy")
    assert summary["test_accuracy_last_three"] == pytest.approx(0.3)


def test_what_is_not_known_yet_is_absent():
    summary = Totals().summary("accuracy")
    assert not any("times_less" in key for key in summary)
    assert "test_accuracy_last_three" not in summary


def test_dense_fedavg_sends_the_floats_up_and_everything_down():
    """4 + 1 parameters and 2 buffers of 4 bytes, 3 of 2 bytes, and a counter of 8 bytes."""
    result = RoundResult(1, asked=dict.fromkeys("abc"), answers=dict.fromkeys("ab"))
    assert DenseBytes.of(result, with_buffers()) == DenseBytes(2 * 34, 3 * 42)


def test_totals_go_on_from_a_checkpoint_as_if_nothing_had_happened():
    whole = after([0.1, 0.2, 0.3, 0.4])
    resumed = Totals(**after([0.1, 0.2]).to_json())
    for score in (0.3, 0.4):
        resumed.add(Sent(1), DenseBytes(600, 1_520), score, wall_s=0.5)
    assert resumed.summary("accuracy") == whole.summary("accuracy")
