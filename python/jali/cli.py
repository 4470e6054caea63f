"""The command ``jali``: doctor, params, demo, bench, tune.

Results go to standard output, everything else to standard error. Exit codes: 0 success, 1 an error,
2 wrong usage, 130 interrupted. An error is one line that says what to change.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

import jali

__all__ = ["main"]


class _Parser(argparse.ArgumentParser):
    """Reports wrong usage in the one line that all errors have."""

    def error(self, message: str) -> NoReturn:
        print(f"error: {message}: see '{self.prog} --help'", file=sys.stderr)
        raise SystemExit(2)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="jali", description="Computing on encrypted data.")
    parser.add_argument("--version", action="version", version=f"jali {jali.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    doctor = commands.add_parser("doctor", help="what this installation can do, and a self-test")
    doctor.add_argument("--json", action="store_true", help="print one JSON object")

    params = commands.add_parser("params", help="parameters for a circuit: ring, levels, key sizes")
    what = params.add_mutually_exclusive_group(required=True)
    what.add_argument("--depth", type=int, help="multiplications in a row")
    what.add_argument("--preset", metavar="NAME", help="a named set; 'list' names them all")
    what.add_argument("--levels-after", type=int, help="multiplications between bootstrappings")
    params.add_argument(
        "--scale-bits", type=float, help="log2 of the scale (40; what --precision-bits needs)"
    )
    params.add_argument(
        "--precision-bits", type=float, help="of a bootstrapped value, with --levels-after (20)"
    )
    params.add_argument(
        "--order",
        choices=["raise_first", "slots_first"],
        default="raise_first",
        help="of bootstrapping: raise_first serves values of every level; slots_first, which all presets "
        "have, is more precise and cheaper but due three levels before the last (raise_first)",
    )
    params.add_argument("--log-n", type=int, help="log2 of the ring degree (smallest secure)")
    params.add_argument("--word", choices=["auto", "w32", "w52", "w64"], default="auto")
    params.add_argument(
        "--device", choices=["cpu", "cuda"], default="cpu", help="that will compute (cpu)"
    )
    params.add_argument("--security", type=int, choices=[128, 192, 256], default=128)
    params.add_argument("--dnum", type=int, help="digits of key switching (chosen)")
    params.add_argument(
        "--integer-bits", type=float, default=10.0, help="room above the scale (10)"
    )
    params.add_argument("--rotations", type=int, default=0, help="count of rotation keys (0)")
    params.add_argument("--json", action="store_true", help="print one JSON object")

    demo = commands.add_parser(
        "demo", help="encrypted inference: 'jali demo digits'", add_help=False
    )
    demo.add_argument("rest", nargs=argparse.REMAINDER)
    bench = commands.add_parser("bench", help="benchmarks: 'jali bench list'", add_help=False)
    bench.add_argument("rest", nargs=argparse.REMAINDER)
    tune = commands.add_parser(
        "tune", help="measure the engine's implementations, keep the fastest", add_help=False
    )
    tune.add_argument("rest", nargs=argparse.REMAINDER)
    return parser


def _dispatch(name: str, arguments: Sequence[str]) -> int:
    """Hand over to jali.demo, jali.bench or jali.tune: main(argv) -> exit code."""
    try:
        module = importlib.import_module(f"jali.{name}")
    except ModuleNotFoundError as error:
        raise _missing(error) from None
    run: Callable[[Sequence[str]], int | None] = module.main
    try:
        return run(arguments) or 0
    except ModuleNotFoundError as error:
        raise _missing(error) from None


def _missing(error: ModuleNotFoundError) -> jali.Error:
    from jali import doctor

    return jali.Unsupported(
        f"this needs the package {error.name}: {doctor.fix_for(error.name or '')}"
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        if words and words[0] in ("demo", "bench", "tune"):  # their options are their own
            code = _dispatch(words[0], words[1:])
        else:
            options = _parser().parse_args(words)
            module = importlib.import_module(
                {"doctor": "jali.doctor", "params": "jali.advise"}[options.command]
            )
            code = int(module.run(options))
        sys.stdout.flush()
        return code
    except jali.Error as error:
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nobody reads on
            return 0
        where = f"{error.filename}: " if error.filename else ""
        print(f"error: {where}{error.strerror or error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    raise SystemExit(main())
