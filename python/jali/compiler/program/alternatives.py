"""Programs of one model with other settings, and what each costs, to choose from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jali._core.console import aligned, bytes_text, seconds_text
from jali._core.refusals import Answering

if TYPE_CHECKING:
    from jali.compiler.passes.fitted_relus import Fitted

__all__ = ["Alternative", "Alternatives"]


@dataclass(frozen=True, eq=False)
class Alternative(metaclass=Answering):
    """A program of a model, and what it costs.

    settings: the arguments of jali.compile in which it differs from what was asked for. Empty for
        the program that was.
    program: the nn.Program itself, which can be saved and run.
    seconds: of a run for all examples of one ciphertext, by trial runs on this machine; None if it
        has no device of the kind for which it was planned.
    relative_time: of a run, over that of the program that was asked for, as plans count it.
    examples: of one ciphertext.
    precision_bits: of the program.
    levels, bootstraps: that it takes.
    key_bytes: of keys that a client sends, once.
    server_bytes: of keys and matrices in the server's memory.
    fitted: what polynomials in the place of ReLUs change, with relu_degree among the settings: of
        how many examples the answers are the same, and by how much results differ.

    >>> examples = np.linspace(-1, 1, 60).reshape(20, 3)
    >>> how = {"calibration": examples, "explain": True}
    >>> for one in jali.compile(lambda x: 2 * x, examples[0], **how).alternatives():
    ...     assert one.program.precision_bits == one.precision_bits
    """

    settings: Mapping[str, object]
    program: Any
    seconds: float | None
    relative_time: float
    examples: int
    precision_bits: float
    levels: int
    bootstraps: int
    key_bytes: int
    server_bytes: int
    fitted: Fitted | None = None

    @property
    def name(self) -> str:
        """The settings as they are given to jali.compile."""
        return ", ".join(f"{k}={v!r}" for k, v in self.settings.items()) or "as asked for"


@dataclass(frozen=True, eq=False)
class Alternatives(metaclass=Answering):
    """What Program.alternatives gives: a sequence of Alternative, of which the first is the program
    itself. ``print`` shows a table.

    plans: in the order of the table.

    >>> examples = np.linspace(-1, 1, 60).reshape(20, 3)
    >>> how = {"calibration": examples, "explain": True}
    >>> plans = jali.compile(lambda x: 2 * x, examples[0], **how).alternatives()
    >>> plans[0].name
    'as asked for'
    """

    plans: tuple[Alternative, ...]

    def __len__(self) -> int:
        return len(self.plans)

    def __iter__(self) -> Iterator[Alternative]:
        return iter(self.plans)

    def __getitem__(self, index: int) -> Alternative:
        return self.plans[index]

    def __str__(self) -> str:
        head = ("plan", "time", "examples", "time each", "bits", "levels", "bootstraps")
        rows = [(*head, "keys to send", "in the server"), *map(_cells, self.plans)]
        lines = [f"  {line}" for line in aligned(rows)]
        told = [f"with {one.name}, {one.fitted}" for one in self.plans if one.fitted is not None]
        return "\n".join(["plans that were tried", *lines, *told])


def _cells(one: Alternative) -> tuple[str, ...]:
    if one.seconds is None:
        time, each = f"{one.relative_time:.2f} x", f"{one.relative_time / one.examples:.2g} x"
    else:
        time, each = seconds_text(one.seconds), seconds_text(one.seconds / one.examples)
    return (
        one.name,
        time,
        f"{one.examples:,}",
        each,
        f"{one.precision_bits:g}",
        str(one.levels),
        str(one.bootstraps),
        bytes_text(one.key_bytes),
        bytes_text(one.server_bytes),
    )
