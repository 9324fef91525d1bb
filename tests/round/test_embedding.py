"""What docs/embedding.md shows works as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from flwr.app import Context, RecordDict

import fedfreeze
from client_app.app import app as client_app
from tests.grid import InProcessGrid

PAGE = (Path(__file__).parent.parent.parent / "docs" / "embedding.md").read_text("utf-8")


def test_the_example_trains_under_flowers_own_start(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("FEDFREEZE_HOME", str(tmp_path))
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    names = {}
    exec(compile(example, "docs/embedding.md", "exec"), names)
    context = Context(1, 1, {}, RecordDict(), {})
    names["app"](InProcessGrid(client_app, 3), context)
    assert capsys.readouterr().out.splitlines()[-1] == "3"


@pytest.mark.parametrize("name", fedfreeze.__all__)
def test_every_public_name_is_on_the_page(name):
    public_errors = issubclass(getattr(fedfreeze, name), Exception) if name.endswith("Error") else 0
    assert public_errors or f"`{name}" in PAGE
