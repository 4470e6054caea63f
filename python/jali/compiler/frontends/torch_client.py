"""Operators of PyTorch (aten) as steps that a client computes in the clear.

An operator's arguments have PyTorch's names; ``x`` is the one that it calls ``self`` or ``input``.
Values that depend on the inputs are Clear, arrays of the model are those of NumPy. ``like`` is what
PyTorch says of the first result: its shape and its type. Nothing here imports PyTorch.

The first axis of every value is the batch, and stays it, see jali.compiler.frontends.client_steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jali.compiler.frontends.client_masks import Mask, joint_mask, mask_by, scaled_mask
from jali.compiler.frontends.client_steps import (
    add,
    axis_of,
    both,
    cast_to,
    check_beside,
    clamped,
    expanded,
    function,
    leaky_relu,
    multiply,
    place_of,
    power,
    reduced,
    reshaped,
    subtract,
    top,
)
from jali.compiler.frontends.client_values import Clear, kind_of, step
from jali.compiler.frontends.layers import MISPLACED
from jali.compiler.frontends.replacements import ALONG_BATCH
from jali.compiler.frontends.torch_client_moves import LOOKING_UP, MOVING
from jali.compiler.frontends.torch_client_values import (
    Given,
    Like,
    alike,
    as_kind,
    as_type,
    axes_of,
    known,
)
from jali.errors import Unsupported

__all__ = ["COMPARING", "MERGES", "MOVES", "OPERATIONS", "is_head", "translated"]

Operator = Callable[..., Any]
Result = Clear | Mask | None

_MERGING: dict[str, Operator] = {}
_COMPUTING: dict[str, Operator] = {}
#: Comparisons.
COMPARING: dict[str, Operator] = {}


def translated(name: str, bound: Mapping[str, Any], like: Sequence[Like | None]) -> list[Result]:
    """The results of an operator. Raises Unsupported.

    bound: its arguments by PyTorch's names, and `like` if its function here takes that.
    like: what PyTorch says of each result; None for those that nobody takes.
    """
    found = OPERATIONS[name](**_unmasked(name, bound))
    masks = isinstance(bound.get("x"), Mask) and name in MOVING
    results = [Mask(found) if masks else found] if not isinstance(found, list) else found
    for x, want in zip(results, like, strict=False):
        if x is not None and want is not None:
            _check(x, want)
    return results


def _unmasked(name: str, bound: Mapping[str, Any]) -> Mapping[str, Any]:
    """The arguments, with the flags of a mask in its place if it is moved."""
    if name not in MOVING:
        return bound
    x = bound.get("x")
    several = [x, *bound.get("tensors", ())]
    if isinstance(x, Mask):
        return {**bound, "x": x.keep}
    if any(isinstance(one, Mask) for one in several):
        raise Unsupported(MISPLACED)
    return bound


def _check(x: Clear | Mask, like: Like) -> None:
    """Raises Unsupported for a result without a batch, or whose shape or kind is not PyTorch's."""
    if not x.shape or x.shape[0] != 1:
        raise Unsupported(ALONG_BATCH)
    same = x.shape == like.shape
    if not same or (isinstance(x, Clear) and x.kind != kind_of(like.dtype)):
        raise Unsupported("a result that is another one at the client than in the module")


# --- arithmetic -----------------------------------------------------------------------------------


def _sum(apply: Callable[[Clear, Clear], Clear], *, turned: bool = False) -> Operator:
    def operator(x: Given, other: Given, like: Like, alpha: float = 1) -> Clear | Mask:
        mask = joint_mask(x, other) if apply is add and alpha == 1 else None
        if mask is not None:
            return mask
        a, b = (other, x) if turned else (x, other)
        b = as_type(b, like.dtype)
        if alpha != 1:
            b = multiply(b, as_type(alpha, like.dtype))
        return apply(as_type(a, like.dtype), b)

    return operator


def _product(x: Given, other: Given, like: Like) -> Clear | Mask:
    mask = scaled_mask(x, other) or scaled_mask(other, x)
    if mask is not None:
        return mask
    return multiply(as_type(x, like.dtype), as_type(other, like.dtype))


def _quotient(x: Given, other: Given, like: Like, rounding_mode: str | None = None) -> Clear:
    a, b = as_type(x, like.dtype), as_type(other, like.dtype)
    if a.kind == "real":
        if rounding_mode is None:
            return both("divide")(a, b)
        if rounding_mode == "floor":  # 1 // 0.1 is 9, and 1 / 0.1 is 10
            less = subtract(a, both("modulo")(a, b))
            return function("round", both("divide")(less, b))
        raise Unsupported(f"a division of real numbers with rounding_mode={rounding_mode!r}")
    if rounding_mode == "floor":
        a = subtract(a, both("modulo")(a, b))
    return both("divide")(a, b)  # which leaves the fraction out


_MERGING |= {
    "add": _sum(add),
    "sub": _sum(subtract),
    "rsub": _sum(subtract, turned=True),
    "mul": _product,
    "div": _quotient,
    "true_divide": _quotient,
}


def _floor_divide(x: Given, other: Given, like: Like) -> Clear:
    return _quotient(x, other, like, "floor")


def _remainder(x: Given, other: Given, like: Like) -> Clear:
    return both("modulo")(as_type(x, like.dtype), as_type(other, like.dtype))


def _pow(x: Given, exponent: Given, like: Like) -> Clear:
    if isinstance(x, Clear) and not isinstance(exponent, Clear) and np.all(exponent == 2):
        a = as_type(x, like.dtype)
        return multiply(a, a)
    if kind_of(like.dtype) != "real":
        raise Unsupported("a power of whole numbers other than the second one")
    return power(as_type(x, like.dtype), as_type(exponent, like.dtype))


def _pair(op: str) -> Operator:
    def operator(x: Given, other: Given, like: Like) -> Clear:
        return both(op)(as_type(x, like.dtype), as_type(other, like.dtype))

    return operator


def _clamp(x: Given, like: Like, min: Given = None, max: Given = None) -> Clear:
    low, high = (None if end is None else known(end, "range") for end in (min, max))
    if any(end is not None and end.size > 1 for end in (low, high)):
        raise Unsupported("a clamp with arrays of ends")
    ends = [None if end is None else end.ravel()[0] for end in (low, high)]
    return clamped(as_type(x, like.dtype), *ends)


def _named(name: str) -> Operator:
    return lambda x, like: function(name, as_type(x, like.dtype))


_FUNCTIONS = {
    **{n: n for n in ("ceil", "cos", "exp", "floor", "log", "reciprocal", "round", "sigmoid")},
    **{n: n for n in ("sign", "sin", "sqrt", "tanh", "relu")},
    "abs": "absolute",
    "sgn": "sign",
}


def _negative(x: Clear, like: Like) -> Clear:
    if x.kind == "whole" and not x.largest:
        raise Unsupported("a negative of whole numbers of fewer than 32 bits, which wraps around")
    return function("negative", x)


def _softplus(x: Clear, like: Like, beta: float = 1, threshold: float = 20) -> Clear:
    if beta != 1:
        raise Unsupported("a softplus whose beta is not 1")
    return function("softplus", x)


def _silu(x: Clear, like: Like) -> Clear:
    return multiply(x, function("sigmoid", x))


def _log_sigmoid(x: Clear, like: Like) -> Clear:
    return function("negative", function("softplus", function("negative", x)))


_COMPUTING |= {name: _named(of) for name, of in _FUNCTIONS.items()}
_COMPUTING |= {
    "floor_divide": _floor_divide,
    "remainder": _remainder,
    "neg": _negative,
    "pow": _pow,
    "square": lambda x, like: multiply(as_type(x, like.dtype), as_type(x, like.dtype)),
    "maximum": _pair("maximum"),
    "minimum": _pair("minimum"),
    "clamp": _clamp,
    "clamp_min": lambda x, like, min: _clamp(x, like, min),
    "clamp_max": lambda x, like, max: _clamp(x, like, None, max),
    "hardtanh": lambda x, like, min_val=-1, max_val=1: _clamp(x, like, min_val, max_val),
    "relu6": lambda x, like: _clamp(x, like, 0, 6),
    "leaky_relu": lambda x, like, negative_slope=0.01: leaky_relu(x, negative_slope),
    "rsqrt": lambda x, like: function("reciprocal", function("sqrt", as_kind(x, "real"))),
    "log1p": lambda x, like: function("log", add(as_kind(x, "real"), as_kind(1.0, "real"))),
    "softplus": _softplus,
    "silu": _silu,
    "log_sigmoid": _log_sigmoid,
}


# --- comparisons ----------------------------------------------------------------------------------


def _comparison(op: str, **how: bool) -> Operator:
    return lambda x, other: both(op, **how)(*alike([x, other]))


def _logical(op: str, **how: bool) -> Operator:
    def operator(x: Given, other: Given, like: Like) -> Clear:
        a, b = as_kind(x, "flag"), as_kind(other, "flag")
        for flags, rest in ((x, b), (other, a)):  # masks often have a part that changes nothing
            if op == "and" and not isinstance(flags, Clear) and np.all(flags):
                check_beside([a, b])
                return expanded(rest, like.shape)
        return both(op, **how)(a, b)

    return operator


def _bitwise(op: str, **how: bool) -> Operator:
    def operator(x: Given, other: Given, like: Like) -> Clear:
        if any(one.kind != "flag" for one in alike([x, other])):
            raise Unsupported("an operation on the bits of whole numbers")
        return _logical(op, **how)(x, other, like)  # type: ignore[no-any-return]

    return operator


def _not(x: Clear) -> Clear:
    return step("not", [as_kind(x, "flag")], {})


def _bitwise_not(x: Clear) -> Clear:
    if x.kind != "flag":
        raise Unsupported("an operation on the bits of whole numbers")
    return _not(x)


def _is_in(
    elements: Clear, test_elements: Given, assume_unique: bool = False, invert: bool = False
) -> Clear:
    wanted = known(test_elements, "elements")
    if wanted.ndim != 1:
        raise Unsupported("elements of another shape than a vector's")
    each = reshaped(elements, (*elements.shape, 1))
    found = _any(_comparison("equal")(each, wanted.reshape((1,) * elements.ndim + (-1,))), -1)
    return _not(found) if invert else found


def _bucket(
    x: Clear, boundaries: Given, like: Like, out_int32: bool = False, right: bool = False
) -> Clear:
    """How many boundaries are below each number."""
    ends = known(boundaries, "boundaries").reshape((1,) * x.ndim + (-1,))
    op = "less_equal" if right else "less"
    below = both(op, turned=True)(*alike([reshaped(x, (*x.shape, 1)), ends]))
    return reduced("sum", as_type(below, like.dtype), [-1], False)


for _name, (_op, _how) in {
    "eq": ("equal", {}),
    "ne": ("equal", {"negated": True}),
    "lt": ("less", {}),
    "le": ("less_equal", {}),
    "gt": ("less", {"turned": True}),
    "ge": ("less_equal", {"turned": True}),
}.items():
    COMPARING[_name] = _comparison(_op, **_how)
for _name, (_op, _how) in {
    "and": ("and", {}),
    "or": ("or", {}),
    "xor": ("equal", {"negated": True}),
}.items():
    COMPARING[f"logical_{_name}"] = _logical(_op, **_how)
    COMPARING[f"bitwise_{_name}"] = COMPARING[f"__{_name}__"] = _bitwise(_op, **_how)
COMPARING |= {"logical_not": _not, "bitwise_not": _bitwise_not, "isin": _is_in}
COMPARING["bucketize"] = _bucket


def _where(condition: Given, x: Given, other: Given, like: Like) -> Clear | Mask:
    if not isinstance(condition, (Clear, Mask)):
        condition = known(condition, "condition")
    flags = as_kind(condition, "flag")
    mask = mask_by(flags, x, other)
    if mask is not None:
        return mask
    for masked, rest, keep in ((x, other, flags), (other, x, step("not", [flags], {}))):
        if isinstance(masked, Mask):  # and what else there is must be far below, too
            other_mask = mask_by(keep, np.zeros(()), rest)
            found = None if other_mask is None else joint_mask(masked, other_mask)
            if found is None:
                raise Unsupported(MISPLACED)
            return found
    values = [flags, as_type(x, like.dtype), as_type(other, like.dtype)]
    check_beside(values)
    return step("where", values, {})


def _masked_fill(x: Given, mask: Given, value: Given, like: Like) -> Clear | Mask:
    return _where(mask, value, x, like)


_CHOOSING = {"where": _where, "masked_fill": _masked_fill}


# --- conversions, and along axes ------------------------------------------------------------------


def _to(x: Given, like: Like, other: Given = None, dtype: Any = None) -> Clear:
    return as_type(x, like.dtype)


_CONVERTING = dict.fromkeys(("to", "_to_copy", "type_as"), _to)


def _reduction(how: str) -> Operator:
    def operator(x: Clear, like: Like, dim: Any = None, keepdim: bool = False) -> Clear:
        return reduced(how, as_type(x, like.dtype), axes_of(x, dim), keepdim)

    return operator


def _of_flags(how: str) -> Operator:
    def operator(x: Clear, dim: Any = None, keepdim: bool = False) -> Clear:
        numbers = cast_to(as_kind(x, "flag"), "whole")
        return cast_to(reduced(how, numbers, axes_of(x, dim), keepdim), "flag")

    return operator


_any, _all = _of_flags("max"), _of_flags("min")


def _extreme(how: str, op: str) -> Operator:
    """torch.max and its like: along an axis, with places, or of two arrays."""

    def operator(
        x: Clear, like: Like, dim: Any = None, keepdim: bool = False, other: Given = None
    ) -> Any:
        if other is not None:
            return _pair(op)(x, other, like)
        if dim is None:
            raise Unsupported(ALONG_BATCH)
        return [reduced(how, x, [dim], keepdim), place_of(how, x, dim, keepdim)]

    return operator


def _place(how: str) -> Operator:
    def operator(x: Clear, dim: Any = None, keepdim: bool = False) -> Clear:
        if dim is None:
            raise Unsupported(ALONG_BATCH)
        return place_of(how, as_kind(x, "whole") if x.kind == "flag" else x, int(dim), keepdim)

    return operator


def _top(x: Clear, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> list[Clear]:
    return top("max" if largest else "min", x, dim, k)


def _sort(x: Clear, dim: int = -1, descending: bool = False, stable: bool = False) -> list[Clear]:
    return top("max" if descending else "min", x, dim, x.shape[axis_of(dim, x.ndim)])


def _argsort(x: Clear, dim: int = -1, descending: bool = False, stable: bool = False) -> Clear:
    return _sort(x, dim, descending)[1]


def _shares(op: str) -> Operator:
    def operator(x: Clear, like: Like, dim: int, half_to_float: bool = False) -> Clear:
        return step(op, [as_type(x, like.dtype)], {"axis": axis_of(dim, x.ndim)})

    return operator


def _cumulated(x: Clear, like: Like, dim: int) -> Clear:
    return step("cumulate", [as_type(x, like.dtype)], {"axis": axis_of(dim, x.ndim)})


_SUMMING = {"sum": _reduction("sum"), "mean": _reduction("mean")}
_ALONG: dict[str, Operator] = {
    "amax": _reduction("max"),
    "amin": _reduction("min"),
    "any": _any,
    "all": _all,
    "max": _extreme("max", "maximum"),
    "min": _extreme("min", "minimum"),
    "argmax": _place("max"),
    "argmin": _place("min"),
    "topk": _top,
    "sort": _sort,
    "argsort": _argsort,
    "softmax": _shares("softmax"),
    "_softmax": _shares("softmax"),
    "log_softmax": _shares("log_softmax"),
    "_log_softmax": _shares("log_softmax"),
    "cumsum": _cumulated,
}

#: Every operator that a client has, by PyTorch's names.
OPERATIONS: dict[str, Operator] = {
    **MOVING,
    **LOOKING_UP,
    **_MERGING,
    **_COMPUTING,
    **COMPARING,
    **_CHOOSING,
    **_CONVERTING,
    **_SUMMING,
    **_ALONG,
}
#: Operators that move numbers, or compare them: a part before encrypting goes on through them.
MOVES = {*MOVING, *LOOKING_UP, *COMPARING, *_CHOOSING, *_CONVERTING}
#: Sums and products, through which it goes on if they make fewer numbers, or take single numbers of
#: the model.
MERGES = {*_MERGING, *_SUMMING}
#: What a server computes as well as a client.
_SERVERS = {*MOVING, *_MERGING, *_SUMMING, "neg", "square", "index", "index_select"}


def is_head(name: str, bound: Mapping[str, Any], like: Like | None) -> bool:
    """Whether an operator is one for the client: a server does not compute it, or approximates it.

    bound: its arguments, of which those that depend on encrypted numbers are Clear.
    """
    match name:
        case "div" | "true_divide":
            return isinstance(bound["other"], Clear) or bound.get("rounding_mode") is not None
        case "pow":
            power = bound["exponent"]
            return isinstance(power, Clear) or np.ndim(power) > 0 or power not in range(1, 64)
        case "where" | "masked_fill":
            return isinstance(bound.get("condition", bound.get("mask")), Clear)
        case "index" | "index_select":
            indices = bound.get("indices", [bound.get("index")])
            return any(isinstance(i, Clear) for i in indices)
        case "to" | "_to_copy" | "type_as":
            return like is None or kind_of(like.dtype) != "real"
    return name not in _SERVERS
