import pytest

from cli.predictions import prediction_lines, predictions_of


def off(median, worst, count=60):
    return {"count": count, "median_error": median, "worst_error": worst}


BYTES = {"upload_bytes": off(0.081, 0.214), "download_bytes": off(0.002, -0.004)}
BOARDS = {
    "memory_bytes": off(0.12, -0.31),
    "compute_s": off(0.4, 1.5, 59),
    "energy_j": off(0.0951, 0.0996),
}


def test_a_simulation_is_said_in_one_line_and_real_boards_in_two():
    line = (
        "predicted  bytes up 8.1 % off (worst +21 % of 60), "
        "bytes down 0.2 % off (worst -0.4 % of 60)"
    )
    assert prediction_lines(BYTES) == [line]
    assert prediction_lines({**BOARDS, **BYTES}) == [
        line,
        (
            "           memory 12 % off (worst -31 % of 60), "
            "compute 40 % off (worst +150 % of 59), joules 9.5 % off (worst +10 % of 60)"
        ),
    ]


def test_where_nothing_was_measured_nothing_is_said():
    assert prediction_lines({}) == []


def test_boards_without_bytes_are_said_under_the_same_word():
    assert prediction_lines({"download_s": off(0.5, 0.5, 1)}) == [
        "predicted  download 50 % off (worst +50 % of 1)"
    ]


@pytest.mark.parametrize(
    "summary",
    [
        None,
        {},
        {"predictions": None},
        {"predictions": [1]},
        {"predictions": {"upload_bytes": None}},
        {"predictions": {"upload_bytes": {"count": 1, "median_error": 0.1}}},
        {"predictions": {"upload_bytes": off(0.1, float("inf"))}},
        {"predictions": {"upload_bytes": off(0.1, "much")}},
        {"predictions": {"upload_bytes": off(0.1, True)}},
        {"predictions": {"upload_bytes": {**off(0.1, 0.1), "more": 1}}},
    ],
    ids=str,
)
def test_what_is_no_prediction_is_left_out(summary):
    assert predictions_of(summary) == {}


def test_predictions_are_read_as_they_were_written():
    assert predictions_of({"wall_s": 1.0, "predictions": BYTES}) == BYTES
