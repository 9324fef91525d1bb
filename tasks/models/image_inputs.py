"""What models of images ask of their inputs."""

from __future__ import annotations

from fedfreeze.errors import ConfigError
from tasks.inputs import Images, Inputs


def images_for(model: str, inputs: Inputs, smallest: int = 1) -> Images:
    """The inputs, if they are images of at least that side.

    Raises:
        ConfigError: they are something else, or too small.

    >>> images_for("fedbug-cnn", Images(channels=3, side=32), smallest=16).side
    32
    """
    if not isinstance(inputs, Images):
        raise ConfigError(
            f"model.name: {model} takes images, this task gives {type(inputs).__name__.lower()}; "
            "choose a model for these, or leave model.name out"
        )
    if inputs.side < smallest:
        raise impossible_side(model, inputs.side, f"of {smallest} pixels or more")
    return inputs


def impossible_side(model: str, side: int, possible: str) -> ConfigError:
    """The error of a model that cannot take images of this side.

    Args:
        model: by name.
        side: of the task's images, in pixels.
        possible: which sides it takes, as "of 16 pixels or more".
    """
    return ConfigError(
        f"model.name: {model} takes images with a side {possible}, this task's have {side}; "
        "choose another model, or leave model.name out"
    )
