"""A ciphertext knows how its numbers lie; a plan takes only what lies as it needs."""

from __future__ import annotations

import copy
import pickle
import random
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import jali
from jali import ckks

ROWS, COLUMNS = 6, 20
LEVEL = 2  # of the plans' inputs


@dataclass(frozen=True)
class Room:
    """Plans for one matrix and vectors that lie in several ways, and keys for everything."""

    params: ckks.Params
    client: ckks.Client
    server: ckks.Evaluator
    matrix: Any
    cheapest: ckks.MatVec  # takes what its pack() gives: windows of one number
    natural: ckks.MatVec
    repeated: ckks.MatVec  # takes what a MatVec of COLUMNS rows gives
    windows: ckks.MatVec  # another matrix, and windows of several numbers

    def bind(self, values: Any) -> ckks.EncryptedArray:
        return self.server.bind(self.client.encrypt(values, magnitude=1, peak=4))

    def close(self, x: ckks.EncryptedArray, expected: Any) -> bool:
        """Errors are in proportion to the largest number, also where others are small."""
        error = np.abs(self.client.decrypt(x) - expected).max()
        return bool(error < 1e-4 * max(1.0, np.abs(expected).max()))


@pytest.fixture(scope="module")
def room() -> Room:
    params = ckks.Params.create(depth=5, scale_bits=40)
    client = ckks.Client(params, threads=1)
    generator = np.random.default_rng(1)
    matrix = generator.uniform(-0.3, 0.3, (ROWS, COLUMNS))
    cheapest = ckks.MatVec(matrix, params, level=LEVEL)
    natural = ckks.MatVec(matrix, params, level=LEVEL, layout="natural")
    before = ckks.MatVec(np.ones((COLUMNS, 1)), params)
    repeated = ckks.MatVec(matrix, params, level=LEVEL, layout=before.output_layout)
    windows = ckks.MatVec(np.full((100, 64), 0.01), params, level=LEVEL)
    rotations = {1, 3, -1, *ckks.sum_rotations(params.slots)}
    for plan in (cheapest, natural, repeated, windows):
        rotations |= {*plan.rotations, *plan.arrangement()[1], *plan.input_layout.natural_rotations}
    keys = client.evaluation_keys(rotations=sorted(rotations), conjugate=True)
    server = ckks.Evaluator(params, keys, threads=1)
    return Room(params, client, server, matrix, cheapest, natural, repeated, windows)


@pytest.fixture
def v(rng: np.random.Generator) -> Any:
    return rng.uniform(-1, 1, COLUMNS)


def test_layouts_say_how_vectors_lie(room: Room) -> None:
    assert f"Layout({COLUMNS} numbers that repeat every 32 slots" in repr(
        room.repeated.input_layout
    )
    assert f"{COLUMNS} numbers in the first of" in repr(room.natural.input_layout)
    assert "windows" in repr(room.windows.input_layout)
    assert "windows" in repr(room.cheapest.input_layout)


@pytest.mark.parametrize("name", ["cheapest", "repeated"])
def test_vectors_that_lie_otherwise_are_refused_and_both_layouts_named(
    room: Room, v: Any, name: str
) -> None:
    plan = getattr(room, name)
    padded = np.zeros(room.params.slots)
    padded[:COLUMNS] = v
    x = room.bind(v)
    packed = room.bind(plan.pack(v)[0])
    for case, wrong in {
        "fresh": x,
        "plus a number": x + 1,
        "rotated": x.rotate(1),
        "all slots": x.with_length(room.params.slots),
        "another length": x.with_length(COLUMNS + 1),
        "padded by hand": room.bind(padded),
        "a copy of packed slots": room.bind(np.array(plan.pack(v)[0])),
        "computed from packed slots": room.bind(plan.pack(v)[0] * 1.0),
        "times an array": x * np.ones(COLUMNS),
        "packed, of another length": packed.with_length(COLUMNS - 1),
    }.items():
        with pytest.raises(jali.InvalidArgument) as refused:
            room.server.matvec(plan, wrong)
        message = str(refused.value)
        assert repr(wrong.layout)[len("Layout(") : -1] in message, case
        assert repr(plan.input_layout)[len("Layout(") : -1] in message, case
        assert "arrange" in message and "pack()" in message, case


def test_natural_plans_refuse_other_lengths_and_windows(room: Room, v: Any) -> None:
    longer = room.bind(np.append(v, 1.0))
    windows = room.bind(room.cheapest.pack(v)[0])
    everything = room.bind(np.ones(room.params.slots) / 2)
    for wrong in (longer, windows, everything, room.bind(v[1:])):
        with pytest.raises(jali.InvalidArgument, match="lies as"):
            room.server.matvec(room.natural, wrong)
    with pytest.raises(jali.InvalidArgument, match="lies as"):
        np.ones((3, COLUMNS)) @ windows
    # The first numbers of a vector that repeats are where the plan reads them.
    repeated = room.bind(room.repeated.pack(v)[0])
    assert room.close(room.server.matvec(room.natural, repeated), room.matrix @ v)
    expected = room.matrix @ (v + 1)
    assert room.close(room.server.matvec(room.natural, room.bind(v) + 1), expected)


def test_packed_vectors_have_the_vector_s_shape_and_decrypt_to_it(room: Room) -> None:
    for plan in (room.cheapest, room.repeated, room.windows):
        for batch in ((), (2,)):
            w = np.linspace(-1, 1, int(np.prod(batch, initial=1)) * plan.columns)
            w = w.reshape(*batch, plan.columns)
            x = room.bind(plan.pack(w)[0])
            assert x.shape == w.shape
            assert room.close(x, w)
            slots = room.client.decrypt(x, length=room.params.slots)
            assert np.allclose(slots, plan.pack(w)[0], atol=1e-4)
            back = ckks.Ciphertext.from_bytes(x.ciphertext.to_bytes(), room.params)
            assert repr(back.layout) == repr(x.layout) == repr(plan.input_layout)


def test_arithmetic_keeps_a_plan_s_layout(room: Room, rng: np.random.Generator) -> None:
    for plan, matrix in (
        (room.cheapest, room.matrix),
        (room.repeated, room.matrix),
        (room.windows, np.full((100, 64), 0.01)),
    ):
        a, b, c = rng.uniform(-1, 1, (3, plan.columns))
        x, y = room.bind(plan.pack(a)[0]), room.bind(plan.pack(b)[0])
        for value, expected in (
            (x + y, a + b),
            (x * y, a * b),
            (x + c, a + c),
            (c - x, c - a),
            (x * c, a * c),
            (2 * x + 1, 2 * a + 1),
            (-x.conj(), -a),
            (room.server.polynomial(x, [0.5, 0, 1]), 0.5 + a * a),
            (x.with_magnitude(1, peak=2), a),
        ):
            assert room.close(value, expected)
            assert room.close(room.server.matvec(plan, value), matrix @ expected)


def test_a_bias_between_two_products_is_added_everywhere(room: Room, v: Any) -> None:
    hidden = room.server.matvec(room.cheapest, room.bind(room.cheapest.pack(v)[0]))
    bias = np.arange(ROWS) / 10
    second = np.ones((2, ROWS)) * [[0.1], [0.2]]
    plan = ckks.MatVec(second, room.params, level=1, layout=hidden.layout)
    server = ckks.Evaluator(
        room.params, room.client.evaluation_keys(rotations=plan.rotations), threads=1
    )
    x = server.bind((hidden + bias).ciphertext)
    assert room.close(server.matvec(plan, x), second @ (room.matrix @ v + bias))
    with pytest.raises(jali.InvalidArgument, match="lies as"):
        server.matvec(plan, server.bind(room.client.encrypt(np.ones(ROWS))))


def test_a_vector_in_windows_meets_only_its_like(room: Room) -> None:
    w = np.linspace(-1, 1, room.windows.columns)
    x, y = room.bind(room.windows.pack(w)[0]), room.bind(w)
    for wrong in (lambda: x + y, lambda: x * y, lambda: y - x, lambda: x.sum()):
        with pytest.raises(jali.InvalidArgument, match="natural"):
            wrong()
    assert room.close(x.natural() + y, 2 * w)
    moved = x.rotate(1)
    assert moved.shape == (room.params.slots,), "slots that were moved are only slots"
    with pytest.raises(jali.InvalidArgument, match="lies as"):
        room.server.matvec(room.windows, moved)
    with pytest.raises(jali.InvalidArgument, match="cannot become longer"):
        x.with_length(2 * room.windows.columns)


def test_rotations_by_the_period_change_nothing(room: Room, v: Any) -> None:
    x = room.bind(room.repeated.pack(v)[0])
    period = room.repeated.input_layout.period
    assert period < room.params.slots
    whole = x.rotate(period)
    assert room.close(room.server.matvec(room.repeated, whole), room.matrix @ v)
    part = x.rotate(1)  # the vector of the slots from 1 on, which repeats as often
    shown = np.roll(np.append(v, np.zeros(period - COLUMNS)), -1)[:COLUMNS]
    assert room.close(part, shown)
    assert room.close(room.server.matvec(room.repeated, part), room.matrix @ shown)
    assert room.close(part.sum(), shown.sum())


def test_sums_of_vectors_that_repeat(room: Room, v: Any) -> None:
    x = room.bind(room.repeated.pack(v)[0])
    assert room.close(x.sum(), v.sum())
    y = room.server.matvec(room.repeated, x)
    assert room.close(y.sum(), (room.matrix @ v).sum())
    assert room.close((x + 1).sum(), (v + 1).sum())


@pytest.mark.long
def test_arrange_brings_vectors_into_a_plan_s_layout_at_the_cost_it_tells(
    room: Room, rng: np.random.Generator
) -> None:
    for plan, matrix in (
        (room.cheapest, room.matrix),
        (room.repeated, room.matrix),
        (room.windows, np.full((100, 64), 0.01)),
        (room.natural, room.matrix),
    ):
        w = rng.uniform(-1, 1, plan.columns)
        x = room.bind(w)
        for value, expected in ((x, w), (x + 1, w + 1), (x.rotate(1), np.append(w[1:], 0))):
            levels, rotations = plan.arrangement(value.layout)
            assert levels <= 2
            server = ckks.Evaluator(
                room.params, room.client.evaluation_keys(rotations=rotations), threads=1
            )
            done = server.arrange(plan, server.bind(value.ciphertext))
            assert done.level == value.level - levels
            again = room.server.bind(done.ciphertext)
            assert room.close(room.server.matvec(plan, again), matrix @ expected)
        assert plan.arrangement() == plan.arrangement(x.layout)
        packed = room.bind(plan.pack(w)[0])
        assert plan.arrangement(packed.layout) == (0, [])
        assert room.server.arrange(plan, packed).level == packed.level
    levels, rotations = room.repeated.arrangement()
    doublings = np.log2(room.params.slots / 32)
    assert (levels, len(rotations)) == (0, doublings)
    assert room.windows.arrangement()[0] == 1


def test_arrange_refuses(room: Room, v: Any) -> None:
    low = room.server.bind(room.client.encrypt(v, level=0))
    with pytest.raises(jali.DepthExhausted):
        room.server.arrange(room.cheapest, low + 1)
    with pytest.raises(jali.InvalidArgument, match="with_length"):
        room.server.arrange(room.cheapest, room.bind(v[1:]))
    with pytest.raises(jali.InvalidArgument, match="MatVec"):
        room.server.arrange(room.matrix, room.bind(v))  # type: ignore[arg-type]
    with pytest.raises(jali.InvalidArgument, match="slots"):
        room.server.arrange(room.cheapest, room.server.bind(room.client.encrypt(v, slots=32)))
    keyless = ckks.Evaluator(room.params, threads=1)
    with pytest.raises(jali.KeyMissing):
        keyless.arrange(room.cheapest, keyless.bind(room.client.encrypt(v)))


def test_natural_costs_a_level_only_if_something_lies_behind(room: Room, v: Any) -> None:
    x = room.bind(v)
    packed, repeated = (room.bind(p.pack(v)[0]) for p in (room.cheapest, room.repeated))
    assert x.natural().level == x.level
    for value, expected in (
        (x + 1, v + 1),
        (packed, v),
        (repeated + 1, v + 1),
        (x.rotate(1), np.append(v[1:], 0)),
    ):
        done = value.natural()
        assert done.level == value.level - 1
        slots = room.client.decrypt(done, length=room.params.slots)
        assert np.allclose(slots[:COLUMNS], expected, atol=1e-4)
        assert np.allclose(slots[COLUMNS:], 0, atol=1e-4)
        assert room.close(done.sum(), expected.sum())


def test_with_layout_is_the_user_s_word(room: Room, v: Any) -> None:
    slots = np.array(room.cheapest.pack(v)[0])  # a plain array
    claimed = room.bind(slots).with_layout(room.cheapest.input_layout)
    assert claimed.shape == (COLUMNS,)
    assert room.close(room.server.matvec(room.cheapest, claimed), room.matrix @ v)
    with pytest.raises(jali.InvalidArgument, match="natural"):
        claimed.sum()
    for wrong in (None, "natural", 3):
        with pytest.raises(jali.InvalidArgument):
            room.bind(slots).with_layout(wrong)  # type: ignore[arg-type]
    with pytest.raises(jali.InvalidArgument):
        room.bind(slots).with_layout(room.cheapest.input_layout, 1)
    with pytest.raises(jali.InvalidArgument, match="slots"):
        few = room.server.bind(room.client.encrypt(v, slots=32))
        few.with_layout(room.cheapest.input_layout)


def test_long_vectors_are_taken_in_turn(room: Room) -> None:
    n = room.params.slots + 100
    matrix = np.full((1, n), 0.01)
    plan = ckks.MatVec(matrix, room.params, level=1)
    server = ckks.Evaluator(
        room.params, room.client.evaluation_keys(rotations=plan.rotations), threads=1
    )
    w = np.linspace(-1, 1, n)
    parts = [server.bind(room.client.encrypt(part, level=1, peak=1)) for part in plan.pack(w)]
    assert len(parts) == 2
    assert room.close(server.matvec(plan, parts), matrix @ w)
    with pytest.raises(jali.InvalidArgument, match="ciphertext 0"):
        server.matvec(plan, parts[::-1])


@pytest.mark.parametrize("kind", [list, tuple])
def test_the_list_that_pack_gives_is_no_array(room: Room, v: Any, kind: Any) -> None:
    wide = np.full((1, room.params.slots + 100), 0.01)
    plan = ckks.MatVec(wide, room.params, level=1)
    encryptor = ckks.Encryptor(room.client.public_key(), threads=1)
    for parts in (kind(room.cheapest.pack(v)), kind(plan.pack(wide[0]))):
        for party in (room.client, encryptor):
            with pytest.raises(
                jali.InvalidArgument, match=r"encrypt\(part\) for part in plan.pack"
            ):
                party.encrypt(parts, peak=1)
    numbers = [np.array(part) for part in plan.pack(wide[0])]
    assert room.client.encrypt(numbers, level=1, peak=1).batch == 2


def test_packed_arrays_that_were_changed_are_refused(room: Room, v: Any) -> None:
    (packed,) = room.cheapest.pack(v)
    assert type(copy.copy(packed)) is type(packed)
    packed[3] += 1
    with pytest.raises(jali.InvalidArgument, match="no longer lie"):
        room.client.encrypt(packed)
    (packed,) = room.cheapest.pack(v)
    packed *= 2  # all numbers still lie as they did
    x = room.server.bind(room.client.encrypt(packed, magnitude=2.0, peak=8.0))
    assert room.close(room.server.matvec(room.cheapest, x), 2 * room.matrix @ v)
    plain = pickle.loads(pickle.dumps(packed))
    assert np.array_equal(plain, packed)
    with pytest.raises(jali.InvalidArgument, match="lies as"):
        room.server.matvec(
            room.cheapest, room.server.bind(room.client.encrypt(plain, magnitude=2.0, peak=8.0))
        )
    with pytest.raises(jali.InvalidArgument, match=r"no longer lie|does not fit"):
        room.client.encrypt(room.cheapest.pack(v)[0], slots=32)


def _program(room: Room, choose: random.Random) -> tuple[int, int]:
    """A program of random operations, then every plan: how many products were right, and how many
    refused."""
    client, numbers = room.client, np.random.default_rng(choose.randrange(2**32))
    plans = (room.cheapest, room.natural, room.repeated)
    plan = choose.choice(plans)

    def fresh() -> ckks.EncryptedArray:
        w = numbers.uniform(-1, 1, COLUMNS)
        kind = choose.randrange(3)
        if kind == 0:
            return room.bind(w)
        packed = plan.pack(w)[0]
        return room.bind(packed if kind == 1 else np.array(packed))

    x = fresh()
    for _ in range(choose.randrange(6)):
        before = client.decrypt(x)
        c = numbers.uniform(-1, 1, x.shape[-1])
        y = fresh()
        operation = choose.randrange(12)
        expected: Any = None
        try:
            if operation == 0:
                x, expected = x + c, before + c
            elif operation == 1:
                x, expected = x * c, before * c
            elif operation == 2:
                x, expected = 0.5 * x + 0.25, before / 2 + 0.25
            elif operation == 3:
                x, expected = x.natural(), before
            elif operation == 4:
                x, expected = room.server.arrange(plan, x), before
            elif operation == 5:
                x = x.rotate(choose.choice([1, 3, -1, 32, room.params.slots // 2]))
            elif operation == 6:
                x = (x * 0.25).sum(count=choose.choice([2, 4, room.params.slots]))
            elif operation == 7:
                x = x.with_length(choose.choice([COLUMNS, COLUMNS - 1, 32, room.params.slots]))
            elif operation in (8, 9):
                shape, other = y.shape, client.decrypt(y)
                x = x * y if operation == 8 else x - y
                if shape == before.shape:
                    expected = before * other if operation == 8 else before - other
            elif operation == 10:
                x, expected = room.server.polynomial(x, [choose.choice([0, 0.5]), 1]), None
            else:
                sent = x.ciphertext.to_bytes()
                x = room.server.bind(ckks.Ciphertext.from_bytes(sent, room.params))
                expected = before
        except jali.Error:
            continue
        if expected is not None:
            assert room.close(x, expected), (operation, x.layout)
    right = refused = 0
    for taken in plans:
        try:
            product = room.server.matvec(taken, x)
        except (jali.InvalidArgument, jali.DepthExhausted, jali.RangeExceeded):
            refused += 1
            continue
        assert room.close(product, room.matrix @ client.decrypt(x)), x.layout
        right += 1
    return right, refused


def test_programs_are_right_or_refused(room: Room) -> None:
    choose = random.Random()
    seed = choose.randrange(2**32)
    print(f"seed {seed}")
    choose.seed(seed)
    right = refused = 0
    for _ in range(40):
        a, b = _program(room, choose)
        right, refused = right + a, refused + b
    assert right > 5 and refused > 5
