import pytest


@pytest.fixture(scope="session")
def _a_home_of_the_tests(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@pytest.fixture(autouse=True)
def _what_commands_remember_is_not_the_users(_a_home_of_the_tests, monkeypatch):
    monkeypatch.setenv("FEDFREEZE_HOME", str(_a_home_of_the_tests))


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A FEDFREEZE_HOME of the test's own."""
    monkeypatch.setenv("FEDFREEZE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"
