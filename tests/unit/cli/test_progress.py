import pytest

from cli.progress import last_lines, last_words, round_line, summary_lines, without_colours
from cli.rounds import RunFigures, figures

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


def test_lost_and_absent_clients_are_named_only_where_there_are_some():
    assert "lost" not in round_line({**FULL, "clients_lost": 0, "clients_away": 0})
    line = round_line({**FULL, "clients_lost": 1, "clients_sat_out": 2, "clients_away": 3})
    assert "clients 10 used 0 failed 1 lost 2 sat out 3 away  " in line


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


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (4_118_000, "as much as dense"),
        (7_824_200, "1.9x more than dense"),
        (61_770_000, "15x more"),
    ],
)
def test_more_than_dense_is_called_more(sent, said):
    assert f"({said}" in round_line({**FULL, "upload_bytes": sent})
    run = RunFigures(1, None, None, sent, 4_118_000, None, None)
    assert f"({said}" in summary_lines(run, 1.0, {})[0]


def test_a_void_round_says_so_and_how_many_answered():
    void = {**FULL, "void": True, "clients_asked": 3, "clients_used": 0, "clients_failed": 2}
    del void["frozen_share"]
    assert round_line(void) == (
        "round  7/30  void: 1 of 3 answered  accuracy 0.712  loss 0.81  clients 0 used 2 failed  "
        "up 58 kB (71x less than dense)  simulated 12.3 s"
    )
    late = {**void, "clients_failed": 0, "clients_late": 2}
    assert "void: 1 of 3 answered in time  " in round_line(late)
    lost = {**void, "clients_failed": 0, "clients_late": 1, "clients_lost": 2}
    assert "void: 0 of 3 answered in time  " in round_line(lost)
    assert "void" not in round_line({**void, "void": False})


def test_a_void_round_of_unknown_size_is_still_called_void():
    assert round_line({"round": 1, "rounds": 2, "void": True}) == "round 1/2  void"


def test_a_score_goes_by_the_name_of_its_metric():
    record = {"round": 1, "rounds": 2, "test_loss": 0.25, "test_r2": 0.9, "validation_r2": 0.8}
    assert round_line(record) == "round 1/2  r2 0.900  loss 0.25"
    assert summary_lines(figures([record]), 3.0, {}) == [
        "r2         0.900  (of the one round)",
        "time       3 s here",
    ]


def test_the_summary_says_the_figures_and_where_things_are(tmp_path):
    run = RunFigures(30, "accuracy", 0.8421, 1_800_000, 188_000_000, 40.0, 372.0)
    assert summary_lines(run, 61.4, {"run": tmp_path, "decisions": tmp_path / "d"}) == [
        "accuracy   0.842  (mean of the last 3 rounds)",
        "uplink     1.8 MB  (104x less than dense FedAvg)",
        "time       61 s here  (372 s on the simulated boards)",
        f"run        {tmp_path}",
        f"decisions  {tmp_path}/d",
    ]


def test_the_summary_says_what_went_both_ways_where_that_is_known():
    run = RunFigures(3, None, None, 1_000_000, 60_000_000, None, None, None, 3_000_000, 100_000_000)
    assert summary_lines(run, 1.0, {})[:2] == [
        "uplink     1 MB  (60x less than dense FedAvg)",
        "both ways  4 MB  (40x less than dense FedAvg)",
    ]


@pytest.mark.parametrize(
    ("energy_j", "written"),
    [(7.25, "7.25 J"), (45_678.0, "45.7 kJ"), (359_000.0, "359 kJ"), (3_600_000.0, "1 kWh")],
)
def test_the_summary_says_what_simulated_boards_drew(energy_j, written):
    record = {"round": 1, "simulated_total_s": 7.0, "modelled_energy_total_j": energy_j}
    assert summary_lines(figures([record]), 3.0, {}) == [
        "time       3 s here  (7 s on the simulated boards)",
        f"energy     {written} modelled on the simulated boards",
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


def test_the_end_of_a_long_text_begins_with_a_whole_line():
    log = "".join(f"\x1b[91mline {number} of the log\n" for number in range(100))
    for characters in range(20, 400):
        kept = last_lines(log, characters).splitlines()
        assert kept == [f"line {number} of the log" for number in range(100 - len(kept), 100)]
        assert len("\n".join(kept)) <= characters


def test_one_line_that_is_too_long_shows_its_end_and_that_it_was_cut():
    assert last_lines("short\n" + "x" * 50 + "end", 10) == "... xxxxxxxend"
    assert last_lines("", 10) == ""


def test_the_summary_says_how_the_worst_served_clients_fare():
    rounds = [
        {"round": n, "test_accuracy": 0.9, "client_accuracy_worst_tenth": worst}
        for n, worst in enumerate((0.1, 0.4, 0.5, 0.6), start=1)
    ]
    assert summary_lines(figures(rounds), 1.0, {})[1] == (
        "worst      0.500  (mean of the worst tenth of clients)"
    )


def test_how_far_predictions_were_off_stands_between_the_figures_and_the_files(tmp_path):
    said = summary_lines(figures([]), 3.0, {"run": tmp_path}, ["predicted  bytes up 8.1 % off"])
    assert said == [
        "time       3 s here",
        "predicted  bytes up 8.1 % off",
        f"run        {tmp_path}",
    ]
