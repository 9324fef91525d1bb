"""One vector for a text."""

import torch

from tasks.models.word_pooling import largest_of_words, mean_of_words

STATES = torch.tensor([[[0.25, -0.5], [-0.75, -0.25], [0.9, 0.9]]])
TOKENS = torch.tensor([[4, 2, 0]])
EMPTY = torch.zeros(1, 3, dtype=torch.int64)


def test_the_mean_is_over_words_only():
    assert mean_of_words(STATES, TOKENS).tolist() == [[-0.25, -0.375]]


def test_the_mean_of_an_empty_text_is_zero():
    assert mean_of_words(STATES, EMPTY).tolist() == [[0.0, 0.0]]


def test_the_largest_values_are_those_of_words_only():
    assert largest_of_words(STATES, TOKENS).tolist() == [[0.25, -0.25]]


def test_the_largest_values_of_an_empty_text_are_the_least_there_can_be():
    assert largest_of_words(STATES, EMPTY).tolist() == [[-1.0, -1.0]]
