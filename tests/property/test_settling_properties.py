"""The ledger of a board closes, whatever becomes of its packets."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from client_app.settling import send, settle
from client_app.store import BoardState
from compression import CodecSettings, decode
from fedfreeze.layout import Layer, Layout, TensorSpec
from strategies.mask_rule import MaskRule
from strategies.tables import Residual

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
MASKS = MaskRule(11, None)

# "crashed": the board has stored its round, and the server dies and does the round again.
# Large enough for any update that is drawn here.
PUBLISHED = {name: np.full(LAYOUT.tensors[name].shape, 1e30, np.float32) for name in FLOATS}

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
PRECISIONS = st.sampled_from(["float32", "float16"])


class Ledger:
    """One board and its server, with every sum in float64 and every rounding counted."""

    def __init__(self, seed, mode, precision="float32"):
        self.rng = np.random.default_rng(seed)
        self.mode = mode
        self.rules = Residual(precision=precision)
        self.state = BoardState()
        self.accepted = None
        self.number = 1
        self.learned = {name: np.zeros(LAYOUT.tensors[name].shape) for name in FLOATS}
        self.merged = {name: np.zeros_like(value) for name, value in self.learned.items()}
        self.rounding = {name: np.zeros_like(value) for name, value in self.learned.items()}
        self.lost_norm = 0.0  # to float16, as the board says

    def settle(self):
        before = self.state.residual
        settled = settle(
            self.state,
            LAYOUT,
            round_number=self.number,
            accepted=self.accepted,
            precision=self.rules.precision,
        )
        if settled.outcome == "returned":
            self.rounded(settled.residual)
        elif settled.outcome == "accepted":
            assert settled.residual is before
        return settled

    def rounded(self, arrays):
        for name, array in arrays.items():
            self.rounding[name] += 2.0**-24 * np.abs(array.astype(np.float64))

    def play(self, fate, layers, budget_bytes, size):
        delta = delta_of(self.rng, layers, size)
        settled = self.settle()
        mask = None
        if self.mode == "shared":
            mask = MASKS.mask(LAYOUT, layers, budget_bytes, self.number)
        sent = send(
            delta,
            settled,
            LAYOUT,
            LAYOUT.ordered(layers),
            budget_bytes=10_000 if self.mode == "dense" else budget_bytes,
            round_number=self.number,
            settings=CodecSettings("dense", 8) if self.mode == "dense" else CodecSettings(),
            rules=self.rules,
            before=PUBLISHED,
            mask=mask,
        )
        self.state = BoardState(sent.residual, sent.pending, history=sent.history)
        if fate == "crashed":
            return  # the next round has the same number
        self.lost_norm += sent.rounding_norm
        before = settled.residual
        self.rounded({name: delta[name] + before.get(name, 0) for name in delta})
        self.rounded({name: sent.residual[name] for name in delta})
        for name, array in delta.items():
            self.learned[name] += array
        if fate == "accepted":
            self.accepted = (sent.pending.round_number, sent.pending.digest)
            positions = mask and mask.positions(LAYOUT, layers)
            packet = sent.pending.packet
            update = decode(packet, LAYOUT, max_bytes=10_000, positions=positions).update
            for name, array in update.items():
                self.merged[name] += array
        self.number += 1


def delta_of(rng, layers, size):
    return {
        t.name: (size * rng.normal(size=t.shape)).astype(np.float32)
        for layer in layers
        for t in LAYOUT[layer].tensors
    }


@settings(max_examples=120, deadline=None)
@given(ROUNDS, st.integers(0, 2**32 - 1), st.sampled_from(["sparse", "dense", "shared"]))
def test_what_was_merged_and_what_is_left_add_up_to_what_was_learned(rounds, seed, mode):
    ledger = Ledger(seed, mode)
    for played in rounds:
        ledger.play(*played)
    residual = ledger.settle().residual
    for name in FLOATS:
        total = ledger.merged[name] + residual.get(name, 0)
        error = np.abs(total - ledger.learned[name])
        # Half a unit in the last place for each float32 sum; the rest is float64's own rounding.
        bound = ledger.rounding[name] * (1 + 1e-6) + 1e-12 * np.abs(ledger.learned[name])
        assert (error <= bound + 1e-44).all(), name


@settings(max_examples=60, deadline=None)
@given(ROUNDS, st.integers(0, 2**32 - 1), PRECISIONS)
def test_a_crash_of_the_server_changes_nothing_for_the_rounds_that_count(rounds, seed, precision):
    """With the repeated rounds taken out, and their random numbers drawn all the same."""
    crashing, quiet = Ledger(seed, "sparse", precision), Ledger(seed, "sparse", precision)
    for fate, layers, budget_bytes, size in rounds:
        crashing.play(fate, layers, budget_bytes, size)
        if fate == "crashed":
            for layer in layers:
                for tensor in LAYOUT[layer].tensors:
                    quiet.rng.normal(size=tensor.shape)
        else:
            quiet.play(fate, layers, budget_bytes, size)
    crashing_residual = crashing.settle().residual
    quiet_residual = quiet.settle().residual
    assert {n: a.tobytes() for n, a in crashing_residual.items() if a.any()} == {
        n: a.tobytes() for n, a in quiet_residual.items() if a.any()
    }
    assert all(
        np.array_equal(crashing.merged[name], quiet.merged[name]) for name in crashing.merged
    )


@settings(max_examples=120, deadline=None)
@given(ROUNDS, st.integers(0, 2**32 - 1))
def test_in_float16_the_ledger_is_off_by_what_the_board_says_that_rounding_lost(rounds, seed):
    """By the triangle inequality over rounds; test_halves has the bound for each."""
    ledger = Ledger(seed, "sparse", "float16")
    for played in rounds:
        ledger.play(*played)
    lost_norm = ledger.lost_norm
    settled = ledger.settle()
    residual, lost_norm = settled.residual, lost_norm + settled.rounding_norm
    off, float32 = [], []
    for name in FLOATS:
        total = ledger.merged[name] + residual.get(name, 0)
        off.append((total - ledger.learned[name]).ravel())
        float32.append((ledger.rounding[name] + 1e-12 * np.abs(ledger.learned[name])).ravel())
    bound = lost_norm + np.linalg.norm(np.concatenate(float32)) + 1e-44
    assert np.linalg.norm(np.concatenate(off)) <= bound * (1 + 1e-6)


# ---- the rules for what waits

FATE = st.sampled_from(["keep", "decay", "drop"])
RULES = st.builds(
    lambda frozen, missed, decay, precision: Residual(
        frozen=frozen,
        missed=missed,
        precision=precision,
        **({"decay": decay} if "decay" in (frozen, missed) else {}),
    ),
    FATE,
    FATE,
    st.sampled_from([0.5, 0.9, 0.123]),
    PRECISIONS,
)


class Recurrence:
    """The residual in float64 from packets as they decode, with a bound on float32's part.

    For each layer, r <- f^missed f_frozen (r + what came back), then, if it trains,
    r <- r + delta - decode(packet). ``error`` grows by every rounding and shrinks with r.
    """

    def __init__(self, rules):
        self.rules = rules
        self.value = {name: np.zeros(LAYOUT.tensors[name].shape) for name in FLOATS}
        self.error = {name: np.zeros_like(array) for name, array in self.value.items()}
        self.last = None
        self.came_back = {}

    def copy(self):
        other = Recurrence(self.rules)
        other.value, other.error = dict(self.value), dict(self.error)
        other.last, other.came_back = self.last, self.came_back
        return other

    def factor(self, rule):
        return {"keep": 1.0, "decay": self.rules.decay, "drop": 0.0}[rule]

    def becomes(self, name, value, error, unit=2.0**-24):
        self.value[name] = value
        self.error[name] = error + unit * (np.abs(value) + error) + 2.0**-149

    def store(self, names):
        if self.rules.precision == "float16":
            for name in names:
                speck = 2.0**-40 * np.max(np.abs(self.value[name]) + self.error[name], initial=0)
                self.becomes(name, self.value[name], self.error[name] + speck, 2.0**-11)

    def play(self, number, layers, delta, decoded):
        for name, array in self.came_back.items():
            self.becomes(name, self.value[name] + array, self.error[name])
        if self.came_back:
            self.store(FLOATS)
        missed = 0 if self.last is None else number - self.last - 1
        for layer in LAYOUT:
            f = self.factor(self.rules.missed) ** missed
            if layer.name not in layers:
                f *= self.factor(self.rules.frozen)
            for name in (tensor.name for tensor in layer.tensors):
                if f < 1:
                    self.becomes(name, f * self.value[name], f * self.error[name], 2.0**-23)
                if name in delta:
                    self.becomes(name, self.value[name] + delta[name], self.error[name])
                    sent = decoded.get(name, 0)
                    self.becomes(name, self.value[name] - sent, self.error[name])
        self.store(FLOATS)
        self.last = number


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(ROUNDS.map(lambda rounds: rounds[0]), st.integers(0, 3)), max_size=10),
    RULES,
    st.integers(0, 2**32 - 1),
)
def test_a_residual_that_waits_follows_the_rules_exactly(rounds, rules, seed):
    """However rounds are missed, packets lost and rounds done again."""
    rng = np.random.default_rng(seed)
    expected, state, accepted, number = Recurrence(rules), BoardState(), None, 0
    is_repeat = False
    for (fate, layers, budget_bytes, size), missed in rounds:
        number += 0 if is_repeat else 1 + missed
        delta = delta_of(rng, layers, size)
        settled = settle(
            state, LAYOUT, round_number=number, accepted=accepted, precision=rules.precision
        )
        assert (settled.outcome == "repeated") == is_repeat
        sent = send(
            delta,
            settled,
            LAYOUT,
            LAYOUT.ordered(layers),
            budget_bytes=budget_bytes,
            round_number=number,
            settings=CodecSettings(),
            rules=rules,
            before=PUBLISHED,
        )
        state = BoardState(sent.residual, sent.pending, history=sent.history)
        decoded = decode(sent.pending.packet, LAYOUT, max_bytes=10_000).update
        after = expected.copy()
        after.play(number, layers, delta, decoded)
        for name in FLOATS:
            off = np.abs(sent.residual.get(name, 0) - after.value[name])
            assert (off <= after.error[name] * (1 + 1e-6)).all(), name
        is_repeat = fate == "crashed"
        if is_repeat:
            continue
        after.came_back = {} if fate == "accepted" else decoded
        if fate == "accepted":
            accepted = (number, sent.pending.digest)
        expected = after


@settings(max_examples=60, deadline=None)
@given(ROUNDS, st.integers(0, 2**32 - 1))
def test_the_age_of_a_layer_counts_from_the_last_packet_that_carried_it_and_was_merged(
    rounds, seed
):
    rng = np.random.default_rng(seed)
    state, accepted, expected, number = BoardState(), None, {}, 1
    for fate, layers, budget_bytes, size in rounds:
        settled = settle(state, LAYOUT, round_number=number, accepted=accepted)
        assert dict(settled.history.since) == expected
        sent = send(
            delta_of(rng, layers, size),
            settled,
            LAYOUT,
            LAYOUT.ordered(layers),
            budget_bytes=budget_bytes,
            round_number=number,
            settings=CodecSettings(),
            rules=Residual(),
            before=PUBLISHED,
        )
        state = BoardState(sent.residual, sent.pending, history=sent.history)
        carried = decode(sent.pending.packet, LAYOUT, max_bytes=10_000).layers
        if fate == "crashed":
            continue
        began = {name: number for name in layers if name not in expected}
        expected = expected | began
        if fate == "accepted":
            accepted = (number, sent.pending.digest)
            expected |= dict.fromkeys(carried, number)
        number += 1
