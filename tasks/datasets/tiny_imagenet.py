"""Tiny-ImageNet-200 as Stanford publishes it, unpacked or as its zip file.

Its test images have no labels, so its validation images are the test half here, as everybody does.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import torch

from fedfreeze.errors import StateError
from tasks.dataset import Dataset, Examples
from tasks.datasets.image_files import Files, decode, files_in
from tasks.datasets.kept import Allocate, kept
from tasks.datasets.tiny_imagenet_classes import CLASSES
from tasks.download import Download
from tasks.sources import Place, missing

SIDE = 64
_PLACES = ("tiny-imagenet-200", "tiny-imagenet-200.zip")
_TRAIN = re.compile(r"(?:tiny-imagenet-200/)?train/(?P<wnid>n\d+)/images/[^/]+\.JPEG")
_TEST = re.compile(r"(?:tiny-imagenet-200/)?val/images/(?P<file>[^/]+\.JPEG)")
_LIST = re.compile(r"(?:tiny-imagenet-200/)?val/val_annotations\.txt")
_WANTED = re.compile("|".join(re.sub(r"\?P<\w+>", "", p.pattern) for p in (_TRAIN, _TEST, _LIST)))

DOWNLOADS = (
    Download(
        "http://cs231n.stanford.edu/tiny-imagenet-200.zip",
        "tiny-imagenet-200.zip",
        md5="90528d7ca1a48142e341f4ef8d21d0de",
        bytes=248_100_043,
    ),
)

# By number, as in the order of the classes' names in WordNet.
_NUMBERS = {wnid: number for number, wnid in enumerate(CLASSES)}


def tiny_imagenet(place: Place) -> Dataset:
    """Tiny-ImageNet: ``uint8[n, 3, 64, 64]``, targets ``int64[n]`` below 200.

    Raises:
        ConfigError: it is nowhere.
        StateError: a file is torn or not what it should be.
    """
    path = place.find("Tiny-ImageNet", _PLACES)
    if path is None:
        raise missing(
            "Tiny-ImageNet",
            _PLACES,
            "fedfreeze data tiny-imagenet --download --data-dir DIR fetches it",
        )
    arrays = kept("tiny-imagenet-1", path, lambda allocate: _decode(path, allocate))
    train, test = (
        Examples(
            inputs=torch.from_numpy(np.asarray(arrays[f"{half}_images"])),
            targets=torch.from_numpy(arrays[f"{half}_labels"].astype(np.int64)),
        )
        for half in ("train", "test")
    )
    return Dataset(train, test, f"{path} ({len(train)} training and {len(test)} test images)")


def _decode(path: Path, allocate: Allocate) -> None:
    files = files_in(path, _WANTED)
    for half, found in (("train", _train(files)), ("test", _test(files))):
        if not found:
            raise StateError(
                f"{path}: expected train/CLASS/images/*.JPEG and val/images/*.JPEG, found no "
                f"{half} image; fetch the set again"
            )
        found.sort()
        images = allocate(f"{half}_images", (len(found), 3, SIDE, SIDE))
        decode(files, [name for _, name in found], images)
        allocate(f"{half}_labels", (len(found),))[:] = [number for number, _ in found]


def _train(files: Files) -> list[tuple[int, str]]:
    return [
        (_number(files.origin, match["wnid"]), match[0])
        for match in map(_TRAIN.fullmatch, files.names)
        if match
    ]


def _test(files: Files) -> list[tuple[int, str]]:
    wnids = _annotations(files)
    found = []
    for match in filter(None, map(_TEST.fullmatch, files.names)):
        if match["file"] not in wnids:
            raise StateError(
                f"{files.origin}: val_annotations.txt does not name the class of {match['file']}; "
                "fetch the set again"
            )
        found.append((_number(files.origin, wnids[match["file"]]), match[0]))
    return found


def _annotations(files: Files) -> dict[str, str]:
    """Class of each validation image: lines of file, class and four corners, with tabs."""
    lists = [name for name in files.names if _LIST.fullmatch(name)]
    if not lists:
        raise StateError(f"{files.origin}: expected val/val_annotations.txt; fetch the set again")
    lines = files.read(lists[0]).decode("utf-8", "replace").splitlines()
    return {row[0]: row[1] for row in (line.split("\t") for line in lines) if len(row) > 1}


def _number(origin: Path, wnid: str) -> int:
    if wnid not in _NUMBERS:
        raise StateError(
            f"{origin}: {wnid} is none of the {len(CLASSES)} classes of Tiny-ImageNet; "
            "is this another data set?"
        )
    return _NUMBERS[wnid]
