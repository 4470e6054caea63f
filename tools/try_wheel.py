"""What an installed wheel must do with NumPy alone. Run by tools/try_wheel.sh with the wheel's
Python."""

from __future__ import annotations

import platform
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import jali
from jali import _jali, ckks
from jali._jali import device

sys.path.insert(0, str(Path(__file__).resolve().parent))  # python -I leaves it out
import check_hardening


def check_instruction_sets() -> None:
    """The engine sees what the kernel of the system names: a wheel that sees less is slow without a
    word."""
    words = {"ifma": "avx512ifma", "avx512": "avx512vl", "avx2": "avx2"}
    flags: set[str] = set()
    if sys.platform == "linux" and platform.machine() == "x86_64":
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        flags = set(next(line for line in lines if line.startswith("flags")).split())
    expected = [isa for isa, flag in words.items() if flag in flags]
    assert device.cpu_isas() == [*expected, "portable"], (device.cpu_isas(), expected)


def check_computation(name: str) -> None:
    """A circuit with every kind of key, in several threads, and its bytes."""
    params = ckks.Params.create(depth=2)
    client = ckks.Client(params)
    keys = client.evaluation_keys(rotations=[1, -2], conjugate=True)
    keys = ckks.EvaluationKeys.from_bytes(keys.to_bytes(), params)
    server = ckks.Evaluator(params, keys, device=name)
    v = np.random.default_rng().uniform(-1, 1, params.slots)

    def work(k: int) -> float:
        x = server.bind(client.encrypt(v, peak=1))
        y = ((x * x + k) * x.rotate(1)).conj().rotate(-2)
        y = server.bind(ckks.Ciphertext.from_bytes(y.ciphertext.to_bytes(), params))
        expected = np.roll((v * v + k) * np.roll(v, -1), 2)
        return float(np.abs(client.decrypt(y) - expected).max())

    with ThreadPoolExecutor(4) as pool:
        errors = list(pool.map(work, range(8)))
    assert max(errors) < 1e-4, (name, errors)


def check_errors() -> None:
    """Errors cross from C++ to Python: what a C++ runtime that is linked in wrongly breaks
    first."""
    params = ckks.Params.create(depth=1)
    try:
        ckks.Ciphertext.from_bytes(b"nothing", params)
    except jali.CorruptData as error:
        assert str(error)
    else:
        raise AssertionError("bytes that are no ciphertext were read")


def check_links() -> None:
    """What protects a process from overruns of buffers is in the files that users get."""
    assert jali.build_info()["hardened"]
    if sys.platform == "linux":
        found = list(check_hardening.check(Path(str(_jali.__file__))))
        assert not found, found


def main() -> None:
    assert "site-packages" in jali.__file__, jali.__file__
    check_instruction_sets()
    check_errors()
    check_links()
    devices = ["cpu", *(f"cuda:{k}" for k in range(device.cuda_device_count()))]
    for name in [*devices, *(f"cpu/{isa}" for isa in device.cpu_isas())]:
        check_computation(name)
    build = jali.build_info()
    print(
        f"jali {jali.__version__}, {build['compiler']}, Python {platform.python_version()}, "
        f"{platform.machine()}, {platform.libc_ver()[1]}: {', '.join(devices)}; {', '.join(device.cpu_isas())}"
    )


main()
