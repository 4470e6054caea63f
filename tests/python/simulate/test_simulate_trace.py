"""The reader of traces: what is written is read, and anything else is one error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jali
from jali.simulate import trace as traces

FOLDER = Path(__file__).parents[3] / "vectors" / "traces"
FILES = sorted(FOLDER.glob("*.jsonl"))
CKKS = (FOLDER / "ckks.jsonl").read_bytes()
TFHE = (FOLDER / "tfhe_0.jsonl").read_bytes()


def edited(text: bytes, line: int, **fields: Any) -> bytes:
    """The text with fields of one line replaced; None takes them away."""
    lines = text.splitlines()
    found = json.loads(lines[line - 1]) | fields
    lines[line - 1] = json.dumps({k: v for k, v in found.items() if v is not None}).encode()
    return b"\n".join(lines) + b"\n"


def line_of(text: bytes, op: str) -> int:
    return next(
        i for i, line in enumerate(text.splitlines(), 1) if f'"op": "{op}"'.encode() in line
    )


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_reads_what_was_written(path: Path) -> None:
    found = traces.read(path)
    header, *lines = (json.loads(line) for line in path.read_text().splitlines())
    assert len(found) == len(lines) > 0
    assert (found.header.scheme, found.header["N"]) == (header["scheme"], header["N"])
    for record, line in zip(found.records, lines, strict=True):
        assert record.op == line["op"] and record.mults == line["mults"]
        assert [list(x) for x in record.reads] == line["reads"]
        assert [list(x) for x in record.writes] == line["writes"]
        assert all(
            (list(v) if isinstance(v, tuple) else v) == line[k] for k, v in record.shape.items()
        )
    starts = [record.start for record in found.in_order_of_start()]
    assert starts == sorted(starts)


def test_operations_are_those_of_the_tables() -> None:
    """A new operation of a table cannot be forgotten: the vectors and the reader have every one."""
    for text, known in ((CKKS, traces.CKKS), (TFHE, traces.TFHE)):
        assert {record.op for record in traces.parse(text).records} == set(known)


def test_a_stream_is_read_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "broken.jsonl"
    path.write_bytes(CKKS.splitlines(keepends=True)[0] + b"nonsense\n")
    with path.open("rb") as file:
        header, records = traces.stream(file)
        assert header.scheme == "ckks"
        with pytest.raises(jali.CorruptData, match="line 2"):
            next(records)
    with path.open() as text, pytest.raises(jali.InvalidArgument, match="binary"):
        traces.stream(text)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"schema": None}, "line 1.*schema"),
        ({"schema": True}, "line 1.*schema"),
        ({"scheme": "bfv"}, "line 1.*scheme"),
        ({"scheme": ["ckks"]}, "line 1.*scheme"),
        ({"N": 12}, "line 1.*field N.*power of two"),
        ({"N": 16.0}, "line 1.*field N"),
        ({"word_bytes": 6}, "word_bytes"),
        ({"prime_bits": [65]}, "prime_bits"),
        ({"prime_bits": 3}, "prime_bits.*list"),
        ({"special_primes": 99}, "special_primes"),
        ({"digits": [99]}, "digits"),
        ({"engine": "a\nb"}, "engine.*printable"),
        ({"library": ""}, "library"),
        ({"commit": None}, "commit.*missing: record the program again"),
        ({"commit": ""}, "commit"),
        ({"commit": 3}, "commit.*text"),
        ({"commit": "c\u00f6mmit"}, "commit.*printable"),
        ({"more": 1}, "more.*does not belong"),
        ({"word": None}, "word.*missing"),
    ],
)
def test_refuses_a_wrong_header(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(jali.CorruptData, match=says):
        traces.parse(edited(CKKS, 1, **fields))


def test_a_number_of_thousands_of_digits_is_refused() -> None:
    text = CKKS.replace(b'"schema": 1', b'"schema": ' + b"1" * 5000, 1)
    with pytest.raises(jali.CorruptData, match=r"line 1 .*: a number is too long"):
        traces.parse(text)


def test_refuses_another_schema() -> None:
    with pytest.raises(jali.VersionError, match="schema 2"):
        traces.parse(edited(CKKS, 1, schema=2))
    with pytest.raises(jali.CorruptData, match="empty"):
        traces.parse("")


@pytest.mark.parametrize(
    ("op", "fields", "says"),
    [
        ("ntt", {"op": "bootstrap"}, "no operation of this scheme"),
        ("ntt", {"op": None}, "op"),
        ("ntt", {"batch": 0}, "batch"),
        ("ntt", {"batch": True}, "batch"),
        ("ntt", {"batch": None}, "batch.*missing"),
        ("ntt", {"steps": 1}, "steps.*does not belong"),
        ("ntt", {"seconds": -1}, "seconds"),
        ("ntt", {"seconds": "1"}, "seconds"),
        ("ntt", {"mults": 1 << 60}, "mults"),
        ("ntt", {"mults": -1}, "mults"),
        ("ntt", {"bytes_read": 1}, "bytes_read.*sum"),
        ("ntt", {"primes_in": [0, 9]}, "primes_in"),
        ("ntt", {"primes_in": [1, 1]}, "primes_in.*ascending"),
        ("ntt", {"primes_out": "0"}, "primes_out.*list"),
        ("ntt", {"reads": [["ciphertext", 0, 0]]}, "reads"),
        ("ntt", {"reads": [["secret", 0, 0, 1]]}, "reads.*kind"),
        ("ntt", {"reads": [["key", 0, 0, 0]], "bytes_read": 0}, "reads.*at least one byte"),
        ("ntt", {"reads": [["key", 0, 0.5, 1]], "bytes_read": 1}, "reads.*whole"),
        ("ntt", {"accumulate": 1}, "accumulate.*true or false"),
        ("intt", {"start": 0}, "start"),
        ("rotate", {"galois": [4]}, "galois.*odd"),
        ("rotate", {"galois": [33]}, "galois"),
        ("rotated_sums", {"sources": [0]}, "sources"),
        ("rotated_sums", {"sources": [1, 1]}, "sources"),
        ("rotated_sums", {"sums": [3]}, "sums"),
    ],
)
def test_refuses_a_wrong_operation(op: str, fields: dict[str, Any], says: str) -> None:
    line = line_of(CKKS, op)
    with pytest.raises(jali.CorruptData, match=f"(?s)line {line}.*{says}"):
        traces.parse(edited(CKKS, line, **fields))


def test_refuses_what_is_no_json_object() -> None:
    first = CKKS.splitlines(keepends=True)[0]
    for bad in (
        b"[]\n",
        b"\n",
        b"1\n",
        b"{\n",
        b"\xff\xfe{}\n",
        b'{"op": 1, "op": 2}\n',
        b'{"seconds": NaN}\n',
        b"[" * 200_000 + b"\n",
        b'{"mults": ' + b"9" * 10_000 + b"}\n",
        '{"op": "ntt"}'.encode("utf-16"),
    ):
        with pytest.raises(jali.CorruptData, match="line 2"):
            traces.parse(first + bad)


def test_a_text_that_has_no_utf_8_is_refused() -> None:
    with pytest.raises(jali.CorruptData, match="line 1 of the trace"):
        traces.parse("\udc00")


def test_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    first = CKKS.splitlines(keepends=True)[0]
    with pytest.raises(jali.LimitExceeded, match="line 2"):
        traces.parse(first + b" " * ((1 << 22) + 1))
    monkeypatch.setattr(traces, "MAX_RECORDS", 3)
    with pytest.raises(jali.LimitExceeded, match="3 operations"):
        traces.parse(CKKS)
    line = line_of(CKKS, "ntt")
    with pytest.raises(jali.CorruptData, match=r"operands.*at most"):
        traces.parse(edited(CKKS, line, operands=[0] * 70_000))


def test_tfhe_has_fields_of_its_own() -> None:
    with pytest.raises(jali.CorruptData, match="group"):
        traces.parse(edited(TFHE, 1, group=4))
    with pytest.raises(jali.CorruptData, match="rotation_gadget"):
        traces.parse(edited(TFHE, 1, rotation_gadget=[1, 2, 3]))
    line = line_of(TFHE, "bootstrap")
    with pytest.raises(jali.CorruptData, match="steps"):
        traces.parse(edited(TFHE, line, steps=5))
    with pytest.raises(jali.CorruptData, match=f"line {line}.*encrypted"):
        traces.parse(edited(TFHE, line, encrypted=0))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_mutated_bytes_are_read_or_refused(data: st.DataObject) -> None:
    """Whatever the bytes are, there is a trace or an error of Jali's."""
    text = bytearray(data.draw(st.sampled_from([CKKS, TFHE])))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text) - 1))
        kind = data.draw(st.sampled_from(["byte", "cut", "copy", "token"]))
        if kind == "byte":
            text[at] = data.draw(st.integers(0, 255))
        elif kind == "cut":
            del text[at : at + data.draw(st.integers(1, 300))]
        elif kind == "copy":
            size = data.draw(st.integers(1, 300))
            text[at:at] = text[at : at + size]
        else:
            tokens = [b"-1", b"1e400", b"null", b"[]", b"{}", b'""', b"9007199254740993", b"\n"]
            text[at:at] = data.draw(st.sampled_from(tokens))
        if not text:
            break
    try:
        found = traces.parse(bytes(text))
    except jali.Error as error:
        assert str(error)
    else:
        assert found.header.scheme in ("ckks", "tfhe")
