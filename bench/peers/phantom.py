"""Measures exact integers on a GPU beside Phantom, at equal N and log QP, in one run.

    python bench/peers/phantom.py --source CHECKOUT --build FOLDER [--device cuda]

CHECKOUT is a checkout of Phantom's repository (1f4a198 was measured), FOLDER is for what is built
from it. It needs nvcc and cmake. Jali's sets have the largest depth that 128 bits of security leave
at each N, with the same number of digits, and a modulus of 20 bits as Phantom's. Every result of
both is compared in every slot, and a peer's time whose numbers are wrong is left out.

For each set it prints one JSON object: {"name", "log_n", "multiplication", "jali_s", "peer_s",
"ratio", "peer", ...}. Times are medians of calls back to back. peer_s is that of the faster way of
Phantom whose results are right. A product of BGV by Jali includes the division to the next level;
Phantom's does not.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from pathlib import Path
from typing import Any

from jali import device as devices
from jali.bench.discrete import Case, Sides, every_operation, load
from jali.bench.measure import commit
from jali.bench.registry import Options
from jali.errors import Error

HERE = Path(__file__).resolve().parent
MODULUS = 786433  # 20 bits, 1 modulo 2^18
DIGITS = 3


def theirs(source: Path, build: Path) -> list[dict[str, Any]]:
    """What Phantom takes."""
    configure = ["cmake", "-S", str(HERE / "phantom"), "-B", str(build), f"-DPHANTOM={source}"]
    subprocess.run([*configure, "-DCMAKE_CUDA_ARCHITECTURES=native"], check=True, stdout=2)
    subprocess.run(["cmake", "--build", str(build), "-j"], check=True, stdout=2)
    out = subprocess.run([build / "discrete"], check=True, capture_output=True, text=True)
    return [json.loads(line) for line in out.stdout.splitlines()]


def deepest(log_n: int, way: str) -> str:
    """The set of Jali with the most levels at this N."""
    text = f"modulus={MODULUS},log_n={log_n},word=w32,dnum={DIGITS},multiplication={way},depth="
    depth = 0
    while True:
        try:
            load(f"{text}{depth + 1}")
        except Error:  # too deep for the table
            return f"{text}{depth}"
        depth += 1


def main() -> int:
    """Prints the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=Path, required=True, help="a checkout of Phantom")
    parser.add_argument("--build", type=Path, required=True, help="a folder for what is built")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=0.3, help="for each of Jali's times")
    arguments = parser.parse_args()
    peer = theirs(arguments.source.resolve(), arguments.build.resolve())
    options = Options(device=arguments.device, seconds=arguments.seconds)
    for log_n in (13, 14, 15):
        for way in ("bgv", "bfv"):
            name = deepest(log_n, way)
            (case,) = Case.all_of(options.with_sets(name), ())
            sides, known = Sides(case), every_operation(case)
            for operation, ours in (("multiply", f"multiply_{way}"), ("rotate", "rotate")):
                row = sides.measure(f"discrete_{operation}", *known[ours])
                rivals = [
                    p
                    for p in peer
                    if p["log_n"] == log_n
                    and p["way"].startswith(way)
                    and p[f"{operation}_wrong"] == 0
                ]
                rival = min(rivals, key=lambda p: p[f"{operation}_us"])
                seconds = rival[f"{operation}_us"] * 1e-6
                result = {
                    "name": row.name,
                    "peer": f"Phantom, {rival['way']}",
                    "log_n": log_n,
                    "multiplication": way,
                    "jali_s": row.median_s,
                    "peer_s": seconds,
                    "ratio": round(seconds / row.median_s, 2),
                    "params": row.params,
                    "peer_params": {k: rival[k] for k in ("log_qp", "primes", "special")},
                    "device": arguments.device,
                    "device_name": devices.name(arguments.device),
                    "commit": commit(),
                }
                print(json.dumps(result), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
