"""The command ``jali trace``: records what a program asks of its engine, in the schema of
docs/format.md."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jali import ckks, discrete, tfhe
from jali._core import files
from jali._jali.ckks import Trace
from jali.cli.parser import Parser
from jali.demo import data, network
from jali.errors import InvalidArgument

__all__ = ["main"]


def _parser() -> Parser:
    parser = Parser(
        prog="jali trace",
        description="Records every operation that a program asks of its engine, one JSON object a line.",
    )
    programs = parser.add_subparsers(dest="program", required=True, metavar="PROGRAM")
    demo = programs.add_parser("demo", help="the server of 'jali demo' at work on one batch")
    demo.add_argument("name", choices=["digits"], help="which demo; digits needs scikit-learn")
    demo.add_argument("--batch", type=int, default=1, metavar="B", help="images (1)")
    boot = programs.add_parser("bootstrap", help="a bootstrapping of one ciphertext of CKKS")
    boot.add_argument("--set", default="n15_small", metavar="SET", help="a preset (n15_small)")
    boot.add_argument(
        "--log-n", type=int, metavar="K", help="a small ring instead, which is not secure: 10 to 14"
    )
    boot.add_argument("--batch", type=int, default=1, metavar="B", help="ciphertexts (1)")
    exact = programs.add_parser("tfhe", help="one programmable bootstrapping an element")
    exact.add_argument(
        "--set", default="message_2_carry_2", metavar="SET", help="a preset (message_2_carry_2)"
    )
    exact.add_argument("--batch", type=int, default=1, metavar="B", help="elements (1)")
    integers = programs.add_parser(
        "discrete", help="a product of exact integers, the product with an array, and a rotation"
    )
    integers.add_argument("--set", default="f65537_d6", metavar="SET", help="a preset (f65537_d6)")
    integers.add_argument(
        "--multiplication", choices=["bgv", "bfv"], help="instead of the preset's"
    )
    integers.add_argument(
        "--log-n", type=int, metavar="K", help="a small ring instead, which is not secure: 10 to 14"
    )
    integers.add_argument("--batch", type=int, default=1, metavar="B", help="ciphertexts (1)")
    for one in (demo, boot, exact, integers):
        one.add_argument("-o", "--output", type=Path, metavar="FILE", help="(standard output)")
        one.add_argument("--device", default="cpu", help="cpu, cuda .. (cpu)")
        one.add_argument("--threads", type=int, metavar="T", help="(one)")
    return parser


def _demo(options: Namespace) -> Trace:
    images = data.load_digits().images[: options.batch]
    if len(images) < options.batch:
        raise InvalidArgument(f"there are {len(images)} images of digits: --batch has at most that")
    model = network.load(options.name)
    program = model.program(data.load_digits(test=False).images)
    client = program.client(threads=options.threads)
    how = {"device": options.device, "threads": options.threads}
    server = program.server(client.evaluation_keys(), capture=False, trace=True, **how)
    request = client.encrypt(model.pixels(images))
    return _recorded(server.evaluator.trace(), lambda: server(request))


def _bootstrap(options: Namespace) -> Trace:
    if options.log_n is None:
        params = ckks.Params.preset(options.set)
    elif 10 <= options.log_n <= 14:
        params = ckks.Params.create(
            bootstrap=True,
            precision_bits=20,
            levels_after=3,
            log_n=options.log_n,
            security=0,
            name="insecure_trace",
        )
    else:
        raise InvalidArgument("--log-n must be 10 to 14; leave it out for a preset")
    client = ckks.Client(params, threads=options.threads)
    keys = client.evaluation_keys(bootstrap=True)
    server = ckks.Evaluator(params, keys, options.device, threads=options.threads, trace=True)
    server.prepare_bootstrap()
    zeros = np.zeros((options.batch, params.slots), dtype=complex)
    x = server.bind(client.encrypt(zeros, level=params.bootstrap_level))
    return _recorded(server.trace(), x.bootstrap)


def _tfhe(options: Namespace) -> Trace:
    params = tfhe.Params.preset(options.set)
    client = tfhe.Client(params, threads=options.threads)
    server = tfhe.Evaluator(
        params, client.evaluation_keys(), options.device, threads=options.threads, trace=True
    )
    x = server.bind(client.encrypt(np.zeros(options.batch, dtype=int)))
    return _recorded(server.trace(), lambda: server.apply(lambda v: v, x))


def _discrete(options: Namespace) -> Trace:
    params = discrete.Params.preset(options.set)
    if params.packing != "slots" or params.depth < 2:
        raise InvalidArgument(f"{options.set} has no two products in a row: choose another --set")
    changed: dict[str, Any] = {
        "modulus": params.modulus,
        "depth": params.depth,
        "multiplication": options.multiplication or params.multiplication,
    }
    if options.log_n is not None:
        if not 10 <= options.log_n <= 14:
            raise InvalidArgument("--log-n must be 10 to 14; leave it out for a preset")
        changed |= {"log_n": options.log_n, "security": 0, "name": "insecure_trace"}
    if options.multiplication or options.log_n is not None:
        params = discrete.Params.create(**changed)
    client = discrete.Client(params, threads=options.threads)
    keys = client.evaluation_keys([1])
    server = discrete.Evaluator(params, keys, options.device, threads=options.threads, trace=True)
    zeros = np.zeros((options.batch, params.slots), dtype=np.int64)
    x = server.bind(client.encrypt(zeros, range=(0, 1)))
    row = np.ones(params.slots // 2, dtype=np.int64)
    weights = np.concatenate([row, -row])
    core = server._engine

    def body() -> None:
        y = (x * x) * weights
        core.rotate_rows(y._ct, 1)

    return _recorded(server.trace(), body)


def _recorded(trace: Trace, body: Callable[[], object]) -> Trace:
    """The trace of the body alone, without the operations that prepared it."""
    trace.clear()
    body()
    return trace


PROGRAMS = {"demo": _demo, "bootstrap": _bootstrap, "discrete": _discrete, "tfhe": _tfhe}


def main(argv: Sequence[str] | None = None) -> int:
    """The command ``jali trace``. Raises jali.Error."""
    options = _parser().parse_args(sys.argv[1:] if argv is None else argv)
    if options.batch < 1:
        raise InvalidArgument("--batch must be at least 1")
    if options.threads is None:
        options.threads = 1
    if options.threads < 1:
        raise InvalidArgument("--threads must be at least 1")
    if options.output is not None:
        files.check(options.output)
    trace = PROGRAMS[options.program](options)
    if options.output is None:
        sys.stdout.write(trace.json_lines())
        return 0
    files.replace(options.output, trace.json_lines())
    print(f"wrote {options.output}: {len(trace)} operations")
    return 0
