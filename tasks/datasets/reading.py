"""One answer to whatever may be wrong with a file that somebody else wrote."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fedfreeze.errors import FedFreezeError, StateError


@contextmanager
def reading(what: Path | str) -> Iterator[None]:
    """Turn whatever the body raises over a torn, foreign or locked file into a StateError.

    No list of exceptions would do: of damaged files zipfile, numpy and wave make ``RuntimeError``,
    ``NotImplementedError``, ``MemoryError``, ``tokenize.TokenError`` and more.

    Args:
        what: the file, for the message.

    Raises:
        StateError: it cannot be read. Errors of this project pass as they are.
    """
    try:
        yield
    except FedFreezeError:
        raise
    except PermissionError as error:
        raise StateError(
            f"{what}: cannot be read: {reason(error)}; allow the user that runs this to read it"
        ) from error
    except Exception as error:
        raise StateError(
            f"{what}: cannot be read: {reason(error)}; fetch the file again"
        ) from error


def reason(error: Exception) -> str:
    """What an exception says, in one line; its type if it says nothing.

    >>> reason(FileNotFoundError(2, "No such file or directory", "a.npz"))
    'No such file or directory'
    >>> reason(KeyError("no y.npy")), reason(EOFError()), reason(RuntimeError())
    ('no y.npy', 'it ends too early', 'RuntimeError')
    """
    said: object = error
    if isinstance(error, OSError) and error.strerror:  # its whole text repeats the path
        said = error.strerror
    elif isinstance(error, KeyError) and error.args:  # its whole text is in quotes
        said = error.args[0]
    nothing = "it ends too early" if isinstance(error, EOFError) else type(error).__name__
    return next((line for line in str(said).splitlines() if line.strip()), nothing)
