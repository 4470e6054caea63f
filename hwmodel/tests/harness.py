"""Runs a unit in both simulators: under Icarus with a cocotb bench, whose oracle is Python's integers, and compiled by
Verilator into a C++ bench, whose oracle is the library's engine `ref`."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
from functools import cache, wraps
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

HWMODEL = Path(__file__).resolve().parents[1]
ROOT = HWMODEL.parent
OUT = Path(os.environ.get("JALI_RTL_OUT", ROOT / "build" / "rtl"))
# Where CMake built the library: what `make build` makes, unless JALI_BUILD names another folder.
LIBRARY = Path(os.environ.get("JALI_BUILD", ROOT / "build" / "release")) / "src" / "jali"
LIBRARIES = (
    "backend",
    "backend_ops",
    "backend_cpu",
    "random",
    "device",
    "device_core",
    "arith",
    "base",
)
INSTALL = "apt install verilator iverilog yosys; pip install 'jali[rtl]'"


def sources() -> list[Path]:
    """Every unit; the simulators keep what the top module needs."""
    return sorted((HWMODEL / "rtl").glob("*.sv"))


def need(*programs: str) -> None:
    """Skips the test, and says why, unless these programs are installed."""
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed: {INSTALL}")


def folder(kind: str, top: str, parameters: dict[str, int]) -> Path:
    name = "-".join([top, *(f"{key}{value}" for key, value in sorted(parameters.items()))])
    return OUT / kind / name


def once(run: Any) -> Any:
    """A run with the same arguments is made once in a session: the tests of a unit and that of its latencies share it."""

    @cache
    def by_key(key: str) -> dict[str, Any]:
        arguments, named = json.loads(key)
        return run(*arguments, **named)

    @wraps(run)
    def shared(*arguments: Any, **named: Any) -> dict[str, Any]:
        return dict(by_key(json.dumps([arguments, named], sort_keys=True)))

    return shared


@once
def simulate(
    top: str, bench: str, parameters: dict[str, int] | None = None, **settings: Any
) -> dict[str, Any]:
    """Runs tests/benches/`bench`.py on module `top` under Icarus, and returns what the bench recorded. The bench finds
    parameters and settings in streams.SETTINGS."""
    need("iverilog", "vvp")
    if find_spec("cocotb") is None:
        pytest.skip(f"cocotb is not installed: {INSTALL}")
    from cocotb_tools.check_results import get_results
    from cocotb_tools.runner import get_runner

    parameters = parameters or {}
    work = folder("icarus", top, parameters)
    work.mkdir(parents=True, exist_ok=True)
    record, log = work / "record.json", work / "log.txt"
    record.unlink(missing_ok=True)
    seed = random.SystemRandom().getrandbits(31)
    print(f"{top} {parameters}: seed {seed}; log {log}")
    runner = get_runner("icarus")
    results = work / "results.xml"
    runner.build(
        sources=sources(),
        hdl_toplevel=top,
        parameters=parameters,
        build_dir=work,
        build_args=["-g2012"],
        always=True,
        log_file=log,
    )
    with contextlib.suppress(SystemExit):  # which a failure raises; the results say which
        runner.test(
            test_module=bench,
            hdl_toplevel=top,
            build_dir=work,
            test_dir=work,
            seed=seed,
            log_file=log,
            results_xml=str(results),
            extra_env={
                "PYTHONPATH": os.pathsep.join([str(HWMODEL / "tests" / "benches"), *sys.path]),
                "JALI_RTL_RECORD": str(record),
                "JALI_RTL_SETTINGS": json.dumps(parameters | settings),
            },
        )
    count, failed = get_results(results)
    assert count > 0 and failed == 0, log.read_text()[-4000:]
    return json.loads(record.read_text()) if record.exists() else {}


@once
def verilated(top: str, bench: str, parameters: dict[str, int] | None = None) -> dict[str, Any]:
    """Compiles module `top` and verilator/`bench`.cpp into one program and runs it with a seed. Returns the JSON object that the program prints last."""
    need("verilator")
    archives = [next(iter(LIBRARY.rglob(f"libjali_{name}.a")), None) for name in LIBRARIES]
    if None in archives:
        pytest.skip(f"the library is not built in {LIBRARY}: run make build, or set JALI_BUILD")
    parameters = parameters or {}
    work = folder("verilator", bench, parameters)
    work.mkdir(parents=True, exist_ok=True)
    group = " ".join(map(str, archives))
    command = [
        *("verilator", "--cc", "--exe", "--build", "-j", "1", "-O3", "-Wno-fatal", "-Wno-lint"),
        *("--x-assign", "unique", "--x-initial", "unique", "--assert", "--top-module", top),
        *("--prefix", "Unit", "--Mdir", str(work), "-o", "bench"),
        *(f"-G{key}={value}" for key, value in parameters.items()),
        *("-CFLAGS", f"-std=c++20 -O1 -I{ROOT / 'src'} -I{HWMODEL / 'verilator'}"),
        *(word for key, value in parameters.items() for word in ("-CFLAGS", f"-DPARAM_{key}={value}")),
        *("-LDFLAGS", f"-Wl,--start-group {group} -Wl,--end-group -pthread"),
        *map(str, sources()),
        str(HWMODEL / "verilator" / f"{bench}.cpp"),
    ]  # fmt: skip
    environment = dict(os.environ)
    if shutil.which("ccache"):
        environment.setdefault("OBJCACHE", "ccache")
    built = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert built.returncode == 0, built.stdout[-2000:] + built.stderr[-4000:]
    seed = random.SystemRandom().getrandbits(31)
    print(f"{bench} {parameters}: seed {seed}")
    ran = subprocess.run(
        [work / "bench", f"+verilator+seed+{seed}", str(seed)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-2000:]
    return json.loads(ran.stdout.strip().splitlines()[-1])
