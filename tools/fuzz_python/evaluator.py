"""Operations of the evaluator, and of circuits and recorded functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fuzz_python.case import Case
from fuzz_python.hostile import OTHERS
from fuzz_python.registry import operation
from jali import ckks


@operation("Evaluator.bind")
def bind(c: Case) -> Any:
    """A ciphertext, a value, or something else."""
    return c.server.bind(
        c.random.choice([c.ciphertext(), c.value(), *OTHERS] if c.rare() else [c.ciphertext()])
    )


@operation(
    "Evaluator.__init__", "Evaluator.params", "Evaluator.device", "Evaluator.engine", "Evaluator.threads",
    "Evaluator.variants", "Evaluator.explicit", "Evaluator.synchronize", "Evaluator.counters", "Evaluator.__repr__",
    "Evaluator.with_keys", "Evaluator.key_bytes", "Evaluator.checkpoint", "ExplicitEvaluator.__repr__", "Engine.*",
)  # fmt: skip
def evaluator(c: Case) -> None:
    """What an evaluator says of itself; one with hostile arguments."""
    s = c.server
    assert repr(s) and s.device == "cpu" and s.engine and s.threads == 1 and s.variants == {}
    s.synchronize()
    engine = ckks.Engine(c.world.params, "cpu", threads=1)
    assert repr(engine) and engine.device == "cpu" and engine.bytes_in_use > 0
    other = s.with_keys(None) if c.rare(0.5) else engine.with_keys(None)
    assert other.key_bytes == 0 <= s.key_bytes and repr(s.explicit)
    with other.checkpoint(lambda: None):
        pass
    assert all(count >= 0 for count in s.counters().values())
    if c.rare(0.2):
        ckks.Evaluator(
            c.world.params, c.random.choice([None, *OTHERS]), "cpu", threads=c.integer(1)
        )


@operation("Evaluator.matvec", "Evaluator.matvec_blocks", "MatVec.*")
def matvec(c: Case) -> Any:
    """Products with a prepared plan, and with one of hostile arguments."""
    if c.rare(0.6):
        return c.server.matvec_blocks(c.world.matvec, [c.value()] if c.rare(0.5) else c.value())
    plan = ckks.MatVec(
        c.array(3, 8) if c.rare(0.3) else np.full((2, 8), 0.5),
        c.world.params,
        level=c.integer(1, 2),
        layout=c.random.choice(["natural", "cheapest"] if not c.rare() else OTHERS),
        bias=None if c.rare(0.7) else c.array(2, 3),
    )
    assert repr(plan) and plan.rows > 0 and plan.columns > 0 and plan.cost >= 0
    plan.unpack([c.array(c.world.params.slots)])
    plan.pack(c.array(8))
    plan.working_bytes(c.integer(1, 2))
    return c.server.matvec(plan, c.value())


@operation("Evaluator.linear_transform", "Evaluator.prepare", "LinearTransform.*")
def linear_transform(c: Case) -> Any:
    """A plan, and a hostile one."""
    if c.rare(0.6):
        return c.server.linear_transform(c.world.transform, c.value())
    diagonals = {
        c.integer(0, 1): c.array(c.world.params.slots, 8) for _ in range(c.random.randrange(3))
    }
    plan = ckks.LinearTransform(
        c.world.params, diagonals, level=c.integer(1, 2), slots=c.integer(0, 8)
    )
    storage = "residues" if c.rare(0.5) else c.random.choice(["integers", "streamed", *OTHERS])
    c.server.prepare(plan, storage=storage)
    assert plan.nbytes == (plan.plaintext_bytes if storage == "residues" else plan.integer_bytes)
    if c.rare(0.3):
        plan.forget()
    return c.server.linear_transform(plan, c.value())


@operation("Evaluator.polynomial", "Polynomial.*")
def polynomial(c: Case) -> Any:
    """Coefficients, basis and interval of any kind."""
    coefficients = c.array(2, 3, 4)
    if c.rare(0.3):
        coefficients = [c.number() for _ in range(3)]
    interval = (c.number(), c.number()) if c.rare() else c.random.choice([None, (-1.0, 1.0)])
    within = (c.number(), c.number()) if c.rare() else c.random.choice([None, (-1.0, 1.0)])
    basis = c.random.choice(OTHERS) if c.rare(0.1) else c.random.choice(["power", "chebyshev"])
    if c.rare(0.2):
        p = ckks.Polynomial(coefficients, basis, interval)
        assert repr(p) and p.degree >= 0 and p.depth >= 0 and p.coefficients
        assert p.max_error is None and (p.interval is None) == (interval is None)
        p(0.5)
        coefficients = ckks.Polynomial.approximate(math.sin, c.integer(3), (-1.0, 1.0))
    return c.server.polynomial(
        c.value(), coefficients, basis=basis, interval=interval, within=within
    )


@operation("Function.*", "Maximum.*", "ArgMax.*", "ckks.functions")
def function(c: Case) -> Any:
    """Named functions with arguments of any kind, on arrays of any kind."""
    f = ckks.functions
    within = (c.number(), c.number()) if c.rare() else c.random.choice([None, (-1.0, 1.0)])
    bound = c.number() if c.rare(0.3) else 1.0
    kind = c.random.randrange(5)
    if kind == 0:
        name = c.random.choice(["sigmoid", "tanh", "gelu", "silu", "exp", "log"])
        on = (c.number(), c.number()) if c.rare(0.3) else (-1.0, 1.0)
        plan: Any = getattr(f, name)(on, degree=c.integer(3, 1))
    elif kind == 1:
        on = (c.number(), c.number()) if c.rare(0.3) else (0.5, 1.0)
        plan = c.random.choice([f.inverse, f.inverse_sqrt, f.sqrt])(on, error=0.3)
    elif kind == 2:
        plan = c.random.choice([f.relu, f.absolute])(bound, error=0.4)
    elif kind == 3:
        return c.random.choice([f.maximum, f.minimum])(bound, error=0.4)(c.value(), c.value())
    else:
        return f.argmax(c.integer(2, 3), c.integer(8), bound=bound, gap=0.5)(c.value())
    assert repr(plan) and plan.depth >= 0 and plan.max_error >= 0
    plan(0.7)
    return plan(c.value(), within=within)


@operation("Evaluator.capture", "Captured.*")
def capture(c: Case) -> Any:
    """A recorded function, for the example and for another value."""
    number = c.number()
    x, y = c.value(), c.value()
    recorded = c.server.capture(lambda v: [v * v, v + number][c.random.randrange(2) :], x)
    assert recorded.nbytes >= 0
    return recorded(y if c.rare(0.5) else x)


@operation("Evaluator.map", "Evaluator.batcher", "Batcher.*")
def batched(c: Case) -> Any:
    """A function of many values, several at a time."""
    steps = c.integer(1, 2)
    values = [c.value() for _ in range(c.random.randrange(4))]
    function: Any = (lambda v: v.rotate(steps)) if not c.rare() else c.random.choice([*OTHERS, abs])
    batcher = c.server.batcher(function, max_batch=None if c.rare(0.7) else c.integer(1, 2))
    out = batcher(values)
    assert batcher.batch >= 0 and isinstance(batcher.curve, list)
    return [*out, *c.server.map(function, values)]
