"""The commands ``jali compile``, ``jali explain`` and ``jali run``."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx_files
import pytest

import jali
from jali import cli, nn
from jali.cli.option_words import in_options

Run = Callable[..., str]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command that succeeds, without a word on standard error; gives what it printed."""

    def ran(*words: str | Path) -> str:
        capsys.readouterr()
        code = cli.main([str(word) for word in words])
        printed = capsys.readouterr()
        assert (code, printed.err) == (0, "")
        return printed.out

    return ran


@pytest.fixture
def fails(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command that fails and prints nothing else; gives the sentence."""

    def failed(*words: str | Path) -> str:
        capsys.readouterr()
        assert cli.main([str(word) for word in words]) == 1
        printed = capsys.readouterr()
        assert printed.out == ""
        (line,) = printed.err.splitlines()
        assert line.startswith("error: ")
        return line

    return failed


@pytest.fixture
def examples() -> np.ndarray:
    return np.random.default_rng(1).uniform(-1, 1, (40, 2))


@pytest.fixture
def model(tmp_path: Path, examples: np.ndarray) -> Path:
    """squares.onnx, with its calibration x.npy beside it."""
    pytest.importorskip("onnx")
    np.save(tmp_path / "x.npy", examples)
    return onnx_files.squares(tmp_path / "squares.onnx")


def test_a_model_is_compiled_explained_and_run(
    model: Path, tmp_path: Path, examples: np.ndarray, run: Run
) -> None:
    out, results = tmp_path / "p.jali", tmp_path / "y.npy"
    words = ("--calibration", tmp_path / "x.npy", "-o", out, "--precision-bits", "12")
    text = run("compile", model, *words, "--batch", "8")
    assert f"{model}: takes x (examples, 2); 40 examples in the calibration" in text
    assert f"wrote {out}" in text and "results to 12 bits" in text  # the price list
    program = nn.Program.load(out)
    assert program.precision_bits == 12 and program.manifest.lanes == 8
    assert "results to 12 bits" in run("explain", out) and "input x: 2 from" in run("explain", out)

    text = run("run", out, "--inputs", tmp_path / "x.npy", "--limit", "11", "-o", results)
    assert "the first 10 of 11" in text and f"wrote                   {results}" in text
    (want,) = onnx_files.evaluated(model, x=examples[:11])
    got = np.load(results)
    assert got.shape == want.shape == (11, 3)
    assert np.abs(got - want).max() < 2**-12 * np.abs(want).max() * 2
    assert not np.array_equal(got, want)  # they were encrypted


def test_objects_of_json(model: Path, tmp_path: Path, examples: np.ndarray, run: Run) -> None:
    out, inputs = tmp_path / "p.jali", ("--inputs", tmp_path / "x.npy")
    options = ("--calibration", tmp_path / "x.npy", "-o", out, "--json")
    compiled = json.loads(run("compile", model, *options))
    assert compiled["scheme"] == "ckks" and compiled["calibration_examples"] == 40
    assert compiled["program"] == str(out) and compiled["program_bytes"] == out.stat().st_size
    assert compiled["warnings"] == [] and compiled["seconds"] > 0
    explained = json.loads(run("explain", out, "--json"))
    assert explained["inputs"] == [{"name": "x", "shape": [2]}] and len(explained["outputs"]) == 1
    for key in ("params", "depth", "keys", "key_bytes_sent", "request_bytes", "reply_bytes"):
        assert explained[key] == compiled[key]
    ran = json.loads(run("run", out, *inputs, "--limit", "3", "--json"))
    (got,) = ran["results"].values()
    (want,) = onnx_files.evaluated(model, x=examples[:3])
    (error,), (promised,) = ran["max_error"].values(), ran["promised_error"].values()
    assert error == pytest.approx(np.abs(np.array(got) - want).max(), rel=1e-6)
    assert 0 < error < promised
    assert ran["requests"] == 3 and ran["refused"] == ran["wrong"] == []
    assert ran["key_bytes"] == pytest.approx(explained["key_bytes_sent"], rel=0.01)
    assert ran["request_bytes"] == pytest.approx(explained["request_bytes"], rel=0.01)


def test_words_go_in_and_labels_come_out(tmp_path: Path, run: Run) -> None:
    """The client computes both ends of the model, of which nothing was promised."""
    pytest.importorskip("onnx")
    model, out = onnx_files.labels(tmp_path / "m.onnx"), tmp_path / "p.jali"
    words = np.array([[a, b] for a in range(3) for b in range(3)] * 2)
    np.save(tmp_path / "x.npy", words)
    run("compile", model, "--calibration", tmp_path / "x.npy", "-o", out, "--json")
    explained = json.loads(run("explain", out, "--json"))
    assert explained["inputs"] == [{"name": "words", "shape": [2]}]
    assert "client, after decrypting: place_of, softmax" in run("explain", out)
    ran = json.loads(run("run", out, "--inputs", tmp_path / "x.npy", "--limit", "9", "--json"))
    label, shares = onnx_files.evaluated(model, words=words[:9])
    found_label, found_shares = ran["results"].values()
    near = np.diff(np.sort(shares, axis=1))[:, -1] < 0.01
    assert (np.array(found_label) == label)[~near].all() and not near.all()
    assert np.allclose(found_shares, shares, atol=0.01)
    assert list(ran["promised_error"].values()) == [None, None] and ran["wrong"] == []
    assert "largest error of result_1" in run("run", out, "--inputs", tmp_path / "x.npy")


@pytest.mark.parametrize("rate", ["16000", "rate.npy"])
def test_inputs_that_are_no_secret(
    tmp_path: Path, examples: np.ndarray, run: Run, fails: Run, rate: str
) -> None:
    """The client computes the softmax of the branch that the rate takes."""
    pytest.importorskip("onnx")
    model, out = onnx_files.rated(tmp_path / "rated.onnx"), tmp_path / "p.jali"
    np.save(tmp_path / "x.npy", examples)
    np.save(tmp_path / "rate.npy", np.array(16000))
    value = str(tmp_path / rate) if rate.endswith(".npy") else rate
    words = ("compile", model, "--calibration", tmp_path / "x.npy", "-o", out, "--no-summary")
    assert "takes x (examples, 2);" in run(*words, "--constant", f"rate={value}")
    assert "client, after decrypting: softmax" in run("explain", out)
    results = tmp_path / "y.npy"
    run("run", out, "--inputs", tmp_path / "x.npy", "--limit", "3", "-o", results)
    (want,) = onnx_files.evaluated(model, x=examples[:3], rate=np.array(16000))
    (other,) = onnx_files.evaluated(model, x=examples[:3], rate=np.array(8000))
    assert np.abs(np.load(results) - want).max() < 2**-8 < np.abs(other - want).max()
    assert "the model has no input 'sr' for --constant: it has x, rate" in fails(
        *words, "--force", "--constant", f"rate={value}", "--constant", "sr=1"
    )


def test_constants_that_do_not_fit(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], fails: Run
) -> None:
    rated = onnx_files.rated(tmp_path / "rated.onnx")
    words = ("compile", rated, "--calibration", tmp_path / "x.npy", "-o", tmp_path / "p.jali")
    line = fails(*words, "--constant", "rate=0.5")
    assert "--constant has for rate" in line and "the model takes int64 there" in line
    line = fails(*words, "--constant", "rate=1", "--constant", "rate=2")
    assert "--constant gives rate twice" in line
    assert "is a number, numbers between commas" in fails(*words, "--constant", "rate=fast")
    nn.graph_file.save(nn.trace(lambda x: x * 2, np.ones(2)), tmp_path / "graph.jali")
    line = fails("compile", tmp_path / "graph.jali", *words[2:], "--constant", "rate=1")
    assert "--constant is for these: leave it out" in line
    with pytest.raises(SystemExit):
        cli.main([*map(str, words), "--constant", "rate"])
    assert "is not NAME=VALUE" in capsys.readouterr().err


@pytest.mark.parametrize("one_file", [True, False])
def test_several_inputs_and_outputs(tmp_path: Path, one_file: bool, run: Run, fails: Run) -> None:
    pytest.importorskip("onnx")
    model, out, results = (tmp_path / name for name in ("pairs.onnx", "p.jali", "y.npz"))
    onnx_files.pairs(model)
    left, right = np.random.default_rng(2).uniform(-1, 1, (2, 30, 3))
    files = [tmp_path / "both.npz"] if one_file else [tmp_path / "l.npy", tmp_path / "r.npy"]
    if one_file:  # in another order, and with one that the model does not take
        np.savez(files[0], right=right, labels=np.arange(30), left=left)
    else:
        np.save(files[0], left), np.save(files[1], right)
    words = [word for file in files for word in ("--calibration", file)]
    run("compile", model, *words, "-o", out, "--no-summary")
    inputs = [
        word.replace("--calibration", "--inputs") if isinstance(word, str) else word
        for word in words
    ]
    assert "has to end in .npz" in fails("run", out, *inputs, "-o", tmp_path / "y.npy")
    run("run", out, *inputs, "--limit", "4", "-o", results)
    with np.load(results) as found:
        got = list(found.values())
    want = onnx_files.evaluated(model, left=left[:4], right=right[:4])
    assert len(got) == 2
    for one, other in zip(got, want, strict=True):
        assert np.abs(one - other).max() < 2**-9


def test_one_example_needs_no_axis_of_the_batch(
    model: Path, tmp_path: Path, examples: np.ndarray, run: Run
) -> None:
    np.save(tmp_path / "one.npy", examples[0])
    out, options = tmp_path / "p.jali", ("--calibration", tmp_path / "x.npy", "--no-summary")
    run("compile", model, *options, "-o", out)
    text = run("run", out, "--inputs", tmp_path / "one.npy", "-o", tmp_path / "y.npy")
    assert f"{out}: Params(" in text and "; 1 example\n" in text
    (want,) = onnx_files.evaluated(model, x=examples[:1])
    assert np.abs(np.load(tmp_path / "y.npy") - want).max() < 2**-9


def test_models_of_whole_numbers(tmp_path: Path, run: Run, fails: Run) -> None:
    pytest.importorskip("onnx")
    model, out = onnx_files.pairs(tmp_path / "pairs.onnx"), tmp_path / "p.jali"
    values = np.random.default_rng(3).integers(-9, 10, (2, 20, 3))
    np.savez(tmp_path / "x.npz", left=values[0], right=values[1])
    options = ("--calibration", tmp_path / "x.npz", "-o", out, "--scheme", "discrete")
    text = run("compile", model, *options)
    assert "exact integers" in text and nn.integers.Program.load(out).batch == 1
    assert json.loads(run("explain", out, "--json"))["scheme"] == "discrete"
    ran = json.loads(run("run", out, "--inputs", tmp_path / "x.npz", "--json"))
    sums, differences = ran["results"].values()
    assert np.array_equal(sums, values[0] + values[1])
    assert np.array_equal(differences, values[0] - values[1])
    assert set(ran["max_error"].values()) == {0}
    np.savez(tmp_path / "far.npz", left=values[0] + 1000, right=values[1])
    line = fails("run", out, "--inputs", tmp_path / "far.npz")
    assert (
        "far.npz: left: number 0 of example 0 is outside" in line
        and "--input-range LOW HIGH" in line
    )


def test_programs_of_trees(tmp_path: Path, run: Run, fails: Run) -> None:
    tree = pytest.importorskip("sklearn.tree")
    rng, out = np.random.default_rng(4), tmp_path / "t.jali"
    rows = rng.normal(size=(60, 3))
    fitted = tree.DecisionTreeClassifier(max_depth=2, random_state=0).fit(
        rows, rows[:, 0] > rows[:, 2]
    )
    jali.compile(fitted).save(out)
    np.save(tmp_path / "x.npy", rows[:2])
    assert "look-ups a row" in run("explain", out)
    ran = json.loads(run("run", out, "--inputs", tmp_path / "x.npy", "--json"))
    assert ran["scheme"] == "tfhe" and ran["wrong"] == []
    assert (np.argmax(ran["results"]["scores"], axis=1) == fitted.predict(rows[:2])).all()
    assert "leave out --stage" in fails("explain", out, "--stage", "trace")


def test_recorded_graphs_are_compiled(tmp_path: Path, examples: np.ndarray, run: Run) -> None:
    graph, out = tmp_path / "g.graph", tmp_path / "g.jali"
    nn.graph_file.save(nn.trace(lambda x: x * x + 1, examples[0]), graph)
    np.save(tmp_path / "x.npy", examples)
    run("compile", graph, "--calibration", tmp_path / "x.npy", "-o", out, "--no-summary")
    ran = json.loads(run("run", out, "--inputs", tmp_path / "x.npy", "--limit", "2", "--json"))
    (got,) = ran["results"].values()
    assert np.abs(got - (examples[:2] ** 2 + 1)).max() < 2**-9


def test_stages(model: Path, tmp_path: Path, run: Run, fails: Run) -> None:
    out = tmp_path / "p.jali"
    run("compile", model, "--calibration", tmp_path / "x.npy", "-o", out, "--no-summary")
    program = nn.Program.load(out)
    for stage in ("trace", "levels", "parameters", "report", "program"):
        assert run("explain", out, "--stage", stage) == program.explain(stage) + "\n"
    assert "the stages are trace, " in fails("explain", out, "--stage", "nothing")
    assert "leave out --json" in fails("explain", out, "--stage", "trace", "--json")


def test_files_that_exist_are_kept(
    model: Path, tmp_path: Path, run: Run, fails: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("compile", model, "--calibration", "x.npy", "--no-summary")
    assert "wrote squares.jali" in run(*words)  # the name of the model
    was = Path("squares.jali").read_bytes()
    assert "squares.jali exists: name another file with -o, or" in fails(*words)
    assert Path("squares.jali").read_bytes() == was
    run(*words, "--force", "--precision-bits", "6")
    assert Path("squares.jali").read_bytes() != was
    Path("y.npy").write_bytes(b"mine")
    ran = ("run", "squares.jali", "--inputs", "x.npy", "--limit", "1", "-o", "y.npy")
    assert "y.npy exists" in fails(*ran) and Path("y.npy").read_bytes() == b"mine"
    run(*ran, "--force")
    assert np.load("y.npy").shape == (1, 3)
    for own in ("x.npy", "squares.onnx"):
        assert "is read by this command" in fails(*words, "-o", own, "--force")
    assert "is read by" in fails(*ran[:-1], "squares.jali", "--force")
    folder = fails(*words[:-1], "-o", tmp_path)
    assert str(tmp_path) in folder


def _files(folder: Path) -> None:
    """Files that are no calibration of squares.onnx."""
    rng = np.random.default_rng(5)
    np.save(folder / "wide.npy", rng.normal(size=(20, 3)))
    np.save(folder / "flat.npy", rng.normal(size=20))
    np.save(folder / "none.npy", np.zeros((0, 2)))
    np.save(folder / "nan.npy", np.array([[0.0, 1.0], [np.nan, 0.0]]))
    np.save(folder / "complex.npy", np.ones((4, 2), complex))
    np.save(folder / "objects.npy", np.array([[1, 2], [3]], object))
    np.savez(folder / "other.npz", a=np.ones((4, 2)), b=np.ones((4, 2)))
    np.savez(folder / "empty.npz")
    (folder / "text.npy").write_text("0.5, 0.25\n")
    (folder / "cut.npy").write_bytes((folder / "wide.npy").read_bytes()[:-40])
    (folder / "cut.npz").write_bytes((folder / "other.npz").read_bytes()[:-40])


WRONG = [
    ("wide.npy", r"wide.npy has the shape \(20, 3\), and .*squares.onnx takes x \(examples, 2\)"),
    ("flat.npy", r"flat.npy has the shape \(20,\), and .*takes x \(examples, 2\)"),
    ("none.npy", "none.npy holds no example"),
    ("nan.npy", "nan.npy holds NaN or infinity, first in example 1"),
    ("complex.npy", "complex.npy holds complex128: save an array of real numbers"),
    ("objects.npy", "objects.npy holds objects of Python"),
    (
        "other.npz",
        r"other.npz has a, b, and .* takes x .*: save x in it, too, by numpy.savez\(file, x=..\)",
    ),
    ("empty.npz", "empty.npz has no array"),
    ("text.npy", "text.npy is no file of NumPy: save the array by numpy.save"),
    ("cut.npy", "cut.npy is damaged"),
    ("cut.npz", "cut.npz is damaged"),
    ("lost.npy", "lost.npy cannot be read: No such file"),
]


@pytest.mark.parametrize(("name", "says"), WRONG, ids=[name for name, _ in WRONG])
def test_wrong_calibrations_are_refused_before_work(
    name: str, says: str, model: Path, tmp_path: Path, fails: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    _files(tmp_path)
    monkeypatch.setattr("jali.cli.compile.compile_model", lambda *_, **__: pytest.fail("work"))
    line = fails("compile", model, "--calibration", tmp_path / name, "-o", tmp_path / "p.jali")
    assert re.search(says, line), line
    assert not (tmp_path / "p.jali").exists()


def test_wrong_inputs_are_refused_before_keys(
    model: Path, tmp_path: Path, run: Run, fails: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "p.jali"
    run("compile", model, "--calibration", tmp_path / "x.npy", "-o", out, "--no-summary")
    _files(tmp_path)
    np.save(tmp_path / "far.npy", np.full((3, 2), 50.0))
    monkeypatch.setattr(nn.Program, "client", lambda *_, **__: pytest.fail("work"))
    far = ("far.npy", r"far.npy: x\[0\] of example 0 .*--calibration")
    for name, says in [*((a, b.replace("squares.onnx", "p.jali")) for a, b in WRONG), far]:
        line = fails("run", out, "--inputs", tmp_path / name)
        assert re.search(says, line), line
    both = fails("run", out, "--inputs", tmp_path / "x.npy", "--inputs", tmp_path / "x.npy")
    assert "p.jali takes 1 array, x (examples, 2), and there are 2 files of --inputs" in both
    for words, says in (
        (("--limit", "0"), "--limit"),
        (("--threads", "0"), "--threads"),
        (("--device", "tpu"), "tpu"),
        (("-o", str(tmp_path / "y.csv")), "ends in .npy or .npz"),
        (("-o", str(tmp_path / "no" / "y.npy")), "no"),
    ):
        assert says in fails("run", out, "--inputs", tmp_path / "x.npy", *words)


def test_wrong_models(
    model: Path, tmp_path: Path, examples: np.ndarray, run: Run, fails: Run
) -> None:
    known = ("--calibration", tmp_path / "x.npy", "-o", tmp_path / "q.jali")
    assert "lost.onnx cannot be read" in fails("compile", tmp_path / "lost.onnx", *known)
    assert "lost.graph cannot be read" in fails("compile", tmp_path / "lost.graph", *known)
    for name, content, says in (
        ("broken.onnx", b"no model", "broken.onnx is no model in ONNX"),
        ("weights.pt", b"PK\x03\x04", "weights.pt is no model in ONNX, .* exported by torch.onnx"),
    ):
        (tmp_path / name).write_bytes(content)
        assert re.search(says, fails("compile", tmp_path / name, *known))
    sentence = fails("compile", model, "-o", tmp_path / "q.jali")
    assert "squares.onnx takes x (examples, 2): give examples" in sentence
    out = tmp_path / "p.jali"
    run("compile", model, "--calibration", tmp_path / "x.npy", "-o", out, "--no-summary")
    assert "p.jali is compiled already: 'jali explain" in fails("compile", out, *known)
    for command in (("explain",), ("run", "--inputs", str(tmp_path / "x.npy"))):
        for name, says in (
            ("squares.onnx", "squares.onnx holds no object of Jali"),
            ("x.npy", "x.npy holds no object of Jali"),
            ("g.graph", "g.graph holds a recorded graph, no program: compile it by 'jali compile'"),
            ("m.manifest", "m.manifest holds a manifest, no program"),
            ("cut.jali", "cut.jali: "),
            ("lost.jali", "lost.jali cannot be read"),
        ):
            program = nn.Program.load(out)
            nn.graph_file.save(program.stages["trace"], tmp_path / "g.graph")
            program.manifest.save(tmp_path / "m.manifest")
            (tmp_path / "cut.jali").write_bytes(out.read_bytes()[:-20])
            assert says in fails(*command, tmp_path / name)


def test_errors_of_the_compiler_name_the_file_and_options(
    tmp_path: Path, model: Path, fails: Run
) -> None:
    from onnx.helper import make_node

    other = onnx_files.save(
        tmp_path / "det.onnx", [make_node("Det", ["x"], ["y"])], {"x": (2, 2)}, ("y",)
    )
    np.save(tmp_path / "m.npy", np.random.default_rng(6).normal(size=(20, 2, 2)))
    line = fails("compile", other, "--calibration", tmp_path / "m.npy", "-o", tmp_path / "p")
    assert "det.onnx: " in line and "Det cannot be compiled" in line
    known = ("compile", model, "--calibration", tmp_path / "x.npy", "-o", tmp_path / "p")
    for words, says in (
        (("--batch", "3"), "--batch must be a power of two"),
        (("--precision-bits", "99"), "--precision-bits must be a number from 1 to 40"),
        (("--margin", "-1"), "--margin must be a number from 0"),
        (("--memory", "much"), "--memory must be a whole number of bytes, or text"),
        (("--upload", "1 B"), "compile with --upload "),
        (("--input-range", "0", "1", "--input-range", "0", "1"), "once for each of the 1 input"),
        (("--input-range", "-0.5", "0.5"), "squares.onnx"),
        (("--scheme", "discrete"), "squares.onnx"),
    ):
        assert says in fails(*known, *words)


def test_a_missing_package_is_named(
    model: Path, tmp_path: Path, fails: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    line = fails("compile", model, "--calibration", tmp_path / "x.npy", "-o", tmp_path / "p.jali")
    assert "need the package onnx" in line and "pip install onnx" in line


def test_warnings_are_lines(
    model: Path, tmp_path: Path, examples: np.ndarray, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "few.npy", examples[:3])
    words = ["--calibration", str(tmp_path / "few.npy"), "-o", str(tmp_path / "p.jali"), "--json"]
    assert cli.main(["compile", str(model), *words, "--no-summary"]) == 0
    printed = capsys.readouterr()
    (line,) = printed.err.splitlines()
    assert line.startswith("warning: the program is calibrated with 3 examples")
    assert "pass --calibration with a few hundred" in line
    assert json.loads(printed.out)["warnings"] == [line.removeprefix("warning: ")]


def test_results_beyond_the_calibration_are_an_error(
    tmp_path: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    """Numbers of which each is within its range lead out of one: their sum was always small."""
    rng = np.random.default_rng(7)
    first = rng.uniform(-1, 1, (200, 1))
    calibration = np.concatenate([first, rng.uniform(-0.01, 0.01, (200, 1)) - first], 1)
    graph, out = tmp_path / "g.graph", tmp_path / "p.jali"
    nn.graph_file.save(nn.trace(lambda x: (x[0] + x[1]) ** 2 * 100, calibration[0]), graph)
    np.save(tmp_path / "x.npy", calibration)
    run("compile", graph, "--calibration", tmp_path / "x.npy", "-o", out, "--no-summary")
    np.save(tmp_path / "bad.npy", np.array([calibration[0], [0.9, 0.9], calibration[1]]))
    words = ["run", str(out), "--inputs", str(tmp_path / "bad.npy")]
    assert cli.main([*words, "--json", "-o", str(tmp_path / "y.npy")]) == 1
    printed = capsys.readouterr()
    ran = json.loads(printed.out)
    assert ran["refused"] == [1] and ran["wrong"] == []
    found = np.load(tmp_path / "y.npy")
    assert np.isnan(found[1]).all() and np.isfinite(found[[0, 2]]).all()
    (line,) = printed.err.splitlines()
    assert line.startswith("error: decryption refused the results of 1 example, first of example 1")
    assert cli.main([*words, "--json"]) == 1
    (results,) = json.loads(capsys.readouterr().out)["results"].values()
    assert results[1] is None or results[1] == [None]


def test_results_that_are_off_are_an_error(
    model: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    out = tmp_path / "p.jali"
    run("compile", model, "--calibration", tmp_path / "x.npy", "-o", out, "--no-summary")
    right = nn.Program.clear
    monkeypatch.setattr(
        nn.Program, "clear", lambda self, x: np.add(right(self, x), [[0], [0.1], [0]])
    )
    words = ["run", str(out), "--inputs", str(tmp_path / "x.npy"), "--limit", "3", "--json"]
    assert cli.main(words) == 1
    printed = capsys.readouterr()
    assert json.loads(printed.out)["wrong"] == [1]
    assert "off by more than twice what was asked for" in printed.err


@pytest.mark.parametrize(
    ("said", "in_words"),
    [
        ("With precision_bits=8 it compiles", "With --precision-bits 8 it compiles"),
        ("give more memory=", "give more --memory"),
        ("memory= of at least 1,024 bytes", "--memory of at least 1,024 bytes"),
        ("compile with upload=5000", "compile with --upload 5000"),
        ('or with ranges="proven"', "or with --ranges proven"),
        ("or with input_range=(low, high)", "or with --input-range LOW HIGH"),
        ("read it with max_entries=5000, which", "read it with --max-entries 5000, which"),
        ("in calibration=, with a larger margin=, or", "in --calibration, with a larger --margin, or"),
        ("batch must be a power of two", "--batch must be a power of two"),
        ("a batch of one. The batch is it", "a batch of one. The batch is it"),
        ('leave out scheme="ckks".', "leave out --scheme ckks."),
    ],
)  # fmt: skip
def test_arguments_are_named_as_options(said: str, in_words: str) -> None:
    assert in_options(said) == in_words


@pytest.mark.parametrize("command", ["compile", "explain", "run"])
def test_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main([command, "--help"])
    assert left.value.code == 0
    text = capsys.readouterr().out
    assert f"usage: jali {command}" in text and "P.jali" in text and "--json" in text
    with pytest.raises(SystemExit) as left:
        cli.main([command])
    assert left.value.code == 2
    assert f"see 'jali {command} --help'" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    assert command in capsys.readouterr().out
