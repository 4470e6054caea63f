"""`make test` takes all seeds from names, and what fails with a fresh seed can be repeated and
kept."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from test_make import commands

ROOT = Path(__file__).resolve().parent.parent.parent
LIBRARY = Path(os.environ.get("LD_PRELOAD", ""))
preloaded = pytest.mark.skipif(
    LIBRARY.name != "libjali_test_entropy.so", reason="the library of tests/seeds is not preloaded"
)
DRAW = """
import os
from jali import ckks
params = ckks.Params.create(depth=1)
draw = lambda: ckks.Client(params, threads=1).secret_to_bytes()[-40:].hex()
print(draw(), draw(), flush=True)
if os.fork() == 0:
    print(draw(), flush=True)
    os._exit(0)
os.wait()
print(draw())
"""


def draws(**environment: str) -> list[str]:
    """Parts of four secret keys: two, that of a forked process, and another of the first
    process."""
    done = subprocess.run(
        [sys.executable, "-c", DRAW],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


@preloaded
def test_a_seed_decides_for_keys_and_no_two_are_alike() -> None:
    first = draws(JALI_TEST_ENTROPY="5")
    assert len(set(first)) == 4
    assert draws(JALI_TEST_ENTROPY="5") == first
    assert not set(first) & set(draws(JALI_TEST_ENTROPY="6"))


@preloaded
def test_processes_without_a_seed_draw_from_the_system() -> None:
    assert len({*draws(), *draws()}) == 8


def test_fresh_seeds_are_for_make_check() -> None:
    for target, fresh in (("test", False), ("check", True)):
        for check in ("cpp-test", "py-test"):
            assert ("JALI_FRESH_SEEDS" in commands(target)[check]) == fresh
    if sys.platform == "linux":
        assert "LD_PRELOAD=" in commands("test")["py-test"]


def test_no_test_draws_a_seed_of_its_own() -> None:
    drawn = re.compile(r"std::random_device|secrets\.(randbits|token)|/dev/u?random")
    for file in (ROOT / "tests").rglob("*"):
        if file.suffix not in (".cpp", ".h", ".cu", ".py") or file == Path(__file__).resolve():
            continue
        if file.parent.name in ("seeds", "timing") or file.name == "seeds.py":
            continue  # the seeds themselves; and statistics of times, which only `make check` runs
        assert not drawn.search(file.read_text(encoding="utf-8")), file


def test_a_failure_with_a_fresh_seed_is_written_down_and_can_be_kept(tmp_path: Path) -> None:
    here = ROOT / "tests" / "python"
    folder = tmp_path / "tests" / "python"
    folder.mkdir(parents=True)
    (folder / "seeds.py").write_text((here / "seeds.py").read_text())
    (folder / "conftest.py").write_text((here / "conftest.py").read_text())
    (folder / "test_chance.py").write_text("def test_chance(rng):\n    assert rng.random() < 0\n")
    kept = tmp_path / "tests" / "kept_seeds.txt"
    kept.write_text("# none yet\n")

    # `make check` sets these for its own tests.
    own = {k: v for k, v in os.environ.items() if k not in ("JALI_FRESH_SEEDS", "JALI_FINDINGS")}

    def run(**environment: str) -> str:
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "tests"],
            cwd=tmp_path,
            env={**own, **environment},
            capture_output=True,
            text=True,
            check=False,
        ).stdout

    assert (
        re.findall(r"JALI_TEST_SEED=\d+", run()) == re.findall(r"JALI_TEST_SEED=\d+", run()) != []
    )
    assert not (tmp_path / "build").exists()
    fresh = run(JALI_FRESH_SEEDS="1")
    seed = re.findall(r"JALI_TEST_SEED=(\d+)", fresh)[0]
    line = f"pytest test_chance.py::test_chance {seed}\n"
    assert (tmp_path / "build" / "findings" / "seeds.txt").read_text() == line
    assert f"JALI_TEST_SEED={seed}" not in run()
    kept.write_text(line)
    assert f"JALI_TEST_SEED={seed}" in run()
