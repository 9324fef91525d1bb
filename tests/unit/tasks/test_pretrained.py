"""Weights from files: all of them or none, and never the head's."""

import copy
import pickle

import pytest
import torch
from safetensors.torch import save_file
from timm.layers import Attention
from torch import nn

from fedfreeze.errors import ConfigError, StateError
from tasks.download import file_digest
from tasks.pretrained import fill, from_file, read_weights
from tasks.tracing import split_attention


class Small(nn.Module):
    def __init__(self, classes=3, width=4):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, width), nn.BatchNorm1d(width))
        self.head = nn.Linear(width, classes)
        self.header = nn.Linear(1, 1)  # a name that only begins like the head's


LOAD = from_file(heads=("head",))


def state(model):
    return {name: value.clone() for name, value in model.state_dict().items()}


@pytest.fixture
def saved(tmp_path):
    """A model of other weights and classes, and the file that it is saved in."""
    other = Small(classes=7)
    other.body[1].running_mean.fill_(2.5)
    path = tmp_path / "model.safetensors"
    save_file(other.state_dict(), path)
    return other, path


def test_everything_but_the_head_is_loaded(saved):
    other, path = saved
    model = Small()
    before = state(model)
    source = LOAD(model, str(path))
    after = state(model)
    theirs = other.state_dict()
    for name in after:
        expected = before if name.startswith("head.") else theirs
        assert torch.equal(after[name], expected[name]), name
    assert source == f"{path} (sha256 {file_digest(path)[:16]})"


@pytest.mark.parametrize("wrapped", [None, "state_dict", "model"])
@pytest.mark.parametrize("prefix", ["", "module."])
def test_a_torch_file_may_wrap_the_weights_as_training_scripts_do(saved, tmp_path, wrapped, prefix):
    other, _ = saved
    content = {f"{prefix}{name}": value for name, value in other.state_dict().items()}
    path = tmp_path / "model.pth"
    torch.save({wrapped: content, "epoch": 3} if wrapped else content, path)
    model = Small()
    LOAD(model, str(path))
    assert torch.equal(model.body[0].weight, other.body[0].weight)


def test_weights_of_half_precision_are_widened(tmp_path):
    other = Small().half()
    path = tmp_path / "model.safetensors"
    save_file(other.state_dict(), path)
    model = Small()
    LOAD(model, str(path))
    assert model.body[0].weight.dtype == torch.float32
    assert torch.equal(model.body[0].weight, other.body[0].weight.float())


def refused(model, path, error=ConfigError):
    with pytest.raises(error) as caught:
        LOAD(model, str(path))
    return str(caught.value)


def test_weights_of_another_shape_are_refused_and_nothing_is_changed(saved):
    _, path = saved
    model = Small(width=5)
    before = state(model)
    assert refused(model, path) == (
        f"model.pretrained: {path} does not fit this model: of another shape: body.0.weight is "
        "(4, 2) instead of (5, 2), body.0.bias is (4,) instead of (5,), body.1.weight is (4,) "
        "instead of (5,) and 3 more; give weights of the same model, or remove the key"
    )
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


def test_missing_and_left_over_weights_are_named(saved, tmp_path):
    other, _ = saved
    tensors = other.state_dict()
    tensors["stem.weight"] = tensors.pop("body.0.weight")
    path = tmp_path / "renamed.safetensors"
    save_file(tensors, path)
    assert refused(Small(), path) == (
        f"model.pretrained: {path} does not fit this model: it lacks body.0.weight; it has what "
        "the model does not: stem.weight; give weights of the same model, or remove the key"
    )


def test_numbers_that_are_not_finite_are_refused(saved, tmp_path):
    tensors = saved[0].state_dict()
    tensors["body.0.bias"][1] = float("nan")
    path = tmp_path / "nan.safetensors"
    save_file(tensors, path)
    assert refused(Small(), path, StateError) == (
        f"{path}: body.0.bias holds numbers that are not finite"
    )


def test_there_is_nothing_on_a_hub_for_a_model_of_the_projects_own():
    assert refused(Small(), "hub") == (
        'model.pretrained: "hub" has no weights of this model; give a file, such as the '
        "model.safetensors of an earlier run, or remove the key"
    )


def test_a_file_that_is_not_there_is_an_error(tmp_path):
    assert refused(Small(), tmp_path / "none.pth") == (
        f'model.pretrained: expected "hub" or a file, there is no file {tmp_path}/none.pth; '
        "give its whole path"
    )


@pytest.mark.parametrize("name", ["x.safetensors", "x.pth"])
@pytest.mark.parametrize("content", [b"", b"<!DOCTYPE html>" * 10])
def test_a_torn_file_is_an_error(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    assert refused(Small(), path, StateError).startswith(
        f"{path}: expected a safetensors file or a torch file of tensors only: "
    )


class Bomb:
    def __reduce__(self):
        return (exec, ("raise SystemExit('code of the file ran')",))


def test_code_in_a_torch_file_does_not_run(tmp_path):
    path = tmp_path / "bomb.pth"
    torch.save({"state_dict": Bomb()}, path)
    with pytest.raises(StateError):
        read_weights(path)
    path.write_bytes(pickle.dumps(Bomb(), protocol=2))
    with pytest.raises(StateError):
        read_weights(path)


def test_a_torch_file_of_something_else_is_an_error(tmp_path):
    path = tmp_path / "list.pth"
    torch.save([torch.zeros(2)], path)
    with pytest.raises(StateError) as caught:
        read_weights(path)
    assert str(caught.value) == (
        f"{path}: expected a table of dense tensors by name, got something else; "
        "save the model's state_dict()"
    )


@pytest.mark.parametrize("name", ["x" * 5000, "a\0b"], ids=["too long", "no name"])
def test_a_name_that_no_file_can_have_is_that_of_none(name):
    assert refused(Small(), name).startswith(
        'model.pretrained: expected "hub" or a file, there is no file '
    )


def test_the_message_of_an_unsafe_file_does_not_say_how_to_run_its_code(tmp_path):
    path = tmp_path / "bomb.pth"
    torch.save({"state_dict": Bomb()}, path)
    assert refused(Small(), path, StateError) == (
        f"{path}: expected a safetensors file or a torch file of tensors only: it is torn or holds "
        "objects, whose code is not run; save the model's state_dict()"
    )


@pytest.mark.parametrize("text", [b"hello", b"\x80", b"c\n", b"(", b"0" * 100])
def test_whatever_a_file_makes_its_reader_raise_is_a_named_error(tmp_path, text):
    path = tmp_path / "x.pt"
    path.write_bytes(text)
    assert refused(Small(), path, StateError).startswith(
        f"{path}: expected a safetensors file or a torch file of tensors only: "
    )


@pytest.mark.filterwarnings("ignore:Validating sparse tensor invariants")
@pytest.mark.parametrize("change", [torch.Tensor.to_sparse, lambda tensor: tensor.to("meta")])
def test_tensors_without_numbers_of_their_own_are_refused(tmp_path, change):
    path = tmp_path / "x.pt"
    torch.save({name: change(value) for name, value in Small().state_dict().items()}, path)
    assert refused(Small(), path, StateError) == (
        f"{path}: expected a table of dense tensors by name, got something else; "
        "save the model's state_dict()"
    )


@pytest.mark.parametrize(
    ("dtype", "kind"), [(torch.complex64, "complex64"), (torch.int32, "int32")], ids=str
)
def test_weights_that_are_no_real_numbers_are_refused(tmp_path, dtype, kind):
    path = tmp_path / "x.pt"
    weights = Small().state_dict()
    name = next(iter(weights))
    torch.save({**weights, name: weights[name].to(dtype)}, path)
    assert refused(Small(), path) == (
        f"model.pretrained: {path} does not fit this model: no real numbers: {name} is {kind}"
        "; give weights of the same model, or remove the key"
    )


def test_numbers_that_leave_the_models_precision_are_not_finite(tmp_path):
    path = tmp_path / "x.pt"
    weights = {name: value.double() for name, value in Small().state_dict().items()}
    name = next(iter(weights))
    torch.save({**weights, name: torch.full_like(weights[name], 1e300)}, path)
    assert refused(Small(), path, StateError) == (
        f"{path}: {name} holds numbers that are not finite"
    )


def test_names_in_a_file_reach_no_terminal_as_they_are(tmp_path):
    path = tmp_path / "x.pt"
    torch.save({**Small().state_dict(), "\x1b[2J" + "x" * 1000: torch.zeros(1)}, path)
    assert refused(Small(), path) == (
        f"model.pretrained: {path} does not fit this model: it has what the model does not: ?[2J"
        + "x" * 116
        + "...; give weights of the same model, or remove the key"
    )


class OfTimm(nn.Module):
    def __init__(self):
        super().__init__()
        self.attn = Attention(8, num_heads=2, qkv_bias=True)


class OfTorch(nn.Module):
    def __init__(self):
        super().__init__()
        self.attn = nn.MultiheadAttention(8, 2, batch_first=True)


@pytest.mark.parametrize("kind", [OfTimm, OfTorch])
def test_projections_that_a_run_trained_apart_are_joined_again(kind):
    whole = kind()
    parts = state(split_attention(copy.deepcopy(whole)))
    assert set(parts) != set(whole.state_dict())
    fresh = kind()
    fill(fresh, parts, (), "a run")
    for name, value in whole.state_dict().items():
        assert torch.equal(fresh.state_dict()[name], value), name


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(5, 2)
        self.output = nn.Linear(2, 5, bias=False)
        self.output.weight = self.embedding.weight


def test_a_tied_weight_may_be_saved_under_one_of_its_names():
    model = Tied()
    fill(model, {"embedding.weight": torch.ones(5, 2)}, (), "a run")
    assert float(model.output.weight.detach().sum()) == 10.0
