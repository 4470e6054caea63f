"""Measures the figures by which the GPU engine is judged, each beside its target, and checks every
result in the run.

    python bench/gpu_table.py [--device cuda] [--seconds S] [--images FILE] [--out FILE]

Each JSON line has the fields of `jali bench --json`, and `what`, `value` in `unit`, `target` and
`met`. FILE of --images is that of `jali demo mnist`; without it the mnist demo is left out.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jali import device as devices
from jali.bench import sets
from jali.bench.measure import Row, commit
from jali.bench.primitives import Shape, measure
from jali.bench.registry import BENCHMARKS, Options
from jali.errors import Error

for _module in ("primitives", "operations", "overhead", "discrete"):
    importlib.import_module(f"jali.bench.{_module}")

Line = dict[str, Any]
# Larger is better for rates, smaller for times.
RATES = ("/s",)
BOOTSTRAPPABLE = "log_n=16,depth=30,scale_bits=40,word=w32,dnum=4"  # alpha = 12


def line(row: Row, what: str, value: float, unit: str, target: float | None) -> Line:
    """A row as a JSON object, and whether it meets the target."""
    rate = unit.endswith(RATES)
    met = None if target is None else value >= target if rate else value <= target
    return {
        **dataclasses.asdict(row),
        "what": what,
        "value": value,
        "unit": unit,
        "target": target,
        "met": met,
    }


def transforms(options: Options) -> Iterator[Line]:
    """The rate of the NTT on w32."""
    for log_n, limbs, batch, target in (
        (16, 48, 16, 3.2e6),
        (12, 8, 256, 50e6),
        (13, 8, 128, 26e6),
        (14, 16, 64, 12e6),
    ):
        row = measure("ntt", "w32", Shape(log_n, limbs, 0, 1, batch), options)
        rate = limbs * batch / row.median_s
        yield line(row, f"NTT, N = 2^{log_n}, {limbs} limbs x {batch}", rate, "limbs/s", target)


def level_with(limbs: int) -> int:
    """The lowest level of BOOTSTRAPPABLE that has at least `limbs` limbs."""
    params = sets.load(BOOTSTRAPPABLE)
    return next(k for k in range(1, params.depth + 1) if len(params.level(k).primes) >= limbs)


def one(name: str, options: Options, **changes: Any) -> Row:
    """The row of a benchmark whose options, after these changes, select a single row."""
    (row,) = BENCHMARKS[name].run(dataclasses.replace(options, **changes))
    return row


def ciphertexts(options: Options) -> Iterator[Line]:
    """The times of HRot and HMult at N = 2^16 on w32, with digits of 12 limbs."""
    for what, name, limbs, batch, target in (
        ("HRot", "rotate", 41, 1, 120e-6),
        ("HRot", "rotate", 22, 1, 60e-6),
        ("HRot", "rotate", 11, 1, 35e-6),
        ("HMult, relinearised and rescaled", "hmult_relin_rescale", 37, 1, 120e-6),
        ("HMult, relinearised and rescaled", "hmult_relin_rescale", 22, 1, 60e-6),
        ("HMult, relinearised and rescaled", "hmult_relin_rescale", 41, 64, 70e-6),
    ):
        level = level_with(limbs)
        row = one(name, options, sets=(BOOTSTRAPPABLE,), levels=(level,), batches=(batch,))
        about = f"{what}, N = 2^16, {row.params['limbs']} limbs, batch {batch}"
        yield line(row, about, row.median_s / batch, "s", target)


def tensorfhe(options: Options) -> Iterator[Line]:
    """HMULT a second at TensorFHE's sizes, log PQ 106, 214 and 430, at the best batch.

    Each limb is a digit of its own. From N = 2^13 on, a second row groups limbs into fewer digits
    and takes P as large as log PQ allows.
    """
    grouped = "log_n={},depth={},scale_bits={},dnum={},integer_bits=1,word=w32"
    for log_n, target, names in (
        (12, 2e6, ("tensorfhe_n12",)),
        (13, 5e5, ("tensorfhe_n13", grouped.format(13, 5, 26, 3))),
        (14, 1e5, ("tensorfhe_n14", grouped.format(14, 11, 28, 4))),
    ):
        for name in names:
            rows = [
                one("hmult", options, sets=(name,), batches=(batch,))
                for batch in ((128, 512, 1024) if log_n == 12 else (128, 512))
            ]
            best = max(rows, key=lambda row: row.batch / row.median_s)
            digits = f"{best.params['limbs']} limbs in {best.params['dnum']} digits"
            about = f"HMULT, N = 2^{log_n}, {digits}, batch {best.batch}"
            yield line(best, about, best.batch / best.median_s, "HMULT/s", target)


def gif_fhe(options: Options) -> Iterator[Line]:
    """Key switching at dnum = L + 1 on 32-bit words, and the CRT and inverse CRT of Table IV of
    GIF-FHE.

    The target of a CRT is a third of the published time.
    """
    for log_n, limbs, target in ((13, 8, 15e-6), (14, 16, 45e-6), (15, 31, 130e-6)):
        shape = Shape(log_n, limbs, 1, 1, 1)
        down = measure("mod_down", "w32", shape, options)
        row = measure("key_switch", "w32", shape, options)
        about = f"key switch with ModDown, N = 2^{log_n}, {limbs} limbs, dnum = L + 1"
        yield line(row, about, row.median_s + down.median_s, "s", target)
    for word, log_n, limbs, crt, icrt in (
        ("w32", 14, 16, 14.2e-6, 27.3e-6),
        ("w32", 15, 32, 36.9e-6, 93.5e-6),
        ("w64", 14, 16, 13.6e-6, 20.3e-6),
        ("w64", 15, 32, 32.7e-6, 54.1e-6),
    ):
        for name, published in (
            ("crt_mul", crt),
            ("icrt_product_sum", icrt),
            ("icrt_garner", icrt),
            ("crt_from_host", None),
            ("icrt_to_host", None),
        ):
            shape = Shape(log_n, limbs, 0, 1, 1, prime_bits=28)
            row = measure(name, word, shape, options)
            about = f"{name}, {word}, N = 2^{log_n}, {limbs} limbs of 28 bits"
            yield line(row, about, row.median_s, "s", published / 3 if published else None)


def exact_integers(options: Options) -> Iterator[Line]:
    """The products of BGV and BFV at N = 2^15, modulo 65537, 24 limbs of w32: as multiples of CKKS's
    product of equal sizes in the same run."""
    targets = {"bgv": 1.15, "bfv": 4.0}
    for row in BENCHMARKS["discrete_beside_ckks"].run(options):
        by = row.params.get("multiplication")
        if by is None:  # CKKS's own
            yield line(row, "HMult beside exact integers", row.median_s, "s", None)
            continue
        about = f"{by.upper()} product over HMult, {row.params['limbs']} limbs"
        yield line(row, about, row.params["times_ckks"], "times", targets[by])


def overhead(options: Options) -> Iterator[Line]:
    """The time that Python adds to a call."""
    for row in BENCHMARKS["overhead"].run(options):
        about = f"Python overhead of {row.params['operation']}"
        yield line(row, about, row.median_s, "s", 5e-6)


def demo(images: Path, device: str) -> Iterator[Line]:
    """`jali demo mnist`: the time of one image, and the throughput of batches."""
    for what, arguments, unit, target in (
        ("one image", ("--limit", "200"), "s", 4e-3),
        ("batched", ("--limit", "1600", "--batch", "24", "--workers", "24"), "images/s", 2000.0),
    ):
        command = [sys.executable, "-m", "jali", "demo", "mnist", "--images", str(images)]
        done = subprocess.run(
            [*command, "--device", device, "--json", *arguments],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        result = json.loads(done.stdout)
        seconds = result["seconds_per_image"]
        value = seconds if unit == "s" else 1 / seconds
        met = value <= target if unit == "s" else value >= target
        about = {"what": f"mnist demo, {what}", "value": value, "unit": unit}
        name = devices.name(result["device"])
        state = {"target": target, "met": met, "device_name": name, "commit": commit()}
        yield {"name": "jali demo mnist", **about, **state, **result}


def everything(options: Options, images: Path | None) -> Iterator[Line]:
    """All rows."""
    for part in (transforms, ciphertexts, exact_integers, tensorfhe, gif_fhe, overhead):
        yield from part(options)
    if images is not None:
        yield from demo(images, options.device)


def shown(value: float, unit: str) -> str:
    """A value and its unit as people write them."""
    if unit == "times":
        return f"{value:.2f} {unit}"
    return f"{value * 1e6:,.1f} us" if unit == "s" else f"{value:,.0f} {unit}"


def report(lines: Iterator[Line], out: Path | None) -> None:
    """Appends each line to `out` as soon as it is measured, and prints it beside its target."""
    for result in lines:
        if out is not None:
            with out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(result) + "\n")
        figure, target = (
            "" if result[k] is None else shown(result[k], result["unit"])
            for k in ("value", "target")
        )
        verdict = {True: "met", False: "short of", None: ""}[result["met"]]
        print(f"{result['what']:<70} {figure:>22}  {verdict} {target}", flush=True)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=0.3, help="time spent on each figure")
    parser.add_argument("--images", type=Path)
    parser.add_argument("--out", type=Path, help="JSON lines are appended here")
    arguments = parser.parse_args()
    options = Options(device=arguments.device, seconds=arguments.seconds)
    try:
        report(everything(options, arguments.images), arguments.out)
    except Error as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
