"""``jali trace``: what it writes can be read, and lowered to steps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from jali import cli, tfhe
from jali.simulate import trace as traces
from jali.simulate.lower import lower
from jali.simulate.steps import Entity, Kind, Steps


def recorded(path: Path, *words: str) -> tuple[traces.Trace, Steps]:
    assert cli.main(["trace", *words, "-o", str(path)]) == 0
    trace = traces.read(path)
    steps = lower(trace)
    for kind, name in ((Kind.LOAD, "bytes_read"), (Kind.STORE, "bytes_written")):
        moved = steps.moved(kind)
        moved.pop(Entity.TWIDDLE, 0), moved.pop(Entity.INVERSE_TWIDDLE, 0)
        assert sum(moved.values()) == sum(getattr(r, name) for r in trace.records)
    mults = np.zeros(len(trace), np.int64)
    np.add.at(mults, steps.record, steps.mults)
    assert list(mults) == [r.mults for r in trace.records]
    return trace, steps


def test_bootstrap(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace, steps = recorded(tmp_path / "boot.jsonl", "bootstrap", "--log-n", "10")
    assert capsys.readouterr().out == f"wrote {tmp_path / 'boot.jsonl'}: {len(trace)} operations\n"
    header = trace.header
    assert (header.scheme, header["N"]) == ("ckks", 1024)
    assert sum(header["digits"]) + header["special_primes"] == len(header["prime_bits"])
    names = {record.op for record in trace.records}
    assert {"rotated_sums", "outer_sum", "combine_key_switch", "rotate"} <= names
    for record in trace.records:
        if record.op == "rotated_sums":
            assert len(record["galois"]) == len(record["sources"]) > max(record["operands"])
            assert len(set(record["galois"])) > 1
        if record.op == "outer_sum":
            assert len(record["galois"]) == record["terms"]
    # A bootstrapping is a chain: but for the first operations, each reads what another one made.
    waiting = 0
    for record in range(len(trace)):
        own = np.flatnonzero((steps.record == record) & (steps.kind == Kind.LOAD))
        waiting += any(steps.dependences(int(load)) for load in own)
    assert waiting > 0.9 * len(trace)
    assert steps.moved()[Entity.KEY] > steps.moved()[Entity.PLAINTEXT] > 0


@pytest.mark.parametrize("multiplication", ["bgv", "bfv"])
def test_exact_integers(
    multiplication: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The table of operations is that of CKKS: polynomials over primes."""
    words = ("discrete", "--log-n", "11", "--multiplication", multiplication, "--batch", "2")
    trace, steps = recorded(tmp_path / "discrete.jsonl", *words)
    assert (trace.header.scheme, trace.header["N"]) == ("ckks", 2048)
    names = {record.op for record in trace.records}
    # A factor T, the array in the clear lifted from T, and the division to the next level or by P.
    assert {"mul_scalar", "mod_up", "mul", "scale_down_pair", "rotate"} <= names
    assert ("tensor" in names) == (multiplication == "bfv")
    assert ("combine_key_switch" in names) == (multiplication == "bgv")
    assert all(record["batch"] in (1, 2) for record in trace.records)
    assert steps.moved()[Entity.KEY] > 0
    for machine in ("h100", "mv_set_a"):
        capsys.readouterr()
        assert cli.main(["simulate", str(tmp_path / "discrete.jsonl"), "--machine", machine]) == 0
        assert "KEY" in capsys.readouterr().out.upper()


def test_tfhe(tmp_path: Path) -> None:
    trace, steps = recorded(tmp_path / "tfhe.jsonl", "tfhe", "--batch", "2")
    params = tfhe.Params.preset("message_2_carry_2")
    assert (trace.header["n"], trace.header["N"]) == (params.n, params.N)
    (record,) = (r for r in trace.records if r.op == "switch_bootstrap")
    assert record["batch"] == 2
    assert steps.counts()[Kind.ACCUMULATE] == record["steps"]


def test_demo_digits(tmp_path: Path) -> None:
    pytest.importorskip("sklearn", reason="the digits are scikit-learn's")
    trace, steps = recorded(tmp_path / "digits.jsonl", "demo", "digits")
    assert trace.header["N"] == 8192 and len(steps) > len(trace) > 20


def test_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["trace", "tfhe"]) == 0
    assert traces.parse(capsys.readouterr().out).header.scheme == "tfhe"


def test_refusals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, says in (
        (["bootstrap", "--log-n", "9"], "10 to 14"),
        (["tfhe", "--batch", "0"], "--batch"),
        (["tfhe", "--threads", "0"], "--threads"),
        (["tfhe", "--set", "nothing"], "nothing"),
        (["discrete", "--log-n", "15"], "10 to 14"),
        (["discrete", "--set", "sums_2_32"], "another --set"),
        (["discrete", "--set", "nothing"], "int16_d2"),
        (["tfhe", "-o", str(tmp_path)], str(tmp_path)),
    ):
        assert cli.main(["trace", *words]) == 1
        assert says in capsys.readouterr().err
    with pytest.raises(SystemExit) as left:
        cli.main(["trace"])
    assert left.value.code == 2
