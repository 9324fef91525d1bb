from dataclasses import replace

from device_profiles.cost import training_memory_bytes
from strategies.freeze.cocofl import CoCoFL, CoCoFLSettings, largest_blocks
from strategies.freeze.policy import RoundView
from strategies.means import Means
from strategies.outlook import Outlook
from tests.unit.strategies.samples import LIMITS, LOAD, board, client_of, stack

LAYOUT = stack()
NAMES = LAYOUT.names
FREE = replace(LIMITS, full_upload_bytes=1_000)


def memory(*layers):
    return training_memory_bytes(LAYOUT, layers, FREE.batch_size, FREE.optimizer_slots)


class Budget:
    """Affords what has at most so many letters in all."""

    def __init__(self, letters):
        self.letters = letters

    def affords(self, layers):
        return len("".join(layers)) <= self.letters


def test_only_blocks_that_are_in_no_other_one_that_fits_are_drawn_from():
    layers = ["aaa", "b", "cc", "d", "eeee"]
    assert largest_blocks(layers, Budget(5)) == [("aaa", "b"), ("b", "cc", "d"), ("d", "eeee")]
    assert largest_blocks(layers, Budget(11)) == [tuple(layers)]
    assert largest_blocks(layers, Budget(0)) == []


def test_a_layer_that_alone_is_too_large_is_in_no_block():
    assert largest_blocks(["a", "bbbb", "c"], Budget(2)) == [("a",), ("c",)]


def advice(number, capacity=None, device="b0", seed=0):
    client = client_of(LAYOUT, device, capacity=capacity, limits=FREE)
    return CoCoFL(CoCoFLSettings(), LAYOUT).advise(RoundView(number, 9, 0.1, seed), client)


def test_a_board_that_affords_everything_trains_everything():
    assert advice(1).frozen == {}


def test_a_board_short_of_memory_trains_a_contiguous_block_that_fits_and_all_get_their_turn():
    has = max(memory("body", "tail"), memory("tail", "head"))
    capacity = board(memory=has)
    outlook = Outlook(Means(LAYOUT, capacity, FREE, LOAD))
    blocks = set()
    for number in range(1, 60):
        trained = tuple(n for n in NAMES if n not in advice(number, capacity).frozen)
        assert outlook.affords(trained)
        blocks.add(trained)
    assert blocks == set(largest_blocks(NAMES, outlook))
    assert len(blocks) > 1


def test_draws_depend_on_client_and_seed_and_are_the_same_again():
    capacity = board(memory=max(memory("body", "tail"), memory("tail", "head")))

    def drawn(**of):
        return [tuple(advice(number, capacity, **of).frozen) for number in range(1, 20)]

    assert drawn() == drawn()
    assert len({str(drawn()), str(drawn(device="b1")), str(drawn(seed=1))}) == 3
