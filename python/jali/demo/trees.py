"""Boosted trees on encrypted rows of scikit-learn's breast-cancer set: the model, and the two
parties.

The model is made here, by scikit-learn, within a tenth of a second: so the plain model that answers
are compared with is scikit-learn's own. Which rows are held out does not depend on scikit-learn's
release (`split`). Bins, trees and rounding were chosen by cross-validation on the training rows,
which gave an accuracy of 95.6 %, with a standard error of 0.5 %.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from jali import tfhe
from jali._core import packages
from jali.demo.split import breast_cancer_test_indices
from jali.errors import Unsupported
from jali.tfhe import trees

__all__ = ["BINS", "PRESET", "STEP", "TREES", "Client", "Model", "Rows", "Server", "fitted", "load"]

PRESET = "message_2_carry_2_block"
BINS, TREES, LEAVES = 8, 30, 3
STEP, LARGEST = 1 / 4, 7 / 4  # leaves are multiples of STEP from -LARGEST to LARGEST

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Rows:
    """Features (n, features) and labels (n,)."""

    features: Floats
    labels: npt.NDArray[np.int64]

    def first(self, limit: int | None) -> Rows:
        """The first `limit` of them; all for None."""
        return Rows(self.features[:limit], self.labels[:limit])


def load() -> tuple[Rows, Rows]:
    """The rows to train on and those to test on.

    Raises Unsupported without scikit-learn.
    """
    try:
        from sklearn import datasets
    except ModuleNotFoundError as error:
        raise Unsupported(
            f"the trees demo needs scikit-learn ({error.name} is missing): {packages.install('scikit-learn')}"
        ) from None
    features, labels = datasets.load_breast_cancer(return_X_y=True)
    test = breast_cancer_test_indices()
    rest = np.delete(np.arange(len(labels)), test)
    train, held_out = (Rows(features[of], labels[of].astype(np.int64)) for of in (rest, test))
    return train, held_out


@dataclass(frozen=True)
class Model:
    """scikit-learn's model as it was fitted, and with rounded leaves. Both take numbers of bins."""

    edges: tuple[Floats, ...]
    fitted: Any
    rounded: Any

    def scores(self, rows: Floats) -> Floats:
        """decision_function of the rounded model."""
        scores: Floats = self.rounded.decision_function(trees.bins(rows, self.edges))
        return scores

    def accuracy(self, model: Any, rows: Rows) -> float:
        """The share of the rows that a model of the two labels rightly."""
        return float(model.score(trees.bins(rows.features, self.edges), rows.labels))


def fitted(rows: Rows) -> Model:
    """Gradient boosting on binned features. The same rows and scikit-learn give the same model."""
    from sklearn.ensemble import GradientBoostingClassifier

    edges = trees.quantile_edges(rows.features, BINS)
    model = GradientBoostingClassifier(
        n_estimators=TREES,
        max_leaf_nodes=LEAVES,
        learning_rate=0.3,
        subsample=0.8,
        max_features=round(math.sqrt(rows.features.shape[1])) + 1,
        random_state=0,
    )
    model.fit(trees.bins(rows.features, edges), rows.labels)
    return Model(edges, model, trees.rounded(model, STEP, LARGEST))


class Client:
    """The owner of the rows, and the only party with a secret key."""

    def __init__(self, manifest: bytes, *, threads: int | None = None) -> None:
        self._client = trees.Client(trees.Manifest.from_bytes(manifest), threads=threads)

    @property
    def params(self) -> tfhe.Params:
        """The parameters, which the manifest has."""
        return self._client.manifest.params

    def public_bytes(self) -> bytes:
        """The evaluation keys, which the server needs once."""
        return self._client.evaluation_keys().to_bytes()

    def encrypt(self, rows: Floats) -> bytes:
        """The bytes of a request."""
        return self._client.encrypt(rows).to_bytes()

    def decrypt(self, reply: bytes) -> Floats:
        """The scores in a reply."""
        scores: Floats = self._client.decrypt(trees.Message.reply(reply, self._client.manifest))
        return scores

    def labels(self, scores: Floats) -> npt.NDArray[np.int64]:
        """The labels for scores."""
        return self._client.labels(scores)


class Server:
    """The owner of the model. It is made from public bytes, and sees neither rows nor answers."""

    def __init__(
        self,
        program: trees.Program,
        keys: bytes,
        *,
        device: str = "auto",
        threads: int | None = None,
    ) -> None:
        self.program = program
        public = tfhe.EvaluationKeys.from_bytes(keys, program.params)
        self._server = program.server(public, device=device, threads=threads)

    @property
    def engine(self) -> str:
        """The engine, as tfhe.Evaluator names it."""
        return self._server.evaluator.engine

    def read(self, request: trees.Message) -> list[tfhe.EncryptedArray]:
        """The answers of a request in the device's memory."""
        return self._server.read(request)

    def run(self, request: trees.Message, answers: list[tfhe.EncryptedArray]) -> trees.Message:
        """The reply to a request whose answers were read."""
        return self._server.run(request, answers)

    def __call__(self, request: bytes) -> bytes:
        """The reply to a request."""
        message = trees.Message.request(request, self._server.manifest)
        return self._server(message).to_bytes()
