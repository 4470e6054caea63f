#!/usr/bin/env python3
"""Runs the code blocks of Markdown files and the scripts of examples/.

```python  blocks of one file run in order in one namespace.
```cpp     each block is compiled against the library and, if it has a main, linked and run.
```bash    runs only after the comment line  <!-- docs: run -->.
A comment line  <!-- docs: skip REASON -->  before a block leaves it out; the reason is printed.

Usage: tools/run_docs.py [--build FOLDER] FILE_OR_FOLDER... The exit status is 1 if anything fails.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(
    r"^(?:<!-- docs: (?P<mark>run|skip)(?P<reason>[^\n]*?) ?-->\n+)?```(?P<language>python|cpp|bash)\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
TIMEOUT_S = 300


@dataclass
class Task:
    name: str  # as it is printed: file, or file:line
    language: str
    code: str


def tasks_of(file: Path, notes: list[str]) -> Iterator[Task]:
    name = os.path.relpath(file, ROOT)
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".py":
        yield Task(name, "python", text)
        return
    python = ""
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start("code")) + 1
        if block["mark"] == "skip":
            notes.append(f"skipped {name}:{line}:{block['reason']}")
        elif block["language"] == "python":
            # Empty lines are added before it, so that a traceback names the line of the document.
            python += "\n" * (line - 1 - python.count("\n")) + block["code"]
        elif block["language"] == "cpp" or block["mark"] == "run":
            yield Task(f"{name}:{line}", block["language"], block["code"])
    if python:
        yield Task(name, "python", python)


def command_of(task: Task, folder: Path, build: Path) -> str:
    """A shell command that runs the task in `folder`."""
    if task.language == "bash":
        return task.code
    if task.name.endswith(".py"):  # in its place, because it may read files beside it
        return f"{shlex.quote(sys.executable)} {shlex.quote(str(ROOT / task.name))}"
    if task.language == "python":
        script = folder / (Path(task.name).stem + ".py")
        script.write_text(task.code, encoding="utf-8")
        return f"{shlex.quote(sys.executable)} {script}"
    source = folder / "block.cpp"
    source.write_text(task.code, encoding="utf-8")
    compile_ = f"{os.environ.get('CXX', 'c++')} -std=c++20 -O1 -I {shlex.quote(str(ROOT / 'src'))} {source}"
    if not re.search(r"\bmain\s*\(", task.code):
        return f"{compile_} -fsyntax-only"
    libraries = " ".join(shlex.quote(str(p)) for p in sorted(build.rglob("libjali_*.a")))
    group = f"-Wl,--start-group {libraries} -Wl,--end-group -pthread"
    return f"{compile_} -o {folder / 'block'} {group}\n{folder / 'block'}"


def run(task: Task, build: Path) -> str:
    """Returns "" if the task passed, otherwise what it printed."""
    with tempfile.TemporaryDirectory() as name:
        environment = dict(os.environ)
        environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
        seeds = build / "tests" / "libjali_test_entropy.so"
        if seeds.exists():  # keys, noise and inputs are the same in every run (tests/seeds)
            environment["LD_PRELOAD"], environment["PYTHONHASHSEED"] = str(seeds), "0"
            environment["JALI_TEST_ENTROPY"] = str(zlib.crc32(task.name.partition(":")[0].encode()))
        command = command_of(task, Path(name), build)
        try:
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", command],
                cwd=name,
                env=environment,
                capture_output=True,
                text=True,
                timeout=TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"ran longer than {TIMEOUT_S} s"
        return (
            ""
            if done.returncode == 0
            else f"{done.stdout}{done.stderr}\nexit status {done.returncode}"
        )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument(
        "--build", type=Path, default=ROOT / "build" / "release", help="where the libraries lie"
    )
    options = parser.parse_args()

    notes: list[str] = []
    tasks: list[Task] = []
    for path in options.paths:
        files = sorted([*path.rglob("*.md"), *path.rglob("[0-9]*.py")]) if path.is_dir() else [path]
        for file in files:
            tasks += tasks_of(file.resolve(), notes)

    def timed(task: Task) -> tuple[Task, str, float]:
        start = time.monotonic()
        return task, run(task, options.build.resolve()), time.monotonic() - start

    failures = 0
    with ThreadPoolExecutor(max(1, (os.cpu_count() or 2) // 2)) as pool:
        for task, output, seconds in pool.map(timed, tasks):
            failures += bool(output)
            print(
                f"{'FAILED' if output else 'ok':6} {seconds:6.1f} s  {task.language:6} {task.name}",
                flush=True,
            )
            if output:
                print(output)
    print("\n".join(notes))
    print(f"docs: {len(tasks) - failures} ran, {failures} failed, {len(notes)} skipped")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
