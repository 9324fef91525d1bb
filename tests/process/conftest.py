import pytest

from tests.process.harness import Command


@pytest.fixture
def command(tmp_path):
    return Command(tmp_path / "home")
