"""Layers as people write them, and what is said when the globs do not fit."""

import pytest
import torch
from torch import nn

from fedfreeze.errors import LayoutError
from tasks.tracing import trace


def net():
    return nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2))


def refused(model, groups):
    with pytest.raises(LayoutError) as caught:
        trace(model, torch.rand(3, 4), "net", groups)
    return str(caught.value)


def test_layers_are_what_the_globs_match_in_forward_order_whatever_the_order_of_the_table():
    layout = trace(net(), torch.rand(3, 4), "net", {"end": ["3.*"], "start": ["0.*", "1.*"]})
    assert layout.names == ("start", "end")
    assert [spec.name for spec in layout["start"].tensors] == [
        "0.weight",
        "0.bias",
        "1.weight",
        "1.bias",
        "1.running_mean",
        "1.running_var",
        "1.num_batches_tracked",
    ]


def test_globs_can_divide_a_module():
    groups = {"biases": ["*.bias"], "rest": ["*.weight", "1.r*", "1.num*"]}
    layout = trace(net(), torch.rand(3, 4), "net", groups)
    assert [spec.name for spec in layout["biases"].tensors] == ["0.bias", "1.bias", "3.bias"]


def test_a_glob_that_matches_nothing_names_the_tensors_there_are():
    assert refused(net(), {"all": ["*"], "more": ["layer1.*"]}) == (
        'model "net": layer "more": no tensor matches "layer1.*"; the tensors are 0.weight, '
        "0.bias, 1.weight, 1.bias, 1.running_mean, 1.running_var, 1.num_batches_tracked, "
        "3.weight, 3.bias"
    )


def test_a_tensor_that_two_layers_claim_is_named():
    assert refused(net(), {"all": ["*"], "end": ["3.bias"]}) == (
        'model "net": layers "all" and "end" both claim the tensor "3.bias"; every tensor belongs '
        "to one layer"
    )


def test_a_tensor_that_no_layer_claims_is_named():
    assert refused(net(), {"start": ["0.*", "1.*"], "end": ["3.weight"]}) == (
        'model "net": no layer claims 3.bias; add a glob that matches, or a layer'
    )


def test_of_many_tensors_the_first_are_named_and_the_rest_counted():
    deep = nn.Sequential(*(nn.Linear(4, 4) for _ in range(8)))
    assert refused(deep, {"end": ["7.*"]}) == (
        'model "net": no layer claims 0.weight, 0.bias, 1.weight, 1.bias, 2.weight, 2.bias, '
        "3.weight, 3.bias, 4.weight, 4.bias, 5.weight, 5.bias and 2 more; add a glob that "
        "matches, or a layer"
    )


def tied():
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4))
    model[2].weight = model[0].weight
    return model


def test_layers_that_share_a_tensor_become_one_and_the_first_name_stands():
    groups = {"a": ["0.*"], "b": ["1.*"], "c": ["2.*"]}
    layout = trace(tied(), torch.rand(3, 4), "net", groups)
    assert layout.names == ("a", "b")
    assert [spec.name for spec in layout["a"].tensors] == ["0.weight", "0.bias", "2.bias"]
    assert layout.parameter_count == 2 * 16 + 3 * 4


def test_a_tied_tensor_may_be_matched_under_any_of_its_names():
    groups = {"outer": ["0.*", "2.*"], "inner": ["1.*"]}
    assert trace(tied(), torch.rand(3, 4), "net", groups).names == ("outer", "inner")
