"""jali tune keeps its choices in a file, evaluators read them, and a damaged file is refused."""

from __future__ import annotations

import json
import resource
import signal
import warnings
from pathlib import Path

import numpy as np
import pytest
from conftest import World

import jali
from jali import _jali, ckks, cli
from jali._core import tuning
from jali.cli import tune


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Gives the test a cache folder of its own; returns the path of the tuning file, which does not exist yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "jali" / "tune.json"


def keep(cache: Path, choices: dict[str, str], world: World) -> None:
    """Writes choices for the CPU and the world's ring."""
    tuning.write("cpu", {world.params.word: {str(world.params.log_n): choices}})
    assert cache.exists()


def test_tune_keeps_what_an_evaluator_reads(
    cache: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # A clock of our own, by which the last instruction set in the list is the fastest.
    isas = _jali.device.cpu_isas()
    monkeypatch.setattr(
        tune,
        "_time",
        lambda device, word, log_n, choices, seconds: (
            1.0 if choices.get("isa") == isas[-1] else 2.0
        ),
    )
    command = ["tune", "--device", "cpu", "--word", "w52", "--log-n", "12", "--json"]
    assert cli.main(command) == 0
    out = json.loads(capsys.readouterr().out)
    assert out["chosen"] == {"isa": isas[-1]} and len(out["seconds"]) == len(isas) + 1
    assert tuning.chosen("cpu", "w52", 12) == {"isa": isas[-1]}
    assert tuning.chosen("cpu", "w52", 13) == {} and tuning.chosen("cpu", "w32", 12) == {}
    params = ckks.Params.create(depth=1, scale_bits=30, log_n=12, word="w52")
    server = ckks.Evaluator(params, None, "cpu")
    assert server.variants == {"isa": isas[-1]} and server.engine == f"cpu/{isas[-1]}"
    assert ckks.Evaluator(params, None, "cpu", variants={}).engine == f"cpu/{isas[0]}"
    assert cli.main(["doctor"]) == 0
    assert f"w52, log N 12: isa={isas[-1]}" in capsys.readouterr().out


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_tune_measures_and_checks(
    cache: Path, capsys: pytest.CaptureFixture[str], device: str
) -> None:
    if device == "cuda" and _jali.device.cuda_device_count() == 0:
        pytest.skip("no NVIDIA GPU on this machine, or a build without CUDA")
    command = ["--device", device, "--word", "w32", "--log-n", "11", "--seconds", "0.001"]
    assert tune.main([*command, "--json"]) == 0
    (ring,) = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    families = tuning.families(device)
    assert set(ring["seconds"]) == {
        f"{family}={name}" for family, names in families.items() for name in names
    }
    assert "w32" in next(iter(json.loads(cache.read_text())["devices"].values()))
    params = ckks.Params.create(
        depth=0, scale_bits=25, log_n=11, word="w32", security=0, name="insecure_test"
    )
    assert ckks.Evaluator(params, None, device).variants == ring["chosen"]


def test_results_do_not_depend_on_the_choice(cache: Path, one: World) -> None:
    x = one.client.encrypt(np.linspace(-1, 1, 8))
    blobs = set()
    for isa in _jali.device.cpu_isas():
        keep(cache, {"isa": isa}, one)
        server = ckks.Evaluator(one.params, one.keys, "cpu")
        assert server.variants == {"isa": isa}
        blobs.add((server.bind(x) * server.bind(x)).rotate(1).ciphertext.to_bytes())
    assert len(blobs) == 1


@pytest.mark.parametrize(
    "damage",
    [
        "",
        "{",
        "[]",
        '{"format": 2, "devices": {}}',
        '{"format": 1, "devices": []}',
        '{"format": 1, "devices": {"x, 2 cores, jali 0": {"w52": 3}}}',
        '{"format": 1, "devices": {"x, 2 cores, jali 0": {"w99": {"12": {}}}}}',
        '{"format": 1, "devices": {"x, 2 cores, jali 0": {"w52": {"12": {"isa": 1}}}}}',
        '{"format": 1, "devices": {"x, 2 cores, jali VERSION": {"w52": {"12": {"isa": "abacus"}}}}}',
        "[" * 100_000 + "]" * 100_000,
        '{"format": 1, "devices": {"x, 2 cores, jali 0": ' + "[" * 900 + "]" * 900 + "}}",
    ],
)
def test_a_damaged_file_is_refused_with_a_warning(cache: Path, one: World, damage: str) -> None:
    cache.parent.mkdir()
    cache.write_text(damage.replace("VERSION", jali.__version__))
    with pytest.warns(RuntimeWarning, match="run 'jali tune' again, or delete the file"):
        server = ckks.Evaluator(one.params, None, "cpu")
    assert server.variants == {}
    with warnings.catch_warnings():  # the warning is given only once
        warnings.simplefilter("error")
        ckks.Evaluator(one.params, None, "cpu")
        keep(cache, {"isa": "portable"}, one)  # jali tune replaces the damaged file
        assert ckks.Evaluator(one.params, None, "cpu").engine == "cpu/portable"


def test_variants_of_a_user(one: World, cache: Path) -> None:
    keep(cache, {"isa": "portable"}, one)
    assert ckks.Evaluator(one.params, None, "cpu/avx2").engine == "cpu/avx2"
    assert ckks.Evaluator(one.params, None, "ref").variants == {}
    with pytest.raises(jali.Unsupported, match="abacus"):
        ckks.Evaluator(one.params, None, "cpu", variants={"isa": "abacus"})
    if _jali.device.cuda_device_count():
        with pytest.raises(jali.InvalidArgument, match="abacus"):
            ckks.Evaluator(one.params, None, "cuda", variants={"ntt": "abacus"})
        for name in _jali.device.cuda_variants()["ntt"]:
            server = ckks.Evaluator(one.params, None, "cuda", variants={"ntt": name})
            assert server.variants == {"ntt": name}


def test_wrong_devices_are_refused_by_name(one: World, cache: Path) -> None:
    keep(cache, {"isa": "portable"}, one)
    for device in ("cuda:x", "cuda:", "cuda:-1", "cuda:99999999999999999999"):
        with pytest.raises(jali.InvalidArgument, match="cuda:0"):
            ckks.Evaluator(one.params, None, device)


def test_a_full_disk_leaves_what_was_there(cache: Path, one: World) -> None:
    keep(cache, {"isa": "portable"}, one)
    before = cache.read_bytes()
    found = {one.params.word: {str(one.params.log_n): {"isa": "avx2"}}}
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:  # a file can have 10 bytes at most
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
        with pytest.raises(jali.Unsupported, match="make room for it there") as caught:
            tuning.write("cpu", found)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)
    assert str(cache) in str(caught.value)
    assert cache.read_bytes() == before and list(cache.parent.iterdir()) == [cache]
    # This process does not use choices that it could not write either.
    assert tuning.chosen("cpu", one.params.word, one.params.log_n) == {"isa": "portable"}


def test_an_interrupt_leaves_what_was_there(
    cache: Path, one: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(cache, {"isa": "portable"}, one)
    before = cache.read_bytes()

    def interrupted(path: Path, target: Path) -> Path:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        keep(cache, {"isa": "avx2"}, one)
    assert cache.read_bytes() == before and list(cache.parent.iterdir()) == [cache]


def test_folders_are_made_or_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["tune", "--device", "cpu", "--word", "w52", "--log-n", "12"]
    monkeypatch.setattr(tune, "_time", lambda *_: 1.0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "not" / "there" / "yet"))
    assert cli.main(command) == 0
    assert (tmp_path / "not" / "there" / "yet" / "jali" / "tune.json").exists()
    (tmp_path / "file").touch()
    (tmp_path / "folder" / "jali" / "tune.json").mkdir(parents=True)
    for where in ("file", "file/below", "folder"):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / where))
        capsys.readouterr()
        assert cli.main(command) == 1
        printed = capsys.readouterr()
        assert "name another folder in XDG_CACHE_HOME" in printed.err
        assert "w52" in printed.out  # the measured times are printed all the same
    assert [x.name for x in (tmp_path / "folder" / "jali").iterdir()] == ["tune.json"]


def test_wrong_options(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["tune", "--device", "cpu", "--log-n", "9"]) == 1
    assert "--log-n" in capsys.readouterr().err
    assert cli.main(["tune", "--device", "cuda:99", "--log-n", "12", "--word", "w32"]) == 1
    assert not cache.exists()
