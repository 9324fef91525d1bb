import pytest

from compression.reader import Reader, varint
from fedfreeze.errors import PacketError

DAMAGED = "; the packet is damaged, or another codec wrote it"
NUMBERS = [0, 1, 127, 128, 300, 2**14 - 1, 2**14, 2**21, 2**28 - 1, 2**28, 2**35 - 1]


def refused(data, largest):
    with pytest.raises(PacketError) as error:
        Reader(data).varint(largest)
    return str(error.value)


@pytest.mark.parametrize("number", NUMBERS)
def test_a_number_comes_back_from_its_bytes(number):
    reader = Reader(varint(number) + b"\x05")
    assert reader.varint(number) == number
    assert reader.byte() == 5


@pytest.mark.parametrize("number", NUMBERS[1:])
def test_a_number_above_its_limit_is_refused(number):
    assert refused(varint(number), number - 1) == (
        f"packet: expected a count up to {number - 1}, got {number}{DAMAGED}"
    )


@pytest.mark.parametrize("number", NUMBERS)
def test_a_number_that_is_cut_off_is_refused(number):
    assert refused(varint(number)[:-1], number) == (
        f"packet: expected 1 more bytes, got 0{DAMAGED}"
    )


@pytest.mark.parametrize("data", [b"\x80\x00", b"\xff\x80\x00", b"\x80\x80\x80\x80\x00"])
def test_a_number_in_more_bytes_than_needed_is_refused(data):
    assert refused(data, 2**35) == (
        f"packet: expected the shortest form of a count, got a longer one{DAMAGED}"
    )
