"""Ensembles of decision trees on encrypted rows: a fitted scikit-learn classifier becomes look-ups of encrypted numbers.

`rounded` makes a scikit-learn model whose leaves are whole numbers of steps. `compile` makes a Program of it for the server, and
`Program.questions` is what the client needs. Answers are those of the rounded model, exactly.

For every feature the client compares its number with public edges, and encrypts the answers, which are bits. A tree that makes
few comparisons is then one look-up: a weighted sum of the bits is the number of the leaf, and a table has the leaf's vote.
"""

from __future__ import annotations

from jali.tfhe.trees.program import Program, compile
from jali.tfhe.trees.questions import Questions, bins, quantile_edges
from jali.tfhe.trees.sklearn_models import rounded

__all__ = ["Program", "Questions", "bins", "compile", "quantile_edges", "rounded"]
