"""The command ``jali compile``: a model in ONNX in, a compiled program out."""

from __future__ import annotations

import json
import sys
import time
from argparse import ArgumentTypeError, Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from jali import device as devices
from jali import nn
from jali._core import files
from jali._core.console import bytes_text, counted_text, seconds_text, stages
from jali.cli.array_files import Array, Wanted, check_unused, read, single
from jali.cli.option_words import in_options, said_in_options
from jali.cli.parser import Parser
from jali.cli.program_files import Program, check_memory, kind_of, scheme_of, summary_of
from jali.compiler.frontends.from_onnx import loaded
from jali.errors import FileError, InvalidArgument, LimitExceeded
from jali.nn.compile import compile as compile_model
from jali.program.container import MAX_BYTES

__all__ = ["main"]

_ELSEWHERE = (
    "a model of PyTorch is exported by torch.onnx.export, and jali.compile takes it, and those of "
    "scikit-learn, in Python"
)


def _or_auto(kind: type[int] | type[float]) -> Callable[[str], int | float | str]:
    """The type of an option that is a number, or auto."""

    def read(text: str) -> int | float | str:
        return text if text == "auto" else kind(text)

    read.__name__ = "number"  # argparse calls it so in errors
    return read


def _answers(text: str) -> float | str:
    return text if text in ("argmax", "sign") else float(text)


def _constant(text: str) -> tuple[str, str]:
    """The name and the value of an input that is no secret, of NAME=VALUE."""
    name, equal, value = text.partition("=")
    if not name or not equal or not value:
        raise ArgumentTypeError(f"{text!r} is not NAME=VALUE, such as sr=16000")
    return name, value


def _parser() -> Parser:
    parser = Parser(
        prog="jali compile",
        description="Compiles a trained model to a program on encrypted inputs: it chooses parameters, keys and the layout of the data, "
        "writes the program, and prints its price list, for which it is run on zeros. 'jali explain P.jali' prints the list again, and "
        "'jali run P.jali --inputs FILE' tries the program.",
        epilog="Example: jali compile model.onnx --calibration examples.npy -o model.jali",
    )
    parser.add_argument(
        "model",
        type=Path,
        metavar="MODEL",
        help="a file that ends in .onnx (needs the package onnx), or a graph that nn.graph_file.save wrote",
    )
    parser.add_argument(
        "--calibration",
        type=Path,
        action="append",
        metavar="FILE",
        help="examples like those that will be encrypted, a few hundred, one behind the other along the first axis: an .npy for each input of "
        "the model, in its order (give the option once for each), or one .npz with arrays of the names of the inputs",
    )
    parser.add_argument(
        "--constant",
        type=_constant,
        action="append",
        metavar="NAME=VALUE",
        help="the value of an input that is no secret, which is no array of the calibration then: a number, numbers between commas, or an .npy "
        "(sr=16000); once for each",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="P.jali",
        help="the program's file (the model's name with .jali, in this folder)",
    )
    parser.add_argument("--force", action="store_true", help="replace the program's file")
    parser.add_argument(
        "--precision-bits",
        type=_or_auto(float),
        metavar="B",
        help="results differ from the model's by at most 2^-B of the largest result of the calibration, or auto: the fewest that keep its "
        "answers (10)",
    )
    parser.add_argument(
        "--answers",
        type=_answers,
        metavar="A",
        help="what --precision-bits auto keeps: argmax, sign, or a tolerance in the units of the results (argmax)",
    )
    parser.add_argument(
        "--batch",
        type=_or_auto(int),
        metavar="K",
        help="examples in one ciphertext, a power of two, or auto: as many as cost next to nothing (1)",
    )
    parser.add_argument(
        "--device", choices=["cpu", "cuda"], help="the kind of device that the plan is for (cpu)"
    )
    parser.add_argument(
        "--memory",
        metavar="BYTES",
        help="of the server's device, for matrices and keys of bootstrapping, as '1.5 GB'",
    )
    parser.add_argument(
        "--upload",
        metavar="BYTES",
        help="of keys that a client may send at most, as '300 MB'; fewer keys take longer",
    )
    parser.add_argument(
        "--margin",
        type=float,
        metavar="M",
        help="how far ranges reach beyond the calibration's at both ends, in units of their width",
    )
    parser.add_argument(
        "--ranges",
        choices=["seen", "proven"],
        help="whether ranges are those of the calibration, or none that an accepted input leaves, which costs levels (seen)",
    )
    parser.add_argument(
        "--input-range",
        type=float,
        nargs=2,
        action="append",
        metavar=("LOW", "HIGH"),
        help="of the input's numbers, if you know it; once for each input",
    )
    parser.add_argument(
        "--scheme",
        choices=["ckks", "discrete"],
        help="approximate numbers, or exact integers for models of whole numbers (what costs less)",
    )
    parser.add_argument(
        "--relu-degree",
        type=int,
        metavar="D",
        help="ReLUs become polynomials of this degree, from 2 to 8, fitted to the calibration; this changes the model, and the summary says how much",
    )
    parser.add_argument(
        "--explain",
        action="store_true",
        help="try other settings, too, and print what these plans cost: it takes several times as long",
    )
    parser.add_argument(
        "--no-summary",
        action="store_true",
        help="no trial runs and no price list",
    )
    parser.add_argument(
        "--threads", type=int, metavar="T", help="of the trial runs on the CPU (every core)"
    )
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object and nothing else"
    )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """The command ``jali compile``. Raises jali.Error, which says what to change."""
    options = _parser().parse_args(sys.argv[2:] if argv is None else argv)
    if options.threads is not None and options.threads < 1:
        raise InvalidArgument("--threads must be at least 1")
    output = options.output or Path(options.model.name).with_suffix(".jali")
    files_read = [Path(value) for _, value in options.constant or () if value.endswith(".npy")]
    check_unused(output, options.force, [options.model, *files_read, *(options.calibration or ())])
    constants = _constants(options.constant or ())
    model, wanted = _model(options.model, constants)
    if not options.calibration:
        raise InvalidArgument(
            f"{options.model} takes {', '.join(map(str, wanted))}: give examples of this shape, a few hundred, as --calibration FILE.npy"
        )
    examples = read(options.calibration, wanted, str(options.model), "--calibration")
    begin = time.perf_counter()
    with said_in_options(str(options.model)) as said:
        program = _compiled(model, examples, constants, options)
    seconds = time.perf_counter() - begin
    data = program.to_bytes()
    files.replace(output, data)
    if not options.json:
        names, count = ", ".join(map(str, wanted)), counted_text(len(examples[0]), "example")
        print(f"{options.model}: takes {names}; {count} in the calibration")
        print(f"compiled in {seconds_text(seconds)}: {program.params!r}")
        print(f"wrote {output}: {bytes_text(len(data))}", flush=True)
    plans = program.alternatives() if options.explain and isinstance(program, nn.Program) else None
    summary = None if options.no_summary else _summary(program, options)
    if options.json:
        about: dict[str, Any] = {
            "model": str(options.model),
            "program": str(output),
            "program_bytes": len(data),
            "scheme": scheme_of(program),
            "calibration_examples": len(examples[0]),
            "compile_seconds": seconds,
            "warnings": said,
        }
        if plans is not None:
            about["alternatives"] = [
                {k: v for k, v in vars(one).items() if k not in ("program", "fitted")}
                | {"fitted": None if one.fitted is None else one.fitted._asdict()}
                for one in plans
            ]
        print(json.dumps(({} if summary is None else asdict(summary)) | about))
        return 0
    if summary is not None:
        print(in_options(str(summary)))
    if plans is not None:
        print(in_options(str(plans)))
    return 0


def _constants(pairs: Sequence[tuple[str, str]]) -> dict[str, Array]:
    """The values of inputs that are no secret, by name."""
    found: dict[str, Array] = {}
    for name, text in pairs:
        if name in found:
            raise InvalidArgument(f"--constant gives {name} twice: give it once")
        if text.endswith(".npy"):
            found[name] = single(Path(text))
            continue
        try:
            numbers = [_number(part) for part in text.split(",")]
        except ValueError:
            raise InvalidArgument(
                f"--constant {name}={text}: {name} is a number, numbers between commas, or a file that ends in .npy"
            ) from None
        found[name] = np.asarray(numbers if "," in text else numbers[0])
    return found


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


def _model(path: Path, constants: Mapping[str, Array]) -> tuple[Any, list[Wanted]]:
    """The model of a file, and the arrays that it takes beside these."""
    if path.suffix == ".onnx":
        if not path.is_file():
            raise FileError(f"{path} cannot be read: there is no such file")
        model = loaded(path)
        return model, [port for port in _ports(model) if port.name not in constants]
    if constants:
        raise InvalidArgument(
            f"{path} is no model in ONNX, and --constant is for these: leave it out"
        )
    data = files.load(path, MAX_BYTES)
    kind = kind_of(data)
    if kind == "program":
        raise InvalidArgument(
            f"{path} is compiled already: 'jali explain {path}' prints what it costs"
        )
    if kind != "recorded graph":
        raise InvalidArgument(
            f"{path} is no model in ONNX, whose name ends in .onnx, and no recorded graph: {_ELSEWHERE}"
        )
    graph = nn.graph_file.from_bytes(data)
    return graph, [Wanted(node.name, node.shape) for node in graph.inputs]


def _ports(model: Any) -> list[Wanted]:
    """The inputs of a model in ONNX, with the lengths that it fixes. The first axis is the batch."""
    constants = {tensor.name for tensor in model.graph.initializer}
    ports = [port for port in model.graph.input if port.name not in constants]
    wanted = []
    for port in ports:
        of = port.type.tensor_type
        lengths = [n.dim_value if n.dim_value > 0 else None for n in of.shape.dim]
        known = of.HasField("shape") and len(lengths) > 0
        wanted.append(Wanted(port.name, tuple(lengths[1:]) if known else None))
    return wanted


def _compiled(
    model: Any, examples: list[Array], constants: Mapping[str, Array], options: Namespace
) -> Program:
    ranges = options.input_range
    if ranges is not None and len(ranges) != len(examples):
        raise InvalidArgument(
            f"give --input-range once for each of the {counted_text(len(examples), 'input')} of the model"
        )
    given: dict[str, Any] = {
        "precision_bits": options.precision_bits,
        "batch": options.batch,
        "answers": options.answers,
        "device": options.device,
        "memory": options.memory,
        "upload": options.upload,
        "relu_degree": options.relu_degree,
        "margin": options.margin,
        "ranges": options.ranges,
        "scheme": options.scheme,
        "explain": options.explain or None,
        "constants": constants or None,
        "input_range": None if ranges is None else [tuple(pair) for pair in ranges],
    }
    if ranges is not None and len(ranges) == 1:
        given["input_range"] = tuple(ranges[0])
    return compile_model(
        model,
        tuple(x[:1] for x in examples),
        calibration=tuple(examples),
        progress=stages("compiling"),
        **{name: value for name, value in given.items() if value is not None},
    )


def _summary(program: Program, options: Namespace) -> Any:
    """The price list on a device of the kind that the plan is for; None, and a sentence on standard
    error, if this machine cannot measure it."""
    device = options.device or "cpu"
    if not any(name.startswith(device) for name in devices.available()):
        reason = f"there is no {device} device here, for which it was planned"
    else:
        try:
            check_memory(program, device, keys=False)
        except LimitExceeded as error:
            reason = in_options(str(error))
        else:
            return summary_of(program, device, options.threads)
    print(f"no trial runs: {reason}", file=sys.stderr)
    return None
