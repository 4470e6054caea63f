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
from jali import device as devices
from jali.cli import tune


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Gives the test a cache folder of its own; returns the path of the tuning file, which does not
    exist yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "jali" / "tune.tsv"


def keep(cache: Path, choices: dict[str, str], world: World) -> None:
    """Writes choices for the CPU and the world's ring."""
    kept = _jali.device.keep_measured("cpu", {(world.params.word, world.params.log_n): choices})
    assert kept == str(cache) and cache.exists()


def chosen(word: str, log_n: int) -> dict[str, str]:
    """The choices that an Evaluator on the CPU would use."""
    return devices.tuned("cpu", word, log_n)[1]


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
    said = capsys.readouterr()
    assert "TFHE has nothing to choose" in said.err and str(cache) in said.err
    out = json.loads(said.out)
    assert out["chosen"] == {"isa": isas[-1]} and len(out["seconds"]) == len(isas) + 1
    assert chosen("w52", 12) == {"isa": isas[-1]}
    assert chosen("w52", 13) == {} and chosen("w32", 12) == {}
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
    families = _jali.device.variant_families(device)
    assert set(ring["seconds"]) == {
        f"{family}={name}" for family, names in families.items() for name in names
    }
    assert "\tw32\t11" in cache.read_text() and jali.__version__ in cache.read_text()
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
    "damage", ["", "{}", "jali tune 1\n", "jali tune 2\nHERE\tWORD\tRING\tisa=abacus\n", b"\xff"]
)
def test_a_damaged_file_is_refused_with_a_warning(
    cache: Path, one: World, damage: str | bytes
) -> None:
    keep(cache, {"isa": "portable"}, one)
    good = cache.read_text()
    if isinstance(damage, str):
        _, line = good.splitlines()
        for name, field in zip(("HERE", "WORD", "RING"), line.split("\t"), strict=False):
            damage = damage.replace(name, field)
        damage = damage.encode()
    cache.write_bytes(damage)
    with pytest.warns(RuntimeWarning, match="run 'jali tune' again, or delete the file") as caught:
        server = ckks.Evaluator(one.params, None, "cpu")
    assert server.variants == {} and caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ckks.Evaluator(one.params, None, "cpu", variants={})
        keep(cache, {"isa": "portable"}, one)  # jali tune replaces the damaged file
        assert ckks.Evaluator(one.params, None, "cpu").engine == "cpu/portable"
    assert cache.read_text() == good


def test_the_doctor_names_a_damaged_file(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cache.parent.mkdir()
    cache.write_text("{}")
    with pytest.warns(RuntimeWarning, match="delete the file"):  # the self-test of doctor warns
        assert cli.main(["doctor", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["tuned"] == {} and str(cache) in report["tuning_trouble"]


def test_what_an_older_version_kept_is_passed_over(cache: Path, one: World) -> None:
    cache.parent.mkdir()
    cache.with_suffix(".json").write_text('{"format": 1, "devices": {')
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ckks.Evaluator(one.params, None, "cpu").variants == {}


def test_variants_of_a_user(one: World, cache: Path) -> None:
    keep(cache, {"isa": "portable"}, one)
    assert ckks.Evaluator(one.params, None, "cpu/avx2").engine == "cpu/avx2"
    assert ckks.Evaluator(one.params, None, "ref").variants == {}
    with pytest.raises(jali.Unsupported, match="abacus"):
        ckks.Evaluator(one.params, None, "cpu", variants={"isa": "abacus"})
    if _jali.device.cuda_device_count():
        with pytest.raises(jali.InvalidArgument, match="abacus"):
            ckks.Evaluator(one.params, None, "cuda", variants={"ntt": "abacus"})
        for name in _jali.device.variant_families("cuda")["ntt"]:
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
    found = {(one.params.word, one.params.log_n): {"isa": "avx2"}}
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:  # a file can have 10 bytes at most
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
        with pytest.raises(jali.Unsupported, match="make room for it there") as caught:
            _jali.device.keep_measured("cpu", found)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)
    assert str(cache) in str(caught.value)
    assert cache.read_bytes() == before and list(cache.parent.iterdir()) == [cache]
    # This process does not use choices that it could not write either.
    assert chosen(one.params.word, one.params.log_n) == {"isa": "portable"}


def test_folders_are_made_or_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["tune", "--device", "cpu", "--word", "w52", "--log-n", "12"]
    monkeypatch.setattr(tune, "_time", lambda *_: 1.0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "not" / "there" / "yet"))
    assert cli.main(command) == 0
    assert (tmp_path / "not" / "there" / "yet" / "jali" / "tune.tsv").exists()
    (tmp_path / "file").touch()
    (tmp_path / "folder" / "jali" / "tune.tsv").mkdir(parents=True)
    for where in ("file", "file/below", "folder"):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / where))
        capsys.readouterr()
        assert cli.main(command) == 1
        printed = capsys.readouterr()
        assert "name another folder in XDG_CACHE_HOME" in printed.err
        assert "w52" in printed.out  # the measured times are printed all the same
    assert [x.name for x in (tmp_path / "folder" / "jali").iterdir()] == ["tune.tsv"]


def test_wrong_options(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["tune", "--device", "cpu", "--log-n", "9"]) == 1
    assert "--log-n" in capsys.readouterr().err
    assert cli.main(["tune", "--device", "cuda:99", "--log-n", "12", "--word", "w32"]) == 1
    assert not cache.exists()
