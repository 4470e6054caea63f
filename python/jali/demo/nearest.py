"""Private search for the nearest vectors: a client sends an encrypted vector to a server with many,
and gets the exact score of each. The server learns neither the vector nor the scores.

A score is the inner product of two vectors of signed bytes. Of vectors of one length, as embeddings
are after they were normalised and rounded, the nearest one has the largest score.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from jali import discrete
from jali.errors import InvalidArgument

__all__ = ["DIMENSIONS", "Client", "Server", "made", "params"]

Vectors = npt.NDArray[np.int8]
Scores = npt.NDArray[np.int64]

DIMENSIONS = 128
BYTES = (-128, 127)


def params() -> discrete.Params:
    """A score of 128 products of signed bytes lies from -127 * 2^14 to 2^21: it has 22 bits and a
    little. One level is for the product with the vectors."""
    return discrete.Params.create(integers=22, depth=1)


class Client:
    """The owner of the vector that is searched for, and the only one with a secret key."""

    def __init__(self, agreed: discrete.Params, *, threads: int | None = None) -> None:
        self._client = discrete.Client(agreed, threads=threads)

    def public_bytes(self) -> bytes:
        """The evaluation keys, which the server needs once."""
        rotations = discrete.Matrix.rotations_of(DIMENSIONS)
        return self._client.evaluation_keys(rotations, relinearise=False).to_bytes()

    def ask(self, vector: Vectors) -> bytes:
        """The query for a vector: its encryption, as many times as it fits a ciphertext."""
        if np.shape(vector) != (DIMENSIONS,):
            raise InvalidArgument(f"a query is one vector of {DIMENSIONS} numbers of int8")
        copies = self._client.params.slots // DIMENSIONS
        return self._client.encrypt(np.tile(vector, (copies, 1)), range=BYTES).to_bytes()

    def scores(self, reply: bytes) -> Scores:
        """The score of every vector of the server."""
        return self._client.decrypt(discrete.Ciphertext.from_bytes(reply, self._client.params))


class Server:
    """The owner of the many vectors. It is made from public keys.

    vectors: (count, 128).
    """

    def __init__(
        self,
        vectors: Vectors,
        agreed: discrete.Params,
        keys: bytes,
        *,
        device: str = "auto",
        threads: int | None = None,
    ) -> None:
        if vectors.dtype != np.int8 or vectors.shape[1:] != (DIMENSIONS,):
            raise InvalidArgument(f"vectors are int8 of the shape (count, {DIMENSIONS})")
        public = discrete.EvaluationKeys.from_bytes(keys, agreed)
        self.evaluator = discrete.Evaluator(agreed, public, device, threads=threads)
        self.matrix = discrete.Matrix(self.evaluator, vectors)

    def read(self, query: bytes) -> discrete.EncryptedArray:
        """A query on the device."""
        return self.evaluator.bind(discrete.Ciphertext.from_bytes(query, self.evaluator.params))

    def product(self, asked: discrete.EncryptedArray) -> discrete.EncryptedArray:
        """The product with the matrix, once it is computed."""
        made = self.matrix @ asked
        self.evaluator.synchronize()
        return made

    def __call__(self, query: bytes) -> bytes:
        """The encrypted scores."""
        return self.product(self.read(query)).ciphertext.to_bytes()


def made(count: int, queries: int, rng: np.random.Generator) -> tuple[Vectors, Vectors]:
    """Vectors of about one length in clusters, and queries near some of them."""
    centres = rng.standard_normal((max(count // 100, 1), DIMENSIONS))

    def near(which: npt.NDArray[np.int64]) -> Vectors:
        points = centres[which] + 0.5 * rng.standard_normal((len(which), DIMENSIONS))
        unit = points / np.linalg.norm(points, axis=1, keepdims=True)
        rounded: Vectors = np.clip(np.rint(unit * 400), *BYTES).astype(np.int8)
        return rounded

    vectors = near(rng.integers(0, len(centres), count))
    return vectors, near(rng.integers(0, len(centres), queries))
