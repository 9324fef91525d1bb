"""MNIST by writer: its images, and who wrote each of them, which QMNIST found out.

QMNIST (Yadav and Bottou, 2019) lists MNIST's images in their order with NIST's records: column 0 is
the digit, 1 the NIST series, 2 the writer. Its test list has 60,000 rows, of which the first 10,000
are MNIST's test images. 539 people wrote the training images, 297 others the test images.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedfreeze.errors import StateError
from tasks.dataset import Dataset, Examples, Groups
from tasks.datasets.idx import read_digits, read_idx
from tasks.download import Download
from tasks.sources import Place, missing

LABELS = tuple("0123456789")

SIDE = 28
_COLUMNS = 8
_IMAGES = ("MNIST/raw", "mnist")
_WRITERS = ("QMNIST/raw", "qmnist")
_HINT = "fedfreeze data mnist-writers --download --data-dir DIR fetches it"

_MNIST = ("https://ossci-datasets.s3.amazonaws.com/mnist", _IMAGES[0])
_QMNIST = ("https://raw.githubusercontent.com/facebookresearch/qmnist/master", _WRITERS[0])
# Checksums as torchvision publishes them.
DOWNLOADS = tuple(
    Download(f"{host}/{file}", f"{folder}/{file}", md5=md5, bytes=size)
    for (host, folder), file, md5, size in (
        (_MNIST, "train-images-idx3-ubyte.gz", "f68b3c2dcbeaaa9fbdd348bbdeb94873", 9_912_422),
        (_MNIST, "train-labels-idx1-ubyte.gz", "d53e105ee54ea40749a09fcbcd1e9432", 28_881),
        (_MNIST, "t10k-images-idx3-ubyte.gz", "9fb629c4189551a2d022fa330f9573f3", 1_648_877),
        (_MNIST, "t10k-labels-idx1-ubyte.gz", "ec29112dd5afa0611ce80d1b7f02629c", 4_542),
        (_QMNIST, "qmnist-train-labels-idx2-int.gz", "0058f8dd561b90ffdd0f734c6a30e5e4", 463_024),
        (_QMNIST, "qmnist-test-labels-idx2-int.gz", "5b5b05890a5e13444e108efe57b788aa", 526_800),
    )
)


def mnist_writers(place: Place) -> Dataset:
    """MNIST's images with the number of the writer of each as its group.

    Inputs are ``uint8[n, 1, 28, 28]``, targets ``int64[n]`` below 10. Writers of both halves are
    numbered together from 0, in the order of their numbers at NIST.

    Raises:
        ConfigError: the images or the writers are nowhere.
        StateError: a file is torn, or the list is not one of these images.
    """
    images = place.find("MNIST", _IMAGES)
    writers = place.find("QMNIST's labels", _WRITERS)
    if images is None:
        raise missing("MNIST", _IMAGES, _HINT)
    if writers is None:
        raise missing("QMNIST's list of writers", _WRITERS, _HINT)
    train, test = (
        read_digits(images, part, SIDE, len(LABELS), _HINT) for part in ("train", "t10k")
    )
    owners = _numbered(_owners(writers, "train", train), _owners(writers, "test", test))
    return Dataset(
        train=train,
        test=test,
        source=f"{images} with writers of {writers} ({len(train)} training and {len(test)} "
        "test images)",
        group="writer",
        train_groups=owners[: len(train)],
        test_groups=owners[len(train) :],
    )


def _owners(folder: Path, half: str, examples: Examples) -> NDArray[Any]:
    """NIST's series and writer of each example: ``int64[n, 2]``."""
    name = f"qmnist-{half}-labels-idx2-int"
    listed = read_idx(folder, name, (_COLUMNS,), dtype=">i4", hint=_HINT)
    rows = listed[: len(examples)].astype(np.int64)
    if not np.array_equal(rows[:, 0], examples.targets.numpy()):
        raise StateError(
            f"{folder / name}: expected the digits of MNIST's {half} images in column 0, in their "
            "order, got others; are both files of the same set?"
        )
    return rows[:, 1:3]


def _numbered(*halves: NDArray[Any]) -> Groups:
    """One number for each different (series, writer): series have numbers of their own."""
    _, numbers = np.unique(np.concatenate(halves)[:, ::-1], axis=0, return_inverse=True)
    return numbers.reshape(-1).astype(np.int64)
