"""The pictures of the documents are those that the library and bench/results give, every page that
shows one says in words what it shows, and no picture is left over."""

import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import draw_pictures  # noqa: E402

SHOWN = re.compile(r"!\[([^\]]*)\]\(([^)\s]+\.(?:png|svg))\)")


def check(monkeypatch: pytest.MonkeyPatch, *names: str) -> int:
    monkeypatch.setattr(sys, "argv", ["draw_pictures.py", "--check", *names])
    return draw_pictures.main()


def test_what_crosses_the_wire_is_what_programs_send(monkeypatch: pytest.MonkeyPatch) -> None:
    assert check(monkeypatch, "wire") == 0


def test_the_noise_is_what_the_library_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    assert check(monkeypatch, "noise") == 0


def test_the_times_are_those_of_the_records(monkeypatch: pytest.MonkeyPatch) -> None:
    if not draw_pictures.RESULTS.is_dir():
        pytest.skip("needs bench/results")
    assert check(monkeypatch, "batch") == 0
    rows = draw_pictures.rows_of
    monkeypatch.setattr(
        draw_pictures,
        "rows_of",
        lambda name: [{**row, "ms": 2 * row.get("ms", 1)} for row in rows(name)],
    )
    assert check(monkeypatch, "batch") == 1


@pytest.mark.long
def test_the_plan_is_that_of_the_program() -> None:
    """Its arrays and levels; how matplotlib places a line differs between its versions."""
    program = draw_pictures.network()
    picture = (ROOT / "docs" / "plan.svg").read_text(encoding="utf-8")
    words = [node.text for node in ElementTree.fromstring(picture).iter() if node.text]
    assert repr(program.params) in words and "1 array is bootstrapped" in words
    assert {line.split(":")[0].strip() for line in program.explain("levels").splitlines()} >= {
        word for word in words if word.startswith(("scale_", "sigmoid"))
    }


def test_every_picture_is_shown_and_told_in_words() -> None:
    pages = [
        ROOT / "README.md",
        *(page for page in (ROOT / "docs").rglob("*.md") if "generated" not in page.parts),
    ]
    shown = set()
    for page in pages:
        for words, target in SHOWN.findall(page.read_text(encoding="utf-8")):
            assert len(words.split()) >= 5, f"{page}: {target}: say what it shows"
            shown.add((page.parent / target).resolve())
    there = {path for path in (ROOT / "docs").glob("*") if path.suffix in (".png", ".svg")}
    assert shown == there


@pytest.mark.parametrize("name", [*draw_pictures.PICTURES, "house"])
def test_pictures_are_readable_in_the_dark(name: str) -> None:
    """They have a white ground of their own, and say what they show to those who do not see
    them."""
    picture = ElementTree.fromstring((ROOT / "docs" / f"{name}.svg").read_text(encoding="utf-8"))
    assert picture.attrib["role"] == "img" and picture.attrib["aria-label"]
    ground = next(node for node in picture.iter() if node.tag.split("}")[1] in ("rect", "path"))
    assert "#ffffff" in ground.attrib.get("fill", "") + ground.attrib.get("style", "")
