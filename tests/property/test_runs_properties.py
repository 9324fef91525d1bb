"""Whatever stands in the files of a run, listing it gives one row and valid JSON."""

import json
from dataclasses import asdict

from hypothesis import given
from hypothesis import strategies as st

from cli.progress import round_line, summary_lines
from cli.rounds import figures, read_rounds
from cli.runs import describe, table
from fedfreeze import plain_json
from fedfreeze.errors import StateError
from fedfreeze.run_folder import RunFolder

KEYS = st.sampled_from(
    [
        "round",
        "rounds",
        "test_accuracy",
        "test_r2",
        "test_loss",
        "upload_bytes",
        "dense_upload_bytes",
        "download_bytes",
        "dense_download_bytes",
        "void",
        "simulated_total_s",
        "simulated_s",
        "wall_s",
        "frozen_share",
        "clients_asked",
        "clients_used",
        "clients_failed",
        "clients_late",
        "clients_lost",
        "clients_away",
        "modelled_energy_total_j",
        "state",
        "error",
        "rounds_done",
        "summary",
        "type",
        "message",
        "exit_code",
    ]
)
NUMBERS = st.integers(-3, 10**7) | st.integers() | st.floats()
OTHERS = st.none() | st.booleans() | st.sampled_from(["running", "finished", "failed"]) | st.text()
RECORDS = st.dictionaries(KEYS, NUMBERS | OTHERS | st.dictionaries(KEYS, NUMBERS | OTHERS))
ROUNDS = st.builds(dict, st.dictionaries(KEYS, NUMBERS), round=st.integers(1, 99))
LINES = st.lists(ROUNDS | RECORDS).map(lambda all_: "".join(f"{json.dumps(r)}\n" for r in all_))
STATUS = RECORDS.map(json.dumps)


def refuse(constant):
    raise AssertionError(constant)


def as_bytes(texts):
    return texts.map(str.encode) | st.binary()


@given(as_bytes(LINES), as_bytes(STATUS) | st.none())
def test_a_run_is_listed_whatever_stands_in_its_files(tmp_path_factory, rounds, status):
    folder = RunFolder(tmp_path_factory.mktemp("run"))
    folder.rounds.write_bytes(rounds)
    if status is not None:
        folder.status.write_bytes(status)
    listed = describe(folder, 0)
    assert (listed.problem is not None) == (listed.state == "unreadable")
    assert len(table([listed])) == 2
    json.loads(plain_json.text(asdict(listed)), parse_constant=refuse)


@given(st.lists(ROUNDS))
def test_every_round_that_can_be_read_can_be_said(tmp_path_factory, records):
    folder = RunFolder(tmp_path_factory.mktemp("run"))
    folder.rounds.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    try:
        read = read_rounds(folder.rounds)
    except StateError:
        return
    for record in read:
        assert "\n" not in round_line(record)
    summary_lines(figures(read), 1.0, {})
