"""Every record of bench/results is named by a page or read by a program, and every record that a
page names exists."""

import fnmatch
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench" / "results"
WORD = re.compile(r"[\w*?-]+")  # a record's name, or a glob of names as programs write it
FILE = re.compile(r"(?<![\w*?-])([\w-]+)\.jsonl")
PLACES = ("README.md", "CHANGELOG.md", "bench", "docs", "hwmodel", "python", "tests", "tools")

if not RESULTS.is_dir():  # an unpacked source archive has no records
    pytest.skip("needs bench/results", allow_module_level=True)


def texts() -> Iterator[tuple[str, str]]:
    """(path, text) of every page and program that may name a record."""
    for place in PLACES:
        for path in [ROOT / place, *sorted((ROOT / place).rglob("*"))]:
            inner = path.relative_to(ROOT)
            if path.suffix in (".md", ".py", ".sh", ".toml") and "generated" not in inner.parts:
                yield inner.as_posix(), path.read_text(encoding="utf-8")


def unnamed(records: list[str], pages: list[str]) -> list[str]:
    """The records that no page names, also not by a glob."""
    words = {word for page in pages for word in WORD.findall(page) if "20" in word}
    globs = [word for word in words if "*" in word or "?" in word]
    return [
        record
        for record in records
        if record not in words and not any(fnmatch.fnmatch(record, glob) for glob in globs)
    ]


def test_every_record_is_named() -> None:
    records = [path.stem for path in sorted(RESULTS.glob("*.jsonl"))]
    pages = [text for _, text in texts()]
    assert len(records) > 50
    assert not unnamed(records, pages), "name the record in a page, or remove it"


def test_every_record_that_a_page_names_exists() -> None:
    missing = [
        f"{path}: {name}"
        for path, text in texts()
        if path.startswith(("docs/", "README"))
        for name in FILE.findall(text)
        if re.search(r"20\d\d-\d\d-\d\d", name) and not (RESULTS / f"{name}.jsonl").is_file()
    ]
    assert not missing


def test_a_record_that_nothing_names_is_found() -> None:
    records = ["h100-2026-11-22", "h100-2026-11-22-words", "rtl-2026-11-23"]
    assert unnamed(records, ["see `h100-2026-11-22-words.jsonl`", "glob('rtl-20*.jsonl')"]) == [
        "h100-2026-11-22"
    ]
