"""`make test`, `make instrumented` and `make check` run what CONTRIBUTING.md says, and CI runs
`make test`."""

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


def commands(target: str) -> dict[str, str]:
    """For each check that the target runs, its command; for the CUDA check, also for which GPUs it
    compiles."""
    done = subprocess.run(
        ["make", "-n", target], cwd=ROOT, capture_output=True, text=True, check=True
    )
    kept = re.findall(r"\{ (.+); \} 2>&1 \| tee build/logs/([a-z-]+)\.txt", done.stdout)
    compiled = re.findall(r"-DJALI_CUDA_ARCHITECTURES=\S+", done.stdout)
    return {name: command + "".join(compiled * (name == "cuda")) for command, name in kept}


def documented() -> dict[str, tuple[str, str]]:
    """For each check in CONTRIBUTING.md's table, its share on every change and of `make check`."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = text.split("| check |")[1].split("\n\n")[0]
    rows = re.findall(r"^\| `([a-z-]+)` \| (.+?) \| (.+?) \|$", table, re.MULTILINE)
    return {name: (brief, whole) for name, brief, whole in rows}


def target_of(on_every_change: str) -> str:
    """The target that runs a check on every change."""
    found = re.match(r"by `make ([a-z]+)`: ", on_every_change)
    return found[1] if found else "only in make check" if on_every_change == "none" else "test"


@pytest.mark.parametrize("target", ["test", "instrumented", "check"])
def test_every_documented_check_runs_and_no_other(target: str) -> None:
    table = documented()
    expected = [name for name in table if target in ("check", target_of(table[name][0]))]
    assert sorted(commands(target)) == sorted(expected)


def test_packages_of_the_caller_do_not_get_into_checks(tmp_path: Path) -> None:
    """PYTHONPATH of the shell would have them test another tree."""
    more = tmp_path / "more.mk"
    more.write_text(f"include {ROOT}/Makefile\nshown:\n\t@echo [$${{PYTHONPATH-}}]\n")
    done = subprocess.run(
        ["make", "-C", str(ROOT), "-f", str(more), "shown"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "[]" in done.stdout.splitlines()


def test_ci_on_github_runs_both_targets() -> None:
    jobs = (ROOT / ".github/workflows/tests.yml").read_text(encoding="utf-8")
    assert "target: [test, instrumented]" in jobs and "make ${{ matrix.target }}" in jobs


def test_shares_differ_where_the_table_says_so() -> None:
    brief, whole = commands("test") | commands("instrumented"), commands("check")
    for name, (in_test, in_check) in documented().items():
        if in_test == "none":
            continue
        assert (in_test == in_check) == (brief[name] == whole[name]), name
        if name in ("sanitize", "tsan", "cpp-test", "py-test"):
            assert whole[name] == commands(name)[name], f"make {name} alone takes the whole"
    assert " -LE long" in brief["cpp-test"] and "-m 'not long'" in brief["py-test"]
    for name, command in whole.items():  # tests labelled long only repeat others for the sanitizers
        assert ("-LE long" in command) == (name in ("sanitize", "tsan")), name
        assert "not long" not in command, name
    assert "without-clang-tidy" in brief["lint"] and "without" not in whole["lint"]
    assert "ARCHITECTURES=80-virtual;90-real" in whole["cuda"]


def stubs(folder: Path, **scripts: str) -> None:
    folder.mkdir()
    for name, text in scripts.items():
        (folder / name.replace("_", "-")).write_text("#!/bin/bash\n" + text)
        (folder / name.replace("_", "-")).chmod(0o755)


@pytest.mark.parametrize(
    ("arguments", "clang", "runs", "installs"),
    [
        ([], 0, "test", set()),
        ([], 1, "test", set()),
        (["instrumented"], 0, "instrumented", set()),
        (["instrumented"], 1, "instrumented", {"clang", "libclang-rt-dev"}),
        (["check"], 0, "check", {"valgrind"}),
    ],
)
def test_ci_runs_make_test_and_installs_what_it_needs(
    tmp_path: Path, arguments: list[str], clang: int, runs: str, installs: set[str]
) -> None:
    # The PATH has stubs and what the shell itself needs. The stub of clang may have no sanitizers.
    stubs(
        tmp_path / "bin",
        make='echo "make $*"\n',
        apt_get='echo "apt-get $*"\n',
        id="echo 0\n",
        ccache="",
        **{
            "c++": "",
            "clang++": f"while read -r _; do :; done\nexit {clang}\n",
        },  # it reads the program
    )
    for tool in ("bash", "dirname"):
        (tmp_path / "bin" / tool).symlink_to(f"/bin/{tool}")
    done = subprocess.run(
        ["/bin/bash", str(ROOT / ".ci" / "run"), *arguments],
        env={"PATH": str(tmp_path / "bin")},
        capture_output=True,
        text=True,
        check=True,
    )
    lines = done.stdout.splitlines()
    assert lines[-1] == f"make {runs} WERROR=ON"
    installed = {p for line in lines if " install " in line for p in line.split()[5:]}
    assert installed - {"libgtest-dev", "postgresql"} == installs  # which a machine may have


@pytest.mark.parametrize(
    ("status", "log", "says"),
    [
        (0, "[  PASSED  ] 5 tests.\n[  PASSED  ] 1 test.\n", "6 tests passed, 0 skipped"),
        (
            0,
            "[  PASSED  ] 0 tests.\n[  SKIPPED ] 3 tests, listed below:\n[  SKIPPED ] A.B\n",
            "0 tests passed, 3 skipped",
        ),
        (0, "nothing ran\n", None),
        (8, "[  PASSED  ] 5 tests.\n", None),
    ],
)
def test_ctest_counts_tests_and_fails_where_one_does(
    tmp_path: Path, status: int, log: str, says: str | None
) -> None:
    stubs(tmp_path / "bin", ctest=f"exit {status}\n")
    file = tmp_path / "Testing" / "Temporary" / "LastTest.log"
    file.parent.mkdir(parents=True)
    file.write_text(log)
    done = subprocess.run(
        ["bash", str(ROOT / "tools" / "ctest.sh"), str(tmp_path), "2"],
        env={"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode == 0) == (says is not None)
    assert says is None or done.stdout.splitlines()[-1] == says


def test_thread_sanitizer_sees_every_program_that_starts_threads() -> None:
    threaded = set()
    for lists in (ROOT / "tests").rglob("CMakeLists.txt"):
        if lists.parent.name == "gpu":
            continue  # ThreadSanitizer does not know the driver
        programs = re.findall(r"jali_test\((\w+)([^)]*)\)", lists.read_text(encoding="utf-8"))
        for name, rest in programs:
            for source in re.findall(r"\w+\.cpp", rest):
                if not (lists.parent / source).exists():
                    continue  # a source of tools/, which starts none
                text = (lists.parent / source).read_text(encoding="utf-8")
                if re.search(r"std::(j?thread|async)\b", text):
                    threaded.add(name)
    assert threaded >= {"backend_cpu", "device"}
    chosen = re.search(r"-R '\^\((.+)\)\[", commands("check")["tsan"])
    assert chosen and threaded <= set(chosen[1].split("|"))


def test_every_part_of_a_long_filter_names_tests() -> None:
    """If a part of a filter named no test, its long tests would run in `make test` and nobody would
    notice."""
    for lists in (ROOT / "tests").rglob("CMakeLists.txt"):
        sources = "".join(f.read_text(encoding="utf-8") for f in lists.parent.glob("*.cpp"))
        tests = re.findall(r"^TEST(?:_[PF])?\((\w+),\s*(\w+)\)", sources, re.MULTILINE)
        calls = re.findall(r"jali_test\(([^)]+)", lists.read_text(encoding="utf-8"))
        for _, patterns in (call.split("LONG") for call in calls if "LONG" in call):
            for part in (
                re.split("SOURCES|DEPS|SHARDS|AS_RELEASED", patterns)[0].replace('"', "").split()
            ):
                # Parametrised tests are named Instance/Suite.Name/parameter.
                pattern = re.escape(part).replace(r"\*", ".*")
                parameter = part.rsplit("/", 1)[1] if part.count("/") == 2 else "any"
                names = [f"{i}{suite}.{name}{p}" for suite, name in tests
                         for i, p in (("", ""), ("Any/", f"/{parameter}"))]  # fmt: skip
                assert any(re.fullmatch(pattern, name) for name in names), (lists, part)
