"""Any model of timm."""

import pytest
import timm
import torch
from safetensors.torch import save_file
from timm.models import PretrainedCfg

from fedfreeze.errors import ConfigError
from tasks.download import file_digest
from tasks.inputs import Images, Tokens
from tasks.models import load_spec
from tasks.models.timm_model import hub_file, timm_spec
from tasks.preparation.images import ResizeAndNormalise

COLOUR, GREY = Images(3, 32), Images(1, 28)


def built(name, inputs, outputs=5):
    spec = load_spec(f"timm:{name}")
    model = spec.build(inputs, outputs).eval()
    prepared = spec.preprocessing(inputs)(inputs.example(2))
    return model, prepared


@pytest.mark.parametrize("name", ["resnet10t", "mobilenetv3_small_050", "test_vit"])
@pytest.mark.parametrize("inputs", [COLOUR, GREY, Images(2, 40)])
def test_it_takes_the_images_of_the_task_and_gives_its_classes(name, inputs):
    model, prepared = built(name, inputs)
    assert model(prepared).shape == (2, 5)


def test_preprocessing_is_the_models_own():
    # As timm documents both: DeiT uses ImageNet's numbers, the augreg ViT one half.
    imagenet = load_spec("timm:deit_tiny_patch16_224").preprocessing(GREY)
    assert imagenet == ResizeAndNormalise(
        112, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225), "bicubic"
    )
    assert load_spec("timm:vit_tiny_patch16_224").preprocessing(COLOUR) == ResizeAndNormalise(
        112, (0.5,) * 3, (0.5,) * 3, "bicubic"
    )


def test_images_of_the_models_own_size_or_more_come_to_that_size():
    assert load_spec("timm:resnet18").preprocessing(Images(3, 300)).side == 224


def test_a_model_that_can_be_built_for_no_other_side_keeps_its_own(monkeypatch):
    real = timm.create_model

    def stubborn(name, **settings):
        if "img_size" in settings:
            raise TypeError("unexpected keyword argument 'img_size'")
        return real(name, **settings)

    monkeypatch.setattr(timm, "create_model", stubborn)
    spec = timm_spec("test_vit2")
    own = real("test_vit2").pretrained_cfg["input_size"][-1]
    assert spec.preprocessing(Images(3, 33)).side == own
    assert spec.build(Images(3, 33), 5)(torch.zeros(1, 3, own, own)).shape == (1, 5)


def test_asking_for_the_side_draws_no_random_numbers():
    before = torch.get_rng_state()
    load_spec("timm:test_vit3").preprocessing(Images(3, 30))
    assert torch.equal(before, torch.get_rng_state())


def test_the_same_seed_gives_the_same_weights():
    states = []
    for _ in range(2):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(5)
            states.append(load_spec("timm:resnet10t").build(COLOUR, 3).state_dict())
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])


def refused(name):
    with pytest.raises(ConfigError) as caught:
        load_spec(name)
    return str(caught.value)


def test_an_unknown_name_gets_a_hint():
    assert refused("timm:resnet18x") == (
        f'model.name: timm {timm.__version__} has no model "resnet18x"; did you mean "resnet18"?'
    )


def test_unknown_weights_of_a_known_model_get_a_hint():
    assert refused("timm:resnet18.a1_in2k") == (
        f'model.name: timm {timm.__version__} has no model "resnet18.a1_in2k"; '
        'did you mean "resnet18.a1_in1k"?'
    )


def test_a_name_like_no_other_is_told_where_the_names_are():
    assert refused("timm:qqqqqqqqqqqq") == (
        f'model.name: timm {timm.__version__} has no model "qqqqqqqqqqqq"; '
        "timm.list_models() lists them"
    )


def test_timms_own_prefixes_do_not_reach_a_hub():
    assert 'has no model "hf-hub:someone/resnet18"' in refused("timm:hf-hub:someone/resnet18")


def test_words_are_no_images():
    with pytest.raises(ConfigError) as caught:
        load_spec("timm:resnet10t").build(Tokens(9, 4), 2)
    assert str(caught.value) == (
        "model.name: timm:resnet10t takes images, this task gives tokens; choose a model for "
        "these, or leave model.name out"
    )


@pytest.fixture
def published(tmp_path):
    """Weights as timm publishes them: a thousand classes, at the model's own size."""

    def write(name):
        model = timm.create_model(name)
        path = tmp_path / "model.safetensors"
        save_file(model.state_dict(), path)
        return model, path

    return write


def test_published_weights_fill_all_but_the_classifier(published):
    theirs, path = published("resnet10t")
    asked = []

    def fetch(config):
        asked.append(config.hf_hub_id)
        return path

    spec = timm_spec("resnet10t", fetch)
    model = spec.build(COLOUR, 5)
    head = model.fc.weight.clone()
    source = spec.load_pretrained(model, "hub")
    assert asked == ["timm/resnet10t.c3_in1k"]
    assert torch.equal(model.fc.weight, head)
    expected = theirs.state_dict()
    for name, value in model.state_dict().items():
        assert name.startswith("fc.") or torch.equal(value, expected[name]), name
    assert source == (
        f"timm's published weights of resnet10t.c3_in1k (sha256 {file_digest(path)[:16]})"
    )


def test_position_embeddings_are_resampled_to_the_smaller_size(published):
    theirs, path = published("test_vit")
    spec = load_spec("timm:test_vit")
    model = spec.build(COLOUR, 5)
    assert model.pos_embed.shape != theirs.pos_embed.shape
    source = spec.load_pretrained(model, str(path))
    assert source == f"{path} (sha256 {file_digest(path)[:16]})"
    assert torch.equal(model.blocks[0].attn.qkv.weight, theirs.blocks[0].attn.qkv.weight)
    # The class token's embedding has no place in the image and stays.
    assert torch.equal(model.pos_embed[:, 0], theirs.pos_embed[:, 0])


def test_weights_of_another_model_are_refused(published):
    _, path = published("resnet10t")
    spec = load_spec("timm:test_vit")
    with pytest.raises(ConfigError, match=r"^model.pretrained: .* does not fit this model: "):
        spec.load_pretrained(spec.build(COLOUR, 5), str(path))


def test_a_model_without_published_weights_says_so():
    untrained = load_spec("timm:mixer_s32_224")
    with pytest.raises(ConfigError) as caught:
        untrained.load_pretrained(untrained.build(COLOUR, 5), "hub")
    assert str(caught.value) == (
        "model.pretrained: timm publishes no weights of mixer_s32_224.untrained; give a file "
        'instead of "hub"'
    )


def test_weights_that_the_hubs_client_has_kept_need_no_network(tmp_path, monkeypatch):
    """The folder is laid out as the hub's client documents its cache."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    repository = tmp_path / "models--timm--resnet10t.c3_in1k"
    snapshot = repository / "snapshots" / ("0" * 40)
    snapshot.mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("0" * 40)
    (snapshot / "model.safetensors").write_bytes(b"weights")
    kept = hub_file(PretrainedCfg(architecture="resnet10t", hf_hub_id="timm/resnet10t.c3_in1k"))
    assert kept == snapshot / "model.safetensors"
