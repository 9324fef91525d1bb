"""Arrays that ship as text."""

import base64
import hashlib
import json
import lzma

import numpy as np
import pytest

from fedfreeze.errors import ConfigError, StateError
from tasks.datasets.embedded import embedded, pack, unpack


def packed(values: bytes, **changes):
    good = {
        "shape": [len(values)],
        "sha256": hashlib.sha256(values).hexdigest(),
        "xz_base85": base64.b85encode(lzma.compress(values)).decode(),
    }
    return {**good, **changes}


def refused(given):
    with pytest.raises(StateError) as caught:
        unpack("labels", given)
    return str(caught.value)


def test_an_embedded_array_survives_packing():
    assert unpack("labels", packed(b"\x03\x01\x02")).tolist() == [3, 1, 2]


def test_whole_numbers_of_two_bytes_are_little_endian():
    array = unpack("steps", packed(b"\x01\x00\xff\xff", shape=[1, 2], dtype="int16"))
    assert array.tolist() == [[1, -1]]


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=np.uint8).reshape(2, 3),
        np.array([[-32768, 32767]], np.int16),
        np.arange(12, dtype=np.int16).reshape(3, 4).T,
        np.arange(3, dtype=">i2"),
        np.empty((0, 2), np.int16),
    ],
)
def test_what_is_packed_is_unpacked(array):
    found = unpack("x", json.loads(json.dumps(pack(array))))
    assert found.dtype.name == array.dtype.name
    assert np.array_equal(found, array)


def test_the_same_array_always_packs_to_the_same_text():
    array = np.arange(1000, dtype=np.int16)
    assert pack(array) == pack(array.copy())


@pytest.mark.parametrize(("changes", "came"), [({"shape": [2]}, 3), ({"shape": [9]}, 3)])
def test_an_embedded_array_of_other_bytes_is_refused(changes, came):
    given = packed(b"\x03\x01\x02", **changes)
    assert refused(given) == (
        f"embedded data labels: expected {given['shape'][0]} bytes with the recorded checksum, "
        f"got {came} others; reinstall the project"
    )


def test_an_embedded_array_of_another_checksum_is_refused():
    assert refused(packed(b"\x03\x01\x02", sha256="0" * 64)) == (
        "embedded data labels: expected 3 bytes with the recorded checksum, got 3 others; "
        "reinstall the project"
    )


def test_an_embedded_array_that_unpacks_without_end_is_cut_short():
    bomb = packed(b"ab", xz_base85=base64.b85encode(lzma.compress(bytes(10**7))).decode())
    assert refused(bomb) == (
        "embedded data labels: expected 2 bytes with the recorded checksum, got 3 others; "
        "reinstall the project"
    )


def test_an_embedded_array_that_is_not_base85_is_refused():
    assert refused(packed(b"ab", xz_base85='"')) == (
        "embedded data labels: bad base85 character at position 0; reinstall the project"
    )


def test_a_bundle_without_the_file_says_what_to_give_instead():
    with pytest.raises(ConfigError) as caught:
        embedded("nothing.json", instead="Nothing/raw")
    assert str(caught.value) == (
        "this bundle carries no tasks/data/nothing.json: give data-dir, a folder that holds "
        "Nothing/raw"
    )
