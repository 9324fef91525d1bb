"""What a plan is made from: the layout and the boards' examples, without torch where possible."""

from __future__ import annotations

from fedfreeze.errors import ConfigError
from fedfreeze.layout import Layout
from strategies.schema import Strategy
from tasks.division_cache import cached_examples, remember_examples
from tasks.layout_cache import cached_layout, remember


def layout_of(settings: Strategy) -> Layout:
    """The layout as it was remembered; else it is traced, and remembered.

    Args:
        settings: with the paths of its files filled in.

    Raises:
        ConfigError, LayoutError: the task cannot be loaded, or its model not be divided so.
    """
    found = cached_layout(settings.task, settings.options)
    if found is None:
        from tasks.loading import load  # noqa: PLC0415  # loads torch

        found = load(settings.task, settings.options).layout()
        remember(settings.task, settings.options, found)
    return found


def examples_of(settings: Strategy, clients: int, data_dir: str | None) -> tuple[int, ...]:
    """How many examples each client of a simulation holds, remembered or counted.

    Raises:
        ConfigError: the data is not here, or cannot be divided so.
        StateError: a file of it is torn.
    """
    found = cached_examples(settings.task, settings.split, clients, data_dir)
    if found is None:
        from tasks.loading import load  # noqa: PLC0415  # loads torch

        task = load(settings.task, settings.options)
        try:
            found = tuple(
                len(task.client_examples(client, clients, settings.split, data_dir))
                for client in range(clients)
            )
        except ConfigError as error:
            raise ConfigError(
                str(error), "To plan without the data, say --examples N, how many a board has."
            ) from error
        remember_examples(settings.task, settings.split, found, data_dir)
    return found
