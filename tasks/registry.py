"""The tasks of the project by name; knows no torch, so that checking a name is fast."""

from __future__ import annotations

from fedfreeze.toml_faults import did_you_mean

# To add a task: write its file and add its line.
TASKS = {"fashion-cnn": "tasks.fashion_cnn"}


def module_of(name: str) -> str:
    """The module that holds the task; a dotted name is that of a module outside the project.

    Raises:
        ValueError: neither a task of the project nor a dotted name.

    >>> module_of("fashion-cnn"), module_of("my_package.my_task")
    ('tasks.fashion_cnn', 'my_package.my_task')
    """
    module = TASKS.get(name, name)
    if "." not in module:
        raise ValueError(
            f'unknown task "{name}"; the tasks are {", ".join(TASKS)}; for your own, write a '
            f'dotted module name such as "my_package.my_task" that has an attribute "task"'
            f"{did_you_mean(name, TASKS)}"
        )
    return module
