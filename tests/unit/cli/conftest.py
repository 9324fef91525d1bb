import pytest


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A FEDFREEZE_HOME of the test's own."""
    monkeypatch.setenv("FEDFREEZE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"
