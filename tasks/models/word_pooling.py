"""From the states at the words of a text to one vector for the text, blind to its padding."""

from __future__ import annotations

from torch import Tensor

from tasks.preparation.tokens import PAD


def mean_of_words(states: Tensor, tokens: Tensor) -> Tensor:
    """The mean of ``[n, length, width]`` over positions that hold a word; 0 for an empty text."""
    mask = (tokens != PAD).unsqueeze(2).to(states.dtype)
    return (states * mask).sum(1) / mask.sum(1).clamp(min=1.0)


def largest_of_words(states: Tensor, tokens: Tensor) -> Tensor:
    """The largest values of ``[n, length, width]``, -1 to 1, over positions that hold a word.

    -1, below which no state of a GRU or LSTM can be, for an empty text.
    """
    return states.masked_fill((tokens == PAD).unsqueeze(2), -1.0).amax(1)
