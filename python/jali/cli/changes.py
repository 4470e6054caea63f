"""What other options of ``jali params`` would give, for the schemes whose ring is chosen by depth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from jali._core.console import bytes_text

__all__ = ["WORDS", "changes"]

WORDS = ("w32", "w52", "w64")


class _Params(Protocol):
    """What the parameters of either scheme have."""

    @property
    def depth(self) -> int: ...
    @property
    def log_n(self) -> int: ...
    @property
    def log_qp(self) -> float: ...
    @property
    def word(self) -> str: ...
    def key_bytes(self) -> int: ...


P = TypeVar("P", bound=_Params)


def changes(
    params: P,
    security: int,
    ask: Callable[..., P | None],
    ciphertext_bytes: Callable[[P], int],
    others: Sequence[tuple[str, dict[str, object]]] = (),
) -> list[tuple[str, str]]:
    """Pairs of other options and the parameters that they would give: the largest depth of this
    ring and the next, other words, more security, and `others`, pairs of options and their
    arguments.

    ask: the parameters with these arguments instead of those that were given, or None if nothing
        fits.
    """

    def outcome(p: P | None) -> str:
        if p is None:
            return "nothing fits"
        return (
            f"log_n {p.log_n}, log_qp {p.log_qp:.0f}, word {p.word}, "
            f"ciphertext {bytes_text(ciphertext_bytes(p))}, one key {bytes_text(p.key_bytes())}"
        )

    rows = []
    deepest = params.depth
    while (p := ask(depth=deepest + 1, log_n=params.log_n)) is not None:
        deepest = p.depth
    if deepest > params.depth:
        rows.append(
            (f"--depth {deepest}", f"the deepest at this log_n; {outcome(ask(depth=deepest))}")
        )
    rows.append((f"--depth {deepest + 1}", outcome(ask(depth=deepest + 1))))
    rows.extend(
        (f"--word {word}", outcome(ask(word=word))) for word in WORDS if word != params.word
    )
    rows.extend(
        (f"--security {bits}", outcome(ask(security=bits)))
        for bits in (192, 256)
        if bits > security
    )
    rows.extend((text, outcome(ask(**arguments))) for text, arguments in others)
    return rows
