"""Circuits of sums and look-ups: what a plan of trees is made of, how it is run on ciphertexts, and
in the clear."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from jali._jali.tfhe import Ciphertext, Table
from jali.errors import InternalError
from jali.tfhe.array import EncryptedArray
from jali.tfhe.evaluator import Evaluator

__all__ = ["Circuit", "Form", "Room"]

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Room:
    """values: how many values an index has at most. norm2: the largest squared norm of its
    weights."""

    values: int
    norm2: float

    @property
    def digit(self) -> int:
        """How many bits a digit of a sum has, so that several digits can be added."""
        return (self.values.bit_length() - 1) // 2

    @property
    def large(self) -> int:
        """What the second encryption of an answer holds. A sum may weigh it at little noise where
        the first would need a large weight."""
        return 1 << self.digit


class Form(NamedTuple):
    """constant + the sum of weight times node, which lies from 0 to `most`."""

    terms: tuple[tuple[int, int], ...]
    most: int
    constant: int = 0

    @property
    def norm2(self) -> int:
        """The squared norm of its weights."""
        return sum(w * w for _, w in self.terms)


class Circuit:
    """Inputs and look-ups, by numbers. A look-up has a larger number than what it looks up.

    columns: of each input, what is encrypted: (question, value for the answer yes).
    section: look-ups of one section run together, and only what later ones need is kept.
    """

    def __init__(self, room: Room) -> None:
        self.room = room
        self.section = 0
        self.columns: dict[tuple[int, int], int] = {}
        self.outputs: list[Form] = []
        self._most: list[int] = []
        self._forms: list[Form | None] = []  # of each node, None for inputs
        self._tables: list[tuple[int, ...]] = []
        self._waves: list[tuple[int, int]] = []  # section, depth
        self._known: dict[tuple[Form, tuple[int, ...]], int] = {}

    @property
    def look_ups(self) -> int:
        """How many there are."""
        return len(self._forms) - len(self.columns)

    @property
    def depth(self) -> int:
        """How many waves of look-ups follow each other."""
        return len({w for w, f in zip(self._waves, self._forms, strict=True) if f is not None})

    def answer(self, question: int, value: int = 1) -> int:
        """The node of an answer, encrypted as 0 or `value`."""
        if (question, value) not in self.columns:
            self.columns[question, value] = self._add(None, (), value, (0, 0))
        return self.columns[question, value]

    def _add(
        self, form: Form | None, table: tuple[int, ...], most: int, wave: tuple[int, int]
    ) -> int:
        self._forms.append(form)
        self._tables.append(table)
        self._most.append(most)
        self._waves.append(wave)
        return len(self._forms) - 1

    def node(self, node: int, weight: int = 1) -> Form:
        """A node as a form."""
        return Form(((node, weight),), weight * self._most[node])

    def look_up(self, form: Form, table: Sequence[int]) -> Form:
        """table[form]. Equal look-ups are one."""
        if not 0 <= form.most < self.room.values or form.norm2 > self.room.norm2:
            raise InternalError("a look-up of the trees has no room")
        used = tuple(table[: form.most + 1])
        if not any(used):
            return Form((), 0)
        if not form.terms:
            return Form((), used[form.constant], used[form.constant])
        is_node = len(form.terms) == 1 and form.terms[0][1] == 1 and not form.constant
        if is_node and used == tuple(range(len(used))):
            return form
        at = self._known.get((form, used))
        if at is None:
            before = [self._waves[n] for n, _ in form.terms]
            depth = max((d for s, d in before if s == self.section), default=0) + 1
            at = self._add(form, used, max(used), (self.section, depth))
            self._known[form, used] = at
        return self.node(at)

    def total(self, forms: Iterable[Form], most: int | None = None) -> Form:
        """The sum of forms. most: its largest value, if that is less than all of theirs
        together."""
        terms: dict[int, int] = {}
        constant = top = 0
        for form in forms:
            constant, top = constant + form.constant, top + form.most
            for node, weight in form.terms:
                terms[node] = terms.get(node, 0) + weight
        kept = tuple(sorted((n, w) for n, w in terms.items() if w))
        return Form(kept, top if most is None else most, constant)

    def one_of(self, forms: list[Form], most: int) -> Form:
        """The sum of forms of which at most one is not 0, so that the result is at most `most`.
        Refreshes parts if there are many."""
        step = math.floor(self.room.norm2)
        while True:
            whole = self.total(forms, most)
            if whole.norm2 <= self.room.norm2:
                return whole
            parts, some = [], list[Form]()
            for form in forms:
                if some and self.total([*some, form]).norm2 > step:
                    parts.append(self.look_up(self.total(some, most), range(most + 1)))
                    some = []
                some.append(form)
            forms = [*parts, self.look_up(self.total(some, most), range(most + 1))]

    # --- running it -----------------------------------------------------------------------------

    def clear(self, given: Ints) -> Ints:
        """The outputs (n, outputs) for inputs (n, columns). Raises InternalError if an index leaves
        its table."""
        values: list[Ints] = []
        column = iter(given.T)
        for form, table in zip(self._forms, self._tables, strict=True):
            if form is None:
                values.append(next(column).astype(np.int64))
                continue
            values.append(np.array(table)[self._clear(form, values)])
        found = [self._clear(form, values) for form in self.outputs]
        return np.stack(found, axis=1) if found else np.zeros((len(given), 0), np.int64)

    @staticmethod
    def _clear(form: Form, values: list[Ints]) -> Ints:
        total: Ints = np.asarray(sum(w * values[n] for n, w in form.terms) + form.constant)
        if total.min() < 0 or total.max() > form.most:
            raise InternalError("a sum of the trees is not where the plan has it")
        return total

    def alive(self) -> int:
        """How many ciphertexts of a row are kept at once, at most."""
        most = now = len(self.columns)
        last, waves = self._last_uses(), self._by_wave()
        for wave, nodes in waves.items():
            most = max(most, now + 2 * len(nodes))
            now += len(nodes)
            now -= sum(1 for end in last if end == wave)
        return most

    def _by_wave(self) -> dict[tuple[int, int], list[int]]:
        waves: dict[tuple[int, int], list[int]] = {}
        for node, form in enumerate(self._forms):
            if form is not None:
                waves.setdefault(self._waves[node], []).append(node)
        return dict(sorted(waves.items()))

    def _last_uses(self) -> list[tuple[int, int]]:
        """The last wave that uses each node."""
        last = list(self._waves)
        for node, form in enumerate(self._forms):
            for source, _ in form.terms if form else ():
                last[source] = max(last[source], self._waves[node])
        for form in self.outputs:
            for source, _ in form.terms:
                last[source] = (1 << 60, 0)
        return last

    def run(
        self,
        server: Evaluator,
        given: EncryptedArray,
        stop: Callable[[], object] | None = None,
    ) -> EncryptedArray:
        """The outputs (rows, outputs) of encrypted inputs (rows, columns). stop: called before each
        wave; if it raises, the run ends."""
        last = self._last_uses()
        pool = _Pool(given, list(self.columns.values()))
        for wave, nodes in self._by_wave().items():
            if stop is not None:
                stop()
            forms = [form for node in nodes if (form := self._forms[node]) is not None]
            # All sums of a wave count as large as the largest, and every table has a value for
            # that.
            longest = max(form.most for form in forms) + 1
            given_tables = [self._tables[node] for node in nodes]
            tables = [Table(server.params, [*t, *[0] * (longest - len(t))]) for t in given_tables]
            index = self._summed(server, pool, forms)
            which = list(range(len(nodes))) * given.shape[0]
            found = server._core.apply_each(index, tables, which)
            pool.add(EncryptedArray(server, found), nodes)
            pool.keep(lambda node, wave=wave: last[node] > wave)
        return EncryptedArray(server, self._summed(server, pool, self.outputs))

    @staticmethod
    def _summed(server: Evaluator, pool: _Pool, forms: Sequence[Form]) -> Ciphertext:
        """The ciphertexts of forms, (rows, forms)."""
        needed = sorted({node for form in forms for node, _ in form.terms})
        x, place = pool.taken(needed), {node: k for k, node in enumerate(needed)}
        begin = np.concatenate([[0], np.cumsum([len(form.terms) for form in forms])])
        terms = [term for form in forms for term in form.terms]
        return server._core.linear_rows(
            x._here(server),
            len(needed),
            begin.tolist(),
            [place[node] for node, _ in terms],
            [weight for _, weight in terms],
            [form.constant for form in forms],
            max(form.most for form in forms),
            [x.shape[0], len(forms)],
        )


class _Pool:
    """The ciphertexts that are still needed, in arrays (rows, nodes)."""

    def __init__(self, given: EncryptedArray, nodes: list[int]) -> None:
        self._arrays: list[tuple[EncryptedArray, list[int]]] = [(given, nodes)]

    def add(self, array: EncryptedArray, nodes: list[int]) -> None:
        """Takes the results of a wave."""
        self._arrays.append((array, nodes))

    def keep(self, needed: object) -> None:
        """Forgets what is not needed any more, where that frees more than half of an array."""
        kept = []
        for array, nodes in self._arrays:
            left = [k for k, node in enumerate(nodes) if needed(node)]  # type: ignore[operator]
            if not left:
                continue
            if 2 * len(left) < len(nodes):
                array, nodes = _columns(array, left), [nodes[k] for k in left]
            kept.append((array, nodes))
        self._arrays = kept

    def taken(self, wanted: Sequence[int]) -> EncryptedArray:
        """These nodes, (rows, nodes), in order."""
        parts, order = [], list[int]()
        for array, nodes in self._arrays:
            find = set(wanted).intersection(nodes)
            columns = [k for k, node in enumerate(nodes) if node in find]
            if columns:
                parts.append(array if len(columns) == len(nodes) else _columns(array, columns))
                order += [nodes[k] for k in columns]
        whole = parts[0] if len(parts) == 1 else parts[0]._server.concatenate(parts, axis=1)
        if order == list(wanted):
            return whole
        place = {node: k for k, node in enumerate(order)}
        return _columns(whole, [place[node] for node in wanted])


def _columns(array: EncryptedArray, columns: list[int]) -> EncryptedArray:
    rows, width = array.shape
    return array._taken(np.arange(rows)[:, None] * width + np.array(columns))
