"""The list of decisions names each of them."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import index_decisions  # noqa: E402


def run(root: Path, monkeypatch: pytest.MonkeyPatch, *options: str) -> int:
    monkeypatch.setattr(sys, "argv", ["index_decisions.py", *options])
    return index_decisions.main(root)


def test_the_list_is_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(ROOT, monkeypatch, "--check") == 0, "run python tools/index_decisions.py"
    text = (ROOT / index_decisions.PAGE).read_text(encoding="utf-8")
    files = sorted((ROOT / index_decisions.FOLDER).iterdir())
    assert len(files) > 50 and all(f"(../decisions/{file.name})" in text for file in files)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two decisions and their list."""
    for folder in ("docs/decisions", "docs/development"):
        (tmp_path / folder).mkdir(parents=True)
    for number in ("0001", "0003"):
        name = tmp_path / "docs" / "decisions" / f"{number}-some.md"
        name.write_text(f"# {number}: some choice\n\nWhy.\n")
    assert run(tmp_path, monkeypatch) == 0 and run(tmp_path, monkeypatch, "--check") == 0
    return tmp_path


def test_a_decision_that_is_missing_is_found(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tree / "docs/decisions/0002-other.md").write_text("# 0002: another choice\n")
    assert run(tree, monkeypatch, "--check") == 1
    assert run(tree, monkeypatch) == 0
    lines = (tree / index_decisions.PAGE).read_text().splitlines()
    assert lines[-2] == "| [0002](../decisions/0002-other.md) | Another choice |"


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("0004-wrong.md", "# 0005: another number than the file"),
        ("0004-untitled.md", "no title"),
        ("0003-twice.md", "# 0003: a number that is taken"),
    ],
)
def test_wrong_titles_and_numbers_are_refused(
    tree: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    first: str,
) -> None:
    before = (tree / index_decisions.PAGE).read_text()
    (tree / "docs/decisions" / name).write_text(first + "\n")
    assert run(tree, monkeypatch) == 1 and run(tree, monkeypatch, "--check") == 1
    assert (tree / index_decisions.PAGE).read_text() == before
    assert name[:4] in capsys.readouterr().out
