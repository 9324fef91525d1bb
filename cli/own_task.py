"""A task file of the user's own, which travels with the app to server and boards."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cli.named_files import beside, places
from fedfreeze.errors import ConfigError

# Below a room, so that the code digest covers it.
PACKAGE = "tasks.own"


@dataclass(frozen=True)
class OwnTask:
    """The file: the name of its module, its text, and where it was found."""

    module: str
    text: str
    path: str

    @property
    def name(self) -> str:
        """As the staged app names the task."""
        return f"{PACKAGE}.{self.module}"

    def stage(self, app: Path) -> None:
        """Write it into a staged app."""
        package = app.joinpath(*PACKAGE.split("."))
        package.mkdir()
        (package / "__init__.py").write_text('"""The user\'s own task."""\n', encoding="utf-8")
        (package / f"{self.module}.py").write_text(self.text, encoding="utf-8")


def own_task(name: str, strategy: str) -> OwnTask | None:
    """The file that the task's name means; None if the name is no path.

    Args:
        name: a path that ends in ``.py`` is looked for beside the strategy's file, then in the
            working directory.
        strategy: the preset or file that names it.

    Raises:
        ConfigError: there is no such file, or no module can have its name.
    """
    if not name.endswith(".py"):
        return None
    path = beside(name, strategy)
    if path is None:
        looked = " or ".join(dict.fromkeys(str(p.absolute()) for p in places(name, strategy)))
        raise ConfigError(f'task "{name}": expected a file {looked}, found none')
    if not path.stem.isidentifier():
        raise ConfigError(
            f'task "{name}": "{path.stem}" cannot be the name of a Python module; rename the file '
            'to letters, digits and underscores, such as "my_task.py"'
        )
    try:
        return OwnTask(path.stem, path.read_text(encoding="utf-8"), str(path.absolute()))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f'task "{name}": {path} cannot be read: {error}') from error
