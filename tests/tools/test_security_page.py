"""What docs/security.md says of TFHE names the tests that would fail if it were false. They must
exist."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "security.md"
KINDS = {".py", ".cpp", ".h", ".cu", ".cmake"}


def names() -> list[str]:
    return re.findall(r"\S+", " ".join(re.findall(r"<!-- held by: (.*?) -->", PAGE.read_text())))


def test_every_test_that_the_page_names_exists() -> None:
    files = [f for f in (ROOT / "tests").rglob("*") if f.suffix in KINDS and f != Path(__file__)]
    text = "\n".join(f.read_text() + "\n" + f.stem for f in files)
    defined = set(re.findall(r"\w+", text))
    assert len(names()) > 40
    assert [name for name in names() if name not in defined] == []


def test_every_paragraph_on_tfhe_names_its_tests() -> None:
    """From a heading to the next, whatever speaks of TFHE ends with such a list."""
    section = (
        PAGE.read_text()
        .split("## Exact results, and look-ups that fail: TFHE")[1]
        .split("\n## ")[0]
    )
    prose = [
        part for part in re.sub(r"```.*?```", "", section, flags=re.S).split("\n\n") if part.strip()
    ]
    without = [p for p in prose if "held by" not in p and not p.rstrip().endswith("Therefore:")]
    assert without == []
