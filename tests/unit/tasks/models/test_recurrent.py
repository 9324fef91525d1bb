"""GRU and LSTM classifiers of texts."""

import pytest
import torch
from torch import nn

from fedfreeze.errors import ConfigError
from tasks.inputs import Images, Tokens
from tasks.models.recurrent import GRU_TEXT, LSTM_TEXT

INPUTS = Tokens(vocabulary=50, length=12)


@pytest.fixture(params=[GRU_TEXT, LSTM_TEXT], ids=["gru", "lstm"])
def model(request):
    torch.manual_seed(0)
    return request.param.build(INPUTS, 3)


@pytest.mark.parametrize(("spec", "gates"), [(GRU_TEXT, 3), (LSTM_TEXT, 4)])
def test_parameters_are_those_of_the_embedding_the_gates_and_the_head(spec, gates):
    expected = 50 * 64 + gates * 96 * (64 + 96 + 2) + (96 + 1) * 3
    assert sum(p.numel() for p in spec.build(INPUTS, 3).parameters()) == expected


def test_padding_changes_nothing(model):
    text = torch.tensor([[5, 9, 2, 7]])
    padded = torch.cat([text, torch.zeros(1, 8, dtype=torch.int64)], 1)
    torch.testing.assert_close(model(padded), model(text))


def test_a_text_is_read_as_a_packed_sequence_would_be():
    torch.manual_seed(1)
    model = GRU_TEXT.build(INPUTS, 3)
    tokens = torch.tensor([[5, 9, 2, 7, 0, 0], [4, 4, 0, 0, 0, 0]])
    packed = nn.utils.rnn.pack_padded_sequence(
        model.embedding(tokens), torch.tensor([4, 2]), batch_first=True
    )
    states, _ = nn.utils.rnn.pad_packed_sequence(model.rnn(packed)[0], batch_first=True)
    expected = model.head(torch.stack([states[0].amax(0), states[1, :2].amax(0)]))
    torch.testing.assert_close(model(tokens), expected)


def test_the_order_of_words_matters(model):
    forwards, backwards = torch.tensor([[5, 9, 2, 7]]), torch.tensor([[7, 2, 9, 5]])
    assert not torch.allclose(model(forwards), model(backwards))


def test_padding_has_no_gradient(model):
    model(torch.tensor([[5, 9, 0, 0]])).sum().backward()
    gradient = model.embedding.weight.grad
    assert gradient[5].any()
    assert not gradient[0].any()


def test_other_inputs_are_refused():
    with pytest.raises(ConfigError) as caught:
        GRU_TEXT.build(Images(1, 28), 10)
    assert str(caught.value) == (
        'model.name: "gru-text" takes texts as numbers of words, the task gives '
        "Images(channels=1, side=28); choose another model"
    )
