"""The command ``jali``: doctor, params, compile, explain, run, serve, demo, bench, simulate, tune, trace.

Results go to standard output, everything else to standard error. Exit codes: 0 success, 1 an error,
2 wrong usage, 130 interrupted. An error is one line that says what to change.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Callable, Sequence

import jali
from jali._core import packages
from jali.cli.parser import Parser

__all__ = ["main"]

# Each command is the module of its name in this folder, which has main(argv) -> exit code.
COMMANDS = {
    "doctor": "what this installation can do, and a self-test",
    "params": "parameters for a circuit: ring, levels, key sizes",
    "compile": "a model in ONNX to a program on encrypted inputs: 'jali compile --help'",
    "explain": "what a compiled program costs, layer by layer",
    "run": "try a compiled program: client and server on this machine",
    "serve": "answers requests of clients over HTTP: 'jali serve --help'",
    "demo": "encrypted inference and training: 'jali demo digits', 'jali demo helr'",
    "bench": "benchmarks: 'jali bench list'",
    "simulate": "a program on a model of an accelerator: 'jali simulate --help'",
    "tune": "measure the engine's implementations, keep the fastest",
    "trace": "record what a program asks of its engine, for models of hardware",
}


def _parser() -> Parser:
    parser = Parser(prog="jali", description="Computing on encrypted data.")
    parser.add_argument("--version", action="version", version=f"jali {jali.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, about in COMMANDS.items():
        commands.add_parser(name, help=about, add_help=False).add_argument(
            "rest", nargs=argparse.REMAINDER
        )
    return parser


def _dispatch(name: str, arguments: Sequence[str]) -> int:
    """Run the module of a command. Raises Unsupported if a package is missing."""
    try:
        module = importlib.import_module(f"jali.cli.{name}")
        run: Callable[[Sequence[str]], int | None] = module.main
        return run(arguments) or 0
    except ModuleNotFoundError as error:
        raise jali.Unsupported(
            f"this command needs the package {error.name}: "
            f"run {packages.install(packages.of_module(error.name or ''))}"
        ) from None


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        if not words or words[0] not in COMMANDS:
            _parser().parse_args(words)  # --help, --version, or an error
        code = _dispatch(words[0], words[1:])
        sys.stdout.flush()
        return code
    except jali.Error as error:
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader has gone
            return 0
        where = f"{error.filename}: " if error.filename else ""
        print(f"error: {where}{error.strerror or error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    raise SystemExit(main())
