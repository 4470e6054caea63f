"""Operations of the explicit evaluator and of ciphertexts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fuzz_python.case import Case
from fuzz_python.registry import operation
from jali import ckks

UNARY = ["negate", "multiply_i", "square", "relinearise", "rescale", "relinearise_rescale", "conjugate",
         "bring", "send_back"]  # fmt: skip
BINARY = ["add", "sub", "multiply", "multiply_relinearise_rescale"]


@operation(*(f"ExplicitEvaluator.{name}" for name in UNARY))
def explicit_unary(c: Case) -> Any:
    """One ciphertext."""
    return getattr(c.server.explicit, c.random.choice(UNARY))(c.ciphertext())


@operation(*(f"ExplicitEvaluator.{name}" for name in BINARY))
def explicit_binary(c: Case) -> Any:
    """Two ciphertexts."""
    return getattr(c.server.explicit, c.random.choice(BINARY))(c.ciphertext(), c.ciphertext())


@operation(
    "ExplicitEvaluator.add_plain", "ExplicitEvaluator.sub_plain", "ExplicitEvaluator.multiply_plain",
    "ExplicitEvaluator.encode", "ExplicitEvaluator.decode", "Plaintext.*",
    "ExplicitEvaluator.encode_compact", "ExplicitEvaluator.expand", "CompactPlaintext.*",
)  # fmt: skip
def explicit_plain(c: Case) -> Any:
    """A ciphertext and a plaintext."""
    e = c.server.explicit
    x = c.ciphertext()
    p = (
        c.random.choice(c.plaintexts)
        if c.plaintexts and c.rare(0.5)
        else e.encode(
            c.array(8, 512),
            x.level if c.rare(0.7) else c.integer(0, 1),
            x.scale if c.rare(0.7) else c.number(),
            c.integer(0, 8),
        )
    )
    assert repr(p) and p.nbytes > 0 and p.batch > 0
    assert not np.isnan(e.decode(p)).any()
    name = c.random.choice(["add_plain", "sub_plain", "multiply_plain"])
    if c.rare(0.4):
        compact = e.encode_compact(
            c.array(8, 512), x.scale if c.rare(0.7) else c.number(), c.integer(0, 8)
        )
        assert repr(compact) and compact.nbytes > 0 and compact.batch > 0
        assert not np.isnan(e.decode(e.expand(compact, c.integer(0, 1)))).any()
        return getattr(e, name)(x, compact)
    return getattr(e, name)(x, p)


@operation(
    "ExplicitEvaluator.add_scalar", "ExplicitEvaluator.multiply_scalar",
    "ExplicitEvaluator.multiply_integer", "ExplicitEvaluator.has_rotation", "ExplicitEvaluator.is_here",
    "ExplicitEvaluator.params", "ExplicitEvaluator.prepare_monomial", "ExplicitEvaluator.multiply_monomial",
    "ExplicitEvaluator.twice_real",
)  # fmt: skip
def explicit_numbers(c: Case) -> Any:
    """A ciphertext and a number."""
    e, x = c.server.explicit, c.ciphertext()
    assert e.is_here(x) and e.params == c.world.params
    e.has_rotation(c.integer(1))
    kind = c.random.randrange(5)
    if kind == 3:
        return e.twice_real(x, c.random.choice([None, c.number()]))
    if kind == 4:
        exponent = c.integer(0, 1, c.world.params.slots, 3 * c.world.params.slots)
        if c.rare(0.5):
            e.prepare_monomial(exponent)
        return e.multiply_monomial(x, exponent)
    if kind == 0:
        return e.add_scalar(x, c.number())
    if kind == 1:
        return e.multiply_integer(x, c.integer(0, 1, -3, 1000))
    return e.multiply_scalar(x, c.number(), c.world.params.scale if c.rare(0.6) else c.number())


@operation("ExplicitEvaluator.drop_to", "ExplicitEvaluator.adjust", "ExplicitEvaluator.rotate")
def explicit_levels(c: Case) -> Any:
    """A level, a scale, a rotation."""
    e, x = c.server.explicit, c.ciphertext()
    kind = c.random.randrange(3)
    if kind == 0:
        return e.drop_to(x, c.integer(0, 1, 2))
    if kind == 1:
        level = c.integer(0, 1)
        scale = c.world.params.level(0).scale if c.rare(0.6) else c.number()
        return e.adjust(x, level, scale)
    return e.rotate(x, c.integer(0, 1, 2, -1))


@operation(
    "ExplicitEvaluator.hoist", "ExplicitEvaluator.rotate_hoisted", "ExplicitEvaluator.rotate_extended",
    "ExplicitEvaluator.extend", "ExplicitEvaluator.reduce", "ExplicitEvaluator.reduce_rescale",
    "ExplicitEvaluator.encode_diagonal", "ExplicitEvaluator.multiply_accumulate",
    "ExplicitEvaluator.add_extended", "ExplicitEvaluator.rotate_accumulate", "Hoisted.*", "Diagonal.*",
    "Extended.*",
)  # fmt: skip
def explicit_hoisting(c: Case) -> Any:
    """Rotations that share their digits and their division."""
    e, x, y = c.server.explicit, c.ciphertext(), c.ciphertext()
    hoisted = e.hoist(x)
    turned = e.rotate_hoisted(hoisted, c.integer(0, 1, 2))
    a, b = e.rotate_extended(hoisted, c.integer(0, 1, 2)), e.extend(y)
    e.add_extended(a, b)
    e.rotate_accumulate(a, b if c.rare(0.7) else a, c.integer(0, 1, 2))
    diagonal = e.encode_diagonal(
        c.array(512, 8), c.integer(x.level), c.world.params.scale if c.rare(0.7) else c.number()
    )
    assert diagonal.scale > 0 and a.scale > 0 and a.level >= 0
    product = e.multiply_accumulate(
        [a, b][: c.random.randrange(3)], [diagonal] * c.random.randrange(3)
    )
    return [turned, e.reduce(a), e.reduce_rescale(product)]


@operation("Ciphertext.*")
def ciphertext(c: Case) -> None:
    """What is known of a ciphertext."""
    x = c.ciphertext()
    assert repr(x) and x.level >= 0 and x.scale > 0 and x.parts in (2, 3) and x.slots > 0
    assert x.batch > 0 and x.length > 0 and math.prod(x.shape) > 0 and x.nbytes > 0
    assert x.is_complex in (True, False) and x.params == c.world.params
    ckks.Ciphertext.from_bytes(x.to_bytes(), c.world.params, max_bytes=c.integer(1 << 24))
