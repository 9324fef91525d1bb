import hashlib
import math

import numpy as np
import pytest

from compression.shared_mask import WHOLE_SHARE, SharedMask, splitmix64
from fedfreeze.errors import LayoutError
from fedfreeze.layout import Layer, Layout, TensorSpec
from tests.unit.compression.sample_layouts import line, mixed, network

SHARES = [0, 1, 12345, WHOLE_SHARE // 100, WHOLE_SHARE // 3, WHOLE_SHARE - 1, WHOLE_SHARE]


def split_mix(state):
    """SplitMix64, one number at a time, in whole numbers of any size."""
    while True:
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        z = state
        z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) % 2**64
        z = ((z ^ z >> 27) * 0x94D049BB133111EB) % 2**64
        yield z ^ z >> 31


def slow_positions(mask, layer, size):
    """Positions in a layer by the rule of the page on the packet format."""
    key = mask.seed.to_bytes(8, "little") + mask.round_number.to_bytes(8, "little")
    digest = hashlib.blake2b(key + layer.encode(), digest_size=24, person=b"fedfreeze-mask")
    numbers = digest.digest()
    start, rounding, state = (
        int.from_bytes(numbers[at : at + 8], "little") for at in range(0, 24, 8)
    )
    count = (size * mask.share + rounding // 2**32) // 2**32
    found = []
    for i, drawn in zip(range(count), split_mix(state), strict=False):
        first, after = i * size // count, (i + 1) * size // count
        found.append((first + drawn % (after - first) + start) % size)
    return sorted(found)


def test_the_numbers_are_those_of_split_mix():
    # The sequence that other implementations publish for this seed.
    assert splitmix64(1234567, 5).tolist() == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize(("seed", "number"), [(0, 1), (7, 300), (2**63 - 1, 2**32 - 1)])
@pytest.mark.parametrize("layout", [mixed(), network(), line(1)], ids=["mixed", "network", "one"])
def test_positions_follow_the_rule(layout, seed, number, share):
    mask = SharedMask(seed, number, share)
    found = mask.positions(layout, layout.names)
    assert set(found) == {t.name for t in layout.tensors.values() if t.kind == "parameter"}
    for layer in layout:
        at, expected = 0, slow_positions(mask, layer.name, sum(t.size for t in layer.parameters))
        for tensor in layer.parameters:
            own = [place - at for place in expected if at <= place < at + tensor.size]
            assert found[tensor.name].tolist() == own
            at += tensor.size


def test_a_whole_share_is_every_value_and_none_is_none():
    layout = network()
    for share, sizes in ((0, 0), (WHOLE_SHARE, 1)):
        found = SharedMask(3, 4, share).positions(layout, layout.names)
        for name, positions in found.items():
            assert positions.tolist() == list(range(layout.tensors[name].size * sizes))


@pytest.mark.parametrize("size", [1, 2, 7, 50])
@pytest.mark.parametrize("share", [WHOLE_SHARE // 10, WHOLE_SHARE // 3, WHOLE_SHARE * 7 // 10])
def test_every_value_has_the_same_chance(size, share):
    rounds = 4000
    sent = np.zeros(size)
    for number in range(rounds):
        sent[SharedMask(5, number, share).positions(line(size), ["all"])["w"]] += 1
    chance = share / WHOLE_SHARE
    deviation = math.sqrt(rounds * chance * (1 - chance))
    assert (np.abs(sent - rounds * chance) < 5 * deviation).all()


def test_no_stretch_of_twice_the_mean_gap_is_without_a_value():
    for number in range(50):
        found = SharedMask(1, number, WHOLE_SHARE // 20).positions(line(1000), ["all"])["w"]
        around = np.diff(found, append=found[0] + 1000)
        assert len(found) == 50
        assert around.min() >= 1
        assert around.max() < 2 * 20


def test_a_layer_has_its_positions_whatever_others_are_trained():
    layout, mask = network(), SharedMask(9, 2, WHOLE_SHARE // 8)
    everything = mask.positions(layout, layout.names)
    for name, positions in mask.positions(layout, ["head", "conv"]).items():
        assert positions.tolist() == everything[name].tolist()


def test_seed_round_and_name_of_the_layer_each_change_the_positions():
    def drawn(seed=1, number=2, name="all"):
        layer = Layer(name, (TensorSpec("w", (4000,), "float32"),))
        found = SharedMask(seed, number, WHOLE_SHARE // 40)
        return found.positions(Layout("m", (layer,)), [name])["w"].tolist()

    others = [drawn(seed=2), drawn(number=3), drawn(name="body"), drawn(seed=2, number=1)]
    for other in others:
        # Of 100 among 4000, 2.5 are the same by chance.
        assert len(set(other) & set(drawn())) < 20
    assert drawn() == drawn()


def test_a_layer_that_there_is_not_is_refused():
    with pytest.raises(LayoutError):
        SharedMask(0, 0, 1).positions(network(), ["tail"])


@pytest.mark.parametrize(
    ("numbers", "name", "most"),
    [
        ((-1, 0, 0), "seed", 2**64 - 1),
        ((0, 2**64, 0), "round_number", 2**64 - 1),
        ((0, 0, 2**32 + 1), "share", 2**32),
    ],
)
def test_numbers_out_of_range_are_refused(numbers, name, most):
    came = next(number for number in numbers if number)
    with pytest.raises(ValueError, match="shared mask") as error:
        SharedMask(*numbers)
    assert str(error.value) == f"{name} of a shared mask: expected from 0 to {most}, got {came}"
