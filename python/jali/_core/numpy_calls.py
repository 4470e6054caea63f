"""NumPy's functions on encrypted arrays: those with a method or an operator use it, the others are
refused."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from jali._core.refusals import sentence
from jali.errors import NotOffered, Unsupported

__all__ = ["NumPyCalls", "called"]

#: Operators of ufuncs: the method of the first operand.
OPERATORS = {
    np.add: "__add__",
    np.subtract: "__sub__",
    np.multiply: "__mul__",
    np.true_divide: "__truediv__",
    np.floor_divide: "__floordiv__",
    np.remainder: "__mod__",
    np.divmod: "__divmod__",
    np.bitwise_and: "__and__",
    np.bitwise_or: "__or__",
    np.bitwise_xor: "__xor__",
    np.invert: "__invert__",
    np.left_shift: "__lshift__",
    np.right_shift: "__rshift__",
    np.minimum: "minimum",
    np.maximum: "maximum",
    np.matmul: "__matmul__",
    np.power: "__pow__",
    np.negative: "__neg__",
    np.positive: "__pos__",
    np.conjugate: "conj",
    np.absolute: "__abs__",
    np.equal: "__eq__",
    np.not_equal: "__ne__",
    np.less: "__lt__",
    np.less_equal: "__le__",
    np.greater: "__gt__",
    np.greater_equal: "__ge__",
}
#: The method of the second operand, if the first is no encrypted array.
REFLECTED = {
    np.add: "__radd__",
    np.subtract: "__rsub__",
    np.multiply: "__rmul__",
    np.true_divide: "__rtruediv__",
    np.floor_divide: "__rfloordiv__",
    np.remainder: "__rmod__",
    np.divmod: "__rdivmod__",
    np.bitwise_and: "__rand__",
    np.bitwise_or: "__ror__",
    np.bitwise_xor: "__rxor__",
    np.left_shift: "__rlshift__",
    np.right_shift: "__rrshift__",
    np.minimum: "minimum",
    np.maximum: "maximum",
    np.matmul: "__rmatmul__",
    np.power: "__rpow__",
    np.equal: "__eq__",
    np.not_equal: "__ne__",
    np.less: "__gt__",
    np.less_equal: "__ge__",
    np.greater: "__lt__",
    np.greater_equal: "__le__",
}

#: ``ufunc.reduce`` is the method of this name, if the class has it.
REDUCED: dict[np.ufunc, str] = {np.add: "sum", np.maximum: "max", np.minimum: "min"}
#: Functions of arrays that are the method of this name, if the class has it.
METHODS: dict[Callable[..., Any], str] = {
    getattr(np, name): name
    for name in (
        *("sum", "mean", "var", "std", "dot", "reshape", "transpose", "ravel", "squeeze"),
        *("sort", "max", "min", "argmax", "argmin", "swapaxes"),
    )
}
#: Functions that ask for a fact.
FACTS: dict[Callable[..., Any], Callable[[Any], Any]] = {
    np.shape: lambda x: x.shape,
    np.ndim: lambda x: x.ndim,
    np.size: lambda x: x.size,
    np.copy: lambda x: x,
}


def called(
    known: Mapping[Any, Callable[..., Any]],
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """What NumPy's function gives for encrypted arrays.

    known: the functions of a scheme that stand for NumPy's, with the arguments that they take.
        NotImplemented is returned for a function that is not among them.
    Raises Unsupported for arguments that the scheme's function does not take.
    """
    ours = known.get(function)
    if ours is None:
        return NotImplemented
    return _passed(ours, function.__name__, args, kwargs)


def _passed(
    ours: Callable[..., Any], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """What our function gives for arguments of NumPy's of this name. Raises Unsupported for those
    that it does not take."""
    takes = inspect.signature(ours)
    try:
        bound = takes.bind(*args, **kwargs)
    except TypeError as error:
        other = [f'has no argument "{key}"' for key in kwargs if key not in takes.parameters]
        raise Unsupported(
            f"numpy.{name} of encrypted arrays {(other or [str(error)])[0]}: it takes {', '.join(takes.parameters)}"
        ) from None
    return ours(*bound.args, **bound.kwargs)


class NumPyCalls:
    """An array that NumPy's functions take.

    The tables "numpy" of refusals.toml say what to do instead of a function. _hint: instead of all
    that have no row.
    """

    __slots__ = ()
    _hint: ClassVar[str] = "decrypt them first, or see ckks.functions and Evaluator"

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        # The first case is ``number * x`` and ``array * x``, with numbers of NumPy; it comes first
        # because it is frequent.
        if inputs[0] is not self:
            operator = REFLECTED.get(ufunc)
            if (
                operator is not None
                and method == "__call__"
                and not options
                and hasattr(type(self), operator)
            ):
                result = getattr(self, operator)(inputs[0])
                if result is not NotImplemented:
                    return result
        elif method == "__call__" and not options:
            if ufunc is np.square:
                return self * self
            operator = OPERATORS.get(ufunc)
            if operator is not None and hasattr(type(self), operator):
                result = getattr(self, operator)(*inputs[1:])
                if result is not NotImplemented:
                    return result
        name = ufunc.__name__
        if method == "reduce" and options.keys() <= {"axis", "keepdims", "dtype"}:
            reduced = getattr(type(self), REDUCED.get(ufunc, ""), None)
            if reduced is not None:
                return reduced(self, options.pop("axis", 0), **options)
        if method != "__call__":
            raise self._refusal(f"{name}.{method}")
        if options:
            raise Unsupported(
                f"numpy.{name} takes no {', '.join(options)} with encrypted arrays: leave it out"
            )
        raise self._refusal(name)

    def __array_function__(
        self,
        function: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        fact = FACTS.get(function)
        if fact is not None and len(args) == 1 and not kwargs and args[0] is self:
            return fact(self)
        method = METHODS.get(function)
        if method is not None and args and isinstance(args[0], NumPyCalls):
            try:
                bound = getattr(args[0], method)
            except NotOffered as error:
                raise Unsupported(f"numpy.{method}: {error}") from None
            except AttributeError:
                raise self._refusal(method) from None
            # NumPy's own functions pass on what the caller gave, and so does this.
            return _passed(bound, method, args[1:], kwargs)
        if function is np.dot and len(args) == 2 and not kwargs and isinstance(args[1], NumPyCalls):
            return args[0] @ args[1]
        raise self._refusal(getattr(function, "__name__", str(function)))

    def _refusal(self, name: str) -> Unsupported:
        hint = sentence(type(self), name, "numpy", "names") or self._hint
        return Unsupported(f"numpy.{name} does not compute on encrypted arrays: {hint}")
