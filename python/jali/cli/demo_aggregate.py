"""The command ``jali demo aggregate``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jali._core.console import counted_text, progress
from jali.cli.demo_exact import (
    Plan,
    Run,
    add_options,
    budget_of,
    check_memory,
    show,
    timed,
    wrong,
)
from jali.cli.demo_options import check_positive
from jali.cli.parser import Parser
from jali.demo import aggregate

__all__ = ["main"]


def _parser() -> Parser:
    parser = Parser(
        prog="jali demo aggregate",
        description="Sums of many owners' encrypted vectors of 16-bit numbers, of which nobody sees one. "
        "'--owners 1000 --numbers 1000000' takes a quarter of an hour on two cores, nearly all of it to encrypt.",
    )
    parser.add_argument("--owners", type=int, default=100, metavar="K", help="of vectors (100)")
    parser.add_argument(
        "--numbers", type=int, default=50_000, metavar="L", help="in each vector (50000)"
    )
    add_options(parser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """The command ``jali demo aggregate``. Raises jali.Error, which says what to change."""
    options = _parser().parse_args(argv)
    check_positive(options, "owners", "numbers", "seed")
    params = aggregate.params(options.owners)
    sent = params.ciphertext_bytes(-(-options.numbers // params.slots))
    plan = Plan(
        demo="aggregate",
        work=f"{counted_text(options.numbers, 'sum')} of {counted_text(options.owners, 'number')} of {aggregate.BITS} bits",
        params=str(params),
        security=params.security,
        elements=options.numbers,
        clear_bytes=options.numbers * options.owners * aggregate.BITS // 8,
        key_bytes=params.ciphertext_bytes(1),
        query_bytes=sent,
        reply_bytes=sent,
        server_bytes=3 * sent,  # the sum, a vector, and the next sum
    )
    if options.plan:
        return show(plan, None, options)
    check_memory(plan, options.device)

    collector = aggregate.Collector(params, threads=options.threads)
    key = collector.public_bytes()
    server, ready = timed(
        lambda: aggregate.Server(params, device=options.device, threads=options.threads)
    )
    owner = aggregate.Owner(params, key, threads=options.threads)
    clear = np.zeros(options.numbers, np.int64)
    seconds = np.zeros(2)
    for number in progress(range(options.owners), "owners", options.owners):
        vector = aggregate.made(options.numbers, number, options.seed)
        clear += vector
        ciphertext, encryption = timed(owner.send, vector)
        _, addition = timed(server.add, ciphertext)
        seconds += np.array([encryption, addition])
    reply, last = timed(server.reply)  # on a GPU, additions end here
    sums, decryption = timed(collector.sums, reply)
    added = float(seconds[1]) + last
    run = Run(
        wrong=wrong(sums, clear),
        query_sent=len(ciphertext),
        reply_sent=len(reply),
        ready_seconds=ready,
        client_seconds=float(seconds[0]) / options.owners,
        server_seconds=added,
        product_seconds=None,
        decrypt_seconds=decryption,
        bytes_per_second=plan.clear_bytes / added,
        noise_budget=budget_of(reply, params),
        device_bytes=server.evaluator.counters()["bytes_peak"],
        device=server.evaluator.engine,
    )
    return show(plan, run, options, ciphertext_bytes_per_second=options.owners * sent / added)
