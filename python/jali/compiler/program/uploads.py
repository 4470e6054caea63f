"""What a client sends before its first request, and what fewer keys cost in time: a few sets of
keys to choose from, as a table and as a curve."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jali._core.console import aligned, bytes_text, seconds_text
from jali._core.files import save_figure
from jali._core.refusals import Answering
from jali.ckks import Params
from jali.compiler.cost.composed import extra_of
from jali.compiler.cost.costs import Costs
from jali.compiler.cost.keys import relative_time, sent_exactly, serving_rotations
from jali.compiler.planning.dry_run import DRY, DryRun
from jali.compiler.planning.fewer_keys import choices, restoring_cost, run_cost, weights_of
from jali.compiler.program.plot import check_path, no_matplotlib
from jali.compiler.runtime.interpreter import Interpreter
from jali.program.demand import Demand

__all__ = [
    "BITS_A_SECOND",
    "Upload",
    "Uploads",
    "composes",
    "sending_seconds",
    "sending_text",
    "uploads_of",
]

#: The rate at which the time of an upload is told.
BITS_A_SECOND = 20e6
_SHOWN = 5  # sets beside the program's own


@dataclass(frozen=True)
class Upload(metaclass=Answering):
    """A set of keys that a client may send.

    sent_bytes: in a message.
    send_seconds: that they take at 20 Mbit/s.
    relative_time: of a run, over that with all keys, as plans count it.
    is_own: whether they are the program's.

    >>> examples = np.linspace(-1, 1, 160).reshape(10, 16)
    >>> weights = np.cos(np.arange(64).reshape(16, 4))
    >>> program = jali.compile(lambda x: x @ weights, examples[0], calibration=examples)
    >>> program.uploads()[-1].sent_bytes == program.sizes().keys_sent
    True
    """

    sent_bytes: int
    send_seconds: float
    relative_time: float
    is_own: bool = False


@dataclass(frozen=True, eq=False)
class Uploads(metaclass=Answering):
    """What Program.uploads gives: a sequence of Upload, from the fewest bytes to all keys.

    sets: in this order.

    >>> examples = np.linspace(-1, 1, 160).reshape(10, 16)
    >>> weights = np.cos(np.arange(64).reshape(16, 4))
    >>> program = jali.compile(lambda x: x @ weights, examples[0], calibration=examples)
    >>> [one.is_own for one in program.uploads()][-1]
    True
    """

    sets: tuple[Upload, ...]

    def __len__(self) -> int:
        return len(self.sets)

    def __iter__(self) -> Iterator[Upload]:
        return iter(self.sets)

    def __getitem__(self, index: int) -> Upload:
        return self.sets[index]

    @property
    def own(self) -> Upload:
        """Of the program."""
        return next(one for one in self.sets if one.is_own)

    @property
    def fewer(self) -> tuple[Upload, ...]:
        """Those of fewer bytes than the program's, the most first."""
        return tuple(o for o in reversed(self.sets) if o.sent_bytes < self.own.sent_bytes)

    def __str__(self) -> str:
        rows = [("keys to send", "at 20 Mbit/s", "time of a run")]
        rows += [
            (
                bytes_text(one.sent_bytes),
                sending_text(one.send_seconds),
                f"{one.relative_time:.2f} x{'  this program' if one.is_own else ''}",
            )
            for one in self.sets
        ]
        return "\n".join(aligned(rows))

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """The curve: the time of a run over that with all keys, against the bytes that a client
        sends. It needs matplotlib.

        path: where to save it, as .png, .svg or .pdf. Returns the figure of matplotlib.
        """
        check_path(path)
        try:
            from matplotlib.figure import Figure
            from matplotlib.ticker import EngFormatter
        except ImportError:
            raise no_matplotlib() from None
        figure = Figure(figsize=(6.0, 4.0), layout="constrained")
        axes = figure.subplots()
        sizes, times = zip(*((one.sent_bytes, one.relative_time) for one in self), strict=True)
        axes.plot(sizes, times, "o-", color="tab:blue", label="sets of keys")
        own = self.own
        axes.plot(own.sent_bytes, own.relative_time, "o", color="tab:red", label="this program")
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(EngFormatter("B"))
        axes.set_xlabel("keys that a client sends")
        axes.set_ylabel("time of a run, over that with all keys")
        axes.set_ylim(bottom=0)
        axes.legend(fontsize=8)
        if path is not None:
            save_figure(figure, path, dpi=120)
        return figure


def sending_seconds(count: int) -> float:
    """The time that so many bytes take at 20 Mbit/s."""
    return count * 8 / BITS_A_SECOND


def sending_text(seconds: float) -> str:
    """A time of an upload as text: in minutes, if it takes one."""
    return f"{seconds / 60:.1f} min" if seconds >= 60 else seconds_text(seconds)


def composes(params: Params, demand: Demand, rotations: Mapping[int, int]) -> bool:
    """Whether some of these rotations, each with its level, have no key of their own with a demand,
    nor one of bootstrapping, so that an evaluator composes them."""
    left = {step % params.slots for step in rotations} - {0}
    left -= {step % params.slots for step in demand.rotations}
    whole = replace(demand, rotations=dict(rotations))
    return bool(left and left - {k % params.slots for k in serving_rotations(params, whole)})


def uploads_of(
    interpreter: Interpreter,
    demand: Demand,
    costs: Costs,
    rotations: Mapping[int, int] | None = None,
) -> Uploads:
    """The sets of keys of a program.

    demand: its own keys.
    costs: with bootstrappings that take as long as with these.
    rotations: that it uses, each with its level; None to find them by a dry run.
    """
    if rotations is None:
        dry_run = DryRun(interpreter, DRY, 1, demand.restored_bits)
        dry_run.run()
        rotations = dry_run.rotations()
    params, bootstraps = interpreter.params, demand.bootstrap != "none"
    every = replace(demand, rotations=dict(rotations), bootstrap="all" if bootstraps else "none")
    slower = costs.slower(relative_time(params, demand))
    costs = costs.slowed(1 / slower)
    least = run_cost(interpreter, costs)
    serving = serving_rotations(params, replace(every, bootstrap=demand.bootstrap))
    keys = [*demand.rotations, *serving]
    extra = extra_of(params.slots, keys, weights_of(interpreter, every, costs))
    mine = least + restoring_cost(interpreter, costs) * (slower - 1) + extra

    def upload(sent: int, cost: float, is_own: bool = False) -> Upload:
        return Upload(sent, sending_seconds(sent), cost / least if least else 1.0, is_own)

    own = upload(sent_exactly(params, demand), mine, True)
    others = [upload(one.sent, one.cost) for one in choices(interpreter, every, costs)]
    others = [one for one in others if one.sent_bytes != own.sent_bytes]
    at = np.linspace(0, len(others) - 1, min(len(others), _SHOWN)).round().astype(int)
    found = [own, *(others[k] for k in at)]
    return Uploads(tuple(sorted(found, key=lambda one: one.sent_bytes)))
