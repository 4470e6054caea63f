"""The lowering: steps account for what their records say, and depend on what they need."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jali
from jali.simulate import lower_ckks, lower_tfhe
from jali.simulate import trace as traces
from jali.simulate.lower import lower
from jali.simulate.lowering import butterflies
from jali.simulate.machine import Machine
from jali.simulate.scheduler import schedule
from jali.simulate.steps import Entity, Kind, Steps

ROOT = Path(__file__).parents[3]
FILES = sorted((ROOT / "vectors" / "traces").glob("*.jsonl"))
TWIDDLES = (Entity.TWIDDLE, Entity.INVERSE_TWIDDLE)
HEADER = {
    "schema": 1,
    "scheme": "ckks",
    "library": "by hand",
    "commit": "unknown",
    "engine": "none",
    "N": 16,
    "word": "w64",
    "word_bytes": 8,
    "prime_bits": [40, 40, 40],
    "digits": [],
    "special_primes": 1,
}
ROW = 16 * 8


def operation(op: str, start: int, reads: Any, writes: Any, mults: int = 0, **more: Any) -> str:
    """A line of a trace of one limb."""
    fields: dict[str, Any] = {
        "op": op,
        "start": start,
        "thread": 0,
        "primes_in": [0],
        "primes_out": [0],
        "batch": 1,
        "digits": [],
        "terms": 1,
        "products": 0,
        "galois": [],
        "sources": [],
        "sums": [],
        "operands": [],
        "accumulate": False,
        "reads": [["ciphertext", *extent] for extent in reads],
        "writes": [["ciphertext", *extent] for extent in writes],
        "bytes_read": sum(extent[2] for extent in reads),
        "bytes_written": sum(extent[2] for extent in writes),
        "mults": mults,
        "stream_bytes": 0,
        "complex_butterflies": 0,
        "complex_products": 0,
        "seconds": 0.5,
    }
    return json.dumps(fields | more)


def made(*lines: str, **header: Any) -> traces.Trace:
    return traces.parse("\n".join([json.dumps(HEADER | header), *lines]))


def sums(
    steps: Steps, values: npt.NDArray[Any], chosen: npt.NDArray[np.bool_], size: int
) -> list[int]:
    """The sum of values for each record."""
    out = np.zeros(size, np.int64)
    np.add.at(out, steps.record[chosen], values[chosen])
    return [int(x) for x in out]


@pytest.mark.parametrize("by_iteration", [True, False])
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_steps_account_for_every_record(path: Path, by_iteration: bool) -> None:
    trace = traces.read(path)
    steps, size = lower(trace, by_iteration=by_iteration), len(trace)
    steps.verify()
    twiddles = np.isin(steps.entity, TWIDDLES)
    loads = (steps.kind == Kind.LOAD) & ~twiddles
    every = np.ones(len(steps), bool)
    assert sums(steps, steps.mults, every, size) == [r.mults for r in trace.records]
    assert sums(steps, steps.bytes, loads, size) == [r.bytes_read for r in trace.records]
    stores = steps.kind == Kind.STORE
    assert sums(steps, steps.bytes, stores, size) == [r.bytes_written for r in trace.records]
    of_one = [
        butterflies(Kind(k), int(n)) * int(c)
        for k, n, c in zip(steps.kind, steps.n, steps.count, strict=True)
    ]
    have = sums(steps, np.array(of_one), every, size)
    assert have == [r.complex_butterflies for r in trace.records]
    points = steps.n.astype(np.int64) // 2 * steps.count
    have = sums(steps, points, steps.kind == Kind.VMA, size)
    assert have == [r.complex_products for r in trace.records]
    # Every record but a copy computes something.
    computing = np.unique(steps.record[~np.isin(steps.kind, [Kind.LOAD, Kind.STORE])])
    assert list(computing) == [i for i in range(size) if trace.records[i].op != "copy"]


def operations_of(header: str, name: str) -> set[str]:
    """The operations of a table: its virtual functions without those that describe an engine."""
    text = (ROOT / "src" / "jali" / "backend" / header).read_text(encoding="utf-8")
    body = re.split(rf"^class {name}\b[^;]*?{{", text, maxsplit=1, flags=re.MULTILINE)[1]
    found = re.findall(r"^  virtual [^;{(~]*?(\w+)\(", body.split("\n};", 1)[0], re.MULTILINE)
    return set(found)


def test_every_operation_of_every_table_is_lowered() -> None:
    """A new operation cannot be forgotten, neither by the reader, nor by the lowering, nor by the
    traces that are tested."""
    ckks = set()
    for header, name in (
        ("ring_ops.h", "RingOps"),
        ("rlwe_ops.h", "RlweOps"),
        ("embedding_ops.h", "EmbeddingOps"),
    ):
        ckks |= operations_of(header, name)
    ckks = (ckks - {"root"}) | {"copy"}  # which layers above ask of the memory
    tfhe = operations_of("tfhe_ops.h", "TfheOps")
    tfhe -= {"name", "config", "width", "copies", "copy_in", "copy_in_seeded"}
    tfhe = (tfhe - {"rotation_key_bytes", "switch_key_bytes"}) | {"copy"}
    assert len(ckks) > 30 and len(tfhe) > 10
    assert ckks == set(traces.CKKS) == set(lower_ckks.OPERATIONS)
    assert tfhe == set(traces.TFHE) == set(lower_tfhe.OPERATIONS)
    in_files: dict[str, set[str]] = {"ckks": set(), "tfhe": set()}
    for path in FILES:
        trace = traces.read(path)
        in_files[trace.header.scheme] |= {r.op for r in trace.records}
        if trace.header.scheme == "tfhe":  # each kind of blind rotation has steps of its own
            in_files[trace.header["rotation"]] = {r.op for r in trace.records}
    assert in_files["ckks"] == ckks and in_files["tfhe"] == tfhe
    assert all(in_files[kind] == tfhe for kind in traces.ROTATIONS)


def step_of(steps: Steps, kind: Kind, record: int) -> int:
    (found,) = np.flatnonzero((steps.kind == kind) & (steps.record == record))
    return int(found)


def test_a_load_waits_for_what_made_it() -> None:
    trace = made(
        operation("neg", 0, [(1, 0, ROW)], [(2, 0, ROW)]),
        operation("neg", 1, [(2, 0, ROW)], [(3, 0, ROW)]),
        operation("neg", 2, [(1, 0, ROW)], [(4, 0, ROW)]),
    )
    steps = lower(trace)
    load = [step_of(steps, Kind.LOAD, i) for i in range(3)]
    add = [step_of(steps, Kind.ADD, i) for i in range(3)]
    assert steps.dependences(load[0]) == []
    assert steps.dependences(load[1]) == [add[0]]
    assert steps.dependences(load[2]) == []  # nobody wrote object 1
    assert steps.operand[load[0]] == steps.operand[load[2]]
    assert steps.operand[load[1]] == steps.operand[step_of(steps, Kind.STORE, 0)]
    for i in range(3):
        assert steps.dependences(add[i]) == [load[i]]
        assert steps.dependences(step_of(steps, Kind.STORE, i)) == [add[i]]


def test_the_last_writer_of_what_overlaps_counts() -> None:
    half = ROW // 2
    trace = made(
        operation("neg", 0, [(1, 0, ROW)], [(2, 0, ROW)]),
        operation("neg", 1, [(1, 0, ROW)], [(2, 0, ROW)]),  # the same place once more
        operation("neg", 2, [(1, 0, ROW)], [(2, 2 * ROW, ROW)]),
        operation("neg", 3, [(2, ROW, ROW)], [(5, 0, ROW)]),  # between the two
        operation("neg", 4, [(2, half, 2 * ROW)], [(6, 0, ROW)]),  # a part of each
        operation("neg", 5, [(2, 0, ROW)], [(7, 0, ROW)]),
    )
    steps = lower(trace)
    assert steps.dependences(step_of(steps, Kind.LOAD, 3)) == []
    # What begins elsewhere is another operand, which the machine cannot match with its store: it
    # waits for that.
    stores = [step_of(steps, Kind.STORE, i) for i in (1, 2)]
    assert steps.dependences(step_of(steps, Kind.LOAD, 4)) == stores
    assert steps.dependences(step_of(steps, Kind.LOAD, 5)) == [step_of(steps, Kind.ADD, 1)]


def test_operations_are_lowered_in_the_order_in_which_they_began() -> None:
    trace = made(
        operation("neg", 7, [(2, 0, ROW)], [(3, 0, ROW)]),
        operation("neg", 4, [(1, 0, ROW)], [(2, 0, ROW)]),
    )
    steps = lower(trace)
    assert list(steps.record) == [1, 1, 1, 0, 0, 0]
    assert steps.dependences(step_of(steps, Kind.LOAD, 0)) == [step_of(steps, Kind.ADD, 1)]


def test_transforms_load_the_factors_of_their_primes() -> None:
    both = [(1, 0, 2 * ROW)]
    trace = made(
        operation("ntt", 0, both, both, 2 * 8 * 4, primes_in=[0, 2], primes_out=[0, 2]),
        operation("ntt", 1, [(9, 0, ROW)], [(9, 0, ROW)], 8 * 4, primes_in=[2], primes_out=[2]),
        operation("intt", 2, [(9, 0, ROW)], [(9, 0, ROW)], 8 * 5, primes_in=[2], primes_out=[2]),
    )
    steps = lower(trace)
    tables = np.isin(steps.entity, TWIDDLES)
    assert list(steps.bytes[tables]) == [ROW] * 4
    first, second, again, inverse = steps.operand[tables]
    assert second == again and len({first, second, inverse}) == 3
    transform = step_of(steps, Kind.NTT, 0)
    assert (steps.n[transform], steps.count[transform]) == (16, 2)
    assert set(np.flatnonzero(tables & (steps.record == 0))) < set(steps.dependences(transform))


def test_a_table_has_no_number_of_an_operand() -> None:
    """Objects may have any number: also those by which entities and primes are counted."""
    for number in range(16):
        line = operation("ntt", 0, [(number, 0, ROW)], [(number, 0, ROW)], 8 * 4)
        loads = lower(made(line))
        (table,) = np.flatnonzero(loads.entity == Entity.TWIDDLE)
        own = np.flatnonzero(loads.entity == Entity.CIPHERTEXT)
        assert loads.operand[table] not in loads.operand[own]


def test_a_key_switch_by_hand() -> None:
    """Two digits of one limb over two limbs and one special prime. Each is transformed back, lifted
    to two primes, and multiplied by a key."""
    n, ntt, intt = 16, 8 * 4, 8 * 5
    lift = n * (1 + 2 + 2) + 2 * ntt
    keys = [("key", 5, d * 6 * ROW, 6 * ROW) for d in range(2)]
    line = json.loads(
        operation(
            "key_switch",
            0,
            [(1, 0, 2 * ROW)],
            [(2, 0, 3 * ROW), (3, 0, 3 * ROW)],
            2 * (intt + lift) + 2 * 2 * 3 * n,
            primes_in=[0, 1],
            primes_out=[0, 1, 2],
            digits=[1, 1],
        )
    )
    line["reads"] += [list(key) for key in keys]
    line["bytes_read"] += 12 * ROW
    steps = lower(made(json.dumps(line)))
    assert steps.counts() == {
        Kind.LOAD: 1
        + 2
        + 2
        + 4,  # the polynomial, keys, factors of both inverse transforms, and of four
        Kind.STORE: 2,
        Kind.NTT: 2,
        Kind.INTT: 2,
        Kind.MAC: 4,
        Kind.MUL: 2,
    }
    products = [i for i in range(len(steps)) if steps.kind[i] == Kind.MAC and steps.count[i] == 6]
    first, second = products
    assert first in steps.dependences(second)  # they add to one accumulator
    key_of = {int(d) for d in steps.dependences(first) if steps.entity[d] == Entity.KEY}
    assert len(key_of) == 1
    for product in products:
        assert any(steps.kind[d] == Kind.NTT for d in steps.dependences(product))


def test_digits_and_halves_go_side_by_side() -> None:
    """A unit takes its steps in order. Each stage of every digit comes before the next stage, so
    that no digit waits for the latency of another's transform: with 1,000 cycles of latency, a key
    switch of two digits takes as many latencies as one of one digit."""
    header = {"prime_bits": [40] * 4, "special_primes": 1}

    def seconds(digits: list[int]) -> float:
        limbs, n = sum(digits), 16
        lifted = sum(n * (d + (d + 1) * (4 - d)) + (4 - d) * 8 * 4 + d * 8 * 5 for d in digits)
        line = json.loads(
            operation(
                "key_switch",
                0,
                [(1, 0, limbs * ROW)],
                [(2, 0, 4 * ROW), (3, 0, 4 * ROW)],
                lifted + 2 * len(digits) * 4 * n,
                primes_in=list(range(limbs)),
                primes_out=[0, 1, 2, 3],
                digits=digits,
            )
        )
        line["reads"] += [["key", 5, d * 8 * ROW, 8 * ROW] for d in range(len(digits))]
        line["bytes_read"] += 8 * ROW * len(digits)
        steps = lower(made(json.dumps(line), **header))
        return schedule(steps, LATE).span

    assert 2000 < seconds([3]) < 3000 and 2000 < seconds([1, 1, 1]) < 3000


LATE = Machine.parse("""
format = 1
name = "late"
frequency_hz = { value = 1e9, source = "assumed" }
[units.ntt]
count = { value = 1, source = "assumed" }
lanes = { value = 16, source = "assumed" }
kinds."NTT+INTT" = { latency = { value = 1000, source = "assumed" } }
[units.rest]
count = { value = 1, source = "assumed" }
lanes = { value = 16, source = "assumed" }
kinds."MAC+MUL+ADD+AUTOMORPHISM" = {}
[channels.dram]
carries = ["all"]
bytes_a_second = { value = 1e14, source = "assumed" }
""")


def longest_path(steps: Steps, kind: Kind) -> int:
    """The most steps of a kind that wait for one another."""
    depth = np.zeros(len(steps), np.int64)
    for i in range(len(steps)):
        before = max((depth[d] for d in steps.dependences(i)), default=0)
        depth[i] = before + (steps.kind[i] == kind)
    return int(depth.max(initial=0))


@pytest.mark.parametrize("path", [p for p in FILES if "tfhe" in p.stem], ids=lambda p: p.stem)
def test_iterations_of_a_blind_rotation_wait_for_one_another(path: Path) -> None:
    trace = traces.read(path)
    record = next(r for r in trace.records if r.op == "blind_rotate")
    alone = traces.Trace(trace.header, (record,))
    iterations = record["steps"]
    fine, coarse = lower(alone), lower(alone, by_iteration=False)
    assert longest_path(fine, Kind.ACCUMULATE) == iterations
    assert longest_path(coarse, Kind.ACCUMULATE) == 1
    assert fine.elements() == coarse.elements() and len(fine) > len(coarse)
    parts = fine.entity == Entity.BOOTSTRAPPING_KEY
    assert parts.sum() == iterations and len(set(fine.operand[parts])) == iterations
    assert fine.moved() == coarse.moved()


def test_records_that_do_not_agree_with_their_operation_are_refused() -> None:
    neg: Any = ("neg", 0, [(1, 0, ROW)], [(2, 0, ROW)])
    for line, says in (
        (operation(*neg, mults=1), "neg: mults is 1, but its shape takes 0"),
        (operation("add", *neg[1:]), "reads more than 1"),
        (operation("neg", 0, [(1, 0, ROW)] * 2, neg[3]), "operands beyond"),
        (operation("neg", 0, neg[2], []), "writes fewer"),
        (operation("neg", 0, [(1, 0, 5)], [(2, 0, 5)]), "no block of residues"),
        (operation("combine", *neg[1:], terms=9), "9 terms"),
        (operation("key_switch", *neg[1:]), "digits must not be empty"),
        (operation("key_switch", *neg[1:], digits=[7]), "digits must add up"),
        (operation("key_product", *neg[1:], digits=[1]), "galois must have"),
        (operation("rotate", *neg[1:]), "two accumulators"),
        (operation("embed", 0, [(1, 0, ROW + 16)], neg[3]), "slots"),
        (operation("mul", *neg[1:], complex_products=3), "reads more"),
    ):
        with pytest.raises(jali.CorruptData, match=f"(?s)line 2.*{says}"):
            lower(made(line))
    with pytest.raises(jali.InvalidArgument, match="Trace"):
        lower("trace.jsonl")  # type: ignore[arg-type]


LINES = [path.read_bytes().splitlines() for path in FILES]
NUMBERS = [0, 1, 2, 3, 7, 16, 1 << 20, 1 << 40]


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_changed_records_are_lowered_or_refused(data: st.DataObject) -> None:
    """Whatever a record says, there are steps or an error of Jali's."""
    header, *lines = data.draw(st.sampled_from(LINES))
    record = json.loads(data.draw(st.sampled_from(lines)))
    for _ in range(data.draw(st.integers(1, 3))):
        name = data.draw(st.sampled_from(sorted(record)))
        if isinstance(record[name], list):
            change = data.draw(st.sampled_from(["shorter", "longer", "number"]))
            if change == "shorter" and record[name]:
                record[name].pop(data.draw(st.integers(0, len(record[name]) - 1)))
            elif change == "longer" and record[name]:
                record[name].append(data.draw(st.sampled_from(record[name])))
            elif change == "number" and not name.endswith("s"):
                record[name] = [data.draw(st.sampled_from(NUMBERS))]
        elif type(record[name]) is int:
            record[name] = data.draw(st.sampled_from(NUMBERS))
        elif type(record[name]) is bool:
            record[name] = not record[name]
    for name, operands in (("bytes_read", "reads"), ("bytes_written", "writes")):
        record[name] = sum(operand[3] for operand in record[operands])
    try:
        steps = lower(traces.parse(header + b"\n" + json.dumps(record).encode()))
    except jali.Error as error:
        assert "line 2" in str(error)
    else:
        steps.verify()
