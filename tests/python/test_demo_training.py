"""jali demo helr and jali demo rnn: the parts in the clear, and small encrypted runs."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from shared_data import needs, shared

import jali
from jali import cli
from jali.bench import demos, loops, matvec
from jali.bench.registry import BENCHMARKS, Options
from jali.cli import bench
from jali.cli import demo as command
from jali.compiler.frontends import workloads
from jali.demo import helr, recurrent, sentences

DATA = shared("mr")


def test_rows_are_means_of_pixels_times_their_label(tmp_path: Path) -> None:
    rng = np.random.default_rng()
    images = rng.integers(0, 256, (200, 28, 28), dtype=np.uint8)
    labels = rng.integers(0, 10, 200)
    labels[-40:] = 8
    np.savez(tmp_path / "images.npz", images=images, labels=labels)
    task = helr.load(tmp_path / "images.npz")
    chosen = np.isin(labels, (3, 8))
    assert len(task.train) + len(task.held) == chosen.sum()
    row = -task.held[-1]  # of an 8
    assert row[14 * 3 + 5] == pytest.approx(images[-1, 6:8, 10:12].mean() / 255)
    assert row[196] == 1 and not row[197:].any()
    assert [b.shape for b in task.batches(16, 2)] == [(16, 256)] * 2
    with pytest.raises(jali.InvalidArgument, match="smaller --batch"):
        task.batches(1000, 1)
    np.savez(tmp_path / "threes.npz", images=images, labels=np.full(200, 3))
    with pytest.raises(jali.InvalidArgument, match="both 3 and 8"):
        helr.load(tmp_path / "threes.npz")


def test_a_made_set_can_be_learned() -> None:
    """In 32 iterations of the real size, which diverge if the sums leave the polynomial's range."""
    task = helr.made(11 * 1024, np.random.default_rng())
    assert task.accuracy(workloads.logistic_regression(task.batches(1024, 32), 32)) > 0.95


def test_training_demo(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ["helr", "--iterations", "2", "--batch", "16", "--device", "cpu", "--json"]
    kept = ["--program", str(tmp_path / "program.jali")]
    for _ in range(2):  # the second reads the program that the first one kept
        assert command.main([*words, *kept]) == 0
        result = json.loads(capsys.readouterr().out)
        assert result["weights_error"] < 2**-8 and result["accuracy_difference_points"] < 1
        assert result["iterations"] == 2 and result["seconds_per_iteration"] > 0
        assert result["predicted_bytes"] == pytest.approx(result["device_bytes"], rel=0.1)
    assert command.main([*words, *kept, "--plan"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["predicted_seconds_per_iteration"] == plan["seconds"] / 2
    assert "weights_error" not in plan  # nothing was encrypted
    assert plan["compile_seconds"] > 0
    assert cli.main(["demo", *words[:2], "3", *words[3:], *kept]) == 1
    assert "other sizes" in capsys.readouterr().err


@pytest.mark.parametrize("name", list(recurrent.CELLS))
def test_embeddings_have_the_last_words(name: str) -> None:
    network = recurrent.load(name)
    a, b = network.words[:2]
    vectors = network.embedded([f"{b} notaword {a}", "", f"{a} {a} {b} {a} {a}"], 4)
    first, second = network.embedding[:2]
    assert np.array_equal(vectors[0], [0 * first, 0 * first, second, first])
    assert not vectors[1].any() and np.array_equal(vectors[2], [first, second, first, first])
    # Zeros in front change nothing.
    longer = network.embedded([f"{b} {a}"], 9)
    assert np.allclose(network.states(longer), network.states(longer[:, 7:]), atol=1e-12)


@needs(DATA)
@pytest.mark.long
@pytest.mark.parametrize("name", list(recurrent.CELLS))
def test_networks_tell_praise_from_blame(name: str) -> None:
    """Of sentences that they were not trained on, which polynomials read within their intervals."""
    network, (_, held) = recurrent.load(name), sentences.load(DATA)
    held = held.first(300)
    states = network.states(network.embedded(held.texts, 60))
    assert np.mean((network.logits(states) > 0) == held.labels) > 0.65
    assert np.abs(states).max() < 1.5


def test_folders_without_sentences_are_refused(tmp_path: Path) -> None:
    with pytest.raises(jali.InvalidArgument, match=r"rt-polarity\.neg"):
        sentences.load(tmp_path)
    for name in ("rt-polarity.neg", "rt-polarity.pos"):
        (tmp_path / name).write_text("a line\n")
    with pytest.raises(jali.InvalidArgument, match="2 sentences"):
        sentences.load(tmp_path)


def test_sizes_are_checked_first(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (
        ["helr", "--iterations", "0"],
        ["rnn", "--steps", "0"],
        ["rnn", "--sentences", "3"],
    ):
        assert cli.main(["demo", *words]) == 1
        assert "must be" in capsys.readouterr().err


def test_the_bench_times_training() -> None:
    """At a small size; the row says what is trained, and by whose definition it is divided."""
    task = helr.made(32, np.random.default_rng())
    options = Options(device="cpu", seconds=0.001)
    row = loops.helr_row(task, 16, 2, options)
    assert row.name == "demo_helr" and (row.params["iterations"], row.params["batches"]) == (2, 2)
    assert row.precision_bits is not None and row.precision_bits >= helr.BITS
    assert row.params["server_bytes"] > row.params["bytes_up"] > 1000
    about = BENCHMARKS["demo_helr"]
    assert "32 iterations of 1,024 rows" in about.about and "Han et al. (2019)" in (
        about.run.__doc__ or ""
    )


@pytest.mark.long
@pytest.mark.parametrize("name", list(recurrent.CELLS))
def test_the_bench_times_recurrent_networks(name: str) -> None:
    network = recurrent.load(name)
    drawn = sentences.made(network.words, 32, np.random.default_rng())
    options = Options(device="cpu", seconds=0.001)
    row = loops.recurrent_row(network, network.embedded(drawn.texts, 2), 4, options)
    assert (row.name, row.batch, row.params["steps"]) == ("demo_rnn", 4, 2)
    assert row.precision_bits is not None and row.precision_bits >= recurrent.BITS


def test_the_bench_has_the_cells_that_there_are() -> None:
    with pytest.raises(jali.InvalidArgument, match="rnn and lstm, not gru"):
        next(loops.demo_rnn(Options(device="cpu", sets=("gru",))))


def test_long_benchmarks_are_measured_alone() -> None:
    """'jali bench all' would compute for hours on a CPU."""
    assert {demos.__name__, loops.__name__, matvec.__name__} <= set(sys.modules)
    named = {benchmark.name for benchmark in bench._chosen("all", None, False)}
    assert "demo_digits" in named
    assert not named & {"demo_cifar", "demo_encoder", "demo_helr", "demo_rnn", "matvec_compiled"}
    assert [benchmark.name for benchmark in bench._chosen("demo_helr", None, False)] == [
        "demo_helr"
    ]


@pytest.mark.long
@pytest.mark.parametrize("name", list(recurrent.CELLS))
def test_recurrent_demo(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["rnn", "--cell", name, "--steps", "2", "--sentences", "4", "--device", "cpu", "--json"]
    assert command.main(words) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["max_state_error"] < 2**-6 * result["largest_state"]
    assert result["sentences"] == 4 and result["seconds"] > 0
    assert command.main([*words[:-1], "--plan"]) == 0
    assert "polynomial" in capsys.readouterr().out  # the price list


def test_frequent_words_have_one_order() -> None:
    texts = ("b a c", "c b d", "b")
    some = sentences.Sentences(texts, np.zeros(3, np.int64), "here")
    assert some.frequent(3) == ["b", "c", "a"]
    assert some.frequent(9) == ["b", "c", "a", "d"]
