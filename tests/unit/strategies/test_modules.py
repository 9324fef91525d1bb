import pytest

from fedfreeze.errors import ConfigError
from fedfreeze.layout import Layer, Layout, TensorSpec
from strategies.freeze.modules import modules_of
from tests.unit.strategies.samples import stack

RESNET = stack(stem=1, layer1=2, layer2=3, head=4)


def test_each_layer_with_parameters_is_a_module_unless_asked_otherwise():
    pool = Layer("pool", (TensorSpec("pool.count", (), "int64", "buffer"),))
    layout = Layout("m", (*stack(stem=1).layers, pool, *stack(head=2).layers))
    assert modules_of(layout, None) == (("stem",), ("head",))


def test_globs_group_layers_in_forward_order():
    wanted = [["layer1", "stem"], ["layer2", "he*"]]
    assert modules_of(RESNET, wanted) == (("stem", "layer1"), ("layer2", "head"))


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (
            [["stem"], ["layer9*"]],
            (
                'freeze.modules: no layer is called "layer9*"; the layers are stem, layer1, '
                "layer2, head"
            ),
        ),
        (
            [["stem", "layer*"]],
            (
                'freeze.modules: expected layer "head" in one module, it is in none; the layers '
                "are stem, layer1, layer2, head"
            ),
        ),
        (
            [["stem", "layer*"], ["layer2", "head"]],
            (
                'freeze.modules: expected layer "layer2" in one module, it is in 2; the layers are '
                "stem, layer1, layer2, head"
            ),
        ),
        (
            [["stem"], ["layer2", "head"], ["layer1"]],
            (
                "freeze.modules: expected modules in forward order, stem, layer1, layer2, head, "
                "got stem, layer2, head, layer1"
            ),
        ),
        (
            [[], ["*"]],
            "freeze.modules: expected a module with a layer that can train, got []",
        ),
    ],
    ids=["no such layer", "left out", "twice", "out of order", "empty"],
)
def test_modules_that_do_not_divide_the_model_are_refused(wanted, message):
    with pytest.raises(ConfigError) as caught:
        modules_of(RESNET, wanted)
    assert str(caught.value) == message
