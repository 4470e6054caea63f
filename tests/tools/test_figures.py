"""The README and docs/performance.md show the figures of bench/results and no others."""

import re
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

import report  # noqa: E402

from jali.demo import trees  # noqa: E402

if not report.RESULTS.is_dir():  # an unpacked source archive has no records
    pytest.skip("needs bench/results", allow_module_level=True)

PAGES = tuple(report.TABLES)
RECORDS = [record for name in report.RECORDS for record in report.load(name)]
FIGURE = re.compile(
    r"\d\s*(?:(?:ns|us|µs|ms|s|seconds?|minutes?|hours?|times|[kMG]i?B)\b|%)|\d/s\b"
)
COMMIT = re.compile(r"\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}\b")
DATE = re.compile(r"\b20\d\d-\d\d-\d\d\b")


def outside(text: str) -> str:
    """A page without its table and without programs."""
    before, rest = text.split(report.BEGIN)
    return re.sub(r"```.*?```", "", before + rest.split(report.END)[1], flags=re.DOTALL)


def with_check(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["report.py", "--check"])
    return report.main()


def test_the_tables_are_those_of_the_records(monkeypatch: pytest.MonkeyPatch) -> None:
    assert with_check(monkeypatch) == 0


@pytest.mark.parametrize("page", PAGES)
def test_a_figure_that_is_changed_by_hand_is_found(
    page: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in PAGES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    monkeypatch.setattr(report, "ROOT", tmp_path)
    text = (tmp_path / page).read_text(encoding="utf-8")
    before, table = text.split(report.BEGIN)
    (tmp_path / page).write_text(before + report.BEGIN + re.sub(r"\d ms", "0 us", table, count=1))
    assert with_check(monkeypatch) == 1
    assert page in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["report.py"])
    assert report.main() == 0 and with_check(monkeypatch) == 0
    assert (tmp_path / page).read_text(encoding="utf-8") == text


def test_figures_follow_their_records() -> None:
    """Where every measured time is twice as long, so is every time of the table."""

    def twice(value: object, name: str = "") -> object:
        if isinstance(value, dict):
            return {key: twice(held, key) for key, held in value.items()}
        timed = name.endswith(("_s", "_seconds")) or name.startswith("seconds") or name == "ms"
        return value * 2 if timed and isinstance(value, float) else value

    slower = [twice(record) for record in RECORDS]
    for (task, seconds, *_), (same, double, *_) in zip(
        report.short_rows(RECORDS), report.short_rows(slower), strict=True
    ):
        assert same == task and double == pytest.approx(2 * seconds, rel=1e-12)
    old, new = (report.long_table(r).splitlines()[2:] for r in (RECORDS, slower))
    assert len(old) == len(new) > 30
    # Rows of make gpu-check hold their value under the name of the quantity, which may be a rate.
    assert all(a != b for a, b in zip(old, new, strict=True) if "h100-2026-11-22-table" not in a)


def test_the_readme_has_six_figures_with_their_machines() -> None:
    rows = list(report.short_rows(RECORDS))
    assert len(rows) == 6
    for task, seconds, record, result in rows:
        assert task and result and 0 < seconds < 10
        assert re.fullmatch(r"NVIDIA [HAB]\d+|.+, 1 thread", report.machine(record))
    assert f"by {trees.TREES} boosted trees" in rows[2][0]
    (peer,) = re.findall(r": ([\d.]+) ms$", rows[5][3])
    name = "beside multiply_relinearise_rescale"
    most = max(r["params"]["log_q"] for r in RECORDS if r.get("name") == name)
    others = [
        r["peer_s"] for r in RECORDS if r.get("name") == name and r["params"]["log_q"] == most
    ]
    assert len(others) >= 2 and float(peer) == pytest.approx(1e3 * min(others), rel=1e-2)


def test_every_row_names_a_file_and_a_commit() -> None:
    for line in report.long_table(RECORDS).splitlines()[2:]:
        name, commit = re.fullmatch(r".* \| `([^`|]+)`, ([0-9a-f]{7,12}) \|", line).groups()
        assert (report.RESULTS / f"{name}.jsonl").is_file() and commit


def test_the_readme_is_for_newcomers() -> None:
    """No figure outside the table, no commits, no dates; a page that fits on two screens."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for pattern in (FIGURE, COMMIT, DATE):
        assert not pattern.findall(outside(text))
    assert not COMMIT.findall(text) and not DATE.findall(text)
    lines = text.splitlines()
    assert len(lines) <= 118 and max(map(len, lines)) <= 100
    assert len(re.findall(r"^```python$", text, re.M)) == 3
    assert len(re.findall(r"^\d+\. ", text, re.M)) == 10
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert (ROOT / target).exists(), target


def test_what_counts_as_a_figure_or_a_commit() -> None:
    for text in ("takes 12.5 ms", "3 times as fast", "99 % of them", "3459 images; 12/s", "8 GB"):
        assert FIGURE.search(text), text
    for text in ("128-bit secure", "below 2^-128", "Python 3.11 or later", "ten lines"):
        assert not FIGURE.search(text), text
    assert COMMIT.search("commit e3f168a") and DATE.search("of 2026-11-22")
    assert not COMMIT.search("defaced a facade, 1234567 times")
