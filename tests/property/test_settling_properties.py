"""The ledger of a board closes, whatever becomes of its packets."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from client_app.settling import send, settle
from client_app.store import BoardState
from compression import CodecSettings, decode
from fedfreeze.layout import Layer, Layout, TensorSpec

LAYOUT = Layout(
    "m",
    (
        Layer("a", (TensorSpec("a.w", (6, 7), "float32"), TensorSpec("a.b", (7,), "float32"))),
        Layer(
            "b",
            (TensorSpec("b.w", (30,), "float32"), TensorSpec("b.mean", (3,), "float32", "buffer")),
        ),
        Layer("c", (TensorSpec("c.scale", (), "float32"),)),
    ),
)
FLOATS = [t.name for t in LAYOUT.tensors.values() if t.is_float]

# "crashed": the board has stored its round, and the server dies and does the round again.
FATES = st.sampled_from(["accepted", "lost", "late", "void", "crashed"])
ROUNDS = st.lists(
    st.tuples(
        FATES,
        st.sets(st.sampled_from(LAYOUT.names), min_size=1),
        st.integers(0, 260),  # bytes; from no room at all to nearly everything
        st.sampled_from([1e-6, 1.0, 3e4]),  # size of the update
    ),
    min_size=1,
    max_size=12,
)


class Ledger:
    """One board and its server, with every sum in float64 and every float32 rounding counted."""

    def __init__(self, seed, mode):
        self.rng = np.random.default_rng(seed)
        self.mode = mode
        self.state = BoardState()
        self.accepted = None
        self.number = 1
        self.learned = {name: np.zeros(LAYOUT.tensors[name].shape) for name in FLOATS}
        self.merged = {name: np.zeros_like(value) for name, value in self.learned.items()}
        self.rounding = {name: np.zeros_like(value) for name, value in self.learned.items()}

    def settle(self):
        before = self.state.residual
        residual, outcome = settle(
            self.state, LAYOUT, round_number=self.number, accepted=self.accepted
        )
        if outcome == "returned":
            self.rounded(residual)
        elif outcome == "accepted":
            assert residual is before
        return residual, outcome

    def rounded(self, arrays):
        for name, array in arrays.items():
            self.rounding[name] += 2.0**-24 * np.abs(array.astype(np.float64))

    def play(self, fate, layers, budget_bytes, size):
        delta = {
            t.name: (size * self.rng.normal(size=t.shape)).astype(np.float32)
            for layer in layers
            for t in LAYOUT[layer].tensors
        }
        residual, _ = self.settle()
        pending, left = send(
            delta,
            residual,
            LAYOUT,
            LAYOUT.ordered(layers),
            budget_bytes=budget_bytes if self.mode == "sparse" else 10_000,
            round_number=self.number,
            settings=CodecSettings(self.mode, 8),
        )
        self.state = BoardState(residual=left, pending=pending)
        if fate == "crashed":
            return  # the next round has the same number
        self.rounded({name: delta[name] + residual.get(name, 0) for name in delta})
        self.rounded({name: left[name] for name in delta})
        for name, array in delta.items():
            self.learned[name] += array
        if fate == "accepted":
            self.accepted = (pending.round_number, pending.digest)
            update = decode(pending.packet, LAYOUT, max_bytes=10_000).update
            for name, array in update.items():
                self.merged[name] += array
        self.number += 1


@settings(max_examples=120, deadline=None)
@given(ROUNDS, st.integers(0, 2**32 - 1), st.sampled_from(["sparse", "dense"]))
def test_what_was_merged_and_what_is_left_add_up_to_what_was_learned(rounds, seed, mode):
    ledger = Ledger(seed, mode)
    for played in rounds:
        ledger.play(*played)
    residual, _ = ledger.settle()
    for name in FLOATS:
        total = ledger.merged[name] + residual.get(name, 0)
        error = np.abs(total - ledger.learned[name])
        # Half a unit in the last place for each float32 sum; the rest is float64's own rounding.
        bound = ledger.rounding[name] * (1 + 1e-6) + 1e-12 * np.abs(ledger.learned[name])
        assert (error <= bound + 1e-44).all(), name


@settings(max_examples=60, deadline=None)
@given(ROUNDS, st.integers(0, 2**32 - 1))
def test_a_crash_of_the_server_changes_nothing_for_the_rounds_that_count(rounds, seed):
    """With the repeated rounds taken out, and their random numbers drawn all the same."""
    crashing, quiet = Ledger(seed, "sparse"), Ledger(seed, "sparse")
    for fate, layers, budget_bytes, size in rounds:
        crashing.play(fate, layers, budget_bytes, size)
        if fate == "crashed":
            for layer in layers:
                for tensor in LAYOUT[layer].tensors:
                    quiet.rng.normal(size=tensor.shape)
        else:
            quiet.play(fate, layers, budget_bytes, size)
    crashing_residual, _ = crashing.settle()
    quiet_residual, _ = quiet.settle()
    assert {n: a.tobytes() for n, a in crashing_residual.items() if a.any()} == {
        n: a.tobytes() for n, a in quiet_residual.items() if a.any()
    }
    assert all(
        np.array_equal(crashing.merged[name], quiet.merged[name]) for name in crashing.merged
    )
