"""The command ``jali run``: a compiled program with client and server on one machine, for
trying."""

from __future__ import annotations

import json
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from jali import device as devices
from jali._core.console import bytes_text, counted_text, counter, seconds_text, table
from jali._core.joined_results import joined
from jali.cli.array_files import Array, check_results, check_unused, read, write
from jali.cli.option_words import said_in_options
from jali.cli.parser import Parser
from jali.cli.program_files import (
    Program,
    add_max_entries,
    check_device,
    check_inputs,
    check_memory,
    examples_a_request,
    key_bytes_of,
    load,
    message_of,
    outputs_of,
    promised,
    scheme_of,
    wanted_of,
)
from jali.errors import InvalidArgument, WrongDecryption

__all__ = ["main"]

_SHOWN = 10  # examples whose results are printed
_NUMBERS = 6  # of a result, of which more are left out in the middle
#: So many times the precision that was asked for is more than noise explains: numbers of CKKS have
#: normal errors, of which one in 100,000 is beyond it.
_FAR = 2.0
_ROUNDING = 1e-12  # of sums of floating-point numbers, in units of the largest


def _parser() -> Parser:
    parser = Parser(
        prog="jali run",
        description="Tries a compiled program with all three roles on this machine: a client makes keys, encrypts the inputs and decrypts the "
        "results, a server computes on ciphertexts, and the results are compared with those of the model in the clear. The exit code is 1 if "
        "decryption refuses results, or they are off by more than twice what was asked for.",
        epilog="Example: jali run model.jali --inputs examples.npy --limit 4 -o results.npy",
    )
    parser.add_argument("program", type=Path, metavar="P.jali", help="what 'jali compile' wrote")
    parser.add_argument(
        "--inputs",
        type=Path,
        action="append",
        required=True,
        metavar="FILE",
        help="examples, one behind the other along the first axis: an .npy for each input, in their order (give the option once for each), or "
        "one .npz with arrays of the names of the inputs",
    )
    parser.add_argument("--limit", type=int, metavar="K", help="only the first K examples")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="where results are written, as .npy or, by name, as .npz; those that decryption refuses are NaN",
    )
    parser.add_argument("--force", action="store_true", help="replace that file")
    add_max_entries(parser)
    parser.add_argument("--device", default="auto", help="the server's: auto, cpu, cuda, cuda:1")
    parser.add_argument("--threads", type=int, metavar="T", help="on the CPU (every core)")
    parser.add_argument(
        "--json",
        action="store_true",
        help="print one JSON object and nothing else; it has the results if there is no -o",
    )
    return parser


@dataclass
class _Run:
    """What a run gave, and took in seconds and bytes. Requests hold the examples of one ciphertext;
    on a GPU, the first one is recorded.

    results: of each output (examples, *shape).
    refused: examples whose results decryption refused.
    """

    results: list[Array]
    refused: list[int]
    requests: int
    request_bytes: int
    reply_bytes: int
    key_bytes: int
    seconds: dict[str, float] = field(default_factory=dict)


def main(argv: Sequence[str] | None = None) -> int:
    """The command ``jali run``. Raises jali.Error, which says what to change."""
    options = _parser().parse_args(sys.argv[2:] if argv is None else argv)
    check_device(options)
    if options.limit is not None and options.limit < 1:
        raise InvalidArgument("--limit must be at least 1")
    if options.output is not None:
        check_unused(options.output, options.force, [options.program, *options.inputs])
    with said_in_options(str(options.program)):
        program = load(options.program, options.max_entries)
    names = outputs_of(program)
    if options.output is not None:
        check_results(options.output, len(names))
    arrays = read(options.inputs, wanted_of(program), str(options.program), "--inputs")
    arrays = [array[: options.limit] for array in arrays]
    with said_in_options(", ".join(map(str, options.inputs))):
        check_inputs(program, arrays)
    with said_in_options(str(options.program)):
        check_memory(program, devices.resolved(options.device), keys=True)
        done = _run(program, arrays, options)
        clear = program.clear(*arrays)
    wanted = list(clear) if isinstance(clear, tuple) else [clear]
    return _report(program, names, done, wanted, options)


@contextmanager
def _timed(seconds: dict[str, float], what: str) -> Iterator[None]:
    begin = time.perf_counter()
    yield
    seconds[what] = seconds.get(what, 0.0) + time.perf_counter() - begin


def _run(program: Program, arrays: list[Array], options: Namespace) -> _Run:
    """Client and server at work on all examples, whose messages are bytes between them."""
    seconds: dict[str, float] = {}
    threads = options.threads
    client: Any = program.client(threads=threads)
    with _timed(seconds, "keys"):
        keys = client.evaluation_keys(progress=counter("keys"))
    with _timed(seconds, "server"):
        server: Any = program.server(
            keys, device=options.device, threads=threads, progress=counter("preparing the server")
        )
    each = examples_a_request(program)
    count = len(arrays[0])
    starts = range(0, count, each)
    told: Callable[[int, int], None] = counter("requests") or (lambda done, of: None)
    parts: list[tuple[int, list[Array] | None]] = []
    sizes: list[tuple[int, int]] = []
    for k, start in enumerate(starts):
        some = [array[start : start + each] for array in arrays]
        with _timed(seconds, "encrypt"):
            request = client.encrypt(*some).to_bytes()
        with _timed(seconds, "first_request" if k == 0 else "other_requests"):
            reply = server(message_of(program, "request", request)).to_bytes()
        sizes.append((len(request), len(reply)))
        with _timed(seconds, "decrypt"):
            try:
                found = client.decrypt(message_of(program, "reply", reply))
                parts.append((len(some[0]), list(found) if isinstance(found, tuple) else [found]))
            except WrongDecryption:
                if k + 1 == len(starts) and all(part is None for _, part in parts):
                    raise
                parts.append((len(some[0]), None))
        told(k + 1, len(starts))
    known = next(part for _, part in parts if part is not None)
    results = joined(parts, [x.shape[1:] for x in known])
    refused = np.flatnonzero(np.repeat([part is None for _, part in parts], [n for n, _ in parts]))
    request_bytes, reply_bytes = sizes[0]
    sent = (request_bytes, reply_bytes, key_bytes_of(program))
    return _Run(results, refused.tolist(), len(starts), *sent, seconds)


def _report(
    program: Program, names: list[str], done: _Run, clear: list[Array], options: Namespace
) -> int:
    """Writes and prints the results; gives the exit code."""
    bounds = promised(program)
    kept = [k for k in range(len(done.results[0])) if k not in set(done.refused)]
    off = [
        np.abs(np.subtract(found[kept], want[kept], dtype=np.float64)).reshape(len(kept), -1).max(1)
        for found, want in zip(done.results, clear, strict=True)
    ]
    errors = [float(x.max()) for x in off]
    wrong = sorted({kept[k] for k in np.flatnonzero(_far(off, bounds, clear))})
    named = dict(zip(names, done.results, strict=True))
    if options.output is not None:
        write(options.output, named)
    if options.json:
        document = {
            "program": str(options.program),
            "scheme": scheme_of(program),
            "params": repr(program.params),
            "device": devices.resolved(options.device),
            "examples": len(done.results[0]),
            "requests": done.requests,
            "key_bytes": done.key_bytes,
            "request_bytes": done.request_bytes,
            "reply_bytes": done.reply_bytes,
            **{f"{what}_seconds": spent for what, spent in done.seconds.items()},
            "max_error": dict(zip(names, errors, strict=True)),
            "promised_error": dict(zip(names, bounds, strict=True)),
            "refused": done.refused,
            "wrong": wrong,
        }
        if options.output is None:
            document["results"] = {name: _listed(array) for name, array in named.items()}
        print(json.dumps(document))
    else:
        count = counted_text(len(done.results[0]), "example")
        print(f"{options.program}: {program.params!r}; {count}")
        _print(done, named, errors, bounds, options)
    for what, examples in (
        ("decryption refused the results of", done.refused),
        ("off by more than twice what was asked for are the results of", wrong),
    ):
        if examples:
            print(
                f"error: {what} {counted_text(len(examples), 'example')}, first of example {examples[0]}: numbers left the ranges of the "
                "calibration on the way: compile with examples like these in --calibration, with a larger --margin, or with --ranges proven",
                file=sys.stderr,
            )
    return 1 if done.refused or wrong else 0


def _far(off: list[Array], bounds: list[float | None], clear: list[Array]) -> Array:
    """Which examples have a result that is off by more than was asked for and than noise explains.
    Floating-point numbers of exact programs may be rounded otherwise. Nothing was asked for of
    results whose bound is None."""
    found = np.zeros(len(off[0]), np.bool_)
    for x, most, want in zip(off, bounds, clear, strict=True):
        if most is None:
            continue
        rounding = _ROUNDING * float(np.abs(want).max()) if want.dtype.kind == "f" else 0.0
        found |= x > _FAR * most + rounding
    return found


def _listed(array: Array) -> Any:
    """Nested lists, with None for NaN, which JSON does not have."""
    listed = array.astype(object)
    listed[np.isnan(array)] = None
    return listed.tolist()


def _numbers(array: Array) -> str:
    """The numbers of a result in one line."""
    flat = array.reshape(-1)
    return np.array2string(
        flat, precision=5, threshold=_NUMBERS, edgeitems=_NUMBERS // 2, max_line_width=1000
    )


def _print(
    done: _Run,
    named: dict[str, Array],
    errors: list[float],
    bounds: list[float | None],
    options: Namespace,
) -> None:
    count, seconds = len(done.results[0]), done.seconds
    shown = min(count, _SHOWN)
    rows = [(str(k), *(_numbers(array[k]) for array in named.values())) for k in range(shown)]
    first = f", the first {shown} of {count}" if shown < count else ""
    table(f"decrypted results{first}", ("example", *named), rows)
    print()
    each = f"{seconds_text(seconds['first_request'])} for the first request"
    if done.requests > 1:
        rest = seconds["other_requests"] / (done.requests - 1)
        each += f", {seconds_text(rest)} for each of {done.requests - 1} others"
    lines = [
        (
            "client",
            f"{seconds_text(seconds['keys'])} for the keys; {seconds_text(seconds['encrypt'])} to encrypt, {seconds_text(seconds['decrypt'])} to decrypt",
        ),
        (
            "server",
            f"{seconds_text(seconds['server'])} to prepare; {each}, on {devices.name(devices.resolved(options.device))}",
        ),
        (
            "client to server",
            f"{bytes_text(done.key_bytes)} of public keys, once; {bytes_text(done.request_bytes)} a request",
        ),
        ("server to client", f"{bytes_text(done.reply_bytes)} a reply"),
    ]
    for name, error, most in zip(named, errors, bounds, strict=True):
        asked = f" (asked for: {most:.2g})" if most else ""
        lines.append((f"largest error of {name}", f"{error:.2g}{asked}" if error else "none"))
    if options.output is not None:
        lines.append(("wrote", str(options.output)))
    for name, value in lines:
        print(f"  {name:<24}{value}")
