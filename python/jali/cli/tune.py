"""``jali tune``: finds which of an engine's implementations is fastest on this machine, and what
operations cost there."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence

from jali import ckks
from jali import device as devices
from jali._core.console import choices_text, seconds_text, table
from jali._jali import device as _device
from jali.bench.registry import WORDS, Options
from jali.cli.parser import Parser
from jali.compiler.cost import measured
from jali.errors import InvalidArgument, NoDevice

__all__ = ["main", "tune"]

Choices = dict[str, str]  # by family

# A choice is judged by the time of these operations, at the shapes of jali.bench.primitives. They
# are most of every program's time.
OPERATIONS = ("ntt", "intt", "key_switch", "mod_down")
# Figures: docs/notebook/2026-11-23-tfhe-cpu.md.
OF_TFHE = (
    "TFHE has nothing to choose: its CPU engine takes the widest instruction set, which is the fastest by far, "
    "and its GPU engine has one kernel for each size"
)
MARGIN = (
    0.98  # the engine's default stays unless another choice takes less than this share of its time
)


def tune(
    device: str, words: Sequence[str], log_ns: Sequence[int], seconds: float
) -> Iterator[tuple[str, int, Choices, Mapping[str, float]]]:
    """Yields (word, log2 N, best choices, seconds of each candidate), one ring after the other.

    Families are tried one after the other, each with the best choices of those before. The results
    of every candidate are first compared with those of the reference engine. Raises InternalError
    if one is wrong.
    """
    for word in words:
        for log_n in log_ns:
            best: Choices = {}
            tried: dict[str, float] = {}
            for family, names in _device.variant_families(device).items():
                times = {
                    name: _time(device, word, log_n, _with(best, family, name), seconds)
                    for name in names
                    if name != "auto" or len(names) > 1
                }
                tried.update({f"{family}={name}": taken for name, taken in times.items()})
                fastest = min(times, key=lambda name: times[name])
                if fastest != "auto" and times[fastest] < MARGIN * times["auto"]:
                    best = _with(best, family, fastest)
            yield word, log_n, best, tried


def _with(choices: Choices, family: str, name: str) -> Choices:
    """The choices and one more. "auto" adds nothing, because a missing choice means "auto"."""
    return choices if name == "auto" else {**choices, family: name}


def _time(device: str, word: str, log_n: int, choices: Choices, seconds: float) -> float:
    """The sum of the seconds of all OPERATIONS."""
    from jali.bench.primitives import (
        measure,
        shape,
    )  # these need an extension that wheels leave out; --costs does not

    options = Options(device=device, seconds=seconds, threads=1)
    rows = [
        measure(name, word, shape(log_n, word, 1), options, variants=choices) for name in OPERATIONS
    ]
    return sum(row.median_s for row in rows)


def main(argv: Sequence[str]) -> int:
    """The command ``jali tune``."""
    parser = Parser(
        prog="jali tune",
        description="Measure an engine's implementations on this machine and keep the choice.",
        epilog=f"The choices are those of CKKS. {OF_TFHE}.",
    )
    parser.add_argument("--device", default="auto", help="cpu, cuda, cuda:1 (auto)")
    parser.add_argument("--word", action="append", default=[], choices=WORDS)
    parser.add_argument(
        "--log-n", type=int, action="append", default=[], metavar="K", help="(12-16)"
    )
    parser.add_argument(
        "--seconds", type=float, default=0.1, metavar="S", help="time spent on each figure (0.1)"
    )
    parser.add_argument(
        "--costs",
        action="store_true",
        help="measure instead what rotations, products and bootstraps cost at several levels; jali.compile plans with these figures",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object a ring")
    options = parser.parse_args(list(argv))
    device = devices.resolved(options.device)
    there = devices.available()
    if device not in there:
        raise NoDevice(
            f"there is no device {device} to measure: use {' or '.join(there)}; 'jali doctor' says why"
        )
    if any(not 10 <= k <= 17 for k in options.log_n):
        raise InvalidArgument("--log-n must be 10 to 17")
    if not options.seconds > 0:
        raise InvalidArgument("--seconds must be above 0")
    if options.costs:
        words, rings = options.word or planned_words(device), options.log_n or [15, 16]
        return _costs(device, words, rings, options.seconds, options.json)
    found: dict[tuple[str, int], Choices] = {}
    rows = []
    rings = options.log_n or list(range(12, 17))
    for word, log_n, best, tried in tune(device, options.word or WORDS, rings, options.seconds):
        found[word, log_n] = best
        if options.json:
            ring = {
                "device": device,
                "word": word,
                "log_n": log_n,
                "chosen": best,
                "seconds": tried,
            }
            print(json.dumps(ring), flush=True)
        else:
            shown = ", ".join(f"{name} {seconds_text(taken)}" for name, taken in tried.items())
            rows.append((word, log_n, choices_text(best), shown))
    if not options.json:
        table(f"Choices for {devices.name(device)}", ("word", "log N", "chosen", "tried"), rows)
    print(f"{OF_TFHE}: these choices are those of CKKS", file=sys.stderr)
    print(f"wrote {_device.keep_measured(device, found)}", file=sys.stderr)
    return 0


def default_word(device: str) -> str:
    """The word of bootstrapping parameters on a device."""
    return ckks.Params.preset("n16_fast", device=device.split(":")[0].split("/")[0]).word


def planned_words(device: str) -> list[str]:
    """The words of bootstrapping parameters among which jali.compile chooses on a device. On a GPU
    that is also the word of 52 bits, which takes half as many limbs, each of which takes much
    longer: only a measurement says which plan is faster."""
    word = default_word(device)
    return [word] if device == "cpu" else sorted({word, "w52"})


def _costs(
    device: str, words: Sequence[str], rings: Sequence[int], seconds: float, as_json: bool
) -> int:
    """Measures and keeps the costs of operations, for jali.compile."""
    for word in words:
        for log_n in rings:
            params = measured.params_of(log_n, word)
            costs = measured.table_of(params, device, seconds)
            path = measured.keep(device, word, log_n, costs)
            if as_json:
                ring = {"device": device, "word": word, "log_n": log_n, "nanoseconds": costs}
                print(json.dumps(ring), flush=True)
                continue
            rows = [
                (kind, ", ".join(f"{n}: {seconds_text(ns / 1e9)}" for n, ns in points))
                for kind, points in costs.items()
                if points
            ]
            title = f"Costs on {devices.name(device)}, {word}, log N {log_n}, by number of primes; sparse by slots"
            table(title, ("operation", "time"), rows)
    print(f"wrote {path}", file=sys.stderr)
    return 0
