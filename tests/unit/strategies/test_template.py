from strategies.reference import keys, tables
from strategies.schema import Strategy, from_text
from strategies.template import template


def test_the_template_is_the_default_strategy():
    assert from_text(template("x.toml")) == Strategy(version=1, rounds=30)


def test_the_template_shows_every_key_and_comments_out_what_the_defaults_do_not_read():
    lines = template("x.toml").splitlines()
    for table in (Strategy, *tables(Strategy).values()):
        for key in keys(table):
            off = "" if key.is_active and (key.default or key.required) else "# "
            assert any(line.startswith(f"{off}{key.name} = ") for line in lines), key.name
    assert "# share = 1.0" in lines
    assert "# clip-norm = 1.0" in lines
    assert "alpha = 0.3" in lines


def test_every_commented_key_is_one_that_its_setting_reads():
    on = template("x.toml").replace("# share = 1.0", "share = 0.5")
    assert from_text(on, overrides=["clients.selection=uniform"]).clients.share == 0.5


def test_the_first_lines_name_the_command_and_every_key_follows_its_meaning():
    assert template("my file.toml").splitlines()[:5] == [
        "# fedfreeze run --strategy my file.toml",
        "# version of this format (1)",
        "version = 1",
        "# model, data and loss, by name (text)",
        'task = "fashion-cnn"',
    ]
