"""The command ``jali demo lookup``."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence

import numpy as np

from jali import discrete
from jali._core.console import counted_text, progress
from jali.cli.demo_exact import (
    Plan,
    Run,
    add_options,
    answered,
    budget_of,
    check_memory,
    plan_of_products,
    show,
    timed,
    wrong,
)
from jali.cli.demo_options import check_positive
from jali.cli.parser import Parser
from jali.demo import lookup

__all__ = ["main"]


def _parser() -> Parser:
    parser = Parser(
        prog="jali demo lookup",
        description="Private look-up by key: the server finds a record without learning which. "
        "'--records 4194304' is a table of 1 GB.",
    )
    parser.add_argument(
        "--records", type=int, default=65536, metavar="K", help="in the table (65536)"
    )
    parser.add_argument(
        "--value-bytes",
        type=int,
        default=248,
        metavar="B",
        help="of a record, beside its key (248)",
    )
    parser.add_argument(
        "--queries", type=int, default=3, metavar="Q", help="the last is for a missing key (3)"
    )
    add_options(parser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """The command ``jali demo lookup``. Raises jali.Error, which says what to change."""
    options = _parser().parse_args(argv)
    check_positive(options, "records", "value_bytes", "queries", "seed")
    params = lookup.params()
    plan = _plan(options, params)
    if options.plan:
        return show(plan, None, options)
    check_memory(plan, options.device)

    rng = np.random.default_rng(options.seed)
    keys, values = lookup.made(options.records, options.value_bytes, rng)
    table = lookup.Table(keys, values, params)
    client = lookup.Client(table.agreed, threads=options.threads)
    public = client.public_bytes()
    server, ready = timed(
        lambda: lookup.Server(table, public, device=options.device, threads=options.threads)
    )
    asked = [*rng.choice(keys, options.queries - 1), np.uint64(2**64 - 1)]
    different, times, budget = 0, [], 0.0
    for key in progress([int(k) for k in asked], "private look-ups", len(asked)):
        query, encryption = timed(client.ask, key)
        reply, answer, product = answered(server, query)
        numbers, decryption = timed(client.numbers, reply)
        times.append([encryption, answer, product, decryption])
        budget = budget_of(reply, params)
        bucket = int(table.agreed.bucket_of(np.array([key], np.uint64))[0])
        different += wrong(numbers, table.numbers(bucket))
        at = np.flatnonzero(keys == np.uint64(key))
        expected = values[at[0]].tobytes() if len(at) else None
        different += client.found(key, numbers) != expected
    seconds = [float(t) for t in np.median(times, axis=0)]
    run = Run(
        wrong=different,
        query_sent=len(query),
        reply_sent=len(reply),
        ready_seconds=ready,
        client_seconds=seconds[0],
        server_seconds=seconds[1],
        product_seconds=seconds[2],
        decrypt_seconds=seconds[3],
        bytes_per_second=table.bytes.size / seconds[1],
        noise_budget=budget,
        device_bytes=server.evaluator.counters()["bytes_peak"],
        device=server.evaluator.engine,
    )
    return show(plan, run, options)


def _plan(options: Namespace, params: discrete.Params) -> Plan:
    """Which bucket is the fullest, and so the size of all, depends on the keys."""
    keys, _ = lookup.made(options.records, 0, np.random.default_rng(options.seed))
    agreed = lookup.layout(keys, options.value_bytes, params)
    record = lookup.KEY_BYTES + options.value_bytes
    return plan_of_products(
        params,
        agreed.numbers,
        agreed.buckets,
        demo="lookup",
        work=f"{counted_text(options.queries, 'look-up')} in {counted_text(options.records, 'record')} of {record} bytes, in "
        f"{counted_text(agreed.buckets, 'bucket')}",
        elements=options.queries * agreed.numbers,
        clear_bytes=agreed.buckets * agreed.numbers * lookup.NUMBER_BYTES,
    )
