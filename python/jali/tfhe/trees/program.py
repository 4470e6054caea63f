"""A compiled ensemble: what makes its client and its server, and what it costs."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from jali import tfhe
from jali._core import checks
from jali._core.console import bytes_text, counted_text, seconds_text
from jali._jali.tfhe import EvaluationKeys, Params
from jali.errors import InvalidArgument, Unsupported, VersionError
from jali.tfhe.trees import stored
from jali.tfhe.trees.circuit import Room
from jali.tfhe.trees.client import Client
from jali.tfhe.trees.deployment import Deployment
from jali.tfhe.trees.ensemble import Ensemble, Floats
from jali.tfhe.trees.manifest import Manifest
from jali.tfhe.trees.plan import Plan, planned
from jali.tfhe.trees.questions import checked_edges, names_of, unbinned
from jali.tfhe.trees.read import ensemble_of
from jali.tfhe.trees.server import Server

__all__ = ["PRESET", "Program", "Summary", "compile", "compiled"]

PRESET = "message_2_carry_2"
BITS = 32  # of the difference between the largest and the smallest sum
_MOST_BITS = 48
_MOST_ROWS = 256  # of a ciphertext
_ALIVE = (
    1 << 16
)  # ciphertexts that a server keeps at once, of all rows of a ciphertext together: about 1 GB
_DEAR = 60.0  # seconds for a row that are warned of
_AT_ONCE = 256  # rows that are computed in the clear at a time
#: Seconds of a look-up on one thread of a CPU with AVX-512, of docs/tfhe-parameters.md.
_SECONDS = {
    "message_1_carry_1": 6.09e-3,
    "message_1_carry_1_block": 2.28e-3,
    "message_2_carry_2": 6.57e-3,
    "message_2_carry_2_block": 3.42e-3,
    "message_2_carry_2_multi_bit": 8.52e-3,
    "message_3_carry_3": 78.6e-3,
}


@dataclass(frozen=True)
class Summary:
    """What a row costs. ``print`` shows it.

    look_ups: of a row.
    waves: how many of them follow each other at least.
    seconds: of a row on the server, measured for some look-ups on `device`.
    request, reply: bytes for a row, of many in one message.
    keys: bytes of public keys, sent once.
    memory: bytes of ciphertexts that the server keeps for a row.
    error: how far a result may be from the sum of the model's leaves.

    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> rows, kinds = load_iris(return_X_y=True)
    >>> program = jali.compile(DecisionTreeClassifier(max_depth=2).fit(rows, kinds))
    >>> program.summary("cpu").trees
    1
    """

    device: str
    params: str
    trees: int
    leaves: int
    questions: int
    look_ups: int
    waves: int
    seconds: float
    request: int
    reply: int
    keys: int
    memory: int
    error: float

    def __str__(self) -> str:
        rows = [
            (
                "trees",
                f"{self.trees} with {self.leaves} leaves, {self.questions} comparisons that differ",
            ),
            ("look-ups a row", f"{self.look_ups}, in {counted_text(self.waves, 'wave')}"),
            ("time a row", f"{seconds_text(self.seconds)} on {self.device}, {self.params}"),
            ("client to server, a row", bytes_text(self.request)),
            ("server to client, a row", bytes_text(self.reply)),
            ("public keys, once", bytes_text(self.keys)),
            ("server's memory, a row", bytes_text(self.memory)),
            ("results differ by at most", f"{self.error:.3g}" if self.error else "nothing"),
        ]
        return "\n".join(f"{name:<28}{value}" for name, value in rows)


@dataclass(frozen=True, eq=False)
class Program:
    """What ``compile``, and jali.compile for trees, return.

    ensemble: the model.
    plan: its sums and look-ups.
    manifest: what the client needs.
    bits, split_sums: as of compile.
    every_question: whether the client encrypts the answers to all questions, also those that no
        tree asks.

    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> rows, kinds = load_iris(return_X_y=True)
    >>> program = jali.compile(DecisionTreeClassifier(max_depth=2).fit(rows, kinds))
    >>> program.look_ups > 0, program.error < 1e-9
    (True, True)
    """

    ensemble: Ensemble
    plan: Plan
    manifest: Manifest
    bits: int
    split_sums: bool
    every_question: bool

    @classmethod
    def of(
        cls, ensemble: Ensemble, params: Params, bits: int, split_sums: bool, every: bool
    ) -> Program:
        """The program of an ensemble.

        params, bits, split_sums: as of compile.
        every: as every_question.
        """
        room = Room(1 << (params.message_bits + params.carry_bits), params.max_norm2)
        plan = planned(ensemble, room, bits, split_sums)
        columns = sorted(plan.circuit.columns, key=lambda c: (c[1], c[0]))
        if every:
            both = range(len(ensemble.questions))
            columns = [(q, value) for value in (1, room.large) for q in both]
            parts = [1] * len(columns)
        else:
            values = [value for _, value in columns]
            parts = [values.count(value) for value in sorted(set(values))]
        manifest = Manifest(
            params=params,
            questions=ensemble.questions,
            columns=tuple(columns),
            parts=tuple(parts),
            rows=max(1, min(_MOST_ROWS, _ALIVE // plan.circuit.alive())),
            outputs=plan.outputs,
            step=plan.step,
            base=plan.base,
            errors=plan.errors,
            head=ensemble.head,
            features=ensemble.features,
            compared_as=ensemble.compared_as,
            missing=ensemble.missing,
            infinite=ensemble.infinite,
            classes=ensemble.classes,
            names=ensemble.names,
        )
        return cls(ensemble, plan, manifest, bits, split_sums, every)

    @property
    def params(self) -> Params:
        """The parameters."""
        return self.manifest.params

    @property
    def look_ups(self) -> int:
        """Look-ups of one row."""
        return self.plan.circuit.look_ups

    @property
    def error(self) -> float:
        """How far a result may be from the sum of the model's leaves; 0 if they are whole numbers
        of steps."""
        return self.manifest.error

    @cached_property
    def used(self) -> list[int]:
        """The columns of the manifest that the circuit reads, in its order."""
        where = {column: k for k, column in enumerate(self.manifest.columns)}
        return [where[column] for column in self.plan.circuit.columns]

    def clear(self, rows: npt.ArrayLike) -> Floats:
        """What the model gives for rows (n, features), in the clear: sums of its leaves as
        floating-point numbers."""
        answers = self.manifest.answers(rows)
        return self.ensemble.head.results(
            self.ensemble.scores(answers), np.zeros(len(self.ensemble.base))
        )

    def simulate(self, rows: npt.ArrayLike) -> Floats:
        """What decryption gives for rows (n, features): the sums and look-ups of the program in the
        clear. TFHE is exact, so there is no noise in it."""
        inputs = self.manifest.inputs(rows)[:, self.used]
        parts = [
            self.plan.circuit.clear(inputs[k : k + _AT_ONCE])
            for k in range(0, len(inputs), _AT_ONCE)
        ]
        return self.manifest.results(np.concatenate(parts))

    def labels(self, results: npt.ArrayLike) -> npt.NDArray[Any]:
        """What the model's predict gives, from results; see Client.labels."""
        return self.manifest.labels(results)

    def client(self, *, secret: tfhe.Client | None = None, threads: int | None = None) -> Client:
        """A client. It needs the manifest alone: Client(Manifest.from_bytes(..)) is the same
        elsewhere.

        secret, threads: as of trees.Client.
        """
        return Client(self.manifest, secret=secret, threads=threads)

    def server(
        self,
        keys: EvaluationKeys,
        *,
        device: str = "auto",
        threads: int | None = None,
        progress: Callable[[int, int], Any] | None = None,
    ) -> Server:
        """A server with a client's evaluation_keys().

        keys, device, threads: as of tfhe.Evaluator.
        progress: called while the keys are prepared for the device.
        """
        return Server(self, keys, device=device, threads=threads, progress=progress)

    def deploy(self, device: str = "auto", *, threads: int | None = None) -> Deployment:
        """The program on a device, for the keys of any number of clients:
        ``deployment.server(keys)``.

        device, threads: as of tfhe.Evaluator.
        """
        return Deployment(self, device=device, threads=threads)

    def summary(self, device: str = "auto", *, threads: int | None = None) -> Summary:
        """The price list. It makes a key of its own, forgets it, and measures some look-ups on the
        device, which takes some seconds.

        device, threads: of the server, as of tfhe.Evaluator.
        """
        client = tfhe.Client(self.params, threads=threads)
        server = tfhe.Evaluator(self.params, client.evaluation_keys(), device, threads=threads)
        count = max(1, min(128, self.look_ups))
        x = server.bind(client.encrypt(np.ones(count, np.int64), largest=1))
        server.apply([0, 1], x)  # the first one prepares
        server.synchronize()
        start = time.perf_counter()
        server.apply([0, 1], x)
        server.synchronize()
        each = (time.perf_counter() - start) / count
        manifest, size = self.manifest, self.params.ciphertext_bytes()
        return Summary(
            device=server.engine,
            params=self.params.name,
            trees=len(self.ensemble.trees),
            leaves=sum(int(tree.leaves.sum()) for tree in self.ensemble.trees),
            questions=len(manifest.questions),
            look_ups=self.look_ups,
            waves=self.plan.circuit.depth,
            seconds=each * self.look_ups,
            request=8 * len(manifest.columns) + 120 * len(manifest.parts),
            reply=size * len(manifest.outputs),
            keys=self.params.key_bytes,
            memory=size * self.plan.circuit.alive(),
            error=self.error,
        )

    def to_bytes(self) -> bytes:
        """Bytes from which from_bytes makes the same program. They hold the model, and no key."""
        document = {
            **stored.ensemble_document(self.ensemble),
            "params": stored.params_document(self.params),
            "bits": self.bits,
            "split_sums": int(self.split_sums),
            "every_question": int(self.every_question),
            "fingerprint": self.manifest.fingerprint,
        }
        return stored.written("program", document)

    @classmethod
    def from_bytes(
        cls,
        data: bytes | bytearray | memoryview,
        *,
        security: int = 128,
        log2_p_fail: float = 0.0,
    ) -> Program:
        """The program of ``data``, which to_bytes wrote. The plan is made again, and clients of the
        saved program go on working.

        security, log2_p_fail: what is demanded of the parameters, see Params.from_bytes.

        Raises CorruptData, VersionError for a program that this build would make otherwise, and
        LimitExceeded.
        """
        document = stored.read("program", data)
        made = cls.of(
            stored.ensemble_of(document),
            _checked(stored.params_of(document, security, log2_p_fail)),
            stored.whole(document, "bits", 1, _MOST_BITS),
            bool(stored.whole(document, "split_sums", 0, 1)),
            bool(stored.whole(document, "every_question", 0, 1)),
        )
        if stored.field(document, "fingerprint") != made.manifest.fingerprint:
            raise VersionError(
                "the program was compiled by another version of Jali, which planned it otherwise: compile the model again"
            )
        return made

    def save(self, file: str | os.PathLike[str]) -> None:
        """Write to_bytes() to the path ``file``, which is replaced at once or not at all."""
        stored.save(file, self.to_bytes())

    @classmethod
    def load(
        cls, file: str | os.PathLike[str], *, security: int = 128, log2_p_fail: float = 0.0
    ) -> Program:
        """What save wrote to the path ``file``.

        security, log2_p_fail: as of ``from_bytes``.

        Raises FileError, and the errors of from_bytes.
        """
        return cls.from_bytes(stored.load(file), security=security, log2_p_fail=log2_p_fail)

    def __repr__(self) -> str:
        return (
            f"Program({len(self.ensemble.trees)} trees, {self.ensemble.features} features, "
            f"{self.look_ups} look-ups, {self.params!r})"
        )


def compile(
    model: Any,
    params: Params | str = PRESET,
    edges: Sequence[npt.ArrayLike] | None = None,
    *,
    precision_bits: float | None = None,
    output: str = "logits",
    split_sums: bool = False,
) -> Program:
    """The program of a fitted model of trees. jali.compile(model) is the same with default
    parameters.

    model: trees, forests and boosting of scikit-learn (see trees.KINDS), a model of XGBoost or
        LightGBM, or an Ensemble, as trees.from_xgboost and trees.from_lightgbm make of a model's
        file.
    params: parameters, or the name of a preset.
    edges: for each feature, the numbers with which the client compares it; the model was fitted on
        ``bins(rows, edges)``. The client then does not learn which of them the model uses. None
        stands for the model's own; the model was fitted on rows as they are.
    precision_bits: results differ from the sums of the model's leaves by at most 2^-precision_bits
        of the difference between the largest and the smallest sum that is possible; 1 to 48. None
        stands for 32. If leaves are multiples of a power of two that is large enough, as votes are,
        results are exact. Program.error says which. Each 4 bits are one look-up more for about 15
        leaves.
    output: "logits" for what decision_function gives, or predict of a regressor, or predict_proba
        of a forest; "probability" for predict_proba.
    split_sums: whether a reply has several parts of each sum, which the client adds. It takes fewer
        look-ups, and the client learns more of the model.

    Warns if a row takes more than a minute. Raises Unsupported for models of other kinds, and
    InvalidArgument for what does not fit. The sentence says what to change.

    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> rows, kinds = load_iris(return_X_y=True)
    >>> model = DecisionTreeClassifier(max_depth=2).fit(rows, kinds)
    >>> program = trees.compile(model, "message_2_carry_2_block")
    >>> bool((program.simulate(rows[:9]).argmax(1) == model.predict(rows[:9])).all())
    True
    """
    return compiled(model, params, edges, precision_bits, output, split_sums, stacklevel=3)


def compiled(
    model: Any,
    params: Params | str = PRESET,
    edges: Sequence[npt.ArrayLike] | None = None,
    precision_bits: float | None = None,
    output: str = "logits",
    split_sums: bool = False,
    *,
    stacklevel: int,
) -> Program:
    """As compile. stacklevel: of the caller to whom a warning belongs, as warnings.warn counts."""
    if isinstance(params, str):
        params = Params.preset(params)
    if not isinstance(params, Params):
        raise InvalidArgument(f"params must be a tfhe.Params, not {type(params).__name__}")
    _checked(params)
    if output not in ("logits", "probability"):
        raise InvalidArgument(f'output is "logits" or "probability", not {checks.shown(output)}')
    bits = _bits(precision_bits)
    ensemble = ensemble_of(model, output)
    if edges is not None:
        names = names_of(edges) or ensemble.names
        ensemble = unbinned(ensemble, checked_edges(edges, ensemble.features))
        ensemble = replace(ensemble, names=names)
    split = checks.flag(split_sums, "split_sums")
    program = Program.of(ensemble, params, bits, split, edges is not None)
    _warn_of_cost(program, stacklevel + 1)
    return program


def _checked(params: Params) -> Params:
    if params.message_bits + params.carry_bits < 2:
        raise Unsupported(
            f'{params.name} has no room for sums: use parameters with carries, Params.preset("{PRESET}")'
        )
    return params


def _bits(value: Any) -> int:
    if value is None:
        return BITS
    real = isinstance(value, (int, float, np.integer, np.floating))
    if isinstance(value, bool) or not real or not 1 <= value <= _MOST_BITS:
        raise InvalidArgument(
            f"precision_bits must be a number from 1 to {_MOST_BITS}, not {checks.shown(value)}"
        )
    return int(np.ceil(value))


def _warn_of_cost(program: Program, stacklevel: int) -> None:
    each = _SECONDS.get(program.params.name)
    if each is None or program.look_ups * each < _DEAR:
        return
    seconds = program.look_ups * each
    time_text = f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.1f} hours"
    warnings.warn(
        f"a row takes {program.look_ups:,} look-ups, about {time_text} on one thread of a CPU: Program.summary measures it. Fewer leaves "
        "(max_leaf_nodes=), fewer trees or a smaller precision_bits= cost less, and a GPU does tens of thousands of look-ups a second",
        UserWarning,
        stacklevel=stacklevel,
    )
