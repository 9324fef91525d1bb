"""Files and commands of a machine."""

import os
import sys

import pytest

from device_profiles.system_files import SystemFiles, run_command


def test_text_comes_without_blanks_and_zero_bytes(tmp_path):
    (tmp_path / "model").write_bytes(b" Raspberry Pi 5\0\n")
    assert SystemFiles(tmp_path).text("/model") == "Raspberry Pi 5"


@pytest.mark.parametrize("name", ["/none", "/", "/empty"])
def test_what_cannot_be_read_or_is_empty_is_none(tmp_path, name):
    (tmp_path / "empty").write_text("\n")
    system = SystemFiles(tmp_path)
    assert (system.text(name), system.whole(name)) == (None, None)


@pytest.mark.parametrize(
    ("text", "value"), [("42\n", 42), ("-1", -1), ("max", None), ("1.5", None)]
)
def test_a_whole_number_is_nothing_else(tmp_path, text, value):
    (tmp_path / "n").write_text(text)
    assert SystemFiles(tmp_path).whole("/n") == value


def test_names_that_match_are_absolute_and_sorted(tmp_path):
    for name in ("b", "a", "c"):
        (tmp_path / "sys" / name).mkdir(parents=True)
    assert SystemFiles(tmp_path).found("/sys/[ab]") == ["/sys/a", "/sys/b"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_of_somebody_else_is_denied_and_a_missing_one_is_not(tmp_path):
    (tmp_path / "secret").write_text("1")
    (tmp_path / "secret").chmod(0)
    system = SystemFiles(tmp_path)
    assert (system.is_denied("/secret"), system.is_denied("/none")) == (True, False)


def test_a_command_answers_with_what_it_prints():
    assert run_command((sys.executable, "-c", "print(' 7 ')")) == "7"


@pytest.mark.parametrize("words", [("no-such-command-here",), (sys.executable, "-c", "exit(3)")])
def test_a_command_that_is_not_there_or_fails_says_nothing(words):
    assert run_command(words) is None


def test_a_machine_may_have_no_commands(tmp_path):
    assert SystemFiles(tmp_path, None).command("vcgencmd") is None
