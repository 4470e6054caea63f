"""Compiled programs of every scheme, as the commands explain and run take them from files."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from jali import ckks, nn
from jali._core import files
from jali._core.console import bytes_text, counter
from jali.cli.array_files import Array, Wanted
from jali.cli.demo_compiled import free_bytes
from jali.cli.parser import Parser
from jali.errors import InvalidArgument, LimitExceeded
from jali.program.container import MAX_BYTES
from jali.tfhe import trees

__all__ = [
    "Program",
    "add_max_entries",
    "check_device",
    "check_inputs",
    "check_memory",
    "examples_a_request",
    "key_bytes_of",
    "kind_of",
    "load",
    "message_of",
    "outputs_of",
    "promised",
    "scheme_of",
    "summary_of",
    "wanted_of",
]

#: A program of CKKS, of exact integers, or of trees.
Program: TypeAlias = nn.Program | nn.integers.Program | trees.Program

#: By the byte of the frame that says the scheme (docs/format.md).
_CLASSES: dict[int, Any] = {1: nn.Program, 3: trees.Program, 4: nn.integers.Program}
_KINDS = {8: "manifest", 9: "program", 10: "message", 11: "recorded graph"}


def kind_of(data: bytes) -> str | None:
    """What an object of Jali is, by the beginning of its bytes; None if it is none."""
    return _KINDS.get(data[7], "key or ciphertext") if data[:4] == b"JALI" and data[7:8] else None


def add_max_entries(parser: Parser) -> None:
    """Adds --max-entries, which load takes."""
    parser.add_argument(
        "--max-entries",
        type=int,
        metavar="K",
        help="numbers that the matrices of the program may have, if you trust who made it",
    )


def load(path: Path, max_entries: int | None = None) -> Program:
    """The program of a file.

    max_entries: see nn.Program.from_bytes.

    Raises FileError, InvalidArgument for a file that holds something else, and the errors of
    from_bytes.
    """
    data = files.load(path, MAX_BYTES)
    kind = kind_of(data)
    if kind != "program" or data[6] not in _CLASSES:
        what = "no object of Jali" if kind is None else f"a {kind}, no program"
        more = ": compile it by 'jali compile'" if kind == "recorded graph" else ""
        raise InvalidArgument(
            f"{path} holds {what}{more or ': give a file that jali compile or Program.save wrote'}"
        )
    of = _CLASSES[data[6]]
    how = {"max_entries": max_entries} if of is nn.Program else {}
    found: Program = of.from_bytes(data, **how)
    return found


def scheme_of(program: Program) -> str:
    """The name of the scheme that computes it."""
    if isinstance(program, trees.Program):
        return "tfhe"
    return "ckks" if isinstance(program, nn.Program) else "discrete"


def wanted_of(program: Program) -> list[Wanted]:
    """The arrays that its clients take."""
    if isinstance(program, trees.Program):
        return [Wanted("rows", (program.manifest.features,))]
    parts = program.manifest.parts if isinstance(program, nn.Program) else None
    if parts is not None and parts.before is not None:
        return [Wanted(taken.name, taken.shape) for taken in parts.before.arguments]
    return [Wanted(port.name, port.shape) for port in program.manifest.inputs]


def outputs_of(program: Program) -> list[str]:
    """The names of its results."""
    if isinstance(program, trees.Program):
        return ["scores"]
    parts = program.manifest.parts if isinstance(program, nn.Program) else None
    if parts is not None and parts.after is not None:
        count = len(parts.after.outputs)
        return ["result"] if count == 1 else [f"result_{k}" for k in range(count)]
    return [port.name for port in program.manifest.outputs]


def key_bytes_of(program: Program) -> int:
    """The bytes of a client's public keys in a message."""
    if isinstance(program, trees.Program):
        return program.params.key_bytes
    return program.manifest.key_cost.sent


def examples_a_request(program: Program) -> int:
    """How many examples a ciphertext of it holds or, of trees, are computed at a time."""
    if isinstance(program, trees.Program):
        return program.manifest.rows
    return program.manifest.lanes


def message_of(program: Program, kind: str, data: bytes) -> Any:
    """The "request" or "reply" of bytes, as the other side reads it."""
    if isinstance(program, trees.Program):
        of: Any = trees.Message
    else:
        of = nn.Message if isinstance(program, nn.Program) else nn.integers.Message
    return getattr(of, kind)(data, program.manifest)


def check_device(options: Namespace) -> None:
    """Raises InvalidArgument or NoDevice for --device and --threads, before any work."""
    if options.threads is not None and options.threads < 1:
        raise InvalidArgument("--threads must be at least 1")
    ckks.Evaluator(ckks.Params.preset("n12_d1"), None, options.device)


def check_inputs(program: Program, arrays: list[Array]) -> None:
    """Raises InvalidArgument for numbers that a client of the program refuses to encrypt, before
    there is one."""
    if isinstance(program, trees.Program):
        program.manifest.answers(arrays[0])
        return
    if isinstance(program, nn.integers.Program):
        for exact, values in zip(program.manifest.inputs, arrays, strict=True):
            exact.examples(values)
        return
    parts = program.manifest.parts
    sent = arrays if parts is None or parts.before is None else parts.sent(arrays)[0]
    for port, values in zip(program.manifest.inputs, sent, strict=True):
        said = port.outside(np.asarray(values, np.float64).reshape(len(values), -1))
        if said is not None:
            raise InvalidArgument(said)


def check_memory(program: Program, device: str, keys: bool) -> None:
    """Raises LimitExceeded if a CPU's machine has no room for the program's matrices and, if
    `keys`, for those of client and server."""
    free = free_bytes() if device == "cpu" else None
    if free is None or not isinstance(program, nn.Program):
        return
    sizes = program.sizes()
    needed = sizes.matrices + (sizes.keys_expanded + sizes.keys if keys else 0)
    if needed > free:
        what = "keys and matrices take" if keys else "matrices take"
        raise LimitExceeded(
            f"{what} {bytes_text(needed)}, and this machine has {bytes_text(free)} free: compile with less memory=, or use a larger machine or a GPU"
        )


def summary_of(program: Program, device: str, threads: int | None) -> Any:
    """The price list, by trial runs on the device, with their progress on a terminal."""
    if isinstance(program, trees.Program):
        return program.summary(device, threads=threads)
    told = counter("trial runs, step" if isinstance(program, nn.Program) else "trial run, keys")
    return program.summary(device, threads=threads, progress=told)


def promised(program: Program) -> list[float | None]:
    """How far each result may be from the model's, as was asked for; None for results that the
    client computes of decrypted numbers, such as the place of the largest."""
    if isinstance(program, trees.Program):
        return [program.error]
    if isinstance(program, nn.integers.Program):
        return [0.0] * len(program.manifest.outputs)
    parts = program.manifest.parts
    if parts is not None and parts.after is not None:
        return [None] * len(parts.after.outputs)
    graph = program.stages["approximate"]
    return [2.0**-program.precision_bits * graph[k].scaling.largest for k in graph.outputs]
