import json

import pytest

from cli.progress import (
    RunFigures,
    figures,
    last_words,
    read_rounds,
    round_line,
    summary_lines,
    without_colours,
)
from fedfreeze.errors import StateError

FULL = {
    "round": 7,
    "rounds": 30,
    "test_accuracy": 0.7123,
    "test_loss": 0.812,
    "clients_used": 10,
    "clients_failed": 0,
    "clients_late": 0,
    "clients_sat_out": 0,
    "frozen_share": 0.34,
    "upload_bytes": 58_000,
    "dense_upload_bytes": 4_118_000,
    "simulated_s": 12.3,
}


def test_a_round_is_one_line_with_all_its_figures():
    assert round_line(FULL) == (
        "round  7/30  accuracy 0.712  loss 0.81  clients 10 used 0 failed  frozen 34 %  "
        "up 58 kB (71x less than dense)  simulated 12.3 s"
    )


def test_late_and_resting_clients_are_named_only_where_there_are_some():
    line = round_line({**FULL, "clients_late": 2, "clients_sat_out": 1})
    assert "clients 10 used 0 failed 2 late 1 sat out  " in line


@pytest.mark.parametrize("gone", sorted(set(FULL) - {"round"}))
def test_an_unknown_figure_is_left_out_and_never_shown_as_0(gone):
    record = {key: value for key, value in FULL.items() if key != gone}
    line = round_line(record)
    assert "None" not in line
    assert "nan" not in line


def test_a_round_in_which_nothing_was_sent_claims_no_ratio():
    assert round_line({**FULL, "upload_bytes": 0}).endswith("up 0 B  simulated 12.3 s")


def test_a_small_ratio_keeps_one_digit():
    assert "(1.5x less than dense)" in round_line({**FULL, "dense_upload_bytes": 87_000})


def test_the_accuracy_of_a_run_is_the_mean_of_its_last_three_rounds():
    records = [{"test_accuracy": value} for value in (0.0, 0.25, 0.5, 0.75)]
    assert figures(records).accuracy == 0.5


def test_bytes_and_seconds_of_a_run_are_sums_and_the_virtual_clock_is_read_at_its_end():
    records = [
        {"upload_bytes": 10, "dense_upload_bytes": 1000, "wall_s": 0.5, "simulated_total_s": 3.0},
        {"upload_bytes": 30, "dense_upload_bytes": 1000, "wall_s": 1.5, "simulated_total_s": 5.0},
    ]
    run = figures(records)
    assert run == RunFigures(2, None, 40, 2000, 2.0, 5.0)
    assert run.upload_ratio == 50


def test_a_run_without_rounds_knows_nothing():
    run = figures([])
    assert run == RunFigures(0, None, None, None, None, None)
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
    path.write_text(f"{json.dumps(FULL)}\n{line}\n")
    with pytest.raises(StateError) as caught:
        read_rounds(path)
    assert str(caught.value) == f"{path}:2: expected a JSON object, got {line!r}"


def test_the_summary_says_the_figures_and_where_things_are(tmp_path):
    run = RunFigures(30, 0.8421, 1_800_000, 188_000_000, 40.0, 372.0)
    assert summary_lines(run, 61.4, {"run": tmp_path, "decisions": tmp_path / "d"}) == [
        "accuracy   0.842  (mean of the last three rounds)",
        "uplink     1.8 MB  (104x less than dense FedAvg)",
        "time       61 s here  (372 s on the simulated boards)",
        f"run        {tmp_path}",
        f"decisions  {tmp_path}/d",
    ]


def test_a_summary_without_figures_still_says_how_long_it_took():
    assert summary_lines(figures([]), 3.0, {}) == ["time       3 s here"]


def test_colours_are_taken_out_of_a_log():
    assert without_colours("\x1b[91mERROR \x1b[0m:  no") == "ERROR :  no"


def test_the_last_words_of_a_log_are_the_failure_and_not_flowers_farewell():
    log = (
        "Using SuperLink: private (127.0.0.1:1)\n"
        "\x1b[92mINFO \x1b[0m:      Starting Flower Simulation\n"
        "\x1b[91mERROR \x1b[0m:     Simulation raised an exception\n"
        "Traceback (most recent call last):\n"
        "ValueError: no such layer\n"
        "\x1b[91mERROR \x1b[0m:     Exit Code: 700\n"
        "\n"
        "An unhandled exception occurred when running the simulation.\n"
        "\n"
        "For more information, visit: <https://flower.ai/>\n"
    )
    assert last_words(log) == [
        "ERROR :     Simulation raised an exception",
        "Traceback (most recent call last):",
        "ValueError: no such layer",
    ]
    assert last_words(log, lines=1) == ["ValueError: no such layer"]
