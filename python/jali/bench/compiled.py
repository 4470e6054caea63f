"""What the rows of compiled programs have in common: the server is timed for one request, whose
results are decrypted and compared."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from jali import nn
from jali.bench.measure import Row, row, timed
from jali.bench.registry import Options
from jali.compiler.ir.folded_ops import Bootstrap
from jali.errors import InternalError

__all__ = ["Array", "Served"]

Array = npt.NDArray[np.float64]


class Served:
    """A program with a client and a server, as the options say."""

    def __init__(self, program: nn.Program, options: Options) -> None:
        self._program, self._options = program, options
        self._client = program.client(threads=options.threads)
        self._server = program.server(
            self._client.evaluation_keys(), device=options.device, threads=options.threads
        )

    def row(
        self,
        name: str,
        inputs: tuple[Array, ...],
        plain: Array,
        about: dict[str, Any],
        *,
        batch: int = 1,
        largest: float | None = None,
    ) -> Row:
        """The time of the server for one request, from ciphertexts to ciphertexts. plain: the
        results in the clear. batch: examples of the request. largest: of the results that may
        occur, by which errors are divided; None stands for the largest of these.

        Raises InternalError if a result is off by more than the program promises.
        """
        server, request = self._server, self._client.encrypt(*inputs)
        worst = float(np.abs(np.asarray(self._client.decrypt(server(request))) - plain).max())
        scale = float(np.abs(plain).max()) if largest is None else largest
        if not worst <= 2.0**-self._program.precision_bits * scale:
            raise InternalError(f"{name}: a result is off by {worst:.2e} of {scale:.2e}")

        def run() -> None:
            server(request)
            server.evaluator.synchronize()

        times = timed(run, seconds=self._options.seconds)
        bits = float(-np.log2(worst / scale))
        told = {**about, **self._facts(request)}
        return row(name, server.evaluator.engine, told, times, batch=batch, precision_bits=bits)

    def _facts(self, request: nn.Message) -> dict[str, Any]:
        """What a row says of parameters, plan and bytes."""
        program, evaluator = self._program, self._server.evaluator
        sizes, params = program.sizes(), program.params
        return {
            "log_n": params.log_n,
            "word": params.word,
            "log_qp": round(params.log_qp, 1),
            "security": params.security,
            "bootstraps": sum(
                isinstance(node.operation, Bootstrap) for node in program.stages["levels"]
            ),
            "threads": evaluator.threads,
            "key_bytes": sizes.keys_sent,
            "server_bytes": sizes.keys_expanded + sizes.matrices,
            "device_bytes": evaluator.counters()["bytes_peak"],
            "bytes_up": len(request.to_bytes()),
        }
