"""Operations on ciphertexts that the interpreter computes nodes with: sums within bounds, products
with a number or a monomial, lower levels, stacks of ciphertexts, functions, bootstraps."""

from __future__ import annotations

from collections.abc import Sequence

from jali import ckks
from jali.ckks import EncryptedArray, Evaluator
from jali.compiler.ciphertexts import ciphertext_of, stack, take, without_layout
from jali.compiler.ir.folded_ops import Approximation, Bootstrap
from jali.compiler.ir.graph import Node
from jali.compiler.ir.loop_graph import is_whole
from jali.errors import InvalidArgument

__all__ = [
    "Encrypted",
    "apply_approximation",
    "at_level",
    "bootstrapped",
    "bounded_sum",
    "rotated_times_monomial",
    "stacked",
    "times",
    "unstacked",
]

#: The ciphertexts of one array.
Encrypted = tuple[EncryptedArray, ...]


def stacked(server: Evaluator, values: Sequence[EncryptedArray]) -> EncryptedArray:
    """Ciphertexts as one with the vectors of all, at the lowest of their levels, so that a device
    computes with them at once."""
    if len(values) == 1:
        return values[0]
    least = min(x.level for x in values)
    level = [ciphertext_of(at_level(server, x, least)) for x in values]
    try:
        return stack(server, level)
    except InvalidArgument:  # what is known of their slots differs
        return stack(server, [without_layout(server, x) for x in level])


def unstacked(server: Evaluator, value: EncryptedArray, count: int) -> list[EncryptedArray]:
    """The inverse of ``stacked``."""
    if count == 1:
        return [value]
    whole = ciphertext_of(value)
    each = whole.batch // count
    return [take(server, whole, range(k * each, (k + 1) * each)) for k in range(count)]


def bounded_sum(
    server: Evaluator, a: EncryptedArray, b: EncryptedArray, peak: float
) -> EncryptedArray:
    """The sum of two arrays at one level, of which no number is larger than `peak`."""
    return EncryptedArray(server, server.explicit.add(ciphertext_of(a), ciphertext_of(b), peak))


def times(server: Evaluator, x: EncryptedArray, factor: float) -> EncryptedArray:
    """x times a number. Whole numbers take no level."""
    if not is_whole(factor):
        return x * factor
    if factor == 1:
        return x
    return EncryptedArray(server, server.explicit.multiply_integer(ciphertext_of(x), int(factor)))


def rotated_times_monomial(
    server: Evaluator, x: EncryptedArray, step: int, exponent: int
) -> EncryptedArray:
    """x rotated, times X^exponent."""
    rotated = ciphertext_of(x.rotate(step))
    return EncryptedArray(server, server.explicit.multiply_monomial(rotated, exponent))


def at_level(server: Evaluator, x: EncryptedArray, level: int) -> EncryptedArray:
    """x at a level that may be below its own, where products cost less and need smaller keys."""
    if x.level == level:
        return x
    scale = server.params.level(level).scale
    return EncryptedArray(server, server.explicit.adjust(ciphertext_of(x), level, scale))


def apply_approximation(server: Evaluator, how: Approximation, x: EncryptedArray) -> EncryptedArray:
    if isinstance(how.by, ckks.Polynomial):
        return server.polynomial(x, how.by, within=(-1.0, 1.0))
    result: EncryptedArray = how.by(x, within=(-1.0, 1.0))
    return result


def bootstrapped(server: Evaluator, node: Node, source: Encrypted) -> Encrypted:
    """The ciphertexts of a node ``bootstrap``: two at a time, and a last one alone."""
    target, least = node.level, min(x.level for x in source)
    level = [at_level(server, x, least) for x in source]
    found: list[EncryptedArray] = []
    bootstrap = Bootstrap.of(node)
    if bootstrap.kind == "pair":
        for first, second in zip(level[::2], level[1::2], strict=False):
            found += server.bootstrap_pair(first, second, target)
    slots = bootstrap.slots
    # That they repeat is known from the node's layout, and checked when a program is loaded.
    known = slots is not None
    found += [
        x.bootstrap(target, real=True, slots=slots, repeats=known) for x in level[len(found) :]
    ]
    return tuple(found)
