"""Runs the fuzzer of the Python package briefly, and checks that it leaves out nothing that is
public.

A longer run is JALI_FUZZ_SECONDS=60 python -m pytest tests/python/test_fuzz.py, or
tools/fuzz_python itself.
"""

from __future__ import annotations

import inspect
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from jali import ckks
from jali._core.refusals import is_refusal
from jali.ckks import explicit, functions

TOOLS = Path(__file__).resolve().parent.parent.parent / "tools"
sys.path.insert(0, str(TOOLS))

import fuzz_python  # noqa: E402

SECONDS = os.environ.get("JALI_FUZZ_SECONDS", "20")
DATA = {"Level", "Layout", "Trace", "BatchPoint"}  # they hold facts, and their methods take nothing


def public_methods(kind: type) -> set[str]:
    """The names, also of operators, that the class or a base class in jali defines."""
    inherited = {
        "__new__",
        "__doc__",
        "__module__",
        "__slots__",
        "__array_ufunc__",
        "__pandas_priority__",
        "__annotations__",
    }
    inherited |= {"__firstlineno__", "__static_attributes__"}
    return {
        name
        for base in kind.__mro__
        if base.__module__.startswith("jali")
        for name, member in vars(base).items()
        if not is_refusal(member)
        if name not in inherited and (not name.startswith("_") or name.startswith("__"))
    }


def uncovered() -> set[str]:
    """The public methods of jali.ckks that are missing in the fuzzer's lists."""
    named = fuzz_python.COVERED | set(fuzz_python.EXEMPT)
    out = set()
    for module in (ckks, explicit, functions):
        for name in module.__all__:
            kind = getattr(module, name)
            if not inspect.isclass(kind) or name in DATA or f"{name}.*" in named:
                continue
            out |= {f"{name}.{method}" for method in public_methods(kind)} - named
    return out


def test_every_public_method_is_fuzzed_or_says_why_not() -> None:
    assert uncovered() == set()


def test_a_method_that_is_new_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ckks.EncryptedArray, "cube", lambda self: self, raising=False)
    assert uncovered() == {"EncryptedArray.cube"}


def test_names_of_the_lists_exist() -> None:
    for name in fuzz_python.COVERED | set(fuzz_python.EXEMPT):
        owner, method = name.split(".")
        kind = next(
            (getattr(m, owner) for m in (ckks, explicit, functions) if hasattr(m, owner)), None
        )
        assert owner == "ckks" or kind is not None, name
        assert method == "*" or hasattr(ckks if owner == "ckks" else kind, method), name


def test_fields_lie_where_the_fuzzer_changes_them() -> None:
    params = ckks.Params.create(depth=1, log_n=10, security=0, name="insecure_fuzz")
    client = ckks.Client(params, threads=1)
    data = client.encrypt([[1.0, 2.0]] * 3, level=0, slots=8, batch=True).to_bytes()
    fields = {
        name: fuzz_python.field(data, fuzz_python.CIPHERTEXT, name)
        for name in fuzz_python.CIPHERTEXT
    }
    read = ckks.Ciphertext.from_bytes(data, params)
    assert fields["scale"] == read.scale and fields["message"] == 1.0
    shape = [fields[name] for name in ("level", "log_slots", "batch", "parts", "seeded", "length")]
    assert shape == [0, 3, 3, 2, 1, 2]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(TOOLS / "fuzz_python"), *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


def test_hostile_programs() -> None:
    """Hostile programs fail only with jali.Error. A failure prints the seed, the steps and the
    command to repeat them."""
    # The brief run tries the same programs each time; the longer one explores.
    seed = [] if "JALI_FUZZ_SECONDS" in os.environ else ["--seed", "1"]
    done = run("--seconds", SECONDS, *seed)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ok, seed" in done.stdout


@pytest.mark.parametrize("target", ["traces", "machines"])
def test_hostile_files_of_the_simulator(target: str) -> None:
    """Changed traces and machine files are refused with a sentence, or run to a report whose
    accounts close."""
    long = ["--seconds", SECONDS] if "JALI_FUZZ_SECONDS" in os.environ else []
    done = run(target, *(long or ["--seed", "1", "--cases", "150"]))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{target}\n" in done.stdout


@pytest.mark.parametrize("failure", ["raise RuntimeError('planted')", "import os; os.abort()"])
def test_failures_are_told_with_their_seed_and_steps(tmp_path: Path, failure: str) -> None:
    """The failures are an exception of another kind and a process that dies."""
    copy = shutil.copytree(TOOLS / "fuzz_python", tmp_path / "fuzz_python")
    text = (copy / "arrays.py").read_text(encoding="utf-8")
    (copy / "arrays.py").write_text(
        text.replace('    """Rotation."""\n', f'    """Rotation."""\n    {failure}\n')
    )
    done = subprocess.run(
        [sys.executable, str(copy), "--seed", "5", "--cases", "200"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "  rotate\n" in done.stdout and "--seed 5 --case " in done.stdout, done.stdout
