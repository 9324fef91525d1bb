"""The papers' set-ups in experiments/paper, against values typed from the papers.

FedBug's are from its appendix ("Standard CNN", "ResNet", "Hyperparameters"), those called -code
from what the authors' code has instead; FedFrozen's from its section on real data.
"""

import shlex
from pathlib import Path

import pytest

from strategies.schema import load

FOLDER = Path(__file__).parents[3] / "experiments" / "paper"

# rounds, local epochs, clients, participation, model, task, unfreezing share
FEDBUG = {
    "fedbug-cifar10": (300, 10, 100, 0.01, "fedbug-cnn", "cifar10", 0.2),
    "fedbug-cifar10-code": (500, 10, 100, 0.01, "fedbug-cnn", "cifar10", 0.2),
    "fedbug-cifar100": (500, 5, 100, 0.01, "fedbug-cnn", "cifar100", 0.2),
    "fedbug-cifar100-code": (300, 5, 100, 0.01, "fedbug-cnn", "cifar100", 0.2),
    "fedbug-cifar100-resnet18": (100, 5, 10, 0.1, "resnet18-gn", "cifar100", 0.5),
    "fedbug-cifar100-resnet34": (100, 5, 10, 0.1, "resnet34-gn", "cifar100", 0.5),
    "fedbug-tiny-imagenet": (100, 5, 10, 0.1, "fedbug-cnn-6", "tiny-imagenet", 0.2),
    "fedbug-tiny-imagenet-code": (100, 3, 10, 0.1, "fedbug-cnn-6", "tiny-imagenet", 0.24),
    "fedbug-tiny-imagenet-resnet18": (100, 3, 10, 0.1, "resnet18-gn", "tiny-imagenet", 0.5),
    "fedbug-tiny-imagenet-resnet34": (100, 3, 10, 0.1, "resnet34-gn", "tiny-imagenet", 0.5),
}
# model, task
FEDFROZEN = {
    "fedfrozen-cifar10": ("timm:vit_base_patch32_224", "cifar10"),
    "fedfrozen-cifar100": ("timm:vit_base_patch32_224", "cifar100"),
    "fedfrozen-femnist": ("timm:vit_small_patch16_224", "femnist"),
}
FEDFREEZE = ("fedfreeze-bert", "fedfreeze-cifar10", "fedfreeze-cifar10-fedavg")


def setup(name, *changes):
    return load(str(FOLDER / f"{name}.toml"), changes)


def command(name):
    """The words of the command in the first line of the file."""
    first = (FOLDER / f"{name}.toml").read_text(encoding="utf-8").partition("\n")[0]
    return shlex.split(first.removeprefix("# "))


def test_there_are_no_other_set_ups():
    found = {path.stem for path in FOLDER.glob("*.toml")}
    assert found == {*FEDBUG, *FEDFROZEN, *FEDFREEZE}


@pytest.mark.parametrize("name", [*FEDBUG, *FEDFROZEN, *FEDFREEZE])
def test_every_set_up_names_the_command_that_runs_it(name):
    expected = ["fedfreeze", "run", "--strategy", f"experiments/paper/{name}.toml"]
    assert command(name)[:4] == expected


@pytest.mark.parametrize("name", FEDBUG)
def test_rounds_epochs_clients_and_models_of_fedbug_are_those_of_the_paper(name):
    strategy = setup(name)
    found = (
        strategy.rounds,
        strategy.local.epochs,
        int(command(name)[command(name).index("--clients") + 1]),
        strategy.clients.share,
        strategy.model.name,
        strategy.task,
        strategy.freeze.unfreezing_share,
    )
    assert found == FEDBUG[name]
    # "each client had a 1% chance of being selected": a coin for each, not a draw of a hundredth
    assert strategy.clients.selection == "bernoulli"


@pytest.mark.parametrize("name", FEDBUG)
def test_local_training_of_fedbug_is_that_of_the_paper(name):
    local = setup(name).local
    assert (local.optimizer, local.learning_rate, local.weight_decay) == ("sgd", 0.1, 0.001)
    assert (local.batch_size, local.momentum, local.clip_norm) == (50, 0.0, 10.0)
    assert (local.schedule, local.warm_up_rounds) == ("constant", 0)
    assert setup(name).data.augment


@pytest.mark.parametrize("name", FEDBUG)
def test_modules_of_fedbug_are_its_own_and_shares_and_divisions_are_a_change_away(name):
    strategy = setup(name)
    assert (strategy.freeze.policy, strategy.model.layers) == ("fedbug", "modules")
    assert (strategy.method.name, strategy.method.server_learning_rate) == ("fedavg", 1.0)
    assert strategy.data.partition == "iid"
    alpha = 0.5 if "tiny" in name else 0.3
    uneven = setup(name, 'data.partition="dirichlet"', f"data.alpha={alpha}")
    assert (uneven.data.partition, uneven.data.alpha) == ("dirichlet", alpha)
    assert setup(name, "freeze.unfreezing-share=0").freeze.unfreezing_share == 0


@pytest.mark.parametrize("name", FEDFROZEN)
def test_models_clients_and_divisions_of_fedfrozen_are_those_of_the_paper(name):
    strategy = setup(name)
    assert (strategy.model.name, strategy.task) == FEDFROZEN[name]
    assert strategy.model.pretrained == "hub"
    assert command(name)[4:] == ["--clients", "10"]
    assert strategy.clients.selection == "all"
    assert (strategy.data.partition, strategy.data.alpha) == ("dirichlet", 0.1)
    for alpha in (0.3, 0.5):
        assert setup(name, f"data.alpha={alpha}").data.alpha == alpha
    assert (strategy.freeze.policy, strategy.freeze.active) == ("fedfrozen", "all-but-kernel")
    # What the paper says in words: the penalty comes with the frozen kernel.
    assert strategy.freeze.penalty_from == "freeze"


@pytest.mark.parametrize("name", [*FEDBUG, *FEDFROZEN, "fedfreeze-cifar10-fedavg"])
def test_what_was_published_without_compression_sends_everything_both_ways(name):
    compression = setup(name).compression
    assert (compression.mode, compression.bits, compression.downlink) == ("dense", 32, "dense")
    assert compression.compression_ratio == 1
    assert not compression.error_feedback
    assert setup(name).fleet == "high"


def test_fedfreeze_has_the_rounds_and_the_bytes_that_its_text_speaks_of():
    ours, dense = setup("fedfreeze-cifar10"), setup("fedfreeze-cifar10-fedavg")
    assert ours.rounds == dense.rounds == 100
    assert ours.data == dense.data
    assert ours.data.partition == "dirichlet"
    assert ours.local == dense.local
    assert 6 <= ours.compression.compression_ratio <= 8
    assert ours.compression.mode == "literal"
    assert (ours.freeze.policy, dense.freeze.policy) == ("fedfreeze", "full")


def test_fedfreeze_freezes_the_embeddings_and_the_first_blocks_of_a_bert():
    strategy = setup("fedfreeze-bert")
    assert (strategy.model.name, strategy.model.pretrained) == ("minilm", "hub")
    assert strategy.freeze.policy == "fixed"
    assert strategy.freeze.frozen == ["bert.embeddings*", "bert.encoder.layer.[012].*"]
