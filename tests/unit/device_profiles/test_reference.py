from pathlib import Path

from device_profiles.board import boards
from device_profiles.reference import table, with_table

PAGE = Path(__file__).parents[3] / "docs" / "boards.md"


def test_the_page_says_what_the_boards_say():
    page = PAGE.read_text("utf-8")
    assert page == with_table(page), "run: python -m device_profiles.reference docs/boards.md"


def test_every_board_has_a_row_and_estimates_are_marked():
    header, line, *rows = table().splitlines()
    assert [row.split("`")[1] for row in rows] == list(boards())
    assert {row.count("|") for row in (header, line, *rows)} == {8}
    (pi_3,) = (row for row in rows if "`rpi-3b-plus`" in row)
    # From its file: 1 GiB by the product brief, idle and compute published, the rest estimated.
    assert pi_3 == (
        "| `rpi-3b-plus` | 1.07 GB | 1.8 GFLOP/s* | 350 MB* | 2 MB/s* | 5 MB/s* | "
        "1.9 W, 5.1 W, 2.5 W* |"
    )
