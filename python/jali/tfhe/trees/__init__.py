"""Ensembles of decision trees on encrypted rows: a fitted model becomes sums and look-ups of
encrypted numbers.

    program = jali.compile(model)  # or trees.compile(model, params)
    client = program.client()  # holds the secret key
    server = program.server(client.evaluation_keys())  # holds the model
    client.decrypt(server(client.encrypt(rows)))

For every feature the client compares its number with public edges, and encrypts the answers, which
are bits. So comparisons are those of the model on the numbers given, exactly. Sums of the answers
number the leaves, look-ups turn these numbers into digits of the leaves' values, and digits of all
trees are added with their carries.
"""

from __future__ import annotations

from jali.tfhe.trees.client import Client
from jali.tfhe.trees.deployment import Deployment
from jali.tfhe.trees.ensemble import Ensemble
from jali.tfhe.trees.lightgbm_models import from_lightgbm
from jali.tfhe.trees.manifest import Manifest
from jali.tfhe.trees.message import Message
from jali.tfhe.trees.program import Program, Summary, compile
from jali.tfhe.trees.questions import bins, quantile_edges
from jali.tfhe.trees.read import is_trees
from jali.tfhe.trees.rounded import rounded
from jali.tfhe.trees.server import Server
from jali.tfhe.trees.sklearn_models import KINDS
from jali.tfhe.trees.xgboost_models import from_xgboost

__all__ = [
    "KINDS",
    "Client",
    "Deployment",
    "Ensemble",
    "Manifest",
    "Message",
    "Program",
    "Server",
    "Summary",
    "bins",
    "compile",
    "from_lightgbm",
    "from_xgboost",
    "is_trees",
    "quantile_edges",
    "rounded",
]
