"""The evaluator's operations that the tables of other systems do not have."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from jali import _jali, ckks
from jali.bench.measure import Row
from jali.bench.operations import Case, Operands, Vector, on_sets, turned
from jali.bench.registry import Options

SCALAR = 0.25 - 0.5j


class Weights(NamedTuple):
    """The second vector, encoded beforehand."""

    plain: ckks.Plaintext
    diagonal: _jali.ckks.Diagonal  # over the primes of P as well


Body = Callable[[Operands, Weights], ckks.Ciphertext]


def _down(x: Operands) -> tuple[int, float]:
    """The level below that of x.a, and its scale."""
    level = x.a.level - 1
    return level, x.server.params.level(level).scale


def _weigh(x: Operands, p: Weights) -> ckks.Ciphertext:
    """(a + a rotated by one) b, with one division at the end."""
    terms = [x.e.extend(x.a), x.e.rotate_extended(x.e.hoist(x.a), 1)]
    return x.e.reduce_rescale(x.e.multiply_accumulate(terms, [p.diagonal, p.diagonal]))


def _accumulate(x: Operands, p: Weights) -> ckks.Ciphertext:
    """a rotated by one, a and b summed before the division by P."""
    total = x.e.extend(x.b)
    x.e.add_extended(total, x.e.extend(x.a))
    x.e.rotate_accumulate(total, x.e.extend(x.a), 1)
    return x.e.reduce(total)


OPERATIONS: dict[str, tuple[str, Body, Callable[[Vector, Vector], Vector]]] = {
    "hsub": ("difference of two ciphertexts", lambda x, p: x.e.sub(x.a, x.b), lambda a, b: a - b),
    "negate": ("negation", lambda x, p: x.e.negate(x.a), lambda a, b: -a),
    "add_plain": (
        "sum with an encoded plaintext",
        lambda x, p: x.e.add_plain(x.a, p.plain),
        lambda a, b: a + b,
    ),
    "sub_plain": (
        "difference to an encoded plaintext",
        lambda x, p: x.e.sub_plain(x.a, p.plain),
        lambda a, b: a - b,
    ),
    "add_constant": (
        "sum with a complex number",
        lambda x, p: x.e.add_scalar(x.a, SCALAR / 2),
        lambda a, b: a + SCALAR / 2,
    ),
    "multiply_constant": (
        "product with a complex number",
        lambda x, p: x.e.multiply_scalar(x.a, SCALAR, x.a.scale),
        lambda a, b: a * SCALAR,
    ),
    "multiply_integer": (
        "product with an integer",
        lambda x, p: x.e.multiply_integer(x.a, -1),
        lambda a, b: -a,
    ),
    "multiply_i": ("product with i", lambda x, p: x.e.multiply_i(x.a), lambda a, b: 1j * a),
    "multiply_monomial": (
        "product with X^(N/2), which is i in every slot",
        lambda x, p: x.e.multiply_monomial(x.a, x.server.params.slots),
        lambda a, b: 1j * a,
    ),
    "twice_real": (
        "sum of a ciphertext and its conjugate",
        lambda x, p: x.e.twice_real(x.a),
        lambda a, b: a + a.conj(),
    ),
    "square": (
        "square of a ciphertext, relinearised",
        lambda x, p: x.e.relinearise(x.e.square(x.a)),
        lambda a, b: a * a,
    ),
    "relinearise_rescale": (
        "product of two ciphertexts, then relinearised and rescaled in one",
        lambda x, p: x.e.relinearise_rescale(x.e.multiply(x.a, x.b)),
        lambda a, b: a * b,
    ),
    "drop_to": (
        "limbs of one level dropped",
        lambda x, p: x.e.drop_to(x.a, x.a.level - 1),
        lambda a, b: a,
    ),
    "adjust": (
        "one level down to that level's scale",
        lambda x, p: x.e.adjust(x.a, *_down(x)),
        lambda a, b: a,
    ),
    "rotate_hoisted": (
        "rotation of a ciphertext that was lifted for it",
        lambda x, p: x.e.rotate_hoisted(x.e.hoist(x.a), 1),
        lambda a, b: turned(a),
    ),
    "rotate_extended": (
        "rotation of a lifted ciphertext without the division by P, then that division",
        lambda x, p: x.e.reduce(x.e.rotate_extended(x.e.hoist(x.a), 1)),
        lambda a, b: turned(a),
    ),
    "multiply_accumulate": (
        "sum of two rotations weighed by a plaintext, divided by P and one level at once",
        _weigh,
        lambda a, b: (a + turned(a)) * b[:1],  # one diagonal for a whole batch
    ),
    "rotate_accumulate": (
        "sum of two ciphertexts and a rotation before the division by P",
        _accumulate,
        lambda a, b: a + b + turned(a),
    ),
    "sum_of_slots": (
        "each slot and the next (EncryptedArray.sum of two)",
        lambda x, p: x.server.bind(x.a).sum(count=2)._settled(),
        lambda a, b: a + turned(a),
    ),
}


def _register(name: str, about: str, body: Body, want: Callable[[Vector, Vector], Vector]) -> None:
    def of_case(c: Case, options: Options) -> Iterator[Row]:
        weights: dict[ckks.Evaluator, Weights] = {}

        def on(x: Operands) -> ckks.Ciphertext:
            if x.server not in weights:
                plain = x.e.encode(c.vb, c.level)
                diagonal = x.e.encode_diagonal(c.vb[0], c.level, x.a.scale)
                weights[x.server] = Weights(plain, diagonal)
                x.e.prepare_monomial(x.server.params.slots)
            return body(x, weights[x.server])

        yield c.measure(name, on, want(c.va, c.vb), options)

    on_sets(name, about)(of_case)


for _name, (_about, _body, _want) in OPERATIONS.items():
    _register(_name, _about, _body, _want)
