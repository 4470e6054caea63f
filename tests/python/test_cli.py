"""The command ``jali``."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import types
from collections.abc import Sequence
from typing import Any, NoReturn

import pytest

import jali
from jali import cli
from jali.cli import doctor


def run(*words: str) -> subprocess.CompletedProcess[str]:
    """Runs the command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "jali", *words], capture_output=True, text=True, check=False
    )


def error_line(done: subprocess.CompletedProcess[str]) -> str:
    """The error message, which must be a single line."""
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ")
    return line


def test_version_and_help() -> None:
    assert run("--version").stdout.strip() == f"jali {jali.__version__}"
    text = run("--help").stdout
    assert all(command in text for command in ("doctor", "params", "demo", "bench"))


def test_doctor() -> None:
    done = run("doctor", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["self_test"]["passed"] is True
    assert report["isa_chosen"] == report["isas"][0]
    assert report["isas"][-1] == "portable"
    assert report["devices"][0] == "cpu" and isinstance(report["cuda"], bool)
    assert report["cuda"] or report["devices"] == ["cpu"]
    assert set(report["extras"]) >= {"demo", "bench"}
    found = report["tfhe"]
    assert list(found) == report["devices"][:2]
    assert found["cpu"]["passed"] is True and found["cpu"]["engine"].startswith("cpu/")
    assert found["cpu"]["transform"] == "fft"
    assert report["tfhe_advice"].startswith("jali.tfhe computes")
    exact = report["discrete"]
    assert list(exact) == report["devices"][:2]
    assert exact["cpu"]["passed"] is True and exact["cpu"]["wrong"] == 0
    assert exact["cpu"]["engine"].startswith("cpu/") and exact["cpu"]["noise_budget"] > 0
    text = run("doctor")
    assert text.returncode == 0 and text.stderr == ""
    shown = (report["jali"], report["isa_chosen"], "passed", "demo", "threads", "exact integers")
    for word in shown:
        assert word in text.stdout


def test_doctor_fails_when_the_self_test_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken() -> NoReturn:
        raise jali.InternalError("broken")

    monkeypatch.setattr(doctor, "self_test", broken)
    assert cli.main(["doctor"]) == 1
    assert "broken" in capsys.readouterr().out


def _exact(where: str) -> dict[str, Any]:
    return {"passed": True, "engine": where, "params": "", "seconds": {"compute": 0.1}}


@pytest.mark.parametrize("works", [True, False])
def test_doctor_finds_wrong_exact_integers(
    works: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = jali.discrete.Client.decrypt

    def decrypted(self: Any, value: Any) -> Any:
        numbers = real(self, value)
        numbers[-1] += 0 if works else 1
        return numbers

    fine = {"passed": True, "max_error": 0.0, "params": "", "seconds": {}}
    monkeypatch.setattr(doctor, "self_test", lambda: fine)
    monkeypatch.setattr(
        doctor, "tfhe_test", lambda where: {**_exact(where), "transform": "fft", "look_ups": 8}
    )
    monkeypatch.setattr(jali.device, "available", lambda: ["cpu"])
    monkeypatch.setattr(jali.discrete.Client, "decrypt", decrypted)
    assert cli.main(["doctor"]) == (0 if works else 1)
    assert ("FAILED: please report this" in capsys.readouterr().out) is not works


@pytest.mark.parametrize(
    ("cpu", "gpu", "code", "says"),
    [
        ({"passed": True}, None, 0, "compute capability 9.0"),
        ({"passed": True}, {"passed": True}, 0, "computes on cuda:0"),
        ({"passed": True}, {"passed": False, "error": "too old"}, 0, "does not work on cuda:0"),
        ({"passed": True}, {"passed": False}, 1, "does not work on cuda:0"),
        ({"passed": False}, {"passed": True}, 1, "does not work on this CPU"),
    ],
)
def test_doctor_on_tfhe(
    cpu: dict[str, Any],
    gpu: dict[str, Any] | None,
    code: int,
    says: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = {"cpu": cpu} | ({} if gpu is None else {"cuda:0": gpu})

    def tested(where: str) -> dict[str, Any]:
        one = given[where]
        if "error" in one:
            raise jali.Unsupported(one["error"])
        return {
            **one,
            "engine": where,
            "transform": "fft",
            "look_ups": 8,
            "seconds": {"compute": 0.1},
        }

    monkeypatch.setattr(doctor, "tfhe_test", tested)
    monkeypatch.setattr(doctor, "discrete_test", _exact)
    monkeypatch.setattr(
        doctor, "self_test", lambda: {"passed": True, "max_error": 0.0, "params": "", "seconds": {}}
    )
    monkeypatch.setattr(jali.device, "available", lambda: list(given))
    monkeypatch.setattr(jali.device, "name", lambda device="cpu": "a device")
    monkeypatch.setattr(doctor._device, "measured", lambda name: {})
    assert cli.main(["doctor"]) == code
    text = capsys.readouterr().out
    assert says in text and all(one in text for one in given)


def test_params() -> None:
    done = run("params", "--depth", "9", "--rotations", "3", "--json")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    params = jali.ckks.Params.create(depth=9)
    assert facts["log_n"] == params.log_n and facts["depth"] == 9
    assert facts["fingerprint"] == params.fingerprint
    assert facts["all_key_bytes"] == params.key_bytes(rotations=[1, 2, 3])
    assert facts["log_qp"] <= facts["log_qp_limit"]
    assert [level["level"] for level in facts["levels"]] == list(range(9, -1, -1))
    text = run("params", "--depth", "2", "--scale-bits", "30", "--word", "w64", "--security", "192")
    assert text.returncode == 0 and text.stderr == ""
    for word in ("log_n", "w64", "192", "relinearisation key", "What would change", "--depth 3"):
        assert word in text.stdout


def test_params_with_bootstrapping() -> None:
    asked = ("--levels-after", "2", "--precision-bits", "14")
    done = run("params", *asked, "--json")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    params = jali.ckks.Params.create(bootstrap=True, levels_after=2, precision_bits=14)
    assert facts["fingerprint"] == params.fingerprint
    assert facts["bootstrapping"] == {
        "order": "slots_first",
        "from_level": params.bootstrap_level,
        "to_level": params.depth,
        "log2_failure": round(params.log2_bootstrap_failure, 1),
        "log2_beyond": {
            f"2^-{bits}": round(params.log2_bootstrap_beyond(2.0**-bits), 1)
            for bits in (4, 8, 12, 16, 20)
        },
        "rotation_keys": len(params.bootstrap_rotations()),
        "all_key_bytes": params.bootstrap_key_bytes(),
        "all_key_bytes_expanded": params.expanded_bootstrap_key_bytes(),
        "fewest_rotation_keys": len(params.bootstrap_rotations(minimum=True)),
        "fewest_all_key_bytes": params.bootstrap_key_bytes(minimum=True),
        "fewest_all_key_bytes_expanded": params.expanded_bootstrap_key_bytes(minimum=True),
    }
    assert "Bootstrapping of all slots" in run("params", *asked).stdout
    plain = json.loads(run("params", "--depth", "2", "--json").stdout)
    assert plain["bootstrapping"] is None


def test_presets() -> None:
    names = json.loads(run("params", "--preset", "list", "--json").stdout)
    schemes = [scheme.Params.presets() for scheme in (jali.ckks, jali.discrete, jali.tfhe)]
    assert names == schemes[0] | schemes[1] | schemes[2]
    assert len(names) == sum(len(presets) for presets in schemes)
    listed = run("params", "--preset", "list").stdout
    assert all(name in listed for name in names)
    facts = json.loads(run("params", "--preset", "n14_d7", "--json").stdout)
    assert facts["fingerprint"] == jali.ckks.Params.preset("n14_d7").fingerprint
    assert facts["security"] >= 128 and facts["scheme"] == "ckks"


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        ("--integers 32 --depth 2", {"integers": 32, "depth": 2}),
        (
            "--modulus 65537 --depth 3 --multiplication bfv --word w32",
            {"modulus": 65537, "depth": 3, "multiplication": "bfv", "word": "w32"},
        ),
        (
            "--modulus 18446744073709551616 --depth 0 --packing coefficients --security 192",
            {"modulus": 2**64, "depth": 0, "packing": "coefficients", "security": 192},
        ),
    ],
)
def test_params_of_exact_integers(words: str, arguments: dict[str, Any]) -> None:
    done = run("params", *words.split(), "--rotations", "3", "--json")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    params = jali.discrete.Params.create(**arguments)
    for name in ("modulus", "low", "high", "multiplication", "packing", "log_n", "slots", "depth"):
        assert facts[name] == getattr(params, name)
    assert facts["fingerprint"] == params.fingerprint and facts["scheme"] == "discrete"
    assert facts["log_qp"] <= facts["log_qp_limit"]
    assert facts["ciphertext_bytes"] == params.ciphertext_bytes()
    assert facts["all_key_bytes"] == params.key_bytes([1, 2, 3])
    assert [level["level"] for level in facts["levels"]] == list(range(params.depth, -1, -1))
    assert facts["levels"][0]["primes"] == facts["primes"] == params.q_count
    assert len(facts["noise_budgets"]) == 1 + (params.depth or 4)
    assert min(facts["noise_budgets"]) > 0
    text = run("params", *words.split())
    assert text.returncode == 0 and text.stderr == ""
    shown = ["log_n", params.word, f"{params.security} bits", str(params.high), "after"]
    shown += ["What would change", "--depth"] if params.packing == "slots" else ["2^64"]
    assert all(word in text.stdout for word in shown)


def test_what_would_change_of_exact_integers_is_true() -> None:
    text = run("params", "--modulus", "65537", "--depth", "2").stdout
    changes = text[text.index("What would change") :]
    found = dict(re.findall(r"^ *(--\S+ \S+)  (.*)$", changes, re.MULTILINE))
    (deepest, next_one) = sorted(
        int(option.split()[1]) for option in found if option.startswith("--depth")
    )
    create = jali.discrete.Params.create
    now = create(modulus=65537, depth=2)
    assert next_one == deepest + 1
    assert create(modulus=65537, depth=deepest).log_n == now.log_n
    assert create(modulus=65537, depth=next_one).log_n > now.log_n
    wide = create(integers=48, depth=2)
    assert f"log_n {wide.log_n}, log_qp {wide.log_qp:.0f}" in found["--integers 48"]
    assert "--multiplication bfv" in found and "--security 256" in found


@pytest.mark.parametrize("name", ["int16_d2", "sums_2_64"])
def test_a_preset_of_exact_integers(name: str) -> None:
    params = jali.discrete.Params.preset(name)
    assert params.name == name
    facts = json.loads(run("params", "--preset", name, "--json").stdout)
    assert facts["fingerprint"] == params.fingerprint and facts["security"] >= 128
    text = run("params", "--preset", name)
    assert text.returncode == 0 and text.stderr == "" and "Noise" in text.stdout


@pytest.mark.parametrize("name", ["boolean", "message_2_carry_2_block", "insecure_strix_i"])
def test_a_preset_of_tfhe(name: str) -> None:
    params = jali.tfhe.Params.preset(name)
    facts = json.loads(run("params", "--preset", name, "--json").stdout)
    assert facts.pop("scheme") == "tfhe"
    assert facts.pop("rotation_gadget") == list(params.rotation_gadget)
    assert facts.pop("switch_gadget") == list(params.switch_gadget)
    assert facts.pop("ciphertext_bytes") == params.ciphertext_bytes()
    assert facts.pop("fresh_ciphertext_bytes") == params.seeded_ciphertext_bytes()
    assert facts.pop("all_key_bytes") == params.key_bytes
    assert facts.pop("all_key_bytes_expanded") == params.expanded_key_bytes
    assert facts["rotation_key_bytes"] + facts["switch_key_bytes"] == params.key_bytes
    assert {"n", "k", "N", "max_norm2", "log2_p_fail", "security", "lwe_noise_bits"} <= set(facts)
    assert all(getattr(params, key) == value for key, value in facts.items())
    text = run("params", "--preset", name)
    assert text.returncode == 0 and text.stderr == ""
    shown = [f"n {params.n}", f"N {params.N}", f"2^{params.log2_p_fail:.1f}", "bootstrapping key"]
    assert all(word in text.stdout for word in shown)


def test_presets_of_tfhe_that_fit() -> None:
    found = json.loads(run("params", "--message-bits", "2", "--carry-bits", "1", "--json").stdout)
    assert {"message_2_carry_2", "message_2_carry_2_block"} <= {p["name"] for p in found}
    for p in found:
        assert p["message_bits"] == 2 and p["carry_bits"] >= 1
        assert p["log2_p_fail"] <= -128 and p["security"] >= 128
    more = json.loads(run("params", "--message-bits", "1", "--log2-p-fail", "-60", "--json").stdout)
    assert "strix_ii" in {p["name"] for p in more}  # 2^-73; the insecure sets are never among them
    assert not any(p["name"].startswith("insecure_") for p in more)
    text = run("params", "--message-bits", "1").stdout
    assert "boolean_block" in text and "strix_ii" not in text


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ([], 2, "COMMAND"),
        (["fly"], 2, "fly"),
        (["params"], 2, "--depth"),
        (["params", "--depth", "x"], 2, "--depth"),
        (["params", "--depth", "2", "--word", "w8"], 2, "--word"),
        (["params", "--depth", "2", "--preset", "n14_d7"], 2, "--preset"),
        (["params", "--preset", "no-such"], 1, "n14_d7"),
        (["params", "--preset", "no-such"], 1, "message_2_carry_2"),
        (["params", "--preset", "boolean", "--word", "w32"], 1, "--word"),
        (["params", "--preset", "boolean", "--carry-bits", "1", "--depth", "2"], 2, "--depth"),
        (["params", "--depth", "2", "--carry-bits", "1"], 1, "--carry-bits"),
        (["params", "--message-bits", "2", "--rotations", "1"], 1, "--rotations"),
        (["params", "--message-bits", "0"], 1, "--message-bits"),
        (["params", "--message-bits", "2", "--integers", "3"], 1, "--integers is for exact"),
        (["params", "--integers", "32"], 2, "--depth"),
        (["params", "--integers", "32", "--levels-after", "2"], 1, "--levels-after"),
        (["params", "--integers", "32", "--modulus", "65537", "--depth", "2"], 2, "--modulus"),
        (["params", "--integers", "32", "--depth", "2", "--scale-bits", "30"], 1, "--scale-bits"),
        (["params", "--integers", "60", "--depth", "2"], 1, "2 to 59"),
        (["params", "--modulus", "1000", "--depth", "2"], 1, "coefficients"),
        (["params", "--depth", "2", "--packing", "slots"], 1, "--modulus or --integers"),
        (["params", "--preset", "int16_d2", "--integers", "16"], 1, "leave out --integers"),
        (["params", "--preset", "int16_d2", "--log2-p-fail", "-64"], 1, "--log2-p-fail"),
        (["params", "--preset", "n14_d7", "--modulus", "65537"], 1, "--modulus"),
        (["params", "--preset", "no-such"], 1, "int32_d4"),
        (["params", "--message-bits", "2", "--carry-bits", "-1"], 1, "--carry-bits"),
        (["params", "--message-bits", "7"], 1, "encrypt_uint"),
        (["params", "--message-bits", "2", "--log2-p-fail", "-999"], 1, "--log2-p-fail"),
        (["params", "--preset", "n14_d7", "--order", "slots_first", "--depth", "2"], 2, "--depth"),
        (["params", "--depth", "2", "--precision-bits", "14"], 1, "--levels-after"),
        (["params", "--levels-after", "2", "--precision-bits", "90"], 1, "precision"),
        (["params", "--levels-after", "2", "--dnum", "3"], 1, "dnum"),
        (["params", "--depth", "-1"], 1, "depth"),
        (["params", "--depth", "9", "--log-n", "12"], 1, "log_n"),
        (["params", "--depth", "9", "--rotations", "-1"], 1, "--rotations"),
        (["demo"], 2, "jali demo --help"),
        (["demo", "no-such-demo"], 2, "no-such-demo"),
        (["demo", "mnist"], 1, "--images"),
        (["bench"], 2, "jali bench --help"),
        (["bench", "no-such-bench"], 1, "jali bench list"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_errors(words: list[str], code: int, says: str) -> None:
    done = run(*words)
    assert done.returncode == code
    assert says in error_line(done)


def test_dispatch_and_interruption(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[Sequence[str]] = []
    module = types.ModuleType("jali.cli.demo")
    monkeypatch.setitem(sys.modules, "jali.cli.demo", module)

    def works(arguments: Sequence[str]) -> None:
        seen.append(arguments)

    def interrupted(arguments: Sequence[str]) -> NoReturn:
        raise KeyboardInterrupt

    def unlucky(arguments: Sequence[str]) -> NoReturn:
        raise jali.Unsupported("two\nlines")

    def poor(arguments: Sequence[str]) -> NoReturn:
        raise ModuleNotFoundError("No module named 'sklearn'", name="sklearn.datasets")

    def lost(arguments: Sequence[str]) -> NoReturn:
        raise FileNotFoundError(2, "No such file or directory", "digits.npz")

    for main, code, says in (
        (works, 0, ""),
        (interrupted, 130, "interrupted"),
        (unlucky, 1, "error: two lines"),
        (poor, 1, "pip install scikit-learn"),
        (lost, 1, "error: digits.npz: No such file or directory"),
    ):
        monkeypatch.setattr(module, "main", main, raising=False)
        assert cli.main(["demo", "digits", "--limit", "3"]) == code
        assert says in capsys.readouterr().err
    assert seen == [["digits", "--limit", "3"]]


def test_the_list_of_benchmarks() -> None:
    done = run("bench", "list")
    assert done.returncode == 0 and done.stderr == ""
    assert "hmult_relin_rescale" in done.stdout


def test_output_into_a_closed_pipe() -> None:
    done = subprocess.run(
        f"'{sys.executable}' -m jali params --depth 12 | true",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
