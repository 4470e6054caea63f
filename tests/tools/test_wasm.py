"""The client of a compiled program as WebAssembly, under Node: tests/api/wasm. `make wasm` builds
what these tests need; without that they are skipped."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
TESTS = sorted((ROOT / "tests/api/wasm").glob("*.test.mjs"))
NEEDED = {
    "JALI_WASM": os.environ.get("JALI_WASM", str(ROOT / "build/wasm/client")),
    "JALI_PEER": os.environ.get("JALI_PEER", str(ROOT / "build/release/tests/api/wasm_peer")),
}


@pytest.mark.parametrize("file", TESTS, ids=lambda file: file.name.removesuffix(".test.mjs"))
def test_under_node(node: str, file: Path) -> None:
    done = subprocess.run(
        [node, "--test", "--test-reporter=spec", str(file)],
        env={
            **os.environ,
            **NEEDED,
            "JALI_SOURCE": str(ROOT),
            "JALI_VECTORS": str(ROOT / "vectors"),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_files_of_the_client_are_where_the_build_takes_them() -> None:
    """They have moved before, and only `make wasm` saw it."""
    text = (ROOT / "src/jali/api/wasm/CMakeLists.txt").read_text(encoding="utf-8")
    rooms = re.findall(r"^jali_of_room\((\S+) ([^)]+)\)", text, re.MULTILINE)
    files = [f"{room}/{name}.cpp" for room, names in rooms for name in names.split()]
    assert len(files) > 50
    assert not [file for file in files if not (ROOT / "src/jali" / file).exists()]


def missing() -> list[str]:
    """What the tests need and is not here."""
    return [path for path in NEEDED.values() if not Path(path).exists()] + (
        [] if shutil.which("node") else ["node"]
    )


@pytest.fixture
def node() -> str:
    """The path of Node. Skips the test if `make wasm` was not run."""
    if missing() and "JALI_WASM" not in os.environ:
        pytest.skip(f"`make wasm` was not run: {', '.join(missing())} is missing")
    assert not missing()
    return str(shutil.which("node"))


def blocks(language: str) -> list[str]:
    """The programs of the how-to in this language."""
    page = (ROOT / "docs/how-to/browser.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


def test_a_server_in_python_answers(node: str, tmp_path: Path) -> None:
    """The how-to's programs: the page's under Node, and the server's here."""
    server: dict[str, Any] = {}
    exec("\n".join(blocks("python")), server)
    for name in ("jali.mjs", "jali.wasm"):
        shutil.copy(Path(NEEDED["JALI_WASM"]) / name, tmp_path)
    (tmp_path / "manifest.jali").write_bytes(server["manifest"])

    def run(program: str) -> str:
        (tmp_path / "program.mjs").write_text(program, encoding="utf-8")
        command = [node, "program.mjs"]
        return subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout

    first, second = blocks("javascript")
    assert " keys, " in run(first)
    sent = [(tmp_path / f"{name}.jali").read_bytes() for name in ("keys", "request")]
    (tmp_path / "reply.jali").write_bytes(server["answer"](*sent))
    results = re.search(r"Float64Array\(3\) \[([^]]*)\]", run(second))
    assert results
    assert [float(x) for x in results[1].split(",")] == pytest.approx([1.125] * 3, abs=1e-3)


def test_there_are_tests() -> None:
    assert [file.name for file in TESTS] == [
        "documents.test.mjs",
        "exchange.test.mjs",
        "hostile.test.mjs",
        "interface.test.mjs",
    ]
