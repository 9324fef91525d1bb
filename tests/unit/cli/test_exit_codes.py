import pathlib

from cli import exit_codes
from fedfreeze import errors

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "errors.md"


def tree(base):
    return {base} | {leaf for child in base.__subclasses__() for leaf in tree(child)}


def test_the_page_says_what_the_table_says():
    assert PAGE.read_text(encoding="utf-8") == exit_codes.page(), (
        "run: python -m cli.exit_codes > docs/errors.md"
    )


def test_every_error_of_the_tree_stands_at_its_exit_code_and_no_other_does():
    ours = {e for e in tree(errors.FedFreezeError) if e.__module__ == "fedfreeze.errors"}
    listed = {name: entry.code for entry in exit_codes.EXIT_CODES for name in entry.errors}
    assert listed == {error.__name__: error.exit_code for error in ours}


def test_every_exit_code_stands_once_in_order_with_a_meaning_and_a_fix():
    codes = [entry.code for entry in exit_codes.EXIT_CODES]
    assert codes == sorted(set(codes))
    assert {0, 1, 2, 130} < set(codes)
    assert all(entry.meaning and entry.fix for entry in exit_codes.EXIT_CODES)
