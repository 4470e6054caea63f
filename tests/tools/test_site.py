"""The check of the built site refuses what comes from another host, and nothing else."""

import itertools
import re
import sys
from pathlib import Path

import pytest

from jali import ckks, tfhe
from jali._core.array import Encrypted

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import check_site  # noqa: E402

HOST = "//cdn.example.org"


@pytest.mark.parametrize(
    ("file", "text", "bad"),
    [
        (
            "a.html",
            '<script src="_static/x.js"></script><a href="https://example.org/">there</a>',
            False,
        ),
        ("a.html", f'<script defer src="https:{HOST}/mathjax.js"></script>', True),
        ("a.html", f"<img alt='x' src='{HOST}/x.png'>", True),
        ("a.html", f'<link rel="stylesheet" href="https:{HOST}/x.css" />', True),
        ("a.html", f'<link href="https:{HOST}/x.woff2" as="font" rel="preload">', True),
        ("a.html", '<link rel="canonical" href="https://example.org/a.html">', False),
        ("a.css", f"@font-face {{ src: url(https:{HOST}/x.woff2) }}", True),
        ("a.css", "a { background: url(../x.png) }", False),
    ],
)
def test_what_a_page_loads(tmp_path: Path, file: str, text: str, bad: bool) -> None:
    (tmp_path / "index.html").write_text("<p>nothing</p>")
    (tmp_path / file).write_text(text)
    assert bool(list(check_site.check(tmp_path))) == bad


def test_a_folder_without_pages_is_no_site(tmp_path: Path) -> None:
    assert list(check_site.check(tmp_path))


def test_the_reference_has_what_arrays_inherit() -> None:
    """The methods of Shaped are those of EncryptedArray. What Encrypted and Python's classes have
    is left out."""
    page = (ROOT / "docs/_templates/autosummary/class.rst").read_text()
    (line,) = (line for line in page.splitlines() if ":inherited-members:" in line)
    ends = set(line.split(":inherited-members:")[1].replace(",", " ").split())
    for kind in (ckks.EncryptedArray, tfhe.EncryptedArray, tfhe.EncryptedIntegers):
        shown = list(itertools.takewhile(lambda base: base.__name__ not in ends, kind.__mro__))
        assert any("reshape" in vars(base) for base in shown) and Encrypted not in shown


def test_pages_link_to_pages_that_the_site_has() -> None:
    """Sphinx warns of links to Markdown files that are missing or outside docs/, and the site is
    built without warnings."""
    docs = ROOT / "docs"
    wrong, links = [], 0
    for page in sorted(docs.rglob("*.md")):
        if (
            page == docs / "README.md" or "generated" in page.parts
        ):  # these are not of the site, or made by its build
            continue
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)#\s:]+\.md)(?:#[^)]*)?\)", text):
            links += 1
            there = (page.parent / target).resolve()
            if not there.is_file() or not there.is_relative_to(docs):
                wrong.append(f"{page.relative_to(ROOT)}: {target}")
    assert links > 100 and not wrong, wrong
