"""The numbers of a machine file: a value or a formula, and where it comes from."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from jali.errors import InvalidArgument

__all__ = ["SOURCES", "Number", "evaluate", "read_number"]

# The first word of a source tag; after a colon stands the section, the table or the file.
SOURCES = ("paper", "rtl", "measured", "calibrated", "assumed", "derived")
FIELDS = {"value", "source", "limit", "off", "about", "whole"}
TAG = re.compile(rf"(?:{'|'.join(SOURCES)})(?::[^\n]{{1,200}})?")
LONGEST = 400  # characters of a formula
STEP_NAMES = ("n", "log2n")  # what a formula of a unit may also use: the length of the polynomial

_BINARY: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
    ast.Pow: lambda a, b: float(a) ** b,
}
_FUNCTIONS: dict[str, Callable[..., float]] = {
    "ceil": math.ceil,
    "floor": math.floor,
    "log2": math.log2,
    "max": max,
    "min": min,
}


def _walk(node: ast.AST, names: Mapping[str, float]) -> float:
    match node:
        case ast.Expression(body=body):
            return _walk(body, names)
        case ast.Constant(value=bool()):
            pass
        case ast.Constant(value=int() | float() as value):
            return value
        case ast.Name(id=name):
            if name in names:
                return names[name]
            known = ", ".join(names) or "no names: there are no parameters"
            raise ValueError(f"there is no number {name}: use {known}")
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_walk(operand, names)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _BINARY[type(op)](_walk(left, names), _walk(right, names))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
            return _FUNCTIONS[name](*(_walk(arg, names) for arg in args))
    raise ValueError("a formula has numbers, names, + - * / // % **, ceil, floor, log2, max, min")


def evaluate(formula: str, names: Mapping[str, float], where: str) -> float:
    """The value of a formula. Raises InvalidArgument, with the place, for anything but finite
    arithmetic on the names."""
    try:
        if len(formula) > LONGEST:
            raise ValueError(f"a formula has at most {LONGEST} characters")
        value = _walk(ast.parse(formula.strip(), mode="eval"), names)
        if isinstance(value, complex) or not math.isfinite(value):
            raise ValueError("the result is not a finite number")
        return value
    except (ValueError, TypeError, SyntaxError, ArithmeticError, RecursionError, MemoryError) as e:
        reason = e.msg if isinstance(e, SyntaxError) else str(e)
        if isinstance(e, ZeroDivisionError):
            reason = "it divides by zero"
        elif isinstance(e, OverflowError):
            reason = "the result is too large"
        raise InvalidArgument(f"{where}: {formula[:60]!r}: {reason}") from None


@dataclass(frozen=True)
class Number:
    """A number of a machine and its source.

    path: where it stands in the file, "units.fft.lanes".
    formula: the text of a formula, or None.
    value: without the length of a polynomial; None if the formula needs it.
    limit: the named limit that the number belongs to, or "".
    scale: what an override by ``scale`` multiplies it with.
    """

    path: str
    source: str
    formula: str | None
    value: float | None
    limit: str = ""
    about: str = ""
    scale: float = 1.0
    names: Mapping[str, float] | None = None

    def at(self, n: int) -> float:
        """The value for polynomials of n elements."""
        if self.value is not None:
            return self.value
        assert self.formula is not None and self.names is not None
        more = {"n": float(n), "log2n": math.log2(n)} if n > 0 else {"n": 0.0, "log2n": 0.0}
        return self.scale * evaluate(self.formula, {**self.names, **more}, self.path)

    def __float__(self) -> float:
        return self.at(1)


def read_number(
    raw: Any,
    path: str,
    names: Mapping[str, float],
    *,
    off: bool = False,
    limits: frozenset[str] = frozenset(),
    scale: float = 1.0,
    of_step: bool = False,
) -> Number:
    """A Number from its form in a machine file: ``{ value = 4, source = "paper:IV-A" }``, or a bare
    formula of other numbers.

    off: take the value that the number has when its limit is switched off.
    limits: the names of limits that there are.
    of_step: the formula may use n and log2n. A number that says ``whole = true`` counts things: it
        is a whole number of at least 1.

    Raises InvalidArgument.
    """
    if isinstance(raw, str):
        raw = {"value": raw, "source": "derived"}
    if not isinstance(raw, dict):
        raise InvalidArgument(
            f'{path}: write {{ value = .., source = "paper:III" }}, so that the number has a source'
        )
    if unknown := sorted(set(raw) - FIELDS):
        raise InvalidArgument(
            f"{path}: there is no field {unknown[0]!r}: a number has {', '.join(sorted(FIELDS))}"
        )
    for field in ("value", "source"):
        if field not in raw:
            raise InvalidArgument(f"{path}: the field {field!r} is missing")
    source, limit, about = raw["source"], raw.get("limit", ""), raw.get("about", "")
    if not isinstance(source, str) or not TAG.fullmatch(source):
        raise InvalidArgument(
            f"{path}: the source begins with {', '.join(SOURCES)}, and may go on with a colon and a place"
        )
    if not isinstance(about, str):
        raise InvalidArgument(f"{path}: 'about' is a text")
    if ("limit" in raw) != ("off" in raw):
        raise InvalidArgument(
            f"{path}: 'limit' and 'off' (the value without the limit) stand together"
        )
    if "limit" in raw and limit not in limits:
        raise InvalidArgument(f"{path}: there is no limit {limit!r} in [limits]")
    value = raw["off"] if off and limit else raw["value"]
    formula = value if isinstance(value, str) else None
    if formula is None:
        if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
            raise InvalidArgument(f"{path}: the value is a number or a formula")
        if abs(value) > 1e30 and value != math.inf:
            raise InvalidArgument(f"{path}: the value is below 1e30, or inf")
        found: float | None = float(value) * scale
    elif of_step and _uses(formula, STEP_NAMES, path):
        evaluate(formula, {**names, "n": 1024.0, "log2n": 10.0}, path)  # refuses what is wrong
        found = None
    else:
        found = scale * evaluate(formula, names, path)
    whole = raw.get("whole", False)
    if not isinstance(whole, bool):
        raise InvalidArgument(f"{path}: 'whole' is true or false")
    if whole and (found is None or found < 1 or found % 1):
        given = f"{formula!r} with n" if found is None else f"{found:g}"
        raise InvalidArgument(f"{path}: {given} is no whole number of at least 1")
    return Number(path, source, formula, found, limit, about, scale, names)


def _uses(formula: str, wanted: tuple[str, ...], path: str) -> bool:
    """Whether a formula has one of the names."""
    try:
        tree = ast.parse(formula.strip(), mode="eval") if len(formula) <= LONGEST else None
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InvalidArgument(f"{path}: {formula[:60]!r} is no formula: {error}") from None
    return tree is not None and any(
        isinstance(node, ast.Name) and node.id in wanted for node in ast.walk(tree)
    )
