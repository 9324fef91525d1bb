"""The small transformer for texts, beside torch's own."""

import pytest
import torch
from torch import nn

from fedfreeze.errors import ConfigError
from tasks.inputs import Tokens, Values
from tasks.models.text_transformer import TEXT_TRANSFORMER, Block

INPUTS = Tokens(vocabulary=50, length=12)


@pytest.fixture
def model():
    torch.manual_seed(0)
    return TEXT_TRANSFORMER.build(INPUTS, 3)


def test_parameters_are_those_of_the_published_architecture(model):
    width = 96
    attention = 4 * (width * width + width)
    linears = (width * 2 * width + 2 * width) + (2 * width * width + width)
    norms = 2 * 2 * width
    tables = 50 * width + 12 * width
    head = 2 * width + (width + 1) * 3
    expected = tables + 2 * (attention + linears + norms) + head
    assert sum(p.numel() for p in model.parameters()) == expected


def test_a_block_is_a_pre_norm_encoder_layer():
    torch.manual_seed(0)
    block = Block(width=96, heads=4)
    layer = nn.TransformerEncoderLayer(
        96, 4, 192, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
    )
    attention = block.attn
    projections = (attention.query, attention.key, attention.value)
    layer.load_state_dict(
        {
            "self_attn.in_proj_weight": torch.cat([p.weight for p in projections]),
            "self_attn.in_proj_bias": torch.cat([p.bias for p in projections]),
            "self_attn.out_proj.weight": attention.out.weight,
            "self_attn.out_proj.bias": attention.out.bias,
            "linear1.weight": block.mlp[0].weight,
            "linear1.bias": block.mlp[0].bias,
            "linear2.weight": block.mlp[2].weight,
            "linear2.bias": block.mlp[2].bias,
            "norm1.weight": block.norm1.weight,
            "norm1.bias": block.norm1.bias,
            "norm2.weight": block.norm2.weight,
            "norm2.bias": block.norm2.bias,
        }
    )
    hidden = torch.randn(2, 7, 96)
    words = torch.tensor([[1, 1, 1, 1, 0, 0, 0], [1] * 7], dtype=torch.bool)
    expected = layer(hidden, src_key_padding_mask=~words)
    found = block(hidden, words[:, None, None, :])
    torch.testing.assert_close(found[words], expected[words], atol=1e-5, rtol=1e-5)


def test_padding_changes_nothing(model):
    text = torch.tensor([[5, 9, 2, 7]])
    padded = torch.cat([text, torch.zeros(1, 8, dtype=torch.int64)], 1)
    torch.testing.assert_close(model(padded), model(text), atol=1e-6, rtol=1e-5)


def test_the_order_of_words_matters(model):
    forwards, backwards = torch.tensor([[5, 9, 2, 7]]), torch.tensor([[7, 2, 9, 5]])
    assert not torch.allclose(model(forwards), model(backwards))


def test_an_empty_text_among_others_gets_the_bias_of_the_head_and_finite_gradients(model):
    logits = model(torch.tensor([[0] * 12, [5, 9] + [0] * 10]))
    torch.testing.assert_close(logits[0], model.head.bias)
    logits.sum().backward()
    assert all(torch.isfinite(parameter.grad).all() for parameter in model.parameters())


def test_even_an_empty_text_attends_to_something(model):
    # torch's own attention forgives an empty softmax; that of an exported model may not.
    masks = []
    model.blocks[0].register_forward_pre_hook(lambda _, arguments: masks.append(arguments[1]))
    model(torch.tensor([[0, 0, 0], [5, 9, 0]]))
    assert masks[0].flatten(1).tolist() == [[True, False, False], [True, True, False]]


def test_other_inputs_are_refused():
    with pytest.raises(ConfigError) as caught:
        TEXT_TRANSFORMER.build(Values((3,)), 2)
    assert str(caught.value) == (
        'model.name: "text-transformer" takes texts as numbers of words, the task gives '
        "Values(shape=(3,), dtype=torch.float32); choose another model"
    )
