"""``[data]``: each partition has its own keys, and all of them reach the split."""

import pytest

from fedfreeze.errors import ConfigError
from strategies.schema import load
from tasks.partition import Split


def table(*changes):
    return load("fedfreeze", changes)


def test_every_key_reaches_the_split():
    strategy = table(
        "seed=5",
        "data.partition=dirichlet-quantity",
        "data.alpha=0.2",
        "data.quantity-alpha=3.0",
        "data.validation-share=0.25",
    )
    assert strategy.split == Split("dirichlet-quantity", 0.2, 0.25, 5, quantity_alpha=3.0)
    shards = table("data.partition=shards", "data.shards-per-client=4")
    assert shards.split == Split("shards", 0.3, 0.1, 0, shards_per_client=4)


@pytest.mark.parametrize(
    ("partition", "key", "readers"),
    [
        ("iid", "alpha=0.2", '"dirichlet" or "dirichlet-quantity"'),
        ("dirichlet", "quantity-alpha=2.0", '"quantity" or "dirichlet-quantity"'),
        ("natural", "shards-per-client=3", '"shards"'),
    ],
)
def test_a_key_that_the_partition_does_not_read_is_refused(partition, key, readers):
    name, value = key.split("=")
    with pytest.raises(ConfigError) as caught:
        table(f"data.partition={partition}", f"data.{key}")
    assert caught.value.problems == [
        f"--set data.{name}: only partition = {readers} reads this key, got {value}; remove it"
    ]


def test_the_strategy_has_no_part_in_the_split():
    """All strategies that are compared meet the same clients."""
    wanted = ("seed=3", "data.partition=quantity")
    assert load("fedfreeze", wanted).split == load("full", wanted).split
