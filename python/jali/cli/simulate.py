"""The command ``jali simulate``: a program on a model of an accelerator."""

from __future__ import annotations

import argparse
import io
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from jali._core import files, packages
from jali._core.console import seconds_text, table
from jali.cli.parser import Parser
from jali.errors import FileError, InvalidArgument, Unsupported
from jali.simulate import allocations, comparison, gantt, programs, report, roofline
from jali.simulate.machine import Machine, shipped
from jali.simulate.machine_file import MODES
from jali.simulate.steps import Steps
from jali.simulate.sweeps import (
    CIPHERTEXTS,
    LIMIT,
    Point,
    draw,
    grid,
    pareto,
    read_sweep,
    sweep,
    write_csv,
)

__all__ = ["main"]


def _parser() -> Parser:
    parser = Parser(
        prog="jali simulate",
        description="Run a program on a model of an accelerator: time, stalls, bytes, memory, energy.",
        epilog=f"machines: {', '.join(shipped())}. workloads: {'; '.join(programs.names())}.",
    )
    parser.add_argument(
        "program", nargs="?", help="a trace, or a workload: strix:I, matvec:1024x1024,rows=8"
    )
    parser.add_argument("--machine", metavar="NAME|FILE", help="a machine, or its .toml file")
    parser.add_argument(
        "--mode",
        choices=MODES,
        help="published: without the limits that the machine's paper ignores (strict)",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="K=V",
        help="a parameter, or a number by path: clp=8, units.fft.lanes=16",
    )
    parser.add_argument(
        "--sweep",
        action="append",
        default=[],
        metavar="K=A:B:STEP",
        help="simulate every value; several: every combination. ciphertexts=A:B:STEP is of the workloads tfhe: and strix:",
    )
    parser.add_argument(
        "--allocate",
        metavar="MB,..|A:B:STEP",
        help="no simulation: what an on-chip memory of so many megabytes should hold, by the greedy rule and at best",
    )
    parser.add_argument(
        "--plot",
        type=Path,
        metavar="PNG",
        help="a picture of --sweep (time) or of --allocate (bytes)",
    )
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write the sweep's points")
    parser.add_argument(
        "--gantt",
        type=Path,
        metavar="FILE",
        help=".json (for ui.perfetto.dev) or .png: what each unit does over time",
    )
    parser.add_argument("--roofline", type=Path, metavar="PNG", help="a picture of the roofs")
    parser.add_argument(
        "--no-constants",
        action="store_true",
        help="do not simulate again: in the other mode, and for each constant that is calibrated or assumed",
    )
    parser.add_argument(
        "--papers", action="store_true", help="the papers' figures beside the model's"
    )
    parser.add_argument("--json", action="store_true", help="print JSON, one object a line")
    return parser


def _settings(given: Sequence[str]) -> dict[str, float]:
    """The values of --set. Raises InvalidArgument."""
    found: dict[str, float] = {}
    for text in given:
        name, sign, value = text.partition("=")
        try:
            number = float(value)
        except ValueError:
            sign, number = "", 0.0
        if not sign or not name:
            raise InvalidArgument(f"--set takes NAME=NUMBER, not {text!r}")
        if name in found:
            raise InvalidArgument(f"--set gives {name} twice: leave one out")
        found[name] = number
    return found


def _progress(what: str) -> Callable[[int, int], None] | None:
    """Shows on a terminal how far a simulation is."""
    if not sys.stderr.isatty():
        return None
    return lambda done, all_: print(f"{what}: {done}/{all_}", end="\r", file=sys.stderr, flush=True)


def main(argv: Sequence[str]) -> int:
    """The command ``jali simulate``. Raises jali.Error for what cannot be simulated."""
    options = _parser().parse_args(list(argv))
    if options.papers:
        _check_alone(options)
        if options.json:
            for row in comparison.rows():
                print(json.dumps({"what": "figure", **vars(row)}))
        else:
            print(comparison.text())
        return 0
    if options.program is None or options.machine is None:
        raise InvalidArgument("give a program and a machine: jali simulate strix:I --machine strix")
    _check_together(options)
    _check_output(options.gantt, ".json", ".png")
    for picture in (options.roofline, options.plot):
        _check_output(picture, ".png")
    _check_output(options.csv, options.csv.suffix if options.csv else "")
    settings = _settings(options.set)
    sweeps = [read_sweep(text) for text in options.sweep]
    if both := [name for name, _ in sweeps if name in settings]:
        raise InvalidArgument(f"--sweep and --set both give {both[0]}: leave one out")
    machine = Machine.load(options.machine, options.mode or "strict", settings)
    program = programs.find(options.program, machine)
    title = f"{options.program} on {machine.name}, {machine.mode}"
    if options.allocate is not None:
        _show_allocations(
            allocations.read_sizes(options.allocate), program(machine), title, options
        )
        return 0
    if sweeps:
        points = list(sweep(program, machine, grid(sweeps), _progress("points")))
        _show_sweep(points, options.csv, options.json)
        if options.plot:
            draw(points, options.plot, title)
            print(f"wrote {options.plot}", file=sys.stderr)
        return 0
    found = report.make_report(program, machine, _progress("steps"), not options.no_constants)
    if options.json:
        for line in report.lines(found, options.program):
            print(json.dumps(line))
    else:
        report.show(found, options.program)
    result = found.schedule
    if options.gantt:
        print(gantt.write(result, options.gantt), file=sys.stderr)
    if options.roofline:
        roofline.draw(options.roofline, found.roofs, f"{machine.name}, {machine.mode}")
        print(f"wrote {options.roofline}", file=sys.stderr)
    return 0


def _check_alone(options: argparse.Namespace) -> None:
    """Refuses what --papers would ignore: it compares with the machines of the papers."""
    if options.program is not None:
        raise InvalidArgument("--papers takes no program: leave it out")
    for name in ("machine", "mode", "set", "sweep", "allocate", "csv", "gantt", "roofline", "plot", "no_constants"):  # fmt: skip
        if _given(options, name):
            raise InvalidArgument(
                f"--papers takes no {_option(name)}, because it has the machines of the papers: leave one of them out"
            )


def _given(options: argparse.Namespace, name: str) -> bool:
    """Whether an option is there, also with an empty text."""
    value = getattr(options, name)
    return value is not None and value is not False and value != []


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


# What an option does not look at, and why.
_ALONE = {
    "sweep": (
        ("gantt", "roofline", "allocate", "no_constants"),
        "simulates each machine once and shows times, not schedules or constants",
    ),
    "allocate": (
        ("gantt", "roofline", "csv", "no_constants"),
        "counts the program's bytes and simulates nothing",
    ),
}


def _check_together(options: argparse.Namespace) -> None:
    """Refuses options that another one would ignore."""
    for name, (others, why) in _ALONE.items():
        for other in others:
            if _given(options, name) and _given(options, other):
                raise InvalidArgument(f"{_option(name)} {why}: leave {_option(other)} out")
    if options.csv and not options.sweep:
        raise InvalidArgument("--csv writes the points of a sweep: give --sweep, too")
    if options.plot and not options.sweep and options.allocate is None:
        raise InvalidArgument("--plot draws a sweep or an allocation: give --sweep or --allocate")
    paths = [f for name in ("csv", "gantt", "roofline", "plot") if (f := getattr(options, name))]
    if len({path.resolve() for path in paths}) < len(paths):
        raise InvalidArgument("two options write the same file: give each a name of its own")


def _check_output(file: Path | None, *endings: str) -> None:
    """Refuses a file that could not be written, before anything is simulated."""
    if file is None:
        return
    if file.suffix not in endings:
        raise InvalidArgument(f"{file}: give a name that ends in {' or '.join(endings)}")
    if not file.parent.is_dir():
        raise FileError(f"{file}: there is no folder {str(file.parent)!r}")
    files.check(file)
    if file.suffix == ".png" and not packages.here("matplotlib"):
        raise Unsupported(f"plots need matplotlib: {packages.install('matplotlib')}")


def _show_allocations(
    sizes: list[int], steps: Steps, title: str, options: argparse.Namespace
) -> None:
    found = allocations.allocations(steps, sizes)
    if options.json:
        for one in found:
            print(json.dumps({"what": "allocation", **allocations.line(one)}))
    else:
        allocations.show(found, title)
    if options.plot:
        allocations.draw(found, options.plot, title)
        print(f"wrote {options.plot}", file=sys.stderr)


def _counted(point: Point, name: str) -> str:
    """A resource, and how many of it the device has if they are too few."""
    value = point.resources[name]
    return (
        f"{value:g} of {point.resources[name + LIMIT]:g}" if point.is_beyond(name) else f"{value:g}"
    )


def _show_sweep(points: list[Point], file: Path | None, as_json: bool) -> None:
    best = pareto(points)
    if file is not None:
        rows_of_points = io.StringIO(newline="")
        write_csv(points, rows_of_points)
        files.replace(file, rows_of_points.getvalue())
        print(f"wrote {file}", file=sys.stderr)
    if as_json:
        for point, is_best in zip(points, best, strict=True):
            row = {"what": "point", **vars(point), "pareto": is_best}
            print(json.dumps(row))
        return
    names = list(points[0].values)
    counted = [key for key in points[0].resources if len({p.resources[key] for p in points}) > 1]
    # A file need not give area or energy: a column of zeros would say that they cost nothing.
    known = [title for title, any_ in (("mm2", any(p.area_mm2 for p in points)), ("mJ", any(p.joules for p in points))) if any_]  # fmt: skip
    rows = [
        (
            *(f"{value:g}" for value in point.values.values()),
            seconds_text(point.seconds),
            *(
                {"mm2": f"{point.area_mm2:.2f}", "mJ": f"{point.joules * 1e3:.4g}"}[t]
                for t in known
            ),
            *(_counted(point, key) for key in counted),
            "yes" if is_best else "",
        )
        for point, is_best in zip(points, best, strict=True)
    ]
    compared = ["time", *({"mm2": "area", "mJ": "energy"}[title] for title in known)]
    compared += [name for name in counted if name in points[0].counts]
    compared += [CIPHERTEXTS] if CIPHERTEXTS in names else []
    fitting = "" if all(p.fits for p in points) else ", if their device holds them"
    table(f"Points; those that no other beats in {', '.join(compared)} are marked{fitting}", [*names, "time", *known, *counted, "best"], rows)  # fmt: skip
