import os

import pytest

from cli.rounds import RunFigures, figures, read_rounds, score_of
from fedfreeze.errors import StateError


def test_the_score_of_a_run_is_the_mean_of_its_last_three_rounds():
    records = [{"test_accuracy": value} for value in (0.0, 0.25, 0.5, 0.75)]
    run = figures(records)
    assert (run.metric, run.score) == ("accuracy", 0.5)


def test_bytes_and_seconds_of_a_run_are_sums_and_the_virtual_clock_is_read_at_its_end():
    records = [
        {"upload_bytes": 10, "dense_upload_bytes": 1000, "wall_s": 0.5, "simulated_total_s": 3.0},
        {"upload_bytes": 30, "dense_upload_bytes": 1000, "wall_s": 1.5, "simulated_total_s": 5.0},
    ]
    run = figures(records)
    assert run == RunFigures(2, None, None, 40, 2000, 2.0, 5.0)
    assert run.upload_ratio == 50


def test_the_joules_of_a_run_are_read_at_its_end_and_unknown_where_boards_are_real():
    records = [{"modelled_energy_j": e, "modelled_energy_total_j": t} for e, t in ((2, 2), (3, 5))]
    assert figures(records).modelled_energy_total_j == 5
    assert figures([{"round": 1}]).modelled_energy_total_j is None


def test_the_ratio_of_all_traffic_counts_both_directions():
    record = {
        "upload_bytes": 10,
        "dense_upload_bytes": 1000,
        "download_bytes": 40,
        "dense_download_bytes": 1500,
    }
    run = figures([record, record])
    assert (run.download_bytes, run.dense_download_bytes) == (80, 3000)
    assert run.traffic_ratio == 50


@pytest.mark.parametrize(
    "gone", ["upload_bytes", "dense_upload_bytes", "download_bytes", "dense_download_bytes"]
)
def test_the_ratio_of_all_traffic_is_unknown_where_a_part_of_it_is(gone):
    record = {
        "upload_bytes": 10,
        "dense_upload_bytes": 1000,
        "download_bytes": 40,
        "dense_download_bytes": 1500,
    }
    del record[gone]
    assert figures([record]).traffic_ratio is None


def test_a_run_without_rounds_knows_nothing():
    run = figures([])
    assert run == RunFigures(0, None, None, None, None, None, None)
    assert run.upload_ratio is None


def test_a_line_that_is_still_being_written_is_not_read_yet(tmp_path):
    path = tmp_path / "rounds.jsonl"
    assert read_rounds(path) == []
    path.write_text('{"round": 1}\n{"round": 2}')
    assert read_rounds(path) == [{"round": 1}]
    path.write_text('{"round": 1}\n{"round": 2}\n')
    assert read_rounds(path) == [{"round": 1}, {"round": 2}]


@pytest.mark.parametrize("line", ["{", "3", "null", ""])
def test_a_complete_line_that_is_no_object_is_refused_with_its_number(tmp_path, line):
    path = tmp_path / "rounds.jsonl"
    path.write_text(f'{{"round": 1}}\n{line}\n')
    with pytest.raises(StateError) as caught:
        read_rounds(path)
    assert str(caught.value) == f"{path}:2: expected a JSON object, got {line!r}"


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (b'{"test_accuracy": 0.5}', "round: expected a whole number, got None"),
        (b'{"round": "1"}', "round: expected a whole number, got '1'"),
        (b'{"round": 1, "test_accuracy": "high"}', "test_accuracy: expected a number, got 'high'"),
        (b'{"round": 1, "test_r2": [1]}', "test_r2: expected a number, got [1]"),
        (b'{"round": 1, "upload_bytes": true}', "upload_bytes: expected a number, got True"),
        (b'{"round": 1, "rounds": {}}', "rounds: expected a number, got {}"),
        (b'{"round": 1, "x_energy_j": "7"}', "x_energy_j: expected a number, got '7'"),
        (
            b'{"round": 1, "note": "\xff"}',
            'expected a JSON object, got \'{"round": 1, "note": "\ufffd"}\'',
        ),
        (b"[" * 5000, f"expected a JSON object, got '{'[' * 99}"),
    ],
)
def test_a_line_that_is_no_record_of_a_round_is_refused_with_what_is_wrong(tmp_path, line, fault):
    path = tmp_path / "rounds.jsonl"
    path.write_bytes(line + b"\n")
    with pytest.raises(StateError) as caught:
        read_rounds(path)
    assert str(caught.value) == f"{path}:1: {fault}"


def test_rounds_that_are_no_file_are_refused(tmp_path):
    path = tmp_path / "rounds.jsonl"
    path.mkdir()
    with pytest.raises(StateError) as caught:
        read_rounds(path)
    why = os.strerror(21)  # EISDIR
    assert (
        str(caught.value) == f"{path}: expected a file that can be read, got: {why}; move it away"
    )


def test_a_figure_that_is_not_finite_is_absent(tmp_path):
    path = tmp_path / "rounds.jsonl"
    path.write_text(
        '{"round": 1, "test_accuracy": 0.5, "test_loss": NaN}\n'
        '{"round": 2, "test_accuracy": NaN, "upload_bytes": Infinity, "wall_s": 1e999}\n'
    )
    assert read_rounds(path) == [{"round": 1, "test_accuracy": 0.5}, {"round": 2}]
    assert figures(read_rounds(path)).score == 0.5


def test_a_loss_is_no_score_and_a_metric_may_begin_like_one():
    assert score_of({"test_loss": 0.1}) is None
    assert score_of({"test_loss": 0.1, "test_loss_rate": 0.2}) == ("loss_rate", 0.2)
    assert score_of({"validation_accuracy": 0.1}) is None


def test_only_rounds_with_the_latest_metric_are_averaged():
    records = [{"test_accuracy": 0.9}, {"test_r2": 0.5}, {"test_r2": 0.7}]
    run = figures(records)
    assert (run.metric, run.score) == ("r2", pytest.approx(0.6))
