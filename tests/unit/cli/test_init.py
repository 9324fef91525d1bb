from cli.command_line import exit_code
from strategies.schema import Strategy, load, presets


def test_the_written_file_passes_check_and_holds_the_defaults(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert exit_code(["init"]) == 0
    assert capsys.readouterr().out == (
        "Wrote strategy.toml. Edit it, then: fedfreeze check strategy.toml\n"
    )
    assert exit_code(["check", "strategy.toml"]) == 0
    assert load("strategy.toml") == Strategy(version=1, rounds=30)


def test_a_file_that_exists_is_never_overwritten(tmp_path, capsys):
    path = tmp_path / "mine.toml"
    path.write_text("precious", encoding="utf-8")
    assert exit_code(["init", str(path)]) == 3
    assert path.read_text(encoding="utf-8") == "precious"
    assert capsys.readouterr().err == (
        f"{path} exists and was left as it is; give another name, as in "
        f"`fedfreeze init {tmp_path / 'mine-2.toml'}`\n"
    )


def test_a_file_in_no_folder_is_refused(tmp_path, capsys):
    path = tmp_path / "none" / "mine.toml"
    assert exit_code(["init", str(path)]) == 3
    assert capsys.readouterr().err == f"{path}: cannot be written: No such file or directory\n"


def test_a_preset_to_edit_is_the_preset_under_the_new_name(tmp_path):
    path = tmp_path / "mine.toml"
    assert exit_code(["init", str(path), "--preset", "full"]) == 0
    assert load(str(path)) == load("full")
    assert path.read_text(encoding="utf-8").startswith(f"# fedfreeze run --strategy {path}\n")


def test_a_preset_that_there_is_not_is_refused_with_those_that_there_are(tmp_path, capsys):
    path = tmp_path / "mine.toml"
    assert exit_code(["init", str(path), "--preset", "ful"]) == 3
    assert capsys.readouterr().err == (f'no preset "ful"; the presets are {", ".join(presets())}\n')
    assert not path.exists()
