"""The command ``jali bench``."""

from __future__ import annotations

import dataclasses
import importlib
import json
import sys
from collections.abc import Sequence

from jali._core.console import joules_text, seconds_text, table
from jali.bench.energy import counter
from jali.bench.measure import CLOCKS, Row
from jali.bench.registry import BENCHMARKS, Benchmark, Options
from jali.cli.parser import Parser
from jali.errors import InvalidArgument

__all__ = ["main"]

MODULES = (
    "primitives",
    "operations",
    "client",
    "evaluator",
    "bootstrap",
    "matvec",
    "storage",
    "demos",
    "loops",
    "overhead",
    "importing",
    "words",
    "switch",
    "tfhe",
    "discrete",
)


ENERGY_COLUMNS = ("watts", "energy", "op/s/W", "above idle")


def _parser() -> Parser:
    parser = Parser(prog="jali bench", description="Benchmarks, each checked in the same run.")
    parser.add_argument(
        "name",
        help="a benchmark, 'list' for their names, 'all' for all of them; 'plot FILE...' draws kept lines",
    )
    parser.add_argument("--device", default="auto", help="auto, cpu, cpu/avx2 .., cuda (auto)")
    parser.add_argument(
        "--threads", type=int, metavar="T", help="(one, unless the benchmark says otherwise)"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="SET",
        help="only this parameter set: a preset, or log_n=16,depth=30,scale_bits=40,word=w32; for exact integers modulus=65537,depth=6",
    )
    for name, metavar, about in (
        ("batch", "B", "ciphertexts an operation works on at once"),
        ("level", "L", "level of the operands (the top)"),
        ("log-n", "K", "log2 of N, for the engine's operations"),
        ("limbs", "L", "number of limbs, for the engine's operations"),
    ):
        parser.add_argument(
            f"--{name}", type=int, action="append", default=[], metavar=metavar, help=about
        )
    parser.add_argument(
        "--word", action="append", default=[], choices=["w32", "w52", "w64"], help="only this word"
    )
    parser.add_argument(
        "--variant",
        action="append",
        default=[],
        metavar="FAMILY=NAME",
        help="an implementation, for the engine's operations, e.g. ntt=two_pass (the engine's default)",
    )
    parser.add_argument(
        "--profile",
        action="store_true",
        help="also print where the time goes: the engine's operations, and a GPU's kernels",
    )
    parser.add_argument(
        "--energy",
        action="store_true",
        help="also joules, by the counter of the GPU (NVML) or of the processors (RAPL)",
    )
    parser.add_argument(
        "--seconds", type=float, default=1.0, metavar="S", help="time spent on a figure (1)"
    )
    parser.add_argument(
        "--clock",
        choices=sorted(CLOCKS),
        default="wall",
        help="cpu: processor time, if one thread is timed; for busy machines (wall)",
    )
    parser.add_argument(
        "--images", metavar="FILE", help="images for demo_mnist, demo_helr or demo_cifar"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object a line")
    return parser


def _variants(given: Sequence[str]) -> dict[str, str]:
    """The implementations by family. Raises InvalidArgument for what is not FAMILY=NAME."""
    pairs = [text.partition("=") for text in given]
    for family, _, name in pairs:
        if not family or not name:
            raise InvalidArgument("--variant takes FAMILY=NAME, e.g. ntt=two_pass")
    return {family: name for family, _, name in pairs}


#: Measured alone: demo_cifar has other images than demo_mnist; it, the encoder and the loops need a
#: GPU or tens of GB; matvec_compiled compiles for minutes.
_ALONE = ("demo_cifar", "demo_encoder", "demo_helr", "demo_rnn", "matvec_compiled")


def _chosen(name: str, images: str | None, energy: bool) -> list[Benchmark]:
    if name == "all":
        return [
            b
            for b in BENCHMARKS.values()
            if b.name not in _ALONE
            and (b.name != "demo_mnist" or images is not None)
            and (b.energy or not energy)
        ]
    if name not in BENCHMARKS:
        raise InvalidArgument(f"there is no benchmark {name}: 'jali bench list' names them all")
    if energy and not BENCHMARKS[name].energy:
        able = ", ".join(b.name for b in BENCHMARKS.values() if b.energy)
        raise InvalidArgument(f"{name} does not measure energy: leave out --energy, or take {able}")
    return [BENCHMARKS[name]]


def main(argv: Sequence[str] | None = None) -> int:
    """The command ``jali bench``. Raises jali.Error for wrong names and wrong results."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["plot"]:
        from jali.bench import plot

        return plot.run(words[1:])
    arguments = _parser().parse_args(words)
    for module in MODULES:
        importlib.import_module(f"jali.bench.{module}")
    if arguments.name == "list":
        _list(arguments.json)
        return 0
    if arguments.threads is not None and arguments.threads < 1:
        raise InvalidArgument("--threads must be at least 1")
    for name in ("batch", "level", "log_n", "limbs"):
        if any(value < 1 for value in getattr(arguments, name)):
            raise InvalidArgument(f"--{name.replace('_', '-')} must be at least 1")
    if not arguments.seconds > 0:
        raise InvalidArgument("--seconds must be above 0")
    options = Options(
        device=arguments.device,
        threads=arguments.threads,
        seconds=arguments.seconds,
        sets=tuple(arguments.set),
        images=arguments.images,
        clock=arguments.clock,
        batches=tuple(arguments.batch),
        levels=tuple(arguments.level),
        words=tuple(arguments.word),
        log_ns=tuple(arguments.log_n),
        limbs=tuple(arguments.limbs),
        variants=_variants(arguments.variant),
        profile=arguments.profile,
        energy=arguments.energy,
    )
    benchmarks = _chosen(arguments.name, arguments.images, options.energy)
    if options.energy:
        counter(options.resolved_device())  # if there is none, this says so before any work
    for chosen in benchmarks:
        rows = []
        for result in chosen.run(options):
            if arguments.json:
                print(json.dumps(dataclasses.asdict(result)), flush=True)
            else:
                rows.append(result)
                if sys.stderr.isatty():
                    print(f"{chosen.name}: {len(rows)} done", end="\r", file=sys.stderr, flush=True)
        if rows:
            _table(chosen, rows)
    return 0


def _list(as_json: bool) -> None:
    if as_json:
        for b in BENCHMARKS.values():
            print(json.dumps({"name": b.name, "about": b.about}))
        return
    for b in BENCHMARKS.values():
        print(f"{b.name:<22}{b.about}")


def _table(chosen: Benchmark, rows: list[Row]) -> None:
    keys = ("layer", "set", "log_n", "word", "level", "limbs", "threads")
    shown = [k for k in keys if any(k in r.params for r in rows)]
    measured = any(r.energy for r in rows)
    cells = [
        (
            r.name,
            *(r.params.get(k, "") for k in shown),
            r.batch,
            seconds_text(r.min_s),
            seconds_text(r.median_s),
            f"{100 * r.fraction_of_floor:.0f} %" if r.fraction_of_floor is not None else "",
            f"{r.precision_bits:.1f}" if r.precision_bits is not None else "",
            *(_energy_cells(r) if measured else ()),
        )
        for r in rows
    ]
    headers = ["", *shown, "batch", "min", "median", "of floor", "bits"]
    table(chosen.about, [*headers, *(ENERGY_COLUMNS if measured else ())], cells)
    print(f"  {rows[0].device_name}, {rows[0].params['engine']}, {rows[0].commit}")
    for spent in [r.energy for r in rows if r.energy][:1]:
        print(
            f"  {spent.counter}; joules of one operation by the total power, and without the {spent.idle_watts:.0f} W of the idle device; "
            "op/s/W is operations a second and watt"
        )


def _energy_cells(row: Row) -> tuple[str, ...]:
    spent = row.energy
    if spent is None:
        return ("",) * len(ENERGY_COLUMNS)
    above = spent.per_joule_above_idle
    return (
        f"{spent.watts:.0f}",
        joules_text(spent.joules),
        f"{spent.per_joule:.4g}",
        f"{above:.4g}" if above is not None else "",
    )
