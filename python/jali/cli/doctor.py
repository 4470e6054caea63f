"""``jali doctor``: what this installation can do, what is missing, and a self-test."""

from __future__ import annotations

import importlib.metadata
import json
import platform
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import jali
from jali import ckks, device, discrete, tfhe
from jali._core import packages
from jali._core.console import choices_text, seconds_text, table
from jali._jali import device as _device
from jali.cli.parser import Parser

__all__ = ["examine", "main", "self_test"]

_FALLBACK = {"demo": ["scikit-learn", "pillow"], "bench": ["matplotlib"]}  # if not installed by pip


def _extras() -> dict[str, list[str]]:
    """The packages of each optional extra that users, not developers, may want."""
    try:
        requirements = importlib.metadata.requires("jali") or []
    except importlib.metadata.PackageNotFoundError:
        return _FALLBACK
    found: dict[str, list[str]] = {}
    for requirement in requirements:
        match = re.match(r"""([A-Za-z0-9._-]+).*;.*extra\s*==\s*['"]([a-z]+)['"]""", requirement)
        if match and match[2] not in ("dev", "docs"):
            found.setdefault(match[2], []).append(match[1].lower())
    return found


def _laps() -> Callable[[], float]:
    """A function that returns the seconds since its last call, or since now."""
    start = time.perf_counter()

    def lap() -> float:
        nonlocal start
        before, start = start, time.perf_counter()
        return start - before

    return lap


def self_test() -> dict[str, Any]:
    """Encrypts, computes and decrypts fresh random numbers. Returns the result, its error, and
    times in seconds."""
    lap = _laps()
    params = ckks.Params.create(depth=2, scale_bits=40)
    times = {"params": lap()}
    client = ckks.Client(params)
    keys = client.evaluation_keys(rotations=[1], conjugate=True)
    times["keys"] = lap()
    server = ckks.Evaluator(params, keys)
    times["evaluator"] = lap()
    values = np.random.default_rng().uniform(-1, 1, params.slots)
    x = server.bind(client.encrypt(values, peak=1.0))
    times["encrypt"] = lap()
    y = (x * x + 0.25).rotate(1) * x
    bits = y.precision_bits
    times["compute"] = lap()
    decrypted = client.decrypt(y)
    times["decrypt"] = lap()
    error = float(np.abs(decrypted - np.roll(values * values + 0.25, -1) * values).max())
    # 2^-18 is far above the error of these parameters, and far below that of a wrong result.
    return {
        "passed": bool(error < 2**-18),
        "max_error": error,
        "predicted_precision_bits": bits,
        "params": repr(params),
        "seconds": times,
    }


def tfhe_test(where: str) -> dict[str, Any]:
    """Encrypts every pair of bits, computes two gates of each on a device, and decrypts. Times are
    in seconds.

    where: "cpu" or "cuda:K".
    """
    lap = _laps()
    params = tfhe.Params.preset("boolean")
    client = tfhe.Client(params)
    keys = client.evaluation_keys()
    times = {"keys": lap()}
    server = tfhe.Evaluator(params, keys, where)
    times["evaluator"] = lap()
    a, b = np.array([False, False, True, True]), np.array([False, True, False, True])
    x, y = (server.bind(client.encrypt(bits)) for bits in (a, b))
    times["encrypt"] = lap()
    found = [(x & y).ciphertext, (x ^ y).ciphertext]
    times["compute"] = lap()
    both, either = (client.decrypt(bits) for bits in found)
    times["decrypt"] = lap()
    return {
        "passed": bool((both == (a & b)).all() and (either == (a ^ b)).all()),
        "engine": server.engine,
        "transform": server.transform,
        "params": params.name,
        "look_ups": 2 * a.size,
        "seconds": times,
    }


def discrete_test(where: str) -> dict[str, Any]:
    """Encrypts random residues in every slot, multiplies, adds and rotates them on a device, and
    compares every decrypted number. Times are in seconds.

    where: "cpu" or "cuda:K".
    """
    lap = _laps()
    params = discrete.Params.create(modulus=65537, depth=2)
    times = {"params": lap()}
    client = discrete.Client(params)
    keys = client.evaluation_keys(rotations=[1])
    times["keys"] = lap()
    server = discrete.Evaluator(params, keys, where)
    times["evaluator"] = lap()
    values = np.random.default_rng().integers(params.low, params.high, params.slots, endpoint=True)
    x = server.bind(client.encrypt(values, wrap=True))
    times["encrypt"] = lap()
    y = (x * x + 1).rotate(1).ciphertext
    times["compute"] = lap()
    decrypted = client.decrypt(y)
    times["decrypt"] = lap()
    wrong = int(np.count_nonzero((decrypted - np.roll(values * values + 1, -1)) % params.modulus))
    return {
        "passed": wrong == 0,
        "wrong": wrong,
        "engine": server.engine,
        "params": repr(params),
        "noise_budget": y.noise_budget,
        "seconds": times,
    }


def _on_each(
    devices: list[str], test: Callable[[str], dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    """What a test says of each device; one on which it cannot run has an "error"."""
    report: dict[str, dict[str, Any]] = {}
    for where in devices:
        try:
            report[where] = test(where)
        except jali.Error as error:
            report[where] = {"passed": False, "error": " ".join(str(error).split())}
    return report


def examine() -> dict[str, Any]:
    """Everything that the command shows, as plain data."""
    build = jali.build_info()
    isas = _device.cpu_isas()
    report: dict[str, Any] = {
        "jali": build["version"],
        "compiler": build["compiler"],
        "python": platform.python_version(),
        "numpy": np.__version__,
        "platform": f"{platform.system()} {platform.machine()}",
        "processor": device.name(),
        "isas": isas,
        "isa_chosen": isas[0],
        "threads": _device.default_threads(),
        "devices": device.available(),
        "device_names": [device.name(name) for name in device.available()[1:]],
        "cuda": build["cuda"],
        "cuda_trouble": _device.cuda_trouble(),
        "tuning_file": _device.tuning_file(),
        "extras": {
            extra: {package: packages.here(package) for package in names}
            for extra, names in _extras().items()
        },
    }
    try:
        report["tuned"] = {name: _tuned(name) for name in device.available()}
    except jali.Error as error:  # the file is damaged
        report |= {"tuned": {}, "tuning_trouble": str(error)}
    try:
        report["self_test"] = self_test()
    except jali.Error as error:
        report["self_test"] = {"passed": False, "error": str(error)}
    tested = ["cpu", *report["devices"][1:2]]
    report["discrete"] = _on_each(tested, discrete_test)
    report["tfhe"] = _on_each(tested, tfhe_test)
    report["tfhe_advice"] = _tfhe_advice(report["tfhe"])
    return report


def _tfhe_advice(found: dict[str, dict[str, Any]]) -> str:
    """What to do with TFHE here, in a sentence."""
    if not found["cpu"]["passed"]:
        return "TFHE does not work on this CPU: please report this, and do not use jali.tfhe here"
    gpus = [name for name in found if name != "cpu"]
    if not gpus:
        return "jali.tfhe computes on the CPU here; its GPU engine needs an NVIDIA GPU of compute capability 9.0, or one of 8.6 or 8.9"
    gpu = gpus[0]
    if not found[gpu]["passed"]:
        return f'TFHE does not work on {gpu}: say device="cpu" for jali.tfhe'
    return f'jali.tfhe computes on {gpu}, unless you say device="cpu"'


def _tuned(name: str) -> dict[str, dict[str, str]]:
    """The choices of jali tune for each word and ring that it measured."""
    return {
        f"{word}, log N {log_n}": choices
        for (word, log_n), choices in _device.measured(name).items()
        if choices
    }


def _tuned_text(report: dict[str, Any]) -> str:
    if "tuning_trouble" in report:
        return f"NOT USED: {report['tuning_trouble']}"
    if not Path(report["tuning_file"]).is_file():
        return "no; 'jali tune' measures the engines' implementations on this machine"
    parts = [
        f"{name}: {ring}: {choices_text(choices)}"
        for name, rings in report["tuned"].items()
        for ring, choices in rings.items()
    ]
    return f"{report['tuning_file']}: " + ("; ".join(parts) or "the engines' defaults")


def _cuda_text(report: dict[str, Any]) -> str:
    found = [name for name in report["devices"] if name != "cpu"]
    if found:
        models = zip(found, report["device_names"], strict=True)
        return ", ".join(f"{name} ({model})" for name, model in models)
    if report["cuda_trouble"]:
        return f"NOT USED: {report['cuda_trouble']}"
    if report["cuda"]:
        return "none found (no NVIDIA GPU, or no driver)"
    return "not in this build (it is built if nvcc is on the PATH, in CUDA_HOME, or from PyPI)"


def main(argv: Sequence[str]) -> int:
    """The command ``jali doctor``; 1 if the self-test fails."""
    parser = Parser(prog="jali doctor", description="What this installation can do, a self-test.")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(list(argv))
    report = examine()
    test = report["self_test"]
    # A GPU that cannot compute TFHE at all is no fault of the installation; one that computes it
    # wrongly is.
    passed = (
        test["passed"]
        and all(one["passed"] for one in report["discrete"].values())
        and all(
            one["passed"] or (where != "cpu" and "error" in one)
            for where, one in report["tfhe"].items()
        )
    )
    if options.json:
        print(json.dumps(report))
        return 0 if passed else 1
    table(
        "Installation",
        ("", ""),
        [
            ("jali", f"{report['jali']}, built with {report['compiler']}"),
            ("python", f"{report['python']}, numpy {report['numpy']}"),
            ("machine", f"{report['processor']}, {report['platform']}"),
            (
                "cpu device",
                f"{report['isa_chosen']} of {', '.join(report['isas'])}; {report['threads']} threads "
                "(JALI_NUM_THREADS or threads= to change)",
            ),
            ("cuda device", _cuda_text(report)),
            ("tuned", _tuned_text(report)),
        ],
    )
    rows = []
    for extra, state in report["extras"].items():
        missing = [package for package, here in state.items() if not here]
        rows.append((extra, "missing: " + packages.install(*missing) if missing else "here"))
    table("Extras", ("extra", "state"), rows)
    if "error" in test:
        table("Self-test", ("", ""), [("FAILED", test["error"])])
        _print_devices(report)
        return 1
    table(
        "Self-test: encrypt, (x * x + 0.25).rotate(1) * x, decrypt",
        ("", ""),
        [
            ("result", "passed" if test["passed"] else "FAILED: please report this"),
            ("largest error", f"{test['max_error']:.2e}"),
            ("parameters", test["params"]),
            *((step, seconds_text(taken)) for step, taken in test["seconds"].items()),
        ],
    )
    _print_devices(report)
    return 0 if passed else 1


def _print_devices(report: dict[str, Any]) -> None:
    """The tests of the schemes that are tested on each device."""
    table(
        "Self-test of exact integers: encrypt, (x * x + 1).rotate(1), decrypt",
        ("", "", ""),
        [
            _tested(where, test, "FAILED", lambda t: f"{t['engine']}, {t['params']}")
            for where, test in report["discrete"].items()
        ],
    )
    table(
        "Self-test of TFHE: encrypt, x & y and x ^ y, decrypt",
        ("", "", ""),
        [
            _tested(
                where,
                test,
                "FAILED" if where == "cpu" else "no",
                lambda t: f"{t['engine']} by {t['transform']}, {t['look_ups']} gates",
            )
            for where, test in report["tfhe"].items()
        ],
    )
    print(f"  {report['tfhe_advice']}")


def _tested(
    where: str, test: dict[str, Any], failed: str, about: Callable[[dict[str, Any]], str]
) -> tuple[str, str, str]:
    """A row of a table. failed: what it says if the test could not run."""
    if "error" in test:
        return where, failed, test["error"]
    spent = ", ".join(f"{step} {seconds_text(s)}" for step, s in test["seconds"].items())
    result = "passed" if test["passed"] else "FAILED: please report this"
    return where, result, f"{about(test)}; {spent}"
