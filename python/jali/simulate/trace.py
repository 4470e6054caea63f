"""Reads traces, schema 1 of docs/format.md.

Whatever the text is, reading it gives a trace that keeps the rules of that page, or one error under
jali.Error that names the line and the
field: CorruptData, VersionError for another schema, or LimitExceeded.
"""

from __future__ import annotations

import io
import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple, NoReturn

from jali._core import schema
from jali.errors import CorruptData, InvalidArgument, LimitExceeded, VersionError

__all__ = [
    "CKKS",
    "KINDS",
    "SCHEMA",
    "TFHE",
    "Header",
    "Operand",
    "Record",
    "Trace",
    "parse",
    "read",
    "stream",
]

SCHEMA = 1
MAX_LINE = 1 << 22  # bytes
MAX_LIST = 1 << 16  # entries
MAX_RECORDS = 1 << 22
MAX_INTEGER = schema.MAX_INTEGER
KINDS = ("ciphertext", "plaintext", "key", "scratch", "host")
ROTATIONS = ("classic", "multi_bit", "block_binary")

# The operations of each scheme, with the fields that only some of them have.
CKKS: dict[str, tuple[str, ...]] = dict.fromkeys(
    (
        *("ntt", "intt", "add", "sub", "neg", "mul", "mul_scalar", "mul_scalar_add", "add_scalar"),
        *("inner_product", "automorphism_ntt", "sample_uniform", "sample_small", "sample_sparse"),
        *("from_int64", "from_double", "crt", "icrt", "embed", "unembed"),
        *("tensor", "combine", "weighted_sums", "mod_up", "scale_down", "scale_down_pair"),
        *("key_product", "key_switch", "key_switch_add", "combine_key_switch", "rotate"),
        *("rotated_sums", "outer_sum", "copy"),
    ),
    (),
)
_ROTATION = ("steps", "tables", "encrypted", "log_many")
TFHE: dict[str, tuple[str, ...]] = {
    "prepare_rotation_key": (),
    "prepare_seeded_rotation_key": (),
    "prepare_switch_key": (),
    "prepare_seeded_switch_key": (),
    "prepare_seeded_packing_key": (),
    "key_switch": (),
    "bootstrap": _ROTATION,
    "blind_rotate": _ROTATION,
    "switch_bootstrap": _ROTATION,
    "bootstrap_switch": _ROTATION,
    "combine": ("terms",),
    "extract": ("per",),
    "pack": ("per", "dimension"),
    "copy": (),
}


class Operand(NamedTuple):
    """Memory that an operation reads or writes: `bytes` bytes of an object, from an offset on."""

    kind: str
    object: int
    offset: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Header:
    """What is the same for every operation of a trace.

    fields: those of the scheme, as docs/format.md lists them.
    """

    scheme: str
    library: str
    commit: str
    engine: str
    fields: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.fields[name]


@dataclass(frozen=True, slots=True)
class Record:
    """One operation. line: of the text. shape: the fields that say on what it was done. The rest is
    as in docs/format.md."""

    line: int
    op: str
    start: int
    thread: int
    shape: Mapping[str, Any]
    reads: tuple[Operand, ...]
    writes: tuple[Operand, ...]
    bytes_read: int
    bytes_written: int
    mults: int
    stream_bytes: int
    complex_butterflies: int
    complex_products: int
    seconds: float

    def __getitem__(self, name: str) -> Any:
        return self.shape[name]


@dataclass(frozen=True, slots=True)
class Trace:
    """A header, and the operations in the order in which they ended."""

    header: Header
    records: tuple[Record, ...]

    def __len__(self) -> int:
        return len(self.records)

    def in_order_of_start(self) -> list[Record]:
        """The operations in the order in which they began."""
        return sorted(self.records, key=lambda record: record.start)


def read(path: str | Path) -> Trace:
    """The trace in a file. Raises OSError if it cannot be read."""
    with open(path, "rb") as file:
        header, records = stream(file)
        return Trace(header, tuple(records))


def parse(text: str | bytes) -> Trace:
    """The trace in a text, such as evaluator.trace().json_lines()."""
    # Half of a surrogate pair has no UTF-8: as bytes it is refused like other bytes that are none.
    raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    header, records = stream(io.BytesIO(raw))
    return Trace(header, tuple(records))


def stream(file: IO[bytes]) -> tuple[Header, Iterator[Record]]:
    """The header, and an iterator over the operations, which reads a line at a time. file: opened
    in binary mode."""
    lines = _lines(file)
    for number, fields in lines:
        header = _header(number, fields)
        return header, _records(header, lines)
    raise CorruptData("this trace is empty: its first line must be a header")


# --- lines ------------------------------------------------------------------------------------


def _corrupt(line: int, field: str, rule: str) -> NoReturn:
    raise CorruptData(f"line {line} of the trace, {field}: {rule}")


def _lines(file: IO[bytes]) -> Iterator[tuple[int, dict[str, Any]]]:
    number = 0
    while line := file.readline(MAX_LINE + 1):
        number += 1
        if not isinstance(line, bytes):
            raise InvalidArgument("a trace is read from a file that is opened in binary mode")
        if len(line) > MAX_LINE:
            raise LimitExceeded(f"line {number} of the trace is longer than {MAX_LINE} bytes")
        if number > MAX_RECORDS + 1:
            raise LimitExceeded(f"the trace has more than {MAX_RECORDS} operations")
        yield number, _object(number, line)


def _object(number: int, line: bytes) -> dict[str, Any]:
    try:
        found = schema.parsed(line, once=True)
    except ValueError as error:
        raise CorruptData(f"line {number} of the trace is no JSON object: {error}") from None
    if type(found) is not dict:
        raise CorruptData(f"line {number} of the trace is no JSON object")
    return found


def _expect(line: int, fields: dict[str, Any], names: tuple[str, ...]) -> None:
    if fields.keys() == set(names):
        return
    for name in names:
        if name not in fields:
            _corrupt(line, f"field {name}", "is missing")
    extra = next(name for name in fields if name not in names)
    _corrupt(line, f"field {extra[:40]!r}", "does not belong here")


# --- values -----------------------------------------------------------------------------------


def _list(item: schema.Check, most: int = MAX_LIST) -> schema.Check:
    def check(value: Any) -> tuple[Any, ...]:
        if type(value) is not list or len(value) > most:
            raise ValueError(f"must be a list of at most {most} entries")
        return tuple(map(item, value))

    return check


def _ascending(value: Any) -> tuple[int, ...]:
    found: tuple[int, ...] = _list(schema.whole(high=MAX_LIST))(value)
    if any(a >= b for a, b in itertools.pairwise(found)):
        raise ValueError("must be in ascending order")
    return found


def _name(value: Any) -> str:
    if type(value) is not str or not 1 <= len(value) <= 200:
        raise ValueError("must be a text of 1 to 200 characters")
    if not (value.isascii() and value.isprintable()):
        raise ValueError("must have printable ASCII characters only")
    return value


def _seconds(value: Any) -> float:
    if type(value) not in (int, float) or not 0 <= value <= 1e15 or not math.isfinite(value):
        raise ValueError("must be a finite number of at least 0")
    return float(value)


def _gadget(value: Any) -> tuple[int, int]:
    if type(value) is not list or len(value) != 2:
        raise ValueError("must be [base_log, levels]")
    return (schema.whole(1, 64)(value[0]), schema.whole(1, 64)(value[1]))


def _operand(value: Any) -> Operand:
    if type(value) is not list or len(value) != 4:
        raise ValueError("must have operands of the form [kind, object, offset, bytes]")
    kind, *numbers = value
    if type(kind) is not str or kind not in KINDS:
        raise ValueError(f"must have operands whose kind is one of {', '.join(KINDS)}")
    for number in numbers:
        if type(number) is not int or not 0 <= number <= MAX_INTEGER:
            raise ValueError("must have operands with whole numbers")
    if numbers[2] == 0:
        raise ValueError("must have operands of at least one byte")
    return Operand(kind, *numbers)


_COMMON_HEADER: dict[str, schema.Check] = {
    "schema": schema.whole(),
    "scheme": schema.one_of("ckks", "tfhe"),
    "library": _name,
    "commit": _name,
    "engine": _name,
}
_HEADERS: dict[str, dict[str, schema.Check]] = {
    "ckks": {
        "N": schema.power_of_two(4, 1 << 20),
        "word": _name,
        "word_bytes": schema.one_of(4, 8),
        "prime_bits": _list(schema.whole(2, 64)),
        "digits": _list(schema.whole(1, MAX_LIST)),
        "special_primes": schema.whole(high=MAX_LIST),
    },
    "tfhe": {
        "n": schema.whole(1, 1 << 20),
        "k": schema.whole(1, 1 << 10),
        "N": schema.power_of_two(4, 1 << 20),
        "torus": schema.one_of(32, 64),
        "rotation": schema.one_of(*ROTATIONS),
        "group": schema.whole(1, 16),
        "rotation_gadget": _gadget,
        "switch_gadget": _gadget,
    },
}

_COUNTS = (
    "bytes_read",
    "bytes_written",
    "mults",
    "stream_bytes",
    "complex_butterflies",
    "complex_products",
)
_COMMON: dict[str, schema.Check] = {
    "start": schema.whole(),
    "thread": schema.whole(high=MAX_LIST),
    "reads": _list(_operand),
    "writes": _list(_operand),
    **dict.fromkeys(_COUNTS, schema.whole()),
    "seconds": _seconds,
}
_SHAPE_CKKS: dict[str, schema.Check] = {
    "primes_in": _ascending,
    "primes_out": _ascending,
    "batch": schema.whole(1, 1 << 32),
    "digits": _list(schema.whole(high=MAX_LIST)),
    "terms": schema.whole(high=1 << 32),
    "products": schema.whole(high=MAX_LIST),
    "galois": _list(schema.whole(1)),
    "sources": _list(schema.whole(high=MAX_LIST)),
    "sums": _list(schema.whole(high=MAX_LIST)),
    "operands": _list(schema.whole(high=MAX_LIST)),
    "accumulate": schema.flag,
}
_SHAPE_TFHE: dict[str, schema.Check] = {
    "batch": schema.whole(1, 1 << 32),
    "steps": schema.whole(1, 1 << 20),
    "tables": schema.whole(1, 1 << 32),
    "encrypted": schema.flag,
    "log_many": schema.whole(high=20),
    "terms": schema.whole(),
    "per": schema.whole(1),
    "dimension": schema.whole(1, 1 << 20),
}


def _checked(line: int, fields: dict[str, Any], checks: dict[str, schema.Check]) -> dict[str, Any]:
    out = {}
    for name, check in checks.items():
        try:
            out[name] = check(fields[name])
        except ValueError as error:
            _corrupt(line, f"field {name}", str(error))
    return out


# --- the header and the operations ------------------------------------------------------------


def _header(line: int, fields: dict[str, Any]) -> Header:
    schema, scheme = fields.get("schema"), fields.get("scheme")
    if type(schema) is not int:
        _corrupt(line, "field schema", f"must be the number {SCHEMA}: the first line is the header")
    if schema != SCHEMA:
        raise VersionError(
            f"this trace has schema {str(schema)[:20]}, and this version of jali reads schema {SCHEMA}: record the program again"
        )
    if type(scheme) is not str or scheme not in _HEADERS:
        _corrupt(line, "field scheme", "must be ckks or tfhe")
    own = _HEADERS[scheme]
    if "commit" not in fields:  # traces of before 2026-11-25
        _corrupt(line, "field commit", 'is missing: record the program again, or give "unknown"')
    _expect(line, fields, (*_COMMON_HEADER, *own))
    common = _checked(line, fields, _COMMON_HEADER)
    found = _checked(line, fields, own)
    if scheme == "ckks":
        special, primes = found["special_primes"], len(found["prime_bits"])
        if special > primes:
            _corrupt(line, "field special_primes", f"must be at most the {primes} primes")
        if sum(found["digits"]) > primes - special:
            _corrupt(line, "field digits", "must not have more primes than Q")
    elif found["n"] % found["group"]:
        _corrupt(line, "field group", "must divide n")
    return Header(common["scheme"], common["library"], common["commit"], common["engine"], found)


def _records(header: Header, lines: Iterator[tuple[int, dict[str, Any]]]) -> Iterator[Record]:
    shapes = _SHAPE_CKKS if header.scheme == "ckks" else _SHAPE_TFHE
    checks = {}
    for op, own in (CKKS if header.scheme == "ckks" else TFHE).items():
        names = tuple(_SHAPE_CKKS) if header.scheme == "ckks" else ("batch", *own)
        checks[op] = {name: shapes[name] for name in names}
    starts: set[int] = set()
    for line, fields in lines:
        record = _record(line, fields, checks)
        if record.start in starts:
            _corrupt(line, "field start", f"{record.start} is of an operation before")
        starts.add(record.start)
        (_consistent_ckks if header.scheme == "ckks" else _consistent_tfhe)(header, record)
        yield record


def _record(
    line: int, fields: dict[str, Any], checks: dict[str, dict[str, schema.Check]]
) -> Record:
    op = fields.get("op")
    if type(op) is not str or op not in checks:
        _corrupt(line, "field op", f"{str(op)[:40]!r} is no operation of this scheme")
    _expect(line, fields, ("op", *_COMMON, *checks[op]))
    common = _checked(line, fields, _COMMON)
    for name, operands in (("bytes_read", "reads"), ("bytes_written", "writes")):
        if common[name] != sum(operand.bytes for operand in common[operands]):
            _corrupt(line, f"field {name}", f"must be the sum of the bytes of {operands}")
    return Record(line, op, shape=_checked(line, fields, checks[op]), **common)


def _consistent_ckks(header: Header, record: Record) -> None:
    shape, primes = record.shape, len(header["prime_bits"])
    for name in ("primes_in", "primes_out"):
        if shape[name] and shape[name][-1] >= primes:
            _corrupt(record.line, f"field {name}", f"must be below the {primes} primes")
    if any(g % 2 == 0 or g >= 2 * header["N"] for g in shape["galois"]):
        _corrupt(record.line, "field galois", "must have odd numbers below 2N")
    if sum(shape["sums"]) != len(shape["operands"]):
        _corrupt(record.line, "field sums", "must add up to the length of operands")
    if len(shape["sources"]) not in (0, len(shape["galois"])):
        _corrupt(record.line, "field sources", "must be as long as galois")
    before = -1
    for source in shape["sources"]:
        if source - before not in (0, 1) or source < 0:
            _corrupt(record.line, "field sources", "must begin with 0 and count up by at most one")
        before = source


def _consistent_tfhe(header: Header, record: Record) -> None:
    if "steps" in record.shape and record["steps"] != header["n"] // header["group"]:
        _corrupt(record.line, "field steps", "must be n / group")
