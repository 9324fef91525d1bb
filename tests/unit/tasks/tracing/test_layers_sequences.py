"""The tracer's own layers of models over sequences: list, order and cuts."""

import pytest
import torch
from torch import nn

from tasks.tracing import split_attention, trace
from tests.unit.tasks.tracing.small_nets import Net

IDS = torch.tensor([[1, 2, 3, 4, 5, 0, 0], [6, 7, 8, 9, 1, 2, 3]])


def marked(layout):
    return [layer.name + ("" if layer.cut_bytes is None else " |") for layer in layout]


@pytest.mark.parametrize("kind", [nn.GRU, nn.LSTM])
def test_a_recurrent_classifier_is_its_embedding_its_recurrent_module_and_its_head(kind):
    net = Net(
        lambda net, ids: net.head(net.rnn(net.embedding(ids))[0][:, -1]),
        head=nn.Linear(8, 3),
        rnn=kind(6, 4, num_layers=2, bidirectional=True, batch_first=True),
        embedding=nn.Embedding(10, 6, padding_idx=0),
    )
    layout = trace(net, IDS, "net")
    assert marked(layout) == ["embedding |", "rnn |", "head"]
    # Layers, directions, two matrices and two biases each.
    assert len(layout["rnn"].tensors) == 2 * 2 * 4
    assert [layer.cut_bytes for layer in layout] == [4 * 7 * 6, 4 * 8, None]


@pytest.mark.parametrize("kind", [nn.GRUCell, nn.LSTMCell])
def test_a_cell_that_runs_step_by_step_is_one_layer(kind):
    def steps(net, x):
        state = None
        for step in x.unbind(1):
            state = net.cell(step, state)
        return net.head(state[0] if isinstance(state, tuple) else state)

    net = Net(steps, cell=kind(5, 4), head=nn.Linear(4, 2))
    layout = trace(net, torch.rand(2, 6, 5), "net")
    assert marked(layout) == ["cell |", "head"]
    gates = {nn.GRUCell: 3, nn.LSTMCell: 4}[kind]
    assert layout["cell"].costs.forward_flops == 2 * gates * 4 * (6 * 5 + 5 * 4)


@pytest.mark.parametrize("norm_first", [False, True])
def test_torchs_encoder(norm_first):
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=norm_first)
    encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False, norm=nn.LayerNorm(8))
    net = Net(
        lambda net, ids: net.head(
            net.encoder(net.table(ids) + net.position, src_key_padding_mask=ids == 0).mean(1)
        ),
        position=nn.Parameter(torch.zeros(7, 8)),
        table=nn.Embedding(10, 8),
        encoder=encoder,
        head=nn.Linear(8, 3),
    )
    layout = trace(split_attention(net), IDS, "net")
    at = "encoder.layers.{}"
    order = ("v", "qk") if norm_first else ("qk", "v")
    blocks = [
        name
        for path in (at.format(0), at.format(1))
        for name in (
            f"{path}.self_attn.{order[0]}",
            f"{path}.self_attn.{order[1]}",
            f"{path}.self_attn.out |",
            f"{path}.mlp |",
        )
    ]
    assert marked(layout) == ["table |", *blocks, "head"]
    first = at.format(0)
    norm1 = layout.layer_of[f"{first}.norm1.weight"]
    assert norm1 == f"{first}.self_attn.{'v' if norm_first else 'out'}"
    assert layout.layer_of[f"{first}.norm2.weight"] == f"{first}.mlp"
    assert layout.layer_of["position"] == "table"
    assert layout.layer_of["encoder.norm.weight"] == "head"


def test_torchs_decoder_has_two_attentions_a_block():
    layer = nn.TransformerDecoderLayer(8, 2, 16, batch_first=True, norm_first=True)
    net = Net(
        lambda net, x: net.head(net.decoder(net.base(x), net.base(x).flip(1))),
        base=nn.Linear(5, 8),
        decoder=nn.TransformerDecoder(layer, 1),
        head=nn.Linear(8, 2),
    )
    layout = trace(split_attention(net), torch.rand(2, 4, 5), "net")
    at = "decoder.layers.0"
    assert layout.names == (
        "base",
        *(f"{at}.self_attn.{part}" for part in ("v", "qk", "out")),
        *(f"{at}.multihead_attn.{part}" for part in ("v", "qk", "out")),
        f"{at}.mlp",
        "head",
    )
    assert layout.layer_of[f"{at}.norm2.weight"] == f"{at}.multihead_attn.v"


def test_a_bert():
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        vocab_size=10,
        hidden_size=8,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=16,
    )

    def steps(net, ids):
        hidden = net.bert(ids, attention_mask=(ids != 0).long()).last_hidden_state
        return net.head(hidden[:, 0])

    net = Net(
        steps,
        bert=transformers.BertModel(config, add_pooling_layer=False),
        head=nn.Linear(8, 3),
    )
    layout = trace(split_attention(net), IDS, "net")
    blocks = [
        f"bert.encoder.layer.{at}.{part}"
        for at in range(2)
        for part in ("attention.qk", "attention.v", "attention.out |", "mlp |")
    ]
    assert marked(layout) == ["bert.embeddings |", *blocks, "head"]
    first = "bert.encoder.layer.0"
    tensors = {layer.name: {spec.name for spec in layer.tensors} for layer in layout}
    assert tensors[f"{first}.attention.qk"] == {
        f"{first}.attention.self.{name}.{what}"
        for name in ("query", "key")
        for what in ("weight", "bias")
    }
    # Its norms come after: that of the attention belongs to it.
    assert tensors[f"{first}.attention.out"] == {
        f"{first}.attention.output.{name}.{what}"
        for name in ("dense", "LayerNorm")
        for what in ("weight", "bias")
    }
    # 7 tokens of 8 values between blocks; the head reads one token.
    assert [layout[f"bert.encoder.layer.{at}.mlp"].cut_bytes for at in (0, 1)] == [4 * 56, 4 * 8]


def test_an_attention_by_itself_is_divided_under_its_own_name():
    net = Net(
        lambda net, x: net.head(net.attention(x, x, x, need_weights=False)[0]),
        attention=nn.MultiheadAttention(6, 2, batch_first=True),
        head=nn.Linear(6, 2),
    )
    layout = trace(split_attention(net), torch.rand(2, 4, 6), "net")
    assert layout.names == ("attention.qk", "attention.v", "attention.out", "head")


def test_blocks_written_as_pairs_in_lists_are_found():
    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.LayerNorm(6)
            self.to_q, self.to_k, self.to_v = (nn.Linear(6, 6, bias=False) for _ in range(3))
            self.to_out = nn.Linear(6, 6)

        def forward(self, x):
            x = self.norm(x)
            weights = torch.softmax(self.to_q(x) @ self.to_k(x).transpose(1, 2), -1)
            return self.to_out(weights @ self.to_v(x))

    def feed_forward():
        class FeedForward(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm = nn.LayerNorm(6)
                self.up, self.down = nn.Linear(6, 12), nn.Linear(12, 6)

            def forward(self, x):
                return self.down(torch.relu(self.up(self.norm(x))))

        return FeedForward()

    def steps(net, x):
        for attention, forward in net.layers:
            x = x + attention(x)
            x = x + forward(x)
        return net.head(x)

    pairs = nn.ModuleList(nn.ModuleList([Attention(), feed_forward()]) for _ in range(2))
    net = Net(steps, layers=pairs, head=nn.Linear(6, 2))
    layout = trace(net, torch.rand(2, 4, 6), "net")
    assert layout.names == (
        *("layers.0.0.v", "layers.0.0.qk", "layers.0.0.out", "layers.0.1"),
        *("layers.1.0.v", "layers.1.0.qk", "layers.1.0.out", "layers.1.1"),
        "head",
    )
    assert layout.layer_of["layers.0.0.norm.weight"] == "layers.0.0.v"
