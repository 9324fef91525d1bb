"""Write the vocabulary of a task on texts, for nodes that hold only texts of their own.

It is learnt from the training half in the data folder, as the task itself would. Put the file into
the data set's folder on every node, server included: all must number words alike.

Example:
    python experiments/write_vocabulary.py reuters-r8 ~/data ~/vocabulary.json
    scp ~/vocabulary.json board:data/reuters-r8/
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tasks.datasets.texts import Tokenised, Words
from tasks.loading import load
from tasks.sources import Place


def write(name: str, folder: Path, out: Path) -> str:
    """Write it, and say what it is."""
    task = load(name)
    if not isinstance(task.read, Tokenised) or not isinstance(task.read.tokeniser, Words):
        return f'task "{name}" has no vocabulary of words'
    found = task.read.read(Place(folder, demanded=True))
    vocabulary, origin = task.read.tokeniser.vocabulary(found)
    vocabulary.write(out)
    return f"{out}: {len(vocabulary.words)} words from {origin} of {found.folder}"


def main() -> None:
    """Read the arguments, write the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task")
    parser.add_argument("data_dir", type=Path)
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    print(write(arguments.task, arguments.data_dir, arguments.out))


if __name__ == "__main__":
    main()
