"""cmake/commit.cmake: the commit that a build names is that of its sources, and a build of the same
sources compiles nothing again."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "cmake" / "commit.cmake"


def run(*words: str, at: Path) -> str:
    done = subprocess.run(words, cwd=at, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def header(source: Path, commit: str = "") -> str:
    """What the header says."""
    file = source.parent / f"{source.name}.h"
    words = [f"-DSOURCE={source}", f"-DHEADER={file}", f"-DCOMMIT={commit}", "-P", str(SCRIPT)]
    run("cmake", *words, at=source)
    return file.read_text().removeprefix('#define JALI_COMMIT "').removesuffix('"\n')


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for program in ("git", "cmake"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not here")
    source = tmp_path / "source"
    source.mkdir()
    (source / "CMakeLists.txt").write_text("one\n")
    run("git", "init", "-q", at=source)
    run("git", "add", ".", at=source)
    who = ("-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false")
    run("git", *who, "commit", "-q", "--no-verify", "-m", "one", at=source)
    return source


def test_a_checkout_has_its_commit(checkout: Path) -> None:
    commit = run("git", "rev-parse", "--short=12", "HEAD", at=checkout)
    assert header(checkout) == commit
    (checkout / "CMakeLists.txt").write_text("two\n")
    assert header(checkout) == f"{commit}-dirty"
    assert header(checkout, "given") == "given"


def test_the_header_is_written_only_if_it_changes(checkout: Path) -> None:
    header(checkout)
    file = checkout.parent / f"{checkout.name}.h"
    before = file.stat().st_mtime_ns
    header(checkout)
    assert file.stat().st_mtime_ns == before


def test_sources_without_a_checkout_of_their_own_have_none(checkout: Path, tmp_path: Path) -> None:
    """Not those that were unpacked inside another project's checkout either."""
    unpacked = checkout / "vendor"
    unpacked.mkdir()
    (unpacked / "CMakeLists.txt").write_text("one\n")
    assert header(unpacked) == "unknown"
    alone = tmp_path / "alone"
    alone.mkdir()
    assert header(alone) == "unknown"
