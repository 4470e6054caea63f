"""What is demanded of parameters when they are loaded: security, and how seldom a bootstrapping
fails."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tfhe_world

import jali
from jali import ckks, nn, tfhe


def ckks_sets() -> dict[str, ckks.Params]:
    return {
        "128 bits": ckks.Params.create(depth=2, scale_bits=30),
        "192 bits": ckks.Params.create(depth=2, scale_bits=30, security=192),
        "256 bits": ckks.Params.create(depth=2, scale_bits=30, security=256),
        "a larger ring": ckks.Params.create(depth=1, scale_bits=30, log_n=15),
        "none asked for, none there": ckks.Params.create(depth=2, log_n=10, security=0, name="insecure_a"),
        "none asked for, and there": ckks.Params.create(depth=1, log_n=15, security=0, name="insecure_b"),
        "sparse secret": ckks.Params.preset("n15_small"),
        # The table grants the moduli 256 bits, and the key of the sparse secret has 128.
        "sparse secret in the largest ring": ckks.Params.create(bootstrap=True, levels_after=2, precision_bits=15, log_n=17),
        "sparse secret, none asked for": ckks.Params.create(
            bootstrap=True, levels_after=2, precision_bits=15, log_n=12, security=0, name="insecure_c"
        ),
    }  # fmt: skip


def tfhe_sets() -> dict[str, tfhe.Params]:
    return {
        **{name: tfhe.Params.preset(name) for name in tfhe.Params.presets()},
        "insecure": tfhe_world.make(),
    }


def accepted(load: Any, *args: Any, **demands: Any) -> Any:
    """What is loaded, or None if the demands are not met."""
    try:
        return load(*args, **demands)
    except jali.InsecureParams:
        return None


@pytest.mark.parametrize("sets", [ckks_sets, tfhe_sets])
def test_what_security_says_is_what_loading_accepts(sets: Any, tmp_path: Path) -> None:
    for name, params in sets().items():
        data, kind = params.to_bytes(), type(params)
        params.save(tmp_path / "params")
        for demand in (0, 128, 192, 256):
            loads = [
                accepted(kind.from_bytes, data, security=demand),
                accepted(kind.load, data, security=demand),
                accepted(kind.load, tmp_path / "params", security=demand),
                accepted(kind.load, io.BytesIO(data), security=demand),
            ]
            assert [x is not None for x in loads] == [params.security >= demand] * 4, (name, demand)
            assert all(x is None or x.security == params.security for x in loads), name
        if params.security < 128:
            assert params.name.startswith("insecure_")


def test_a_sparse_secret_has_128_bits() -> None:
    sets = ckks_sets()
    for name in ("sparse secret", "sparse secret in the largest ring"):
        assert sets[name].security == 128
    assert sets["sparse secret in the largest ring"].log_qp <= ckks.max_log_qp(17, 256)
    assert sets["none asked for, and there"].security == 0


@pytest.mark.parametrize("demand", [-128.0, -60.0, -1.0])
def test_a_largest_probability_of_failure_can_be_demanded(demand: float) -> None:
    for name, params in ckks_sets().items():
        found = accepted(ckks.Params.from_bytes, params.to_bytes(), security=0, log2_p_fail=demand)
        assert (found is not None) == (params.log2_bootstrap_failure <= demand + 0.01), name
    for name, params in tfhe_sets().items():
        found = accepted(tfhe.Params.from_bytes, params.to_bytes(), 0, log2_p_fail=demand)
        # What insecure parameters say is held to the formulas, too.
        true = params.log2_failure(params.max_norm2)
        assert (found is not None) == (max(params.log2_p_fail, true) <= demand + 0.01), name
    lying = tfhe_world.make(lwe_noise_bits=24, log2_p_fail=-300)
    assert lying.log2_failure(lying.max_norm2) > -20
    with pytest.raises(jali.InsecureParams, match="fails with a probability of up to 2"):
        tfhe.Params.from_bytes(lying.to_bytes(), 0, log2_p_fail=demand)
    assert tfhe.Params.from_bytes(lying.to_bytes(), 0).name == lying.name


def test_what_insecure_parameters_of_tfhe_say_of_themselves() -> None:
    """They state no more than the table grants, below 128 bits, too."""
    for bits in (1, 100, 127):
        with pytest.raises(jali.InsecureParams, match=f"claim {bits} bits of security"):
            tfhe_world.make(security=bits)
    strix = tfhe.Params.preset("insecure_strix_i")
    assert strix.security == 101
    assert tfhe.Params.from_bytes(strix.to_bytes(), security=101) == strix
    with pytest.raises(jali.InsecureParams):
        tfhe.Params.from_bytes(strix.to_bytes(), security=102)


@pytest.mark.parametrize("demand", [float("nan"), float("inf"), -float("inf"), 1.0, 1e-9])
def test_demands_that_are_none_are_refused(demand: float) -> None:
    for data, kind in (
        (ckks.Params.create(depth=1).to_bytes(), ckks.Params),
        (tfhe.Params.preset("boolean").to_bytes(), tfhe.Params),
    ):
        for load in (kind.from_bytes, kind.load):
            with pytest.raises(jali.InvalidArgument, match="log2_p_fail"):
                load(data, log2_p_fail=demand)
            with pytest.raises(jali.InvalidArgument, match="securit"):
                load(data, security=-1000)
    with pytest.raises(jali.InvalidArgument, match="two names of one argument"):
        tfhe.Params.from_bytes(data, 192, security=128)


def test_programs_and_manifests_take_the_same_demands(tmp_path: Path) -> None:
    program = jali.compile(lambda x: x * 0.5, np.ones(2), calibration=np.ones((20, 2)))
    program.save(tmp_path / "program")
    program.manifest.save(tmp_path / "manifest")
    for kind, thing in ((nn.Program, program), (nn.Manifest, program.manifest)):
        for load, source in (
            (kind.from_bytes, thing.to_bytes()),
            (kind.load, tmp_path / kind.__name__.lower()),
        ):
            for demand in (0, 128, 192, 256):
                found = accepted(load, source, security=demand, log2_p_fail=-128)
                assert (found is not None) == (program.params.security >= demand)
            with pytest.raises(jali.InvalidArgument, match="log2_p_fail"):
                load(source, log2_p_fail=1.0)


def test_programs_of_trees_take_the_same_demands(tmp_path: Path) -> None:
    sklearn_tree = pytest.importorskip("sklearn.tree")
    x = np.linspace(-1, 1, 40).reshape(20, 2)
    model = sklearn_tree.DecisionTreeClassifier(max_depth=2, random_state=1).fit(x, x[:, 0] > 0)
    program = jali.compile(model)
    program.save(tmp_path / "program")
    program.manifest.save(tmp_path / "manifest")
    params = program.params
    for kind, thing in ((type(program), program), (type(program.manifest), program.manifest)):
        for load, source in (
            (kind.from_bytes, thing.to_bytes()),
            (kind.load, tmp_path / kind.__name__.lower()),
        ):
            for security in (128, params.security, params.security + 1):
                for fails in (0.0, -100.0, -300.0):
                    found = accepted(load, source, security=security, log2_p_fail=fails)
                    meets = params.security >= security and params.log2_p_fail <= fails
                    assert (found is not None) == meets
            with pytest.raises(jali.InvalidArgument, match="log2_p_fail"):
                load(source, log2_p_fail=1.0)
