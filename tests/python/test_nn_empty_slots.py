"""Noise of slots in which a row has no entry, against noise that is drawn in every slot and carried
through what a server computes there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from test_nn_program import encrypted

import jali
from jali.compiler.ir.graph import Graph
from jali.compiler.ir.operation import Input
from jali.compiler.layout.execute_lowered import every_slot
from jali.compiler.layout.terms import Term
from jali.compiler.noise.empty_slots import empty_slot_noise
from jali.compiler.program.program import Program

EXAMPLES = 4000


def overlaid(rng: np.random.Generator, rows: int, columns: int) -> Program:
    """A program that ends with a matrix; rows and columns choose its overlay."""
    a, b = rng.normal(size=(columns, 6)), rng.normal(size=(rows, columns)) / columns
    x = rng.uniform(-1, 1, (60, 6))
    return jali.compile(lambda v: b @ ((a @ v) ** 2), x[0], calibration=x, batch=64)


def variances(program: Program, noise: Any) -> tuple[Term, np.ndarray, np.ndarray]:
    """The last matrix's term, its squares, and the variances of its numbers for noise in the slots
    of its source."""
    graph = program.stages["levels"]
    last = graph[graph.outputs[0]].with_operation(bias=np.zeros(1))
    before = graph[last.inputs[0]]
    source = replace(before, operation=Input(before.shape), inputs=())
    slots = noise(source.attrs["layout"])
    if not last.attrs["terms"][0].turns:  # a server reads the real part alone
        slots = slots.real
    y = every_slot(Graph((source, last), graph.outputs, "levels"), [slots])[last.name]
    numbers = y.reshape(len(y), -1)[:, last.attrs["layout"].addresses]
    (single,) = program.stages["layout"][last.name].attrs["maps"]
    return last.attrs["terms"][0], single.matrix() ** 2, np.mean(numbers.real**2, axis=0)


@pytest.mark.parametrize(("rows", "columns"), [(24, 40), (30, 30), (3, 60), (12, 12)])
@pytest.mark.parametrize("alike", [False, True], ids=["copies of their own", "copies alike"])
def test_an_overlay_mixes_noise(
    rows: int, columns: int, alike: bool, rng: np.random.Generator
) -> None:
    """All noise is in the copies of one number of the source. Real numbers have complex noise. With
    one turn there is a single pair, and nothing is bounded: what is mixed in is what the formula
    says, be it little, as in some rows of 12 x 12 numbers. With more turns the mean over angles is
    bounded.
    """
    program = overlaid(rng, rows, columns)
    number = int(rng.integers(columns))

    def noise(layout: Any) -> np.ndarray:
        slots = np.zeros((EXAMPLES, layout.ciphertexts, layout.slots), complex)
        drawn = rng.normal(size=(EXAMPLES, len(layout.copies), 2)) @ [1, 1j]
        ciphertext, slot = divmod(int(layout.addresses[number]), layout.slots)
        slots[:, ciphertext, slot + layout.copies] = drawn[:, :1] if alike else drawn
        return slots

    term, squares, measured = variances(program, noise)
    one = np.eye(columns)[number]
    leaks = empty_slot_noise(term)(one, one, 0.0, rows)
    bound = squares[:, number] + leaks
    assert np.all(measured <= 1.15 * bound)
    assert bool(np.any(leaks)) == bool(term.turns)
    if len(term.turns) < 2:
        assert measured.sum() == pytest.approx(bound.sum(), rel=0.2)
    else:  # and no bound far above
        assert measured.sum() >= bound.sum() / 3


def test_even_noise_is_counted_once(rng: np.random.Generator) -> None:
    """If all slots have the same noise, an overlay takes the real and the imaginary part of as much
    as its matrix has entries for."""
    program = overlaid(rng, 24, 40)

    def noise(layout: Any) -> np.ndarray:
        shape = (EXAMPLES, layout.ciphertexts, layout.slots, 2)
        return np.asarray(rng.normal(size=shape) @ [1, 1j])

    term, squares, measured = variances(program, noise)
    assert term.turns
    ones = np.ones(40)
    bound = squares.sum(1) + empty_slot_noise(term)(ones, ones, 1.0, 24)
    assert np.allclose(measured / bound, 1, atol=0.15)


def test_sums_without_a_mask_take_the_noise_between_numbers(rng: np.random.Generator) -> None:
    """Five numbers in a ciphertext of many slots: the promise holds for their sum."""
    w, x = rng.normal(size=(5, 8)), rng.uniform(-1, 1, (300, 8))
    f = lambda v: ((w @ v) ** 2).sum()  # noqa: E731
    program = jali.compile(f, x[0], calibration=x, precision_bits=9, batch=8)
    want = np.array([f(v) for v in x[:128]])
    off = np.asarray(encrypted(program, x[:128])).reshape(-1) - want
    name = program.stages["calibrate"].outputs[0]
    promise = 2.0**-9 * program.stages["calibrate"][name].attrs["largest"]
    assert np.abs(off).max() <= promise and 6 * off.std() <= 1.25 * promise
