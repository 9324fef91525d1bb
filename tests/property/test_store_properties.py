"""A board's store gives back what it was given, under every name and for every state."""

import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from client_app.store import BoardState, BoardStore, Pending

ARRAYS = st.dictionaries(
    st.text(st.characters(codec="utf-8"), min_size=1, max_size=5),
    hnp.arrays(
        st.sampled_from([np.float32, np.float64, np.int64]),
        hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=3),
        elements=st.integers(-9, 9),
    ),
    max_size=2,
)
PENDING = st.builds(
    Pending,
    round_number=st.integers(1, 2**31),
    packet=st.binary(max_size=40),
    digest=st.text("0123456789abcdef", max_size=16),
    residual_before=ARRAYS,
)
HELD = st.none() | st.tuples(st.integers(0, 2**31), ARRAYS)
IDS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=300)


def plain(arrays):
    return {name: (a.shape, a.dtype, a.tobytes()) for name, a in arrays.items()}


@settings(max_examples=40, deadline=None)
@given(IDS, st.lists(st.tuples(ARRAYS, st.none() | PENDING, HELD), min_size=1, max_size=3))
def test_a_board_reads_what_it_committed_last(device_id, commits):
    with tempfile.TemporaryDirectory() as folder:
        store = BoardStore(Path(folder), device_id, run="r", fingerprint="f")
        for residual, pending, held in commits:
            version, model = held or (None, {})
            store.commit(BoardState(residual, pending, version, model))
        read = store.load()
    assert plain(read.residual) == plain(residual)
    assert (read.model_version, plain(read.model)) == (version, plain(model))
    assert (read.pending is None) == (pending is None)
    if pending is not None:
        kept = ("round_number", "packet", "digest")
        assert [getattr(read.pending, k) for k in kept] == [getattr(pending, k) for k in kept]
        assert plain(read.pending.residual_before) == plain(pending.residual_before)


@settings(max_examples=200, deadline=None)
@given(st.sets(IDS, min_size=2, max_size=6))
def test_device_ids_get_folders_of_their_own_inside_the_root_whatever_the_case(ids):
    root = Path("/state")
    # The ids, and ids that look like the folders of the ids.
    first = {BoardStore(root, i, run="r", fingerprint="f")._own for i in ids}
    more = ids | {path.name for path in first}
    folders = {BoardStore(root, i, run="r", fingerprint="f")._own for i in more}
    assert {path.parent for path in folders} == {root / "boards"}
    assert all(0 < len(path.name) <= 65 and path.name not in {".", ".."} for path in folders)
    assert len({path.name.lower() for path in folders}) == len(more)
