"""The command ``jali explain``: what a compiled program costs, and the stages of its
compilation."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from jali import device as devices
from jali import nn
from jali.cli.option_words import in_options, said_in_options
from jali.cli.parser import Parser
from jali.cli.program_files import (
    add_max_entries,
    check_device,
    check_memory,
    load,
    outputs_of,
    scheme_of,
    summary_of,
    wanted_of,
)
from jali.errors import InvalidArgument, Unsupported
from jali.tfhe import trees

__all__ = ["main"]


def _parser() -> Parser:
    parser = Parser(
        prog="jali explain",
        description="Prints what client and server of a compiled program have, and the price list: time, bytes, levels, noise and ranges, layer "
        "by layer. Times are those of trial runs on this machine, on zeros and without keys.",
    )
    parser.add_argument("program", type=Path, metavar="P.jali", help="what 'jali compile' wrote")
    parser.add_argument(
        "--stage",
        metavar="NAME",
        help="print a stage of the compilation instead, without trial runs: the graph after trace, simplify, fold, calibrate, approximate, "
        "layout, lower or levels; parameters; report, what the plan counts for each operation; or program, what client and server have",
    )
    add_max_entries(parser)
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1")
    parser.add_argument("--threads", type=int, metavar="T", help="on the CPU (every core)")
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object and nothing else"
    )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """The command ``jali explain``. Raises jali.Error, which says what to change."""
    options = _parser().parse_args(sys.argv[2:] if argv is None else argv)
    check_device(options)
    if options.stage is not None and options.json:
        raise InvalidArgument("--stage prints a text: leave out --json")
    with said_in_options(str(options.program)):
        program = load(options.program, options.max_entries)
        if options.stage is not None:
            if isinstance(program, trees.Program):
                raise Unsupported("programs of trees have no stages: leave out --stage")
            print(program.explain(options.stage))
            return 0
        check_memory(program, devices.resolved(options.device), keys=False)
        summary = summary_of(program, options.device, options.threads)
    if options.json:
        inputs = [{"name": one.name, "shape": one.shape} for one in wanted_of(program)]
        about = {
            "program": str(options.program),
            "scheme": scheme_of(program),
            "inputs": inputs,
            "outputs": outputs_of(program),
        }
        print(json.dumps(asdict(summary) | about))
        return 0
    if isinstance(program, nn.Program):
        print(in_options(program.explain("program")))
    print(in_options(str(summary)))
    return 0
