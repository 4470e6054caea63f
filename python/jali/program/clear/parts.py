"""Both parts of a model that its client computes in the clear."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jali._core.console import counted_text
from jali.errors import InvalidArgument, WrongDecryption
from jali.program.clear.steps import Steps
from jali.program.clear.values import Shape, Value

__all__ = ["Parts"]


@dataclass(frozen=True, eq=False)
class Parts:
    """Both parts, of which None stands for nothing.

    before: what the client computes of its inputs, and encrypts the results of.
    after: what it computes of the decrypted numbers.
    """

    before: Steps | None
    after: Steps | None

    def check(self, inputs: Sequence[Shape], outputs: Sequence[Shape]) -> None:
        """Raises ValueError unless the parts fit what is encrypted and decrypted.

        inputs, outputs: the shapes of an example of each.
        """
        given = () if self.before is None else self.before.results
        if self.before is not None and [one.shape[1:] for one in given] != list(inputs):
            raise ValueError("before: its results have other shapes than what is encrypted")
        if self.after is not None:
            taken = self.after.arguments
            if [x.shape for x in taken] != list(outputs) or any(x.kind != "real" for x in taken):
                raise ValueError("after: it takes other arrays than what is decrypted")

    def sent(self, inputs: Sequence[Any]) -> tuple[list[Value], bool]:
        """What is encrypted of the model's inputs: arrays (n, *shape) of floats, and whether one
        example was given without the axis of the batch. There must be a part before. Raises
        InvalidArgument for other inputs than the model takes."""
        assert self.before is not None
        taken = self.before.arguments
        if len(inputs) != len(taken):
            raise InvalidArgument(
                f"the program takes {counted_text(len(taken), 'array')}, and was given {len(inputs)}"
            )
        pairs = [x.examples(values) for x, values in zip(taken, inputs, strict=True)]
        arrays, singles = [array for array, _ in pairs], {single for _, single in pairs}
        if len({len(array) for array in arrays}) > 1 or len(singles) > 1:
            raise InvalidArgument("give every input the same number of examples")
        found = [np.asarray(x, np.float64) for x in self.before(arrays)]
        if not all(np.all(np.isfinite(x)) for x in found):
            raise InvalidArgument(
                "what the client computes of these inputs is NaN or infinity: give other numbers"
            )
        return found, singles == {True}

    def results(self, outputs: Sequence[Value], *, check: bool = True) -> list[Value]:
        """The model's results (n, *shape), of decrypted numbers (n, *shape).

        check: whether results that are not finite are refused.
        """
        if self.after is None:
            return list(outputs)
        try:
            found = self.after(outputs)
        except InvalidArgument as error:
            raise WrongDecryption(f"of the decrypted numbers, {error}") from None
        if check and not all(np.all(np.isfinite(x)) for x in found):
            raise WrongDecryption(
                "what the client computes of the decrypted numbers is NaN or infinity, because a function has no value there: "
                "decrypt with check=False to see the others"
            )
        return found

    @property
    def weights(self) -> int:
        """How many of the model's numbers the client has in them."""
        return sum(part.weights for part in (self.before, self.after) if part is not None)

    @property
    def texts(self) -> tuple[str, ...]:
        """What the client computes, and what it has of the model, a line for each."""
        found = [
            f"client, {when}: {', '.join(part.names) or 'nothing'}"
            for when, part in (("before encrypting", self.before), ("after decrypting", self.after))
            if part is not None
        ]
        return (*found, f"of the model's numbers, the client has {self.weights:,} for it")

    @property
    def nbytes(self) -> int:
        """The bytes of the client's memory that they take at most, for one example."""
        return max(part.nbytes for part in (self.before, self.after) if part is not None)
