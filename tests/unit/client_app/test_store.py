"""What a board keeps on disk: kills, torn files, odd names, shared models."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from client_app.store import BoardState, BoardStore, History, Pending
from compression import Halves, SharedMask, halved
from fedfreeze.errors import StateError

ROOT = Path(__file__).parents[3]


def state_of(number, size=5):
    """A state whose every part says which round it is of."""
    return BoardState(
        residual={"a.w": np.full(size, number, np.float32), "a.s": np.array(number, np.float32)},
        pending=Pending(
            number,
            bytes([number]) * 9,
            f"digest {number}",
            {"a.w": np.full(2, -number)},
            History(number - 1, {"a": number - 1}),
            number / 8,
            SharedMask(7, number, 12345),
        ),
        model_version=number,
        model={"a.w": np.full(size, number / 2, np.float32)},
        history=History(number, {"a": number, "b": 0}, {"a": number / 3}),
    )


def store_of(root, device_id="cam", run="run", fingerprint="f0"):
    return BoardStore(root, device_id, run=run, fingerprint=fingerprint)


def same(left, right):
    return plain(left) == plain(right)


def plain(state):
    def bytes_of(arrays):
        return {k: (a.shape, str(a.dtype), a.tobytes()) for k, a in arrays.items()}

    pending = state.pending
    return (
        bytes_of(state.residual),
        pending
        and (pending.round_number, pending.packet, pending.digest, pending.residual_before.keys()),
        pending and bytes_of(pending.residual_before),
        pending and (pending.history_before, pending.rounding_norm, pending.mask),
        state.model_version,
        bytes_of(state.model),
        state.history,
    )


def files(root):
    return sorted(
        path.relative_to(root).as_posix()
        for path in root.rglob("*")
        if path.is_file() and path.name != ".lock"
    )


def test_a_state_comes_back_as_it_was_committed(tmp_path):
    store = store_of(tmp_path)
    assert same(store.load(), BoardState())
    store.commit(state_of(1))
    store.commit(state_of(2))
    assert same(store_of(tmp_path).load(), state_of(2))


def test_a_state_without_packet_or_model_comes_back_without_them(tmp_path):
    store_of(tmp_path).commit(state_of(1))
    bare = BoardState(residual={"w": np.zeros((2, 0), np.float32)})
    store_of(tmp_path).commit(bare)
    assert same(store_of(tmp_path).load(), bare)


def test_nothing_is_left_on_disk_but_what_the_head_names(tmp_path):
    store = store_of(tmp_path)
    for number in (1, 2, 3):
        store.commit(state_of(number))
    own = [name for name in files(tmp_path) if name.startswith("boards/cam/")]
    assert len(own) == 4  # head, residual, packet, residual before
    assert len(files(tmp_path)) == 5  # and one model


@pytest.mark.parametrize("other", [{"run": "run 2"}, {"fingerprint": "f1"}])
def test_the_state_of_another_run_or_layout_counts_as_none(tmp_path, other):
    store_of(tmp_path).commit(state_of(1))
    assert same(store_of(tmp_path, **other).load(), BoardState())
    store_of(tmp_path, **other).commit(state_of(2))
    assert same(store_of(tmp_path).load(), BoardState())
    assert same(store_of(tmp_path, **other).load(), state_of(2))


# ---- another layout


def test_of_another_layout_of_the_run_only_residual_and_history_are_read(tmp_path):
    store = store_of(tmp_path)
    assert store.load_other_layout() is None
    store.commit(state_of(1))
    assert store.load_other_layout() is None
    assert store_of(tmp_path, run="run 2", fingerprint="f1").load_other_layout() is None
    found = store_of(tmp_path, fingerprint="f1").load_other_layout()
    expected = BoardState(residual=state_of(1).residual, history=state_of(1).history)
    assert same(found, expected)


def test_a_torn_state_of_another_layout_is_refused_too(tmp_path):
    store_of(tmp_path).commit(state_of(1))
    (tmp_path / "boards/cam/head.json").write_text("{")
    with pytest.raises(StateError, match="the state of this board is torn"):
        store_of(tmp_path, fingerprint="f1").load_other_layout()


# ---- what the first release wrote


def test_a_head_without_history_still_loads(tmp_path):
    """All it tells of the past is the round of its packet."""
    store_of(tmp_path).commit(state_of(3))
    head = head_of(tmp_path) | {"format": 1}
    del head["history"], head["pending"]["history_before"], head["pending"]["rounding_norm"]
    del head["pending"]["mask"]
    (tmp_path / "boards/cam/head.json").write_text(json.dumps(head))
    found = store_of(tmp_path).load()
    assert (found.history, found.pending.history_before) == (History(3), History())
    assert (found.pending.rounding_norm, found.pending.mask) == (0, None)
    assert np.array_equal(found.residual["a.w"], state_of(3).residual["a.w"])
    head["pending"] = None
    (tmp_path / "boards/cam/head.json").write_text(json.dumps(head))
    assert store_of(tmp_path).load().history == History()


def test_a_history_without_ranges_still_loads(tmp_path):
    store_of(tmp_path).commit(state_of(3))
    head = head_of(tmp_path)
    del head["history"]["ranges"]
    (tmp_path / "boards/cam/head.json").write_text(json.dumps(head))
    assert store_of(tmp_path).load().history == History(3, {"a": 3, "b": 0})


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"history": {}}, "KeyError('trained_round')"),
        (
            {"history": {"trained_round": 1, "since": 7}},
            "TypeError(\"'int' object is not iterable\")",
        ),
        ({"residual_precision": "float8"}, "ValueError(\"residual_precision: 'float8'\")"),
    ],
)
def test_a_history_or_precision_that_no_release_writes_is_refused(tmp_path, changes, what):
    store_of(tmp_path).commit(state_of(1))
    (tmp_path / "boards/cam/head.json").write_text(json.dumps(head_of(tmp_path) | changes))
    assert refusal(tmp_path) == torn(tmp_path, f"head.json: {what}")


# ---- float16


def bytes_in(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


ODD_NAMES = ("", "q.w", "e.w", "w", "e.e.w")


def test_a_residual_in_float16_takes_half_the_disk_and_comes_back_as_it_was(tmp_path):
    arrays = {"big": np.linspace(-3, 1e30, 50_000, dtype=np.float32)}
    arrays |= {name: np.float32([1 / 3, at]) for at, name in enumerate(ODD_NAMES)}
    kept, _ = halved(arrays)
    sizes = {}
    for precision, residual in (("float32", arrays), ("float16", kept)):
        store = store_of(tmp_path / precision)
        store.commit(BoardState(residual, Pending(1, b"p", "d", residual)))
        sizes[precision] = bytes_in(tmp_path / precision)
    assert sizes["float16"] < 0.51 * sizes["float32"]
    found = store_of(tmp_path / "float16").load()
    for residual in (found.residual, found.pending.residual_before):
        assert isinstance(residual, Halves)
        assert set(residual) == set(arrays)
        for name, half in kept.tensors.items():
            assert residual.tensors[name].values.tobytes() == half.values.tobytes()
            assert residual.tensors[name].exponent == half.exponent
    store_of(tmp_path / "float16").commit(found)
    assert bytes_in(tmp_path / "float16") == sizes["float16"]


# ---- kills

KILLER = """
import os, shutil, signal, sys
from pathlib import Path
sys.path[:0] = {path!r}
from test_store import state_of, store_of

root = Path(sys.argv[1])

FILE_CALLS = {{"open", "write", "flush", "fsync", "close", "replace", "unlink", "mkdir", "flock"}}

def kill_at(calls):
    "Die before the nth operation on a file, which is after the one before it."
    def count(frame, event, arg):
        nonlocal calls
        if event == "c_call" and arg.__name__ in FILE_CALLS:
            calls -= 1
            if calls == 0:
                os.kill(os.getpid(), signal.SIGKILL)
    sys.setprofile(count)

for device_id in ("cam", "other"):
    store_of(root / "begin", device_id).commit(state_of(1))
at = 1
while True:
    shutil.copytree(root / "begin", root / str(at))
    child = os.fork()
    if child == 0:
        kill_at(at)
        store_of(root / str(at)).commit(state_of(2))
        sys.setprofile(None)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status):
        assert os.WEXITSTATUS(status) == 0
        break
    at += 1
print(at)
"""


def test_a_kill_at_any_instant_leaves_the_state_before_or_the_state_after(tmp_path):
    script = KILLER.format(path=[str(ROOT), str(Path(__file__).parent)])
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    last = int(done.stdout)
    seen = []
    for at in range(1, last + 1):
        root = tmp_path / str(at)
        state = store_of(root).load()
        assert same(state, state_of(1)) or same(state, state_of(2)), at
        assert same(store_of(root, "other").load(), state_of(1))
        seen.append(state.model_version)
        # Whatever the dead process left lying about is gone with the next commit.
        store_of(root).commit(state_of(3))
        assert len(files(root)) == 10
        assert same(store_of(root).load(), state_of(3))
    assert seen == sorted(seen)
    assert len(set(seen[:-1])) == 2, "kills came both before and after the head was renamed"


# ---- torn files


def torn(tmp_path, what):
    return (
        f"{tmp_path}/boards/cam: the state of this board is torn ({what}); delete the folder to "
        "start afresh, at the loss of what the board has not sent yet"
    )


def head_of(root):
    return json.loads((root / "boards/cam/head.json").read_text())


def refusal(root):
    with pytest.raises(StateError) as caught:
        store_of(root).load()
    return str(caught.value)


def test_a_blob_with_other_content_is_refused_by_name(tmp_path):
    store_of(tmp_path).commit(state_of(1))
    blob = tmp_path / "boards/cam" / head_of(tmp_path)["residual"]
    blob.write_bytes(blob.read_bytes()[:-1])
    assert refusal(tmp_path) == torn(
        tmp_path, f"{blob} does not have the content that its name says"
    )


def test_a_missing_blob_is_refused_by_name(tmp_path):
    store_of(tmp_path).commit(state_of(1))
    blob = tmp_path / "models" / head_of(tmp_path)["model"]["blob"]
    blob.unlink()
    assert refusal(tmp_path) == torn(tmp_path, f"{blob} is missing")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "head.json: JSONDecodeError('Expecting value: line 1 column 1 (char 0)')"),
        ("{}", "head.json: KeyError('format')"),
        ("[]", "head.json: TypeError('list indices must be integers or slices, not str')"),
    ],
)
def test_a_torn_head_is_refused_with_what_is_wrong(tmp_path, text, what):
    store_of(tmp_path).commit(state_of(1))
    (tmp_path / "boards/cam/head.json").write_text(text)
    assert refusal(tmp_path) == torn(tmp_path, what)


@pytest.mark.parametrize("name", ["../../secret", "/etc/passwd", "", 7, None])
def test_a_head_that_names_a_file_elsewhere_is_refused(tmp_path, name):
    store_of(tmp_path).commit(state_of(1))
    head = head_of(tmp_path) | {"residual": name}
    (tmp_path / "boards/cam/head.json").write_text(json.dumps(head))
    assert refusal(tmp_path) == torn(
        tmp_path, f"head.json: expected the name of a blob, got {name!r}"
    )


def test_a_board_that_forgets_its_torn_state_begins_afresh(tmp_path):
    store = store_of(tmp_path)
    store.commit(state_of(1))
    (tmp_path / "boards/cam/head.json").write_text("{")
    store.forget()
    assert same(store.load(), BoardState())
    store.commit(state_of(2))
    assert same(store.load(), state_of(2))


def test_a_blob_that_rotted_is_written_anew(tmp_path):
    """The content is the same again, and so is its name: the file must not be trusted."""
    store_of(tmp_path).commit(state_of(1))
    for path in tmp_path.rglob("*"):
        if path.is_file() and path.name != "head.json":
            path.write_bytes(b"rot")
    store_of(tmp_path).commit(state_of(1))
    assert same(store_of(tmp_path).load(), state_of(1))


# ---- device ids


def test_odd_device_ids_stay_inside_the_folder_and_apart(tmp_path):
    odd = ["../x", "..", ".", "/etc/x", "x", "X", "x.", "a/b", "a_b", "a\\b", "ä", "con", "CON"]
    odd += ["head.json", "摄像头", " ", "x" * 300, "x" * 301, "x\n", "-x", "cam 07", "cam\x0007"]
    root = tmp_path / "root"
    for at, device_id in enumerate(odd):
        store_of(root, device_id).commit(state_of(at))
    # An id that looks like the folder of another one is still another id.
    folders = [path.name for path in (root / "boards").iterdir()]
    assert len({name.lower() for name in folders}) == len(odd)
    for at, device_id in enumerate(folders, start=len(odd)):
        if device_id not in odd:
            store_of(root, device_id).commit(state_of(at))
    for at, device_id in enumerate(odd):
        assert same(store_of(root, device_id).load(), state_of(at)), device_id
    assert [path.name for path in tmp_path.iterdir()] == ["root"]
    assert {path.name for path in root.iterdir()} == {"boards", "models", ".lock"}


def test_a_plain_device_id_is_its_folder(tmp_path):
    store_of(tmp_path, "sim-0003").commit(state_of(1))
    assert (tmp_path / "boards/sim-0003/head.json").is_file()


# ---- shared models


def test_boards_that_hold_the_same_model_share_one_blob(tmp_path):
    for device_id in ("a", "b", "c"):
        store_of(tmp_path, device_id).commit(state_of(1))
    assert len(list((tmp_path / "models").iterdir())) == 1


def test_a_model_goes_when_its_last_holder_has_moved_on(tmp_path):
    for device_id in ("a", "b"):
        store_of(tmp_path, device_id).commit(state_of(1))
    store_of(tmp_path, "a").commit(state_of(2))
    assert len(list((tmp_path / "models").iterdir())) == 2
    assert same(store_of(tmp_path, "b").load(), state_of(1))
    store_of(tmp_path, "b").commit(state_of(2))
    assert len(list((tmp_path / "models").iterdir())) == 1


def test_a_board_of_another_run_keeps_its_model_and_no_others(tmp_path):
    """Versions of two runs do not compare; only names say what is held."""
    store_of(tmp_path, "old", run="earlier").commit(state_of(2))
    for number in (1, 2, 3, 4):
        store_of(tmp_path, "new").commit(state_of(number))
    assert same(store_of(tmp_path, "old", run="earlier").load(), state_of(2))
    assert len(list((tmp_path / "models").iterdir())) == 2


def test_while_another_boards_head_is_torn_no_model_goes_and_commits_go_on(tmp_path):
    store_of(tmp_path, "b").commit(state_of(1))
    (tmp_path / "boards/b/head.json").write_text("{")
    for number in (2, 3):
        store_of(tmp_path, "a").commit(state_of(number))
    assert same(store_of(tmp_path, "a").load(), state_of(3))
    assert len(list((tmp_path / "models").iterdir())) == 3


BOARD = """
import sys
from pathlib import Path
sys.path[:0] = {path!r}
from test_store import same, state_of, store_of

root, device_id = Path(sys.argv[1]), sys.argv[2]
for number in range(1, 41):
    store_of(root, device_id).commit(state_of(number))
    assert same(store_of(root, device_id).load(), state_of(number)), number
"""


def test_boards_in_two_processes_never_take_a_model_from_each_other(tmp_path):
    script = BOARD.format(path=[str(ROOT), str(Path(__file__).parent)])
    boards = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(tmp_path), device_id],
            stderr=subprocess.PIPE,
            text=True,
        )
        for device_id in ("a", "b")
    ]
    errors = [board.communicate()[1] for board in boards]
    assert [board.returncode for board in boards] == [0, 0], errors
    for device_id in ("a", "b"):
        assert same(store_of(tmp_path, device_id).load(), state_of(40))
    assert len(files(tmp_path)) == 9
