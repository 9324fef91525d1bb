"""The picture: it stands alone, has the right lengths, and can be read out."""

from xml.etree import ElementTree as ET

import numpy as np
import pytest

from cli.class_keys import class_keys
from cli.division_svg import MOST_ROWS, picture

SVG = "{http://www.w3.org/2000/svg}"
HELD = np.array([[30, 10], [0, 20]])


def root_of(held=HELD, names=("cat & <dog>", "emu"), **words):
    given = {"title": "Two <clients>", "description": "One & another", **words}
    return ET.fromstring(picture(held, class_keys(held, list(names)), **given))


def parts_of(root):
    """The rectangles that stand for examples: those with a title."""
    return [rect for rect in root.iter(f"{SVG}rect") if rect.find(f"{SVG}title") is not None]


def test_lengths_are_in_proportion_to_examples_and_parts_lie_end_to_end():
    first, second, third = parts_of(root_of())
    widths = [float(rect.get("width")) for rect in (first, second, third)]
    assert widths[0] == pytest.approx(3 * widths[1], abs=0.05)
    assert widths[2] == pytest.approx(2 * widths[1], abs=0.05)
    assert float(second.get("x")) == pytest.approx(float(first.get("x")) + widths[0], abs=0.02)
    assert first.get("y") == second.get("y") != third.get("y")


def test_every_part_says_what_it_is():
    said = [rect.findtext(f"{SVG}title") for rect in parts_of(root_of())]
    assert said == [
        "client 0: 30 of cat & <dog>, 75 %",
        "client 0: 10 of emu, 25 %",
        "client 1: 20 of emu, 100 %",
    ]


def test_it_has_a_role_a_title_and_a_description():
    root = root_of()
    assert root.get("role") == "img"
    assert root.findtext(f"{SVG}title") == "Two <clients>"
    assert root.findtext(f"{SVG}desc") == "One & another"
    named = {element.get("id") for element in root if element.get("id")}
    assert set(root.get("aria-labelledby").split()) == named


def test_it_fetches_nothing():
    text = picture(HELD, class_keys(HELD, ["a", "b"]), title="t", description="d")
    assert text.count("http") == 1  # its namespace
    assert "<script" not in text
    assert "url(" not in text


def test_everything_lies_within_its_frame():
    root = root_of(np.ones((30, 30), np.int64), [f"class {n}" for n in range(30)])
    width, height = float(root.get("width")), float(root.get("height"))
    for rect in root.iter(f"{SVG}rect"):
        assert float(rect.get("x", 0)) + float(rect.get("width")) <= width
        assert float(rect.get("y", 0)) + float(rect.get("height")) <= height


def test_more_clients_than_anyone_looks_at_are_counted():
    root = root_of(np.ones((MOST_ROWS + 3, 2), np.int64))
    assert len({rect.get("y") for rect in parts_of(root)}) == MOST_ROWS
    assert "and 3 more clients" in [text.text for text in root.iter(f"{SVG}text")]
