"""Whether a model suits the inputs that it is asked to be built for."""

from __future__ import annotations

from fedfreeze.errors import ConfigError
from tasks.inputs import Inputs, Tokens, Values


def values_of(inputs: Inputs, model: str, axes: tuple[str, ...]) -> tuple[int, ...]:
    """The shape of one example of numbers with these axes.

    Raises:
        ConfigError: the inputs are something else.
    """
    if not isinstance(inputs, Values) or len(inputs.shape) != len(axes):
        raise ConfigError(
            f'model.name: "{model}" takes numbers with axes {", ".join(axes)}, the task gives '
            f"{inputs}; choose another model"
        )
    return inputs.shape


def tokens_of(inputs: Inputs, model: str) -> Tokens:
    """The inputs, which must be numbers of words.

    Raises:
        ConfigError: they are something else.
    """
    if not isinstance(inputs, Tokens):
        raise ConfigError(
            f'model.name: "{model}" takes texts as numbers of words, the task gives {inputs}; '
            "choose another model"
        )
    return inputs
