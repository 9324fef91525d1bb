import hashlib
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest

from compression import CodecSettings, encode
from compression.proposal import Proposer
from compression.search import fill
from compression.segments import Segments, Values
from compression.wishes import Wishes
from fedfreeze.layout import Layer, Layout, TensorSpec
from tests.unit.compression.sample_layouts import crowded_update, line, network
from tests.unit.compression.test_encode import error_share


class Counting(Proposer):
    """A proposer that counts what it is asked for."""

    bodies = drafts = 0

    def body(self, cut):
        self.bodies += 1
        return super().body(cut)

    def draft(self, step, zones):
        self.drafts += 1
        return super().draft(step, zones)


def filled(layout, update, budget_bytes, settings):
    segments = Segments.of(layout, layout.names)
    wishes = Wishes.of(segments, settings, {}, {})
    proposer = Counting(Values.of(update, segments), None, wishes)
    with np.errstate(over="ignore"):
        return fill(proposer, budget_bytes, None), proposer


def nasty(kind, size):
    """Values that an interpolating search stumbles over."""
    rng = np.random.default_rng(9)
    signs = rng.choice([-1, 1], size)
    return {
        "two magnitudes": np.where(rng.random(size) < 0.5, 1, 1e-3) * signs,
        "cliff": np.where(rng.random(size) < 0.03, 10, 1e-4) * rng.normal(size=size),
        "ties": np.round(2 * rng.laplace(size=size)),
        "one magnitude": 0.3 * signs,
        "constant": np.full(size, 0.3),
        "one outlier": np.where(np.arange(size) == 7, 1e20, rng.normal(size=size)),
        "zeros": np.zeros(size),
        "powers": 2.0 ** rng.integers(-60, 60, size) * signs,
    }[kind].astype(np.float32)


NASTY = (
    "two magnitudes",
    "cliff",
    "ties",
    "one magnitude",
    "constant",
    "one outlier",
    "zeros",
    "powers",
)


@pytest.mark.parametrize(
    "settings",
    [
        CodecSettings(),
        CodecSettings(effort="fast"),
        CodecSettings(density=0.1),
        CodecSettings(value_bits=2),
    ],
    ids=["thorough", "fast", "density", "bits"],
)
@pytest.mark.parametrize("budget_bytes", [60, 700, 9000])
@pytest.mark.parametrize("kind", NASTY)
def test_the_search_ends_within_its_turns_and_its_budget(kind, budget_bytes, settings):
    body, asked = filled(line(6000), {"w": nasty(kind, 6000)}, budget_bytes, settings)
    assert body is None or body.nbytes == len(body.pack()) <= budget_bytes
    assert asked.drafts <= 3 + 6 * 10 + 1
    assert asked.bodies <= 40


@pytest.mark.parametrize("kind", ["normal", "laplace", "cubed"])
@pytest.mark.parametrize("bits", [0.05, 0.3, 1, 2, 4])
def test_budgets_of_all_rates_are_filled_to_98_and_a_half_per_cent(kind, bits):
    rng = np.random.default_rng(0)
    values = rng.normal(size=30_000) if kind == "normal" else rng.laplace(size=30_000)
    values = values**3 if kind == "cubed" else values
    budget_bytes = int(30_000 * bits / 8)
    sent = encode(
        {"w": values.astype(np.float32)},
        line(30_000),
        ["all"],
        budget_bytes=budget_bytes,
        round_number=0,
    )
    assert 0.985 * budget_bytes <= len(sent.packet) <= budget_bytes


@pytest.mark.parametrize("budget_bytes", [1000, 1500, 2000, 2500, 3000])
def test_values_far_from_0_are_sent_whole_rather_than_some_of_them_finely(budget_bytes):
    # Values lie around 2: leaving one out costs as much as sending many of them coarsely.
    rng = np.random.default_rng(4)
    update = {"w": (2 + 0.5 * rng.normal(size=4000)).astype(np.float32)}
    sent = encode(update, line(4000), ["all"], budget_bytes=budget_bytes, round_number=0)
    assert sent.kept >= 3600
    # One cell of every value leaves at most its variance, a seventeenth of its square.
    assert error_share(update, sent.decoded) < 1 / 17


def test_at_one_bit_more_for_every_value_the_error_is_a_quarter():
    # 6.02 dB a bit, where all values are sent (high-rate theory).
    rng = np.random.default_rng(6)
    update = {"w": rng.normal(size=20_000).astype(np.float32)}
    errors = [
        error_share(
            update,
            encode(
                update, line(20_000), ["all"], budget_bytes=20_000 * bits // 8, round_number=0
            ).decoded,
        )
        for bits in (3, 4)
    ]
    assert errors[1] / errors[0] == pytest.approx(1 / 4, rel=0.2)


@pytest.mark.parametrize(("kind", "size"), [("normal", 30_000), ("cubed", 12_000)])
def test_where_tails_widen_half_a_bit_more_still_takes_its_share_of_the_error(kind, size):
    # In theory half a bit more for each value leaves half of the error. Sizes jump where every
    # cell beyond the last plane takes another bit; to drop values until such a packet fits would
    # leave more error than there was before.
    rng = np.random.default_rng(0)
    values = rng.normal(size=size) if kind == "normal" else rng.laplace(size=size) ** 3
    update = {"w": values.astype(np.float32)}
    errors = []
    for bits in np.arange(4, 8.1, 0.5):
        budget_bytes = int(size * bits / 8)
        sent = encode(update, line(size), ["all"], budget_bytes=budget_bytes, round_number=0)
        assert 0.95 * budget_bytes <= len(sent.packet) <= budget_bytes
        errors.append(error_share(update, sent.decoded))
    assert max(after / before for before, after in pairwise(errors)) < 0.85
    assert (errors[-1] / errors[0]) ** (1 / 8) < 0.65


@pytest.mark.parametrize("tensors", [1, 300])
@pytest.mark.parametrize("budget_bytes", [200, 3000])
def test_one_tensor_or_three_hundred_keep_the_budget(tensors, budget_bytes):
    layout = Layout(
        "many",
        tuple(
            Layer(f"{n}", (TensorSpec(f"{n}.w", (6000 // tensors,), "float32"),))
            for n in range(tensors)
        ),
    )
    rng = np.random.default_rng(1)
    update = {
        name: (rng.laplace(size=t.shape) ** 3).astype(np.float32)
        for name, t in layout.tensors.items()
    }
    sent = encode(update, layout, layout.names, budget_bytes=budget_bytes, round_number=0)
    assert 0.97 * budget_bytes <= len(sent.packet) <= budget_bytes


def packet_digest_here():
    layout = network()
    sent = encode(crowded_update(layout, 5), layout, layout.names, budget_bytes=900, round_number=2)
    return hashlib.sha256(sent.packet).hexdigest()


def test_another_process_writes_the_same_bytes():
    code = (
        "from tests.unit.compression.test_search import packet_digest_here as digest;"
        "print(digest())"
    )
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert other.stdout.strip() == packet_digest_here()
