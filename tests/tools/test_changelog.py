"""The changelog is a page for each version, with the sentences of today above it; the long list is
the diary."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
VERSIONS = re.split(r"^## ", TEXT, flags=re.MULTILINE)[1:]


def sections(version: str) -> list[str]:
    return re.findall(r"^### (.*)$", version, re.MULTILINE)


def test_today_is_above_the_version() -> None:
    names = [version.partition("\n")[0] for version in VERSIONS]
    cmake = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    (built,) = re.findall(
        r"project\(jali VERSION ([0-9.]+)", cmake
    )  # pyproject.toml reads it there, too
    assert names[0] == "Unreleased" and names[1] == built
    assert sections(VERSIONS[0])[:3] == ["Added", "Changed", "Fixed"]


def test_a_version_is_a_page() -> None:
    for version in VERSIONS[1:]:
        lines = version.splitlines()
        assert sections(version) == ["Added", "Changed", "Fixed", "Security"]
        # A merge may put a sentence of today at the end of the file: move it up, under Unreleased.
        assert len(lines) <= 120 and max(map(len, lines)) <= 100
        assert lines[-1] == "" or lines[-1].endswith("[docs/security.md](docs/security.md).")


def starts(text: str) -> set[str]:
    """The first words of every entry, without the folders of links."""
    return {re.sub(r"\]\([^)]*\)", "]", line)[:60] for line in re.findall(r"^- .*$", text, re.M)}


def test_entries_are_in_the_changelog_or_in_the_diary() -> None:
    """A merge may bring back the list that is the diary: take such entries out of the changelog."""
    diary = starts((ROOT / "docs" / "development" / "diary.md").read_text(encoding="utf-8"))
    assert len(diary) > 250 and not diary & starts(TEXT)


def test_what_the_changelog_names_exists() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", TEXT):
        assert (ROOT / target).is_file(), target
    diary = ROOT / "docs" / "development" / "diary.md"
    for target in re.findall(r"\]\(([^)#]+)\)", diary.read_text(encoding="utf-8")):
        assert (diary.parent / target).is_file(), target


def test_every_advisory_is_named() -> None:
    advisories = re.findall(r"^\*\*(JALI-\d+-\d+)", (ROOT / "SECURITY.md").read_text(), re.M)
    assert len(advisories) >= 3 and all(name in TEXT for name in advisories)
