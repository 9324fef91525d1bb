"""Fashion-MNIST (Xiao et al., 2017): a folder, Debian's package, or the subset that ships."""

from __future__ import annotations

from pathlib import Path

from tasks.dataset import Dataset
from tasks.datasets.embedded import embedded
from tasks.datasets.idx import as_examples, read_digits
from tasks.download import Download
from tasks.sources import Place

LABELS = (
    "t-shirt",
    "trouser",
    "pullover",
    "dress",
    "coat",
    "sandal",
    "shirt",
    "sneaker",
    "bag",
    "ankle boot",
)

SIDE = 28
_FOLDER = "FashionMNIST/raw"
# Where Debian's package `dataset-fashion-mnist` puts it.
DEBIAN = Path("/usr/share/datasets/fashion-mnist")
_HINT = "leave data-dir out to use the embedded subset"

_HOST = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com"
# Checksums as torchvision publishes them.
DOWNLOADS = tuple(
    Download(f"{_HOST}/{file}", f"{_FOLDER}/{file}", md5=md5, bytes=size)
    for file, md5, size in (
        ("train-images-idx3-ubyte.gz", "8d4fb7e6c68d591d4c3dfef9ec88bf0d", 26_421_880),
        ("train-labels-idx1-ubyte.gz", "25c81989df183df01b3e8a0aad5dffbe", 29_515),
        ("t10k-images-idx3-ubyte.gz", "bef4ecab320f06d8554ea6380940ec79", 4_422_102),
        ("t10k-labels-idx1-ubyte.gz", "bb300cfdad3c16e7a12a480ee83cd310", 5_148),
    )
)


def fashion_mnist(place: Place, package: Path = DEBIAN) -> Dataset:
    """The whole set in a folder laid out as torchvision does or in the package, or the subset.

    Inputs are ``uint8[n, 1, 28, 28]``, targets ``int64[n]`` below 10.

    Args:
        place: where a folder may be.
        package: where an installed package would be.

    Raises:
        ConfigError: a demanded folder or the embedded file lacks a part.
        StateError: a file is torn or not what it should be.
    """
    folder = place.find("Fashion-MNIST", [_FOLDER])
    if folder is None and package.is_dir():
        folder = package
    return _embedded() if folder is None else _from_folder(folder)


def _embedded() -> Dataset:
    name, arrays = embedded("fashion_mini.json", _FOLDER)
    return Dataset(
        train=as_examples(arrays["train_images"][:, None], arrays["train_labels"]),
        test=as_examples(arrays["test_images"][:, None], arrays["test_labels"]),
        source=name,
    )


def _from_folder(folder: Path) -> Dataset:
    train, test = (
        read_digits(folder, part, SIDE, len(LABELS), _HINT) for part in ("train", "t10k")
    )
    source = f"{folder} ({len(train)} training and {len(test)} test images)"
    return Dataset(train, test, source)
