"""The preflight check in a process of its own, so that this one stays small.

The check loads torch, the model and the data: some hundred megabytes that the command would hold
on to while it follows a run.
"""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

from fedfreeze.errors import ConfigError, LayoutError, RunError, StateError
from strategies.schema import Strategy

Found = ConfigError | LayoutError | StateError


def preflight(
    strategy: Strategy, clients: int | None, data_dir: str | None, *, with_data: bool = True
) -> None:
    """Check a run before it is started.

    Args:
        strategy: with every override applied; its task may be a file.
        clients: how many share the data; None when that is not known yet.
        data_dir: where the data is, if somebody said.
        with_data: look at the data and weights, too; without, only at the model and its layers.

    Raises:
        ConfigError, LayoutError, StateError: see :func:`server_app.preflight.check`.
        RunError: the check itself was killed, for want of memory as a rule.
    """
    context = multiprocessing.get_context("spawn")
    try:
        with ProcessPoolExecutor(max_workers=1, mp_context=context) as pool:
            error = pool.submit(_found, strategy, clients, data_dir, with_data).result()
    except BrokenProcessPool as broken:
        raise RunError(
            "the check of the task was killed before it was done; is there memory for the model "
            "and its data?"
        ) from broken
    if error is not None:
        raise error


def _found(
    strategy: Strategy, clients: int | None, data_dir: str | None, with_data: bool
) -> Found | None:
    """The error as a value: its cause may hold what cannot travel between processes."""
    from server_app.preflight import check, check_model  # noqa: PLC0415  # loads torch: here only

    try:
        if with_data:
            check(strategy, clients, data_dir)
        else:
            check_model(strategy)
    except (ConfigError, LayoutError, StateError) as error:
        return type(error)(str(error))
    return None
