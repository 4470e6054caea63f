"""Presets of exact integers, and what parameters say of the circuit for which they were chosen."""

from __future__ import annotations

import pickle
from typing import Any

import discrete_world
import numpy as np
import pytest

import jali
from jali import discrete


def test_presets_are_refused_by_name_and_word() -> None:
    with pytest.raises(jali.InvalidArgument, match="use one of int16_d2, "):
        discrete.Params.preset("n14_d7")
    with pytest.raises(jali.InsecureParams, match="leave word out"):
        discrete.Params.preset("int32_d2", word="w64")
    names = [*jali.ckks.Params.presets(), *discrete.Params.presets(), *jali.tfhe.Params.presets()]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("int16_d2", {"integers": 16}),
        ("sums_2_64", {"modulus": 2**64, "packing": "coefficients"}),
    ],
)
def test_presets_are_what_create_makes(name: str, arguments: dict[str, Any]) -> None:
    params = discrete.Params.preset(name)
    same = discrete.Params.create(depth=params.depth, **arguments)
    assert same == params and same.fingerprint == params.fingerprint
    assert pickle.loads(pickle.dumps(params)) == params
    assert pickle.loads(pickle.dumps(params)).name == name
    assert params.log_q_at(-1) == params.log_q > params.log_q_at(0) > 0
    with pytest.raises(jali.InvalidArgument, match="level"):
        params.log_q_at(params.depth + 1)


@pytest.mark.parametrize("name", ["int16_d2", "int32_bfv_d4"])
def test_budgets_of_parameters_are_those_of_their_circuit(
    name: str, rng: np.random.Generator
) -> None:
    params = discrete.Params.preset(name)
    client = discrete.Client(params, threads=1)
    owner = discrete.Encryptor(client.public_key(), threads=1)
    server = discrete.Evaluator(params, client.evaluation_keys(), "cpu", threads=1)
    values = discrete_world.integers(rng, params.low, params.high, params.slots)
    x = server.bind(owner.encrypt(values, wrap=True))
    found = [x.noise_budget]
    wanted = values.astype(object)
    for _ in range(params.depth):
        x = (x + x) * (x + x)
        found.append(x.noise_budget)
        wanted = (2 * wanted) ** 2
        assert not np.any((client.decrypt(x) - wanted) % params.modulus)
    assert found == pytest.approx(params.noise_budgets(), abs=1e-6)
    assert min(found) > 0
