"""The two parties of an encrypted inference. They exchange bytes and nothing else.

`Client` makes the keys, encrypts and decrypts. `Server` is made from public bytes and a network. It holds parameters,
public keys and weights, and no secret.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jali import ckks
from jali.ckks.explicit import Diagonal, ExplicitEvaluator, Extended
from jali.demo.network import Array, Network
from jali.demo.packing import Linear, Program, compile_network

__all__ = ["Client", "Server", "make_params", "plan"]

LOG_N = 13
# The largest scale that leaves room for five levels and a special prime in 214 bits. 32-bit words ran 1.3 times faster
# than 52-bit ones here.
SCALE_BITS = 28.5
WORD = "w32"
INTEGER_BITS = 8.0  # level 0 holds numbers below 128
# What the last layer is claimed to stay below: logits and the unread slots beside them, before the bias. Interval arithmetic
# allows 80,000, which no image reaches. Decryption compares the numbers with the claim.
LARGEST_LOGIT = 32.0
GAINS = (8.0, 2.0, 2.0, 1.0)  # measured best: see jali.demo.packing, "Ranges"
KEPT_CAPTURED = 4  # for how many sizes of batch a server on a GPU keeps a recorded function
MAGNITUDE = 3.0  # the root mean square of pixels times their gain that is declared for any image


def make_params(program: Program) -> ckks.Params:
    """Parameters for a program: N = 2^13, log PQ <= 214, 128 bits of security."""
    return ckks.Params.create(
        depth=program.depth,
        scale_bits=SCALE_BITS,
        log_n=LOG_N,
        word=WORD,
        integer_bits=INTEGER_BITS,
    )


def plan(network: Network) -> Program:
    """The network's program on all N/2 slots. Client and server make the same one."""
    return compile_network(network, 1 << (LOG_N - 1), GAINS)


class Client:
    """The owner of the images, and the only party with a secret key."""

    def __init__(self, program: Program, *, threads: int | None = None) -> None:
        self._program = program
        self._params = make_params(program)
        self._client = ckks.Client(self._params, threads=threads)

    @property
    def params(self) -> ckks.Params:
        """The parameters that both sides agree on."""
        return self._params

    def public_bytes(self) -> tuple[bytes, bytes]:
        """The parameters and evaluation keys, which the server needs once."""
        keys = self._client.evaluation_keys(rotations=self._program.rotations())
        return self._params.to_bytes(), keys.to_bytes()

    def encrypt(self, images: npt.NDArray[np.generic]) -> bytes:
        """From raw pixels (n, side, side) to the bytes of one batch of n ciphertexts."""
        return self._client.encrypt(
            self._program.pack(images), magnitude=MAGNITUDE, peak=GAINS[0]
        ).to_bytes()

    def decrypt(self, reply: bytes) -> Array:
        """From the server's reply to logits (n, 10)."""
        ciphertext = ckks.Ciphertext.from_bytes(reply, self._params)
        slots = self._client.decrypt(ciphertext, complex=False, length=self._params.slots)
        return self._program.unpack(np.atleast_2d(slots))


@dataclass
class _EncodedLinear:
    giants: list[tuple[int, list[tuple[int, Diagonal]]]]
    sum_rotations: list[int]
    bias: ckks.Plaintext


class Server:
    """The owner of the network. It is made from public bytes, and sees neither images nor answers."""

    def __init__(
        self,
        program: Program,
        params: bytes,
        keys: bytes,
        *,
        device: str = "auto",
        threads: int | None = None,
        trace: bool = False,
    ) -> None:
        self._params = ckks.Params.from_bytes(params)
        public = ckks.EvaluationKeys.from_bytes(keys, self._params)
        self._evaluator = ckks.Evaluator(self._params, public, device, threads=threads, trace=trace)
        self.threads, self.engine = self._evaluator.threads, self._evaluator.engine
        self._run = self._evaluator.explicit
        self._lock = threading.Lock()
        self._captured: dict[int, ckks.Captured] = {}  # on a GPU, by batch
        self._steps: list[_EncodedLinear | None] = []  # None: a square
        level = self._params.depth
        for step in program.steps:
            self._steps.append(self._encode(step, level) if isinstance(step, Linear) else None)
            level -= 1

    def _encode(self, step: Linear, level: int) -> _EncodedLinear:
        """Encodes the diagonals over Q and P, at the scale that gives results of the next level's canonical scale."""
        here, below = self._params.level(level), self._params.level(level - 1)
        scale = below.scale / here.scale * 2.0 ** (here.log_q - below.log_q)
        giants = [
            (g, [(b, self._run.encode_diagonal(v, level, scale)) for b, v in terms.items()])
            for g, terms in step.giants().items()
        ]
        bias = self._run.encode(step.bias, level - 1, below.scale)
        return _EncodedLinear(giants, step.sum_rotations(), bias)

    def trace(self) -> ckks.Trace:
        """The record of operations. Raises InvalidArgument for a server that was made without trace=True."""
        return self._evaluator.trace()

    def __call__(self, request: bytes) -> bytes:
        """From the bytes of encrypted images to the bytes of encrypted logits."""
        x = ckks.Ciphertext.from_bytes(request, self._params)
        if self._evaluator.device != "cuda":
            return self.evaluate(x).to_bytes()
        return self._on_gpu(self._evaluator.bind(x)).ciphertext.to_bytes()

    def evaluate(self, x: ckks.Ciphertext) -> ckks.Ciphertext:
        """The network, operation by operation."""
        return _network(self._run, self._steps, x)

    def _on_gpu(self, x: ckks.EncryptedArray) -> ckks.EncryptedArray:
        """The network as one CUDA graph for each size of batch, recorded at its first request."""
        batch = x._settled().batch
        with self._lock:
            captured = self._captured.get(batch)
            if captured is None:
                if len(self._captured) == KEPT_CAPTURED:
                    del self._captured[next(iter(self._captured))]
                # The function refers to parts of the server only. If it held the server, neither would ever be freed.
                bind, run, steps = self._evaluator.bind, self._run, self._steps
                captured = self._evaluator.capture(
                    lambda y: bind(_network(run, steps, y._settled())), x
                )
                self._captured[batch] = captured
        result = captured(x)
        assert isinstance(result, ckks.EncryptedArray)
        return result


def _network(
    run: ExplicitEvaluator, steps: list[_EncodedLinear | None], x: ckks.Ciphertext
) -> ckks.Ciphertext:
    for step in steps:
        if step is None:
            x = run.relinearise_rescale(run.square(x))
        else:
            x = _linear(run, x, step, LARGEST_LOGIT if step is steps[-1] else None)
    return x


def _linear(
    run: ExplicitEvaluator, x: ckks.Ciphertext, step: _EncodedLinear, peak: float | None
) -> ckks.Ciphertext:
    """Baby steps share one ModUp. All giant steps share one division by P, which also rescales.

    peak: what no number is larger than before the bias, if less is claimed than the operands allow.
    """
    steps = {b for _, terms in step.giants for b, _ in terms}
    if steps == {0}:
        turned = {0: run.extend(x)}
    else:
        hoisted = run.hoist(x)
        turned = {b: run.rotate_extended(hoisted, b) for b in steps}

    def inner(terms: list[tuple[int, Diagonal]]) -> Extended:
        return run.multiply_accumulate([turned[b] for b, _ in terms], [d for _, d in terms])

    (_, first), *others = step.giants  # the first giant step is 0
    total = inner(first)
    for g, terms in others:
        run.rotate_accumulate(total, inner(terms), g)
    y = run.reduce_rescale(total, peak)
    for rotation in step.sum_rotations:
        y = run.add(y, run.rotate(y, rotation), peak)
    return run.add_plain(y, step.bias)
