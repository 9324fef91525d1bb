"""Tasks and models by name; knows no torch, so that checking a name is fast."""

from __future__ import annotations

from fedfreeze.toml_faults import did_you_mean

# To add a task: write its file, which has an attribute `task`, and add its line.
TASKS = {
    "fashion-cnn": "tasks.catalogue.fashion_cnn",
    "mnist-writers": "tasks.catalogue.mnist_writers",
    "cifar10": "tasks.catalogue.cifar10",
    "cifar100": "tasks.catalogue.cifar100",
    "femnist": "tasks.catalogue.femnist",
    "tiny-imagenet": "tasks.catalogue.tiny_imagenet",
    "reuters-r8": "tasks.catalogue.reuters_r8",
    "reuters-r8-minilm": "tasks.catalogue.reuters_r8_minilm",
    "sentiment": "tasks.catalogue.sentiment",
    "ag-news": "tasks.catalogue.ag_news",
    "sst2": "tasks.catalogue.sst2",
    "spoken-digits": "tasks.catalogue.spoken_digits",
    "watch-activity": "tasks.catalogue.watch_activity",
}

# What a natural client of a task is; tasks that are not here have examples without owners.
OWNERS = {
    "mnist-writers": "writer",
    "femnist": "writer",
    "sentiment": "domain",
    "spoken-digits": "speaker",
    "watch-activity": "person",
}

# To add a model: write its file, which has an attribute of that name, and add its line.
MODELS = {
    "fashion-cnn": "tasks.models.fashion:FASHION_CNN",
    "fedbug-cnn": "tasks.models.fedbug:FEDBUG_CNN",
    "fedbug-cnn-6": "tasks.models.fedbug:FEDBUG_CNN_6",
    "resnet18-gn": "tasks.models.resnet_gn:RESNET18_GN",
    "resnet34-gn": "tasks.models.resnet_gn:RESNET34_GN",
    "vit-tiny": "tasks.models.vit_tiny:VIT_TINY",
    "vit-nano": "tasks.models.vit_tiny:VIT_NANO",
    "efficientnet-lite0": "tasks.models.efficientnet_lite0:EFFICIENTNET_LITE0",
    "gru-text": "tasks.models.recurrent:GRU_TEXT",
    "lstm-text": "tasks.models.recurrent:LSTM_TEXT",
    "text-transformer": "tasks.models.text_transformer:TEXT_TRANSFORMER",
    "minilm": "tasks.models.minilm:MINILM",
    "speech-gru": "tasks.models.conv_gru:SPEECH_GRU",
    "sensor-gru": "tasks.models.conv_gru:SENSOR_GRU",
}

# "timm:resnet18" is any model of timm by its name there.
TIMM = "timm:"


def module_of(name: str) -> str:
    """The module that holds the task; a dotted name, or a ``.py`` file, is of the user's own.

    Raises:
        ValueError: neither a task of the project nor a dotted name.

    >>> module_of("fashion-cnn"), module_of("my_package.my_task")
    ('tasks.catalogue.fashion_cnn', 'my_package.my_task')
    """
    module = TASKS.get(name, name)
    if "." not in module:
        raise ValueError(
            f'unknown task "{name}"; the tasks are {", ".join(TASKS)}; for your own, write '
            f'a file such as "my_task.py" or a module such as "my_package.my_task" that has an '
            f'attribute "task"'
            f"{did_you_mean(name, TASKS)}"
        )
    return module


def known_model(name: str) -> str:
    """The same name, if there is such a model.

    Raises:
        ValueError: it is none of ours and does not begin with ``timm:``.

    >>> known_model("timm:resnet18")
    'timm:resnet18'
    """
    if name not in MODELS and not name.startswith(TIMM):
        raise ValueError(
            f'unknown model "{name}"; the models are {", ".join(MODELS)}, and timm:NAME for any '
            f"of timm's{did_you_mean(name, MODELS)}"
        )
    return name
