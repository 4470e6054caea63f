"""The command ``jali demo nearest``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jali._core.console import counted_text, progress, table
from jali.cli.demo_exact import (
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
from jali.demo import nearest

__all__ = ["main"]

SHOWN = 5


def _parser() -> Parser:
    parser = Parser(
        prog="jali demo nearest",
        description="Exact scores of an encrypted vector against many vectors of 128 signed bytes, of which the largest "
        "names the nearest one.",
    )
    parser.add_argument(
        "--vectors", type=int, default=100_000, metavar="K", help="that the server has (100000)"
    )
    parser.add_argument("--queries", type=int, default=3, metavar="Q", help="one by one (3)")
    add_options(parser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """The command ``jali demo nearest``. Raises jali.Error, which says what to change."""
    options = _parser().parse_args(argv)
    check_positive(options, "vectors", "queries", "seed")
    params = nearest.params()
    plan = plan_of_products(
        params,
        options.vectors,
        nearest.DIMENSIONS,
        demo="nearest",
        work=f"{counted_text(options.vectors, 'score')} of 128 products each, for "
        f"{counted_text(options.queries, 'query', 'queries')}",
        elements=options.vectors * options.queries,
        clear_bytes=options.vectors * nearest.DIMENSIONS,
    )
    if options.plan:
        return show(plan, None, options)
    check_memory(plan, options.device)

    rng = np.random.default_rng(options.seed)
    vectors, queries = nearest.made(options.vectors, options.queries, rng)
    client = nearest.Client(params, threads=options.threads)
    keys = client.public_bytes()
    server, ready = timed(
        lambda: nearest.Server(
            vectors, params, keys, device=options.device, threads=options.threads
        )
    )
    different, times, budget, best = 0, [], 0.0, []
    for i, vector in enumerate(progress(queries, "private searches", len(queries))):
        query, encryption = timed(client.ask, vector)
        reply, answer, product = answered(server, query)
        scores, decryption = timed(client.scores, reply)
        times.append([encryption, answer, product, decryption])
        budget = budget_of(reply, params)
        clear = _scores(vectors, vector)
        different += wrong(scores, clear)
        best += [
            (i, int(at), int(scores[at]), int(clear[at]))
            for at in np.argsort(-scores, kind="stable")[:SHOWN]
        ]
    if not options.json:
        table("the nearest vectors", ["query", "vector", "score", "clear score"], best)
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
        bytes_per_second=plan.clear_bytes / seconds[1],
        noise_budget=budget,
        device_bytes=server.evaluator.counters()["bytes_peak"],
        device=server.evaluator.engine,
    )
    return show(plan, run, options)


def _scores(vectors: nearest.Vectors, vector: nearest.Vectors) -> nearest.Scores:
    """The scores in the clear, a part at a time."""
    wide = vector.astype(np.int64)
    parts = [vectors[k : k + 4096].astype(np.int64) @ wide for k in range(0, len(vectors), 4096)]
    return np.concatenate(parts)
