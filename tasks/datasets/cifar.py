"""CIFAR-10 and CIFAR-100 (Krizhevsky, 2009): the binary version, or a folder of images a class.

A record of the binary version is the class (CIFAR-100: the coarse class, then the fine one) as one
byte each, then 1,024 bytes of red, of green and of blue.
"""

from __future__ import annotations

import gzip
import re
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from fedfreeze.errors import StateError
from tasks.dataset import Dataset, Examples
from tasks.datasets.idx import as_examples
from tasks.datasets.image_files import decode, files_in
from tasks.datasets.kept import Allocate, Arrays, kept
from tasks.datasets.reading import reading
from tasks.download import Download
from tasks.sources import Place, missing

SIDE = 32
_PIXELS = 3 * SIDE * SIDE
# In one file of either set.
_MOST_RECORDS = 50_000

LABELS_10 = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)

LABELS_100 = (
    *("apple", "aquarium_fish", "baby", "bear", "beaver", "bed", "bee", "beetle", "bicycle"),
    *("bottle", "bowl", "boy", "bridge", "bus", "butterfly", "camel", "can", "castle"),
    *("caterpillar", "cattle", "chair", "chimpanzee", "clock", "cloud", "cockroach", "couch"),
    *("crab", "crocodile", "cup", "dinosaur", "dolphin", "elephant", "flatfish", "forest"),
    *("fox", "girl", "hamster", "house", "kangaroo", "keyboard", "lamp", "lawn_mower"),
    *("leopard", "lion", "lizard", "lobster", "man", "maple_tree", "motorcycle", "mountain"),
    *("mouse", "mushroom", "oak_tree", "orange", "orchid", "otter", "palm_tree", "pear"),
    *("pickup_truck", "pine_tree", "plain", "plate", "poppy", "porcupine", "possum", "rabbit"),
    *("raccoon", "ray", "road", "rocket", "rose", "sea", "seal", "shark", "shrew", "skunk"),
    *("skyscraper", "snail", "snake", "spider", "squirrel", "streetcar", "sunflower"),
    *("sweet_pepper", "table", "tank", "telephone", "television", "tiger", "tractor", "train"),
    *("trout", "tulip", "turtle", "wardrobe", "whale", "willow_tree", "wolf", "woman", "worm"),
)


@dataclass(frozen=True)
class _Set:
    """How one of the two sets is published.

    Attributes:
        title: for messages.
        task: whose command fetches it.
        labels: of the classes, in the order of their numbers.
        label_bytes: before the pixels of a record; the last of them is the class.
        halves: names of the binary files of the training and the test half.
        places: below a data folder; the folder and the archive of the binary version come first.
    """

    title: str
    task: str
    labels: tuple[str, ...]
    label_bytes: int
    halves: Mapping[str, tuple[str, ...]]
    places: tuple[str, ...]


_CIFAR_10 = _Set(
    title="CIFAR-10",
    task="cifar10",
    labels=LABELS_10,
    label_bytes=1,
    halves={
        "train": tuple(f"data_batch_{number}.bin" for number in range(1, 6)),
        "test": ("test_batch.bin",),
    },
    places=("cifar-10-batches-bin", "cifar-10-binary.tar.gz", "cifar10", "cifar10_jpeg_60k.tar.xz"),
)
_CIFAR_100 = _Set(
    title="CIFAR-100",
    task="cifar100",
    labels=LABELS_100,
    label_bytes=2,
    halves={"train": ("train.bin",), "test": ("test.bin",)},
    places=("cifar-100-binary", "cifar-100-binary.tar.gz", "cifar100"),
)

# Checksums as the publisher's page gives them.
DOWNLOADS_10 = (
    Download(
        "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
        "cifar-10-binary.tar.gz",
        md5="c32a1d4ab5d03f1284b67883e8d87530",
        bytes=170_052_171,
    ),
)
DOWNLOADS_100 = (
    Download(
        "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
        "cifar-100-binary.tar.gz",
        md5="03b5dce01913d631647c71ecec9e9cb8",
        bytes=168_513_733,
    ),
)


def cifar10(place: Place) -> Dataset:
    """CIFAR-10: ``uint8[n, 3, 32, 32]``, targets ``int64[n]`` below 10.

    Raises:
        ConfigError: it is nowhere.
        StateError: a file is torn or not what it should be.
    """
    return _read(_CIFAR_10, place)


def cifar100(place: Place) -> Dataset:
    """CIFAR-100 with its fine classes: ``uint8[n, 3, 32, 32]``, targets ``int64[n]`` below 100.

    Raises:
        ConfigError: it is nowhere.
        StateError: a file is torn or not what it should be.
    """
    return _read(_CIFAR_100, place)


def _read(published: _Set, place: Place) -> Dataset:
    path = place.find(published.title, published.places)
    if path is None:
        raise missing(
            published.title,
            published.places,
            f"fedfreeze data {published.task} --download --data-dir DIR fetches it",
        )
    if (path / published.halves["test"][0]).is_file():
        halves = {half: _from_files(published, path, half) for half in published.halves}
    else:

        def fill(allocate: Allocate) -> None:
            decoder = _from_archive if path.name.endswith(".tar.gz") else _from_images
            decoder(published, path, allocate)

        arrays = kept(f"{published.task}-1", path, fill)
        halves = {half: _examples(arrays, half) for half in published.halves}
    train, test = halves["train"], halves["test"]
    source = f"{path} ({len(train)} training and {len(test)} test images)"
    return Dataset(train, test, source)


def _examples(arrays: Arrays, half: str) -> Examples:
    return Examples(
        inputs=torch.from_numpy(np.asarray(arrays[f"{half}_images"])),
        targets=torch.from_numpy(arrays[f"{half}_labels"].astype(np.int64)),
    )


def _from_files(published: _Set, folder: Path, half: str) -> Examples:
    parts = []
    for name in published.halves[half]:
        path = folder / name
        if not path.is_file():
            raise StateError(f"{path}: expected this file beside the others; fetch the set again")
        _accept_size(published, path, path.stat().st_size)
        with reading(path):
            parts.append(_records(published, path, path.read_bytes()))
    records = np.concatenate(parts)
    return as_examples(*_taken_apart(published, records))


def _from_archive(published: _Set, path: Path, allocate: Allocate) -> None:
    wanted = {name for names in published.halves.values() for name in names}
    parts: dict[str, NDArray[np.uint8]] = {}
    with (
        reading(path),
        gzip.open(path) as stream,
        tarfile.open(fileobj=stream, mode="r|") as archive,
    ):
        for member in archive:
            name = Path(member.name).name
            if name not in wanted or not member.isfile():
                continue
            _accept_size(published, path / name, member.size)
            file = archive.extractfile(member)
            parts[name] = _records(published, path / name, file.read() if file else b"")
        while stream.read(1 << 20):  # its checksum stands at the end
            pass
    if absent := sorted(wanted - set(parts)):
        raise StateError(f"{path}: expected {', '.join(absent)} in it; fetch the file again")
    for half, names in published.halves.items():
        images, labels = _taken_apart(published, np.concatenate([parts[name] for name in names]))
        allocate(f"{half}_images", images.shape)[:] = images
        allocate(f"{half}_labels", labels.shape)[:] = labels


def _accept_size(published: _Set, path: Path, size: int) -> None:
    record = published.label_bytes + _PIXELS
    if size == 0 or size % record or size > record * _MOST_RECORDS:
        raise StateError(
            f"{path}: expected 1 to {_MOST_RECORDS} records of {record} bytes, got {size} bytes; "
            "fetch the file again"
        )


def _records(published: _Set, path: Path, raw: bytes) -> NDArray[np.uint8]:
    record = published.label_bytes + _PIXELS
    records = np.frombuffer(raw, np.uint8).reshape(-1, record)
    labels = records[:, published.label_bytes - 1]
    if labels.max() >= len(published.labels):
        raise StateError(
            f"{path}: has class {labels.max()}, expected 0 to {len(published.labels) - 1}; "
            "is this another data set?"
        )
    return records


def _taken_apart(
    published: _Set, records: NDArray[np.uint8]
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    images = records[:, published.label_bytes :].reshape(-1, 3, SIDE, SIDE)
    return images, records[:, published.label_bytes - 1]


def _from_images(published: _Set, path: Path, allocate: Allocate) -> None:
    """``{train,test}/{class}/*.jpg`` in a folder or an archive; PNG files too."""
    pattern = re.compile(r"(?:[^/]+/)?(?P<half>train|test)/(?P<label>[^/]+)/[^/]+\.(?:jpe?g|png)")
    files = files_in(path, pattern)
    numbers = {label: number for number, label in enumerate(published.labels)}
    halves: dict[str, list[tuple[int, str]]] = {half: [] for half in published.halves}
    for name in files.names:
        match = pattern.fullmatch(name)
        assert match is not None
        if match["label"] not in numbers:
            raise StateError(
                f'{path}: {name}: there is no class "{match["label"]}" in {published.title}; '
                "is this another data set?"
            )
        halves[match["half"]].append((numbers[match["label"]], name))
    for half, found in halves.items():
        if not found:
            raise StateError(
                f"{path}: expected images as {half}/CLASS/NAME.jpg, or "
                f"{' and '.join(published.halves[half])}, found neither"
            )
        found.sort()
        images = allocate(f"{half}_images", (len(found), 3, SIDE, SIDE))
        decode(files, [name for _, name in found], images)
        allocate(f"{half}_labels", (len(found),))[:] = [number for number, _ in found]
