"""Sums of encrypted numbers that are longer than a message: digits of a few bits, added in columns
with carries."""

from __future__ import annotations

import itertools

from jali.tfhe.trees.circuit import Circuit, Form

__all__ = ["Term", "added", "packed"]

#: A form that counts 2^(digit * position).
Term = tuple[int, Form]


def packed(circuit: Circuit, terms: list[Term]) -> list[Term]:
    """Terms of equal position are added where the sum and its noise fit: no look-up."""
    found: dict[int, list[Form]] = {}
    for position, form in sorted(terms, key=lambda t: (t[0], -t[1].most)):
        packs = found.setdefault(position, [])
        for k, one in enumerate(packs):
            both = circuit.total([one, form])
            if both.most < circuit.room.values and both.norm2 <= circuit.room.norm2:
                packs[k] = both
                break
        else:
            packs.append(form)
    return [(position, form) for position, packs in sorted(found.items()) for form in packs]


def added(circuit: Circuit, terms: list[Term]) -> list[Term]:
    """The sum of terms in its one form: numbers that say no more than the sum itself."""
    while True:
        terms = packed(circuit, terms)
        crowded = {p for k, (p, _) in enumerate(terms[1:]) if p == terms[k][0]}
        if not crowded:
            break
        terms = [
            part
            for position, form in terms
            for part in (
                _split(circuit, position, form) if position in crowded else [(position, form)]
            )
        ]
    digit = circuit.room.digit
    follow = itertools.pairwise(terms)
    if all(form.most < 1 << (digit * (after[0] - at)) for (at, form), after in follow):
        return terms
    return _paired(circuit, _digits(circuit, terms))


def _split(circuit: Circuit, position: int, form: Form) -> list[Term]:
    """A number as its lowest digit and the rest, which counts for the next position."""
    base = 1 << circuit.room.digit
    low = circuit.look_up(form, [v % base for v in range(circuit.room.values)])
    high = circuit.look_up(form, [v // base for v in range(circuit.room.values)])
    return [(position, low), (position + 1, high)] if form.most >= base else [(position, low)]


def _digits(circuit: Circuit, terms: list[Term]) -> list[Term]:
    """One digit for each position, from the lowest on, with all carries."""
    waiting: dict[int, list[Form]] = {}
    for position, form in terms:
        waiting.setdefault(position, []).append(form)
    digits: list[Term] = []
    while waiting:
        position = min(waiting)
        forms = waiting.pop(position)
        while True:
            whole = circuit.total(forms)
            if whole.most < circuit.room.values and whole.norm2 <= circuit.room.norm2:
                break
            # The largest number gives its carry first, which makes room for the others.
            forms.sort(key=lambda form: (form.most, form.norm2))
            (_, low), *rest = _split(circuit, position, forms.pop())
            forms.append(low)
            for at, high in rest:
                waiting.setdefault(at, []).append(high)
        (_, low), *rest = _split(circuit, position, whole)
        digits.append((position, low))
        for at, high in rest:
            waiting.setdefault(at, []).append(high)
    return digits


def _paired(circuit: Circuit, digits: list[Term]) -> list[Term]:
    """Digits of neighbouring positions in one number, which halves what is sent."""
    base, found = 1 << circuit.room.digit, list[Term]()
    for position, form in digits:
        if found and found[-1][0] == position - 1 and found[-1][1].most < base:
            scaled = Form(tuple((n, w * base) for n, w in form.terms), form.most * base)
            both = circuit.total([found[-1][1], scaled])
            if both.most < circuit.room.values and both.norm2 <= circuit.room.norm2:
                found[-1] = position - 1, both
                continue
        found.append((position, form))
    return found
