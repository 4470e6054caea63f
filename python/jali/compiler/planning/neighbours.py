"""Settings near to those that were asked for, tried before a model is refused: more examples in a
ciphertext, and then less precision or a smaller margin, which a refusal names if it compiles."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from jali._core.console import bytes_text, counted_text
from jali.compiler.cost.keys import key_sizes
from jali.compiler.frontends.answers import DEFAULT_BITS
from jali.compiler.planning.fewer_keys import TooManyKeys
from jali.compiler.planning.plan import Plan
from jali.errors import InvalidArgument, Unsupported

__all__ = ["by_default", "nearest", "smallest"]

_WIDER = (8, 64)  # times the examples that were asked for
_MOST_LANES = 1 << 12
_FEWER = (2.0, 4.0)  # bits of precision
_LEAST = 2.0
_NARROWER = 4.0  # times smaller than the margin that was asked for

Made = TypeVar("Made")


def by_default(
    at: Callable[[float, int], Made],
    plan_of: Callable[[Made], Plan],
    bits: float,
    lanes: int,
    within: Callable[[float], Made] | None = None,
    margin: float = 0.0,
) -> tuple[float, Made]:
    """What `at` makes with these bits of precision, which keep the answers of a classifier, and its
    precision. That is DEFAULT_BITS instead if fewer do not compile, or more do not with as few
    levels. So whatever compiles with DEFAULT_BITS compiles. Other arguments as of nearest."""
    if bits < DEFAULT_BITS:
        with contextlib.suppress(Unsupported, InvalidArgument):
            return bits, at(bits, lanes)
    made = nearest(at, plan_of, DEFAULT_BITS, lanes, within, margin)
    if bits > DEFAULT_BITS:
        with contextlib.suppress(Unsupported, InvalidArgument):
            more = at(bits, lanes)
            if plan_of(more).interpreter.params.depth <= plan_of(made).interpreter.params.depth:
                return bits, more
    return DEFAULT_BITS, made


def smallest(
    at: Callable[[float, int], Made],
    plan_of: Callable[[Made], Plan],
    bits: float,
    lanes: int,
    within: Callable[[float], Made] | None = None,
    margin: float = 0.0,
) -> tuple[float, Made]:
    """What `at` makes with these bits of precision, which keep all answers, and its precision. If
    more than DEFAULT_BITS do not compile, it is that of the most bits that do, two at a time; who
    calls tells of the answers that these may change. Other arguments as of nearest."""
    fewer = bits
    while fewer > DEFAULT_BITS:
        with contextlib.suppress(Unsupported, InvalidArgument):
            return fewer, at(fewer, lanes)
        fewer = max(DEFAULT_BITS, fewer - 2)
    return fewer, nearest(at, plan_of, fewer, lanes, within, margin)


def nearest(
    at: Callable[[float, int], Made],
    plan_of: Callable[[Made], Plan],
    precision_bits: float,
    lanes: int,
    within: Callable[[float], Made] | None = None,
    margin: float = 0.0,
) -> Made:
    """What `at` makes with this precision in bits and this number of examples in a ciphertext, or
    with more examples if it raises Unsupported: other examples then lie beside those that a client
    encrypts, and layouts differ, and with them the noise. That is warned of.

    within: what `at` makes for another margin than this one. Smaller intervals have approximations
        where larger ones have none, and take fewer levels. It is tried last, because inputs beyond
        the calibration have less room then.

    Raises the error of `at`, which names the precision or the margin nearest to this one that
    compiles, with its cost, or those that were tried.
    """
    refused: Unsupported | InvalidArgument
    try:
        return at(precision_bits, lanes)
    except TooManyKeys:  # it names what compiles
        raise
    except (Unsupported, InvalidArgument) as error:
        refused = error
    is_deep = isinstance(refused, Unsupported)
    for wider in (lanes * times for times in _WIDER if is_deep and lanes * times <= _MOST_LANES):
        with contextlib.suppress(Unsupported, InvalidArgument):
            made = at(precision_bits, wider)
            warnings.warn(
                f"there is no plan for {counted_text(lanes, 'example')} in a ciphertext: this one has room for {wider}, of which a client may leave any empty",
                UserWarning,
                stacklevel=5,
            )
            return made
    tried: list[tuple[str, Callable[[], Made]]] = [
        (f"precision_bits={bits:g}", partial(at, bits, lanes))
        for bits in (precision_bits - fewer for fewer in _FEWER)
        if bits >= _LEAST
    ]
    if within is not None and margin > 0:
        narrower = margin / _NARROWER
        tried.append((f"margin={narrower:g}", partial(within, narrower)))
    says = str(refused).rstrip(".")
    for setting, make in tried:
        try:
            found = plan_of(make())
        except (Unsupported, InvalidArgument):
            continue
        params = found.interpreter.params
        keys = bytes_text(key_sizes(params, found.demand).expanded)
        raise type(refused)(
            f"{says}. With {setting} it compiles: {counted_text(params.depth, 'level')}, and keys of {keys} in the server"
        ) from None
    also = " and ".join(setting for setting, _ in tried)
    more = f". It is refused with {also}, too." if tried else ""
    raise type(refused)(f"{says}{more}") from None
