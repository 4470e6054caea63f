"""The picture of the layers and the walk through the files agree with the tree."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import check_layers  # noqa: E402
import draw_house  # noqa: E402

ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
WALK = re.compile(r"<!-- walk: (?!end)(.*?) -->\n(.*?)<!-- walk: end -->", re.DOTALL)


def test_the_picture_is_fresh() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "draw_house.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_room_that_is_added_changes_the_picture(tmp_path: Path) -> None:
    row = "| {} | `{}/` | what it holds |\n"
    for room in ("base", "ring"):
        (tmp_path / "src" / "jali" / room).mkdir(parents=True)
    contributing = tmp_path / "CONTRIBUTING.md"
    contributing.write_text(row.format(0, "base") + row.format(3, "ring"))
    before = draw_house.draw(tmp_path)
    assert "ring/" in before and "lwe/" not in before
    (tmp_path / "src" / "jali" / "lwe").mkdir()
    contributing.write_text(contributing.read_text() + row.format(5, "lwe"))
    assert "lwe/" in draw_house.draw(tmp_path)


def test_the_table_of_contributing_has_the_layers_of_the_check() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    written = {m["room"]: int(m["number"]) for m in draw_house.TABLE_ROW.finditer(text)}
    here = {r: n for r, n in check_layers.ROOMS.items() if (ROOT / "src" / "jali" / r).is_dir()}
    assert {room: written.get(room) for room in here} == here


def test_the_table_of_the_compiler_has_the_rooms_of_the_check() -> None:
    table = ARCHITECTURE.split("<!-- rooms: compiler -->")[1].split("<!-- rooms: end -->")[0]
    rows = re.findall(r"^\| (\d+) \| `([\w./]+)` \|", table, re.MULTILINE)
    compiler = ROOT / "python" / "jali" / "compiler"
    assert all((compiler / room).exists() for _, room in rows)
    written = {room.removesuffix("/").removesuffix(".py"): int(number) for number, room in rows}
    assert written == check_layers.COMPILER


def test_every_file_of_the_walks_exists() -> None:
    walks = dict(WALK.findall(ARCHITECTURE))
    assert {"product", "rotation", "compile"} <= set(walks)
    for name, walk in walks.items():
        files = re.findall(r"`((?:src|python)/[^`]+)`", walk)
        assert files, name
        for file in files:
            assert (ROOT / file).is_file(), f"docs/architecture.md, {name}: {file}"
