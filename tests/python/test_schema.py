"""Documents from elsewhere: what JSON may cost before it is parsed, and the checks of what it
holds."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from jali._core import schema
from jali.compiler.ir.builder import printable

#: The densest entries of documents: what takes much memory for few characters.
ENTRIES = [
    "[]", "{}", "[[]]", '{"":0}', '{"a":{}}', '{"a":1,"b":2}', "[0]", "[0,0]", "999", "1e9", '"ab"', '"\\u1234"',
    '"\u1234"', '"\U0001f600"', '"\U0001f600abcdefghijklmnop"', "-5", "1.5", "true", "123456789012345678", "[1,[2]]", '[{"a":[]}]',
]  # fmt: skip


def closest(entry: str, count: int) -> bytes:
    """The densest document of so many of these entries that is accepted: spaces are put between
    them as far as needed."""
    for spaces in range(64):
        data = ("[" + ("," + " " * spaces).join([entry] * count) + "]").encode()
        try:
            schema.parsed(data)
        except ValueError:
            continue
        return data
    raise AssertionError(f"no document of {entry} is accepted")


@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize("entry", ENTRIES)
def test_a_parsed_document_takes_at_most_20_times_its_bytes(entry: str, once: bool) -> None:
    data = closest(entry, 30_000)
    assert len(data) > 50_000
    tracemalloc.start()
    try:
        value = schema.parsed(data, once=once)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(value) == 30_000 and peak < 20 * len(data)


def test_fields_with_names_of_their_own_take_at_most_20_times_their_bytes() -> None:
    data = ("{" + ",".join(f'"{k:x}":1' for k in range(60_000)) + "}").encode()
    tracemalloc.start()
    try:
        assert len(schema.parsed(data)) == 60_000
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20 * len(data)


@pytest.mark.parametrize(
    ("document", "rule"),
    [
        (b"", "Expecting value"),
        (b"[1", "Expecting"),
        (b"[1] 2", "Extra data"),
        (b"[NaN]", "NaN is not a number"),
        (b"[-Infinity]", "Infinity is not a number"),
        (b"\xff\xfe", "no text in UTF-8"),
        (b"[" * 12_000 + b"]" * 12_000, "nested too deeply"),
        (b"[" + b"9" * 5000 + b"]", "a number is too long"),
        (b"[" + b"{}," * 100_000 + b"{}]", "too many lists and objects"),
    ],
)
def test_what_is_no_document_is_told(document: bytes, rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        schema.parsed(document)


def test_a_field_that_occurs_twice_is_refused_where_it_matters() -> None:
    assert schema.parsed(b'{"a": 1, "a": 2}') == {"a": 2}
    with pytest.raises(ValueError, match="occurs twice"):
        schema.parsed(b'{"a": 1, "a": 2}', once=True)


WRONG: list[tuple[schema.Check, Any]] = [
    *((schema.whole(0, 9), v) for v in (-1, 10, True, 1.0, None, "1", [], 10**400)),
    *((schema.number(0, 9), v) for v in (-1, 9.5, True, None, "1", float("nan"), float("inf"), 10**400)),
    *((schema.power_of_two(1, 64), v) for v in (0, 3, 128, -1, True, 2.0, None)),
    *((schema.flag, v) for v in (0, 1, None, "true")),
    *((schema.one_of("a", "b"), v) for v in ("c", ["a"], None, 1)),
    *((schema.name, v) for v in ("", "x" * 1001, "\n", "\x1b[2J", "\u202e", "\u2028", "\ud800", 5, None)),
    *((schema.text, v) for v in ("", "x" * 1001, b"x", None)),
    *((schema.listed(schema.flag, 1, 2), v) for v in ([], [True] * 3, (True,), [1], None, {})),
    *((schema.pair(schema.flag, schema.flag), v) for v in ([True], [True] * 3, [1, True], None)),
    *((schema.mapped(schema.flag, 1), v) for v in ([], {"a": True, "b": True}, {"": True}, {"a": 1})),
    *((schema.record({"a": schema.flag}), v) for v in ({}, {"a": 1}, {"a": True, "b": 1}, [], None)),
]  # fmt: skip


@pytest.mark.parametrize("k", range(len(WRONG)))
def test_wrong_values_raise_value_error_alone(k: int) -> None:
    check, value = WRONG[k]
    with pytest.raises(ValueError, match=r"must|missing|has other") as refused:
        check(value)
    assert len(str(refused.value)) < 200 and str(refused.value).isprintable()


def test_errors_name_the_place() -> None:
    check = schema.record(
        {"a": schema.listed(schema.record({"b": schema.pair(schema.flag, schema.whole(0, 5))}))}
    )
    assert check({"a": [{"b": [True, 5]}]}) == {"a": ({"b": (True, 5)},)}
    with pytest.raises(ValueError, match=r"^a: entry 1: b: must be a whole number from 0 to 5$"):
        check({"a": [{"b": [True, 5]}, {"b": [True, 6]}]})


def test_fields_may_be_left_out_if_they_have_a_default() -> None:
    check = schema.record({"a": schema.flag, "b": schema.optional(schema.flag)}, {"b": None})
    assert check({"a": True}) == {"a": True, "b": None} == check({"a": True, "b": None})


@pytest.mark.parametrize("made", ["x", "a\nb", "\x1b[2J", "", "x" * 5000, "\ud800"])
def test_names_that_are_made_here_can_be_read(made: str) -> None:
    assert schema.name(printable(made)) == printable(made)
    assert printable("layer1.weight") == "layer1.weight"
