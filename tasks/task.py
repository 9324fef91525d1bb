"""What a task is: a model, its data, its loss and its metrics, as one value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from flwr.app import Array, ArrayRecord
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from fedfreeze.errors import ConfigError, FedFreezeError
from fedfreeze.layout import Arrays, Layout
from tasks.dataset import Dataset, Examples
from tasks.declaration import check_dataset, settled
from tasks.inputs import Inputs
from tasks.metric import ACCURACY, Metric
from tasks.models.spec import ModelSpec
from tasks.options import AS_THE_TASK_IS, Options, OwnLayers
from tasks.partition import Split
from tasks.preparation.seams import AS_FLOAT, Augmentation, Preprocessing
from tasks.sources import Place, place
from tasks.tracing import split_attention, trace


@dataclass(frozen=True)
class Task:
    """A model, its data, its loss and its metrics.

    Attributes:
        name: as strategies name it.
        inputs: shape and type of raw examples.
        read: ``(place) -> Dataset``: from that place's folder, an installed package, or what ships
            with the project; it says which, and never puts one in place of another that was asked
            for.
        model: a function without arguments that builds it, or the name of one of the project's.
        labels: of the classes, by number; empty if the targets are no classes.
        outputs: of the model; as many as there are labels unless given.
        loss: ``(outputs, targets) -> scalar``: the mean over the examples.
        metrics: the first one is the headline.
        preprocessing: from raw inputs to the model's; a pretrained model brings its own.
        augmentation: how training inputs may be changed at random; off unless asked for.
        layers: how the model divides into layers if the strategy says "auto".
        options: what the strategy chose.
    """

    name: str
    inputs: Inputs
    read: Callable[[Place], Dataset]
    model: Callable[[], nn.Module] | str
    labels: tuple[str, ...] = ()
    outputs: int = 0
    loss: Callable[[Tensor, Tensor], Tensor] = functional.cross_entropy
    metrics: tuple[Metric, ...] = (ACCURACY,)
    preprocessing: Preprocessing = AS_FLOAT
    augmentation: Augmentation | None = None
    layers: str | OwnLayers = "auto"
    options: Options = AS_THE_TASK_IS

    def __post_init__(self) -> None:
        for part, value in settled(self).items():
            object.__setattr__(self, part, value)

    # ---- the model

    @property
    def metric(self) -> Metric:
        """The headline."""
        return self.metrics[0]

    @property
    def spec(self) -> ModelSpec:
        """The model that the strategy or else the task names.

        Raises:
            ConfigError: it needs an extra that is not installed.
        """
        model = self.options.model or self.model
        return _named(model) if isinstance(model, str) else _own(model)

    def build(self) -> nn.Module:
        """The model with random weights from torch's current random state; callers seed.

        Fused attention is split into separate projections, so that their layers can freeze alone.

        Raises:
            ConfigError: it cannot be built.
        """
        return split_attention(self._built())

    def _built(self) -> nn.Module:
        try:
            model = self.spec.build(self.inputs, self.outputs or len(self.labels))
        except FedFreezeError:
            raise
        except Exception as error:  # whatever the user's code raises
            raise ConfigError(
                f'task "{self.name}": {self._model_name} cannot be built: '
                f"{type(error).__name__}: {error}"
            ) from error
        if not isinstance(model, nn.Module):
            raise ConfigError(
                f'task "{self.name}": expected the function model to return a torch.nn.Module, '
                f"got {model!r:.80}"
            )
        return model

    def layout(self) -> Layout:
        """The model's layers with their traced costs.

        Raises:
            LayoutError: the model cannot be divided so.
        """
        return _layout(self)

    def initial(self, seed: int) -> tuple[dict[str, NDArray[Any]], str]:
        """Every tensor of the layout at the start of a run, and where they came from.

        The random state of the caller's torch is left as it was.

        Raises:
            ConfigError: pretrained weights were asked for, and there are none.
        """
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = self._built()
            source = self._pretrain(model)
            state = split_attention(model).state_dict()
        arrays = {name: np.array(state[name].cpu().numpy()) for name in self.layout().tensors}
        return arrays, source

    def _pretrain(self, model: nn.Module) -> str:
        origin, spec = self.options.pretrained, self.spec
        if origin is None:
            return "random weights"
        if spec.load_pretrained is None:
            raise ConfigError(
                f"model.pretrained: expected a model that has pretrained weights, task "
                f'"{self.name}" trains {self._model_name} which has none; remove the key, or '
                "choose another model.name"
            )
        return spec.load_pretrained(model, origin)

    @property
    def _model_name(self) -> str:
        model = self.options.model or self.model
        return f'"{model}"' if isinstance(model, str) else "a model of its own"

    @property
    def groups(self) -> dict[str, tuple[str, ...]] | None:
        """Layers as globs over tensor names; None for the tracer's own division.

        Raises:
            ConfigError: the model has no grouping of that name.
        """
        own = self.options.model in (None, self.model)
        chosen = self.layers if self.options.layers == "auto" and own else self.options.layers
        if isinstance(chosen, tuple):
            return dict(chosen)
        if chosen == "auto":
            return None
        groupings = self.spec.groupings
        if chosen not in groupings:
            known = ", ".join(["auto", *groupings])
            raise ConfigError(
                f'model.layers: {self._model_name} has no grouping "{chosen}"; it has {known}; '
                "or give a table of layer names and globs"
            )
        return {layer: tuple(globs) for layer, globs in groupings[chosen].items()}

    # ---- preparation

    @property
    def prepare(self) -> Preprocessing:
        """From a batch of raw inputs to what the model takes."""
        of_model = self.spec.preprocessing
        return self.preprocessing if of_model is None else of_model(self.inputs)

    def augmented(self, inputs: Tensor, rng: np.random.Generator) -> Tensor:
        """Raw training inputs, changed at random if the strategy wants that."""
        active = self.active_augmentation
        return inputs if active is None else active(inputs, rng)

    @property
    def active_augmentation(self) -> Augmentation | None:
        """What changes training inputs in this run; whoever caches features must ask.

        Raises:
            ConfigError: it was asked for, and the task has none.
        """
        if not self.options.augment:
            return None
        if self.augmentation is None:
            raise ConfigError(
                f'data.augment: task "{self.name}" has no augmentation; remove the key'
            )
        return self.augmentation

    # ---- the data

    @property
    def divided_by(self) -> str:
        """What divides the data, if not the strategy."""
        return ""

    def dataset(self, data_dir: str | None) -> Dataset:
        """The data set, with as many test examples as the strategy wants; read once per process.

        Raises:
            ConfigError: it is not where it should be.
            StateError: a file is torn.
        """
        data = self._read(place(data_dir))
        most = self.options.test_examples
        return data if most is None else data.with_tests(most)

    def _read(self, where: Place) -> Dataset:
        try:
            data = _dataset(self.read, where)
        except FedFreezeError:
            raise
        except Exception as error:  # whatever the user's code raises
            raise ConfigError(
                f'task "{self.name}": its data cannot be read: {type(error).__name__}: {error}'
            ) from error
        return check_dataset(self.name, data)

    def client_examples(
        self, client: int, clients: int, split: Split, data_dir: str | None
    ) -> Examples:
        """What client ``client`` of 0 ... ``clients`` - 1 trains on.

        Raises:
            ConfigError: there is no such client or data, or the split does not suit it.
        """
        if not 0 <= client < clients:
            raise ConfigError(f"client {client} is not one of {clients} clients, counted from 0")
        data = self.dataset(data_dir)
        return data.train.at(self.division(clients, split, data_dir)[client])

    def division(
        self, clients: int, split: Split, data_dir: str | None
    ) -> tuple[NDArray[np.int64], ...]:
        """Positions in the training half of each client's examples."""
        return _division(self, clients, split, data_dir)

    def check_division(self, split: Split, data_dir: str | None) -> None:
        """Refuse a split that does not suit the data, however many clients there are.

        Raises:
            ConfigError: it does not.
        """
        self.division(1, split, data_dir)

    def client_targets(
        self, clients: int, split: Split, data_dir: str | None
    ) -> tuple[NDArray[Any], ...]:
        """Targets of what each client trains on: who holds what."""
        targets = _numbers(self.dataset(data_dir).train.targets)
        return tuple(targets[mine] for mine in self.division(clients, split, data_dir))

    def validation_count(self, split: Split, data_dir: str | None) -> int:
        """How many examples the server validates on; 0 is what :meth:`validation` refuses."""
        return len(split.validation(_numbers(self.dataset(data_dir).train.targets)))

    def validation(self, split: Split, data_dir: str | None) -> Examples:
        """The server's own share of the training half, which no client holds.

        Raises:
            ConfigError: the share is less than one example.
        """
        data = self.dataset(data_dir)
        chosen = split.validation(_numbers(data.train.targets))
        if not len(chosen):
            raise ConfigError(
                f"data.validation-share: {split.validation_share:g} of the {len(data.train)} "
                f'training examples of task "{self.name}" is not one; raise it'
            )
        return data.train.at(chosen)

    def test(self, data_dir: str | None) -> Examples:
        """The test half: reported, never used for a decision."""
        return self.dataset(data_dir).test


def _numbers(targets: Tensor) -> NDArray[Any]:
    return np.asarray(targets.numpy())


@lru_cache(maxsize=4)
def _dataset(read: Callable[[Place], Dataset], where: Place) -> Dataset:
    return read(where)


@lru_cache(maxsize=4)
def _division(
    task: Task, clients: int, split: Split, data_dir: str | None
) -> tuple[NDArray[np.int64], ...]:
    data = task.dataset(data_dir)
    return split.clients(_numbers(data.train.targets), clients, data.train_groups)


@lru_cache(maxsize=8)
def _layout(task: Task) -> Layout:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = task.build()
        try:
            example = task.prepare(task.inputs.example(2))
        except FedFreezeError:
            raise
        except Exception as error:  # whatever the user's code raises
            raise ConfigError(
                f'task "{task.name}": no example can be made of its inputs and preprocessing: '
                f"{type(error).__name__}: {error}"
            ) from error
    return trace(model, example, task.name, task.groups)


def _named(name: str) -> ModelSpec:
    from tasks.models import load_spec  # noqa: PLC0415  # a family is imported when it is wanted

    return load_spec(name)


def _own(build: Callable[[], nn.Module]) -> ModelSpec:
    return ModelSpec(build=lambda inputs, outputs: build())  # noqa: ARG005


def initial_arrays(task: Task, seed: int) -> dict[str, NDArray[Any]]:
    """The seeded initial state of the task's model: every tensor of its layout, by name."""
    return task.initial(seed)[0]


def load_arrays(model: nn.Module, arrays: Arrays) -> None:
    """Copy the published tensors into the model."""
    state = model.state_dict()
    with torch.no_grad():
        for name, array in arrays.items():
            state[name].copy_(torch.from_numpy(np.array(array)))


def initial_record(task: Task, seed: int) -> ArrayRecord:
    """:func:`initial_arrays` as Flower's ``start(initial_arrays=...)`` takes it."""
    return ArrayRecord({name: Array(array) for name, array in initial_arrays(task, seed).items()})
