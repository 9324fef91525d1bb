"""FEMNIST by writer (Caldas et al., 2018), from LEAF's own files or from Hugging Face's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from tasks.dataset import Dataset, Examples
from tasks.datasets.femnist_leaf import leaf_halves
from tasks.datasets.femnist_parquet import parquet_halves
from tasks.datasets.femnist_writer import HALVES, LABELS, SIDE, Writer
from tasks.datasets.kept import Allocate, Arrays, kept
from tasks.datasets.parquet import parts_of
from tasks.sources import Place, missing

__all__ = ["LABELS", "SIDE", "femnist"]

_PLACES = ("femnist", "femnist/data", "leaf/data/femnist/data")


def femnist(place: Place) -> Dataset:
    """FEMNIST with the writer of each image as its group.

    Inputs are ``uint8[n, 1, 28, 28]``, targets ``int64[n]`` below 62. The same number is the same
    writer in both halves; LEAF's ``-t sample`` puts every writer into both.

    Raises:
        ConfigError: it is nowhere, or pyarrow is not installed.
        StateError: a file is torn or not what it should be.
    """
    folder = _folder(place)
    if parts_of(folder, "train"):
        read, name = parquet_halves, "femnist-parquet-1"
    else:
        read, name = leaf_halves, "femnist-1"
    arrays = kept(name, folder, lambda allocate: _decode(read(folder), allocate))
    train, test = (_examples(arrays, half) for half in HALVES)
    return Dataset(
        train=train,
        test=test,
        source=f"{folder} ({len(train)} training and {len(test)} test images)",
        group="writer",
        train_groups=np.asarray(arrays["train_writers"]),
        test_groups=np.asarray(arrays["test_writers"]),
    )


def _folder(place: Place) -> Path:
    """The first folder that holds either form."""
    leaf = [f"{path}/train" for path in _PLACES]
    if (train := place.find("FEMNIST", [*leaf, *_PLACES])) is None:
        raise missing(
            "FEMNIST",
            [*leaf, _PLACES[0]],
            "LEAF (github.com/TalwalkarLab/leaf) makes it: "
            "./preprocess.sh -s niid --sf 1.0 -k 0 -t sample in its data/femnist; "
            "Hugging Face has it as flwrlabs/femnist",
        )
    return train.parent if train.name == "train" else train


def _examples(arrays: Arrays, half: str) -> Examples:
    return Examples(
        inputs=torch.from_numpy(np.asarray(arrays[f"{half}_images"])),
        targets=torch.from_numpy(arrays[f"{half}_labels"].astype(np.int64)),
    )


def _decode(halves: dict[str, list[Writer]], allocate: Allocate) -> None:
    names = sorted({writer.name for writers in halves.values() for writer in writers})
    numbers = {name: number for number, name in enumerate(names)}
    for half, writers in halves.items():
        count = sum(len(writer.labels) for writer in writers)
        images = allocate(f"{half}_images", (count, 1, SIDE, SIDE))
        labels = allocate(f"{half}_labels", (count,))
        owners = allocate(f"{half}_writers", (count,), "int64")
        start = 0
        for writer in writers:
            stop = start + len(writer.labels)
            images[start:stop] = writer.images.reshape(-1, 1, SIDE, SIDE)
            labels[start:stop] = writer.labels
            owners[start:stop] = numbers[writer.name]
            start = stop
