"""Documents from elsewhere: JSON that is bounded before it is parsed, and checks of what it holds
before anything is computed from it.

A check is a function: it gives the value as it is kept, or raises ValueError with the rule that the
value breaks. Checks are made of checks, and the rule names the place: "inputs: entry 3: gap: must
be a whole number from 1 to 64". A loader declares what its document holds as one check, and turns
the ValueError into its own error.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

__all__ = [
    "MAX_INTEGER",
    "Check",
    "flag",
    "listed",
    "mapped",
    "name",
    "number",
    "one_of",
    "optional",
    "pair",
    "parsed",
    "power_of_two",
    "record",
    "text",
    "whole",
]

Check = Callable[[Any], Any]

MAX_INTEGER = 1 << 53  # every whole number up to it is a float, too
_MAX_NAME = 1000
# What Python needs for a list, an object and an entry, in bytes. A document may take _MOST_MEMORY
# times its own size, and a short one as much as one of _SHORT.
_LIST, _OBJECT, _ENTRY = 64, 200, 40
_MOST_MEMORY = 14
_SHORT = 1 << 16


def parsed(document: bytes, *, once: bool = False) -> Any:
    """The value of a JSON document in UTF-8. Raises ValueError, which says what is wrong with it.
    once: whether a field that occurs twice is refused; otherwise the last one counts.

    Lists and objects take much more memory and time than their text, 66 MB of ``[],`` for example
    1.4 GB. So they are counted first.
    """
    memory = _LIST * document.count(b"[") + _OBJECT * document.count(b"{")
    memory += _ENTRY * document.count(b",")
    if memory > _MOST_MEMORY * max(len(document), _SHORT):
        raise ValueError("it is made of too many lists and objects for its length")
    try:
        hook = _once if once else None
        text = document.decode("utf-8")
        return json.loads(text, object_pairs_hook=hook, parse_constant=_constant)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except UnicodeDecodeError:
        raise ValueError("it is no text in UTF-8") from None
    except ValueError as error:
        many = "digits" in str(error)  # Python's limit on the length of a whole number
        raise ValueError("a number is too long" if many else str(error)) from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a field occurs twice")
    return fields


def _constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a number")


# --- single values ------------------------------------------------------------------------------


def whole(low: int = 0, high: int = MAX_INTEGER) -> Check:
    """A whole number of this range."""

    def check(value: Any) -> int:
        if type(value) is not int or not low <= value <= high:
            raise ValueError(f"must be a whole number from {low} to {high}")
        return value

    return check


def power_of_two(low: int, high: int) -> Check:
    """A power of two of this range."""

    def check(value: Any) -> int:
        if type(value) is not int or not low <= value <= high or value & (value - 1):
            raise ValueError(f"must be a power of two from {low} to {high}")
        return value

    return check


def number(low: float, high: float) -> Check:
    """A finite number of this range, as a float."""

    def check(value: Any) -> float:
        if type(value) not in (int, float) or not low <= value <= high:
            raise ValueError(f"must be a number from {low:g} to {high:g}")
        return float(value)

    return check


def flag(value: Any) -> bool:
    """True or false."""
    if type(value) is not bool:
        raise ValueError("must be true or false")
    return value


def one_of(*names: Any) -> Check:
    """One of these values, of one type."""

    def check(value: Any) -> Any:
        if type(value) is not type(names[0]) or value not in names:
            raise ValueError(f"must be one of {', '.join(map(str, names))}")
        return value

    return check


def text(value: Any) -> str:
    """A text of 1 to 1,000 characters. It may hold characters that a terminal acts on: never print
    it."""
    if type(value) is not str or not 1 <= len(value) <= _MAX_NAME:
        raise ValueError(f"must be a text of 1 to {_MAX_NAME:,} characters")
    return value


def name(value: Any) -> str:
    """A text of 1 to 1,000 characters that can be printed: without control characters, which a
    terminal acts on."""
    if not text(value).isprintable():
        raise ValueError("must be a text without control characters")
    return str(value)


# --- values that are made of others -------------------------------------------------------------


def optional(check: Check) -> Check:
    """Null, or what the check takes."""
    return lambda value: None if value is None else check(value)


def listed(item: Check, least: int = 0, most: int = MAX_INTEGER) -> Check:
    """A list of so many entries, as a tuple."""

    def check(value: Any) -> tuple[Any, ...]:
        if type(value) is not list or not least <= len(value) <= most:
            count = f"{least}" if least == most else f"{least} to {most}"
            raise ValueError(f"must be a list of {count} entries")
        found = []
        for k, entry in enumerate(value):
            try:
                found.append(item(entry))
            except ValueError as error:
                raise ValueError(f"entry {k}: {error}") from None
        return tuple(found)

    return check


def pair(first: Check, second: Check) -> Check:
    """A list of two entries, as a tuple."""

    def check(value: Any) -> tuple[Any, Any]:
        if type(value) is not list or len(value) != 2:
            raise ValueError("must be a list of 2 entries")
        return first(value[0]), second(value[1])

    return check


def mapped(item: Check, most: int, key: Check = text) -> Check:
    """An object with at most so many fields of any names, as a dictionary."""

    def check(value: Any) -> dict[str, Any]:
        if type(value) is not dict or len(value) > most:
            raise ValueError(f"must be an object of at most {most} fields")
        found = {}
        for k, (field, entry) in enumerate(value.items()):
            try:
                found[key(field)] = item(entry)
            except ValueError as error:
                raise ValueError(f"entry {k}: {error}") from None
        return found

    return check


def record(fields: Mapping[str, Check], defaults: Mapping[str, Any] | None = None) -> Check:
    """An object with these fields and no others, as a dictionary. defaults: of fields that may be
    left out, as they are kept."""
    given = defaults or {}

    def check(value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            raise ValueError("must be an object")
        if not value.keys() <= fields.keys():
            raise ValueError(f"has other fields than {', '.join(fields) or 'none'}")
        found = {}
        for field, one in fields.items():
            if field not in value and field in given:
                found[field] = given[field]
                continue
            if field not in value:
                raise ValueError(f"{field}: is missing")
            try:
                found[field] = one(value[field])
            except ValueError as error:
                raise ValueError(f"{field}: {error}") from None
        return found

    return check
