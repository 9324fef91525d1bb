"""What holds for every text and vocabulary."""

from hypothesis import given
from hypothesis import strategies as st

from tasks.preparation.tokens import PAD, UNKNOWN, learn, words

TEXTS = st.lists(st.text(max_size=40), min_size=1, max_size=8)


@given(st.text())
def test_words_hold_every_character_that_is_no_space(text):
    assert "".join(words(text)) == "".join(text.lower().split())


@given(TEXTS, st.integers(2, 30), st.integers(1, 12))
def test_numbers_are_below_the_size_and_padding_only_follows(texts, size, length):
    encoded = learn(texts, size).encode(texts, length)
    assert encoded.shape == (len(texts), length)
    assert 0 <= int(encoded.min()) <= int(encoded.max()) < size
    for text, row in zip(texts, encoded.tolist(), strict=True):
        held = min(len(words(text)), length)
        assert PAD not in row[:held]
        assert row[held:] == [PAD] * (length - held)


@given(TEXTS, st.randoms())
def test_the_order_of_texts_does_not_change_the_vocabulary(texts, random):
    shuffled = random.sample(texts, len(texts))
    assert learn(texts, 10) == learn(shuffled, 10)


@given(TEXTS)
def test_no_word_of_the_training_half_is_unknown_if_there_is_room(texts):
    vocabulary = learn(texts, size=2 + sum(len(words(text)) for text in texts))
    assert UNKNOWN not in vocabulary.encode(texts, 400)
