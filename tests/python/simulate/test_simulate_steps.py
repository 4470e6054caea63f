"""Machine steps: what the builder makes, and what the verifier refuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import jali
from jali.simulate import ANY, Entity, Kind, StepsBuilder, steps
from jali.simulate.steps import Steps


def example() -> Steps:
    b = StepsBuilder()
    key = b.load(Entity.KEY, 100, 7)
    a = b.append(Kind.NTT, 16, 3, mults=96, record=4, lane=2)
    c = b.append(Kind.MAC, 16, 2, after=(key,), streams=(a,))
    b.store(Entity.CIPHERTEXT, 50, 9, after=(c, a))
    return b.build()


def test_columns_and_counts() -> None:
    s = example()
    assert len(s) == 4
    assert s.counts() == {Kind.LOAD: 1, Kind.STORE: 1, Kind.NTT: 1, Kind.MAC: 1}
    assert s.elements() == {Kind.NTT: 48, Kind.MAC: 32}
    assert s.moved() == {Entity.KEY: 100} and s.moved(Kind.STORE) == {Entity.CIPHERTEXT: 50}
    assert [s.dependences(i) for i in range(4)] == [[], [], [0, 1], [2, 1]]
    assert s.streamed.tolist() == [False, True, False, False]
    assert s.lane.tolist() == [ANY, 2, ANY, ANY] and s.mults.sum() == 96


def test_slices_lose_what_came_before() -> None:
    part = example().slice(1, 4)
    part.verify()
    assert [part.dependences(i) for i in range(3)] == [[], [0], [1, 0]]
    assert part.kind.tolist() == [Kind.NTT, Kind.MAC, Kind.STORE]
    assert part.streamed.tolist() == [True, False, False]
    with pytest.raises(jali.InvalidArgument, match="steps 0 to 4"):
        example().slice(3, 5)


@pytest.mark.parametrize(
    ("column", "value", "rule"),
    [
        ("kind", 200, "kinds"),
        ("entity", 99, "entities"),
        ("n", -1, "n is"),
        ("n", 0, "arithmetic"),
        ("count", 0, "count"),
        ("bytes", -5, "bytes"),
        ("bytes", 1 << 62, "2\\^62"),
        ("lane", -2, "lane"),
        ("operand", -7, "operand"),
    ],
)
def test_verifier_refuses_ranges(column: str, value: int, rule: str) -> None:
    s = example()
    changed = getattr(s, column).copy()
    changed[1] = value
    with pytest.raises(jali.InvalidArgument, match=rule):
        replace(s, **{column: changed}).verify()


@pytest.mark.parametrize("target", [2, 3, -1])
def test_verifier_refuses_dependences_that_do_not_point_back(target: int) -> None:
    s = example()
    deps = s.deps.copy()
    deps[0] = target
    with pytest.raises(jali.InvalidArgument, match="earlier"):
        replace(s, deps=deps).verify()


def test_verifier_refuses_uneven_columns() -> None:
    s = example()
    for name in ("n", "dep_start", "streamed"):
        with pytest.raises(jali.InvalidArgument, match="well formed"):
            replace(s, **{name: getattr(s, name)[:-1]}).verify()
    with pytest.raises(jali.InvalidArgument, match="entity"):
        replace(s, entity=np.zeros(4, np.uint8)).verify()


def test_a_program_has_so_many_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "MOST", 3)
    b = StepsBuilder()
    for _ in range(3):
        b.append(Kind.NTT, 16)
    with pytest.raises(jali.LimitExceeded, match="more than 3 machine steps"):
        b.append(Kind.NTT, 16)
    assert len(b.build()) == 3
    with pytest.raises(jali.LimitExceeded, match="fewer ciphertexts"):
        StepsBuilder().expect(4)


def test_builder_refuses_numbers_out_of_range() -> None:
    b = StepsBuilder()
    with pytest.raises(jali.InvalidArgument, match="step 0"):
        b.append(Kind.NTT, 1 << 40)
