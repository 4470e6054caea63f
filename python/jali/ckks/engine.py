"""Engines: what computes for many clients, without any of their keys."""

from __future__ import annotations

from collections.abc import Mapping

from jali._core import checks
from jali._core.refusals import Answering
from jali._jali import ckks as _ckks
from jali._jali.ckks import EvaluationKeys, Params
from jali.ckks.engine_core import made
from jali.ckks.evaluator import Evaluator

__all__ = ["Engine"]


class Engine(metaclass=Answering):
    """A device with tables for parameters, and without keys. The evaluators of many clients share
    one.

    Arguments and errors are those of Evaluator. ``Evaluator(params, keys, device)`` is the same as
    ``Engine(params, device).with_keys(keys)``. What one evaluator prepares, matrices and the
    matrices of bootstrapping, serves all others. May be used from several threads.

    >>> engine = ckks.Engine(ckks.Params.create(depth=1))
    >>> clients = [ckks.Client(engine.params) for _ in range(2)]
    >>> servers = [engine.with_keys(client.evaluation_keys()) for client in clients]
    >>> [client.decrypt(server.bind(client.encrypt([0.5])) * 2).round(3) for client, server in zip(clients, servers)]
    [array([1.]), array([1.])]
    """

    __slots__ = ("_core", "_params", "_variants")

    def __init__(
        self,
        params: Params,
        device: str = "auto",
        *,
        threads: int | None = None,
        trace: bool = False,
        variants: Mapping[str, str] | None = None,
    ) -> None:
        self._params = params
        self._core, self._variants = made(params, device, threads, trace, variants)

    def __repr__(self) -> str:
        return f"Engine({self._params!r}, '{self.name}')"

    @property
    def params(self) -> Params:
        """The parameters it was made for."""
        return self._params

    @property
    def device(self) -> str:
        """The kind of device that computes: "cpu" or "cuda"."""
        return self.name.split("/")[0].split(":")[0]

    @property
    def name(self) -> str:
        """The engine and its instruction set, e.g. "cpu/ifma"."""
        return self._core.engine

    @property
    def variants(self) -> dict[str, str]:
        """The implementations that were chosen for it. For all others, the engine uses its
        defaults."""
        return dict(self._variants)

    @property
    def threads(self) -> int:
        """How many threads work on one operation, as Evaluator.threads."""
        return self._core.threads

    @property
    def bytes_in_use(self) -> int:
        """The bytes of its device that are in use: tables, and the keys, matrices and ciphertexts
        of all its evaluators."""
        return self._core.bytes_in_use

    def with_keys(self, keys: EvaluationKeys | None = None) -> Evaluator:
        """The evaluator of a client. It takes the time and the memory of the keys.

        keys: the client's; None for one that only adds, and multiplies by numbers in the clear.

        Raises ParamsMismatch for keys of other parameters.

        >>> engine = ckks.Engine(ckks.Params.create(depth=1))
        >>> engine.with_keys().key_bytes
        0
        """
        if keys is not None:
            checks.instance(keys, EvaluationKeys, "keys", ": EvaluationKeys.from_bytes reads bytes")
        evaluator = Evaluator.__new__(Evaluator)
        evaluator._start(self._params, self._variants, _ckks.EvaluatorCore(self._core, keys))
        return evaluator
