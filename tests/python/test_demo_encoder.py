"""jali demo encoder: the parts in the clear, and small encrypted runs."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from shared_data import needs, shared

from jali import cli
from jali.cli import demo as command
from jali.cli import demo_compiled, demo_encoder
from jali.compiler.driver import compiled
from jali.compiler.ir.execute import every_value
from jali.compiler.passes.calibrate import calibrate
from jali.compiler.passes.fold import fold
from jali.compiler.planning.parameters import Ring
from jali.demo import encoder, sentences
from jali.nn import Program, trace

DATA = shared("mr")


def test_a_sentence_fills_all_places() -> None:
    network = encoder.load()
    a, b = network.words[:2]
    vectors = network.embedded([f"{b} notaword {a}", "notaword", f"{a} " * 9], 4)
    assert vectors.shape == (3, encoder.WIDTH, 4)
    assert np.array_equal(vectors[0, :, :2], vectors[0, :, 2:])
    assert not np.allclose(vectors[0, :, 0], vectors[0, :, 1])
    assert np.array_equal(vectors[1, :, 0], vectors[1, :, 3])  # nothing is known of it
    # The same word at other places, up to the last one.
    assert len({tuple(column) for column in vectors[2].T}) == 4
    # The normalisation is the client's: weight and bias of it taken away, mean 0 and variance 1 are
    # left.
    weight, bias = network.norm
    plain = (vectors - bias[:, None]) / weight[:, None]
    assert np.allclose(plain.mean(1), 0, atol=1e-9) and np.allclose(plain.var(1), 1, atol=1e-3)


def test_places_are_told_apart() -> None:
    first = encoder.places(8)
    assert first.shape == (8, encoder.WIDTH)
    assert first[3, 0] == pytest.approx(np.sin(3)) and first[3, 1] == pytest.approx(np.cos(3))
    assert first[3, 127] == pytest.approx(np.cos(3 / 10000 ** (126 / 128)))


def test_copies_of_a_sentence_change_nothing() -> None:
    """Softmax and mean count each word as often as every other."""
    network = encoder.load()
    text = " ".join(network.words[100:104])
    logits = [network.logits(network.embedded([text], tokens)) for tokens in (4, 16)]
    assert np.allclose(*logits, atol=1e-9)


@needs(DATA)
def test_it_tells_praise_from_blame() -> None:
    """Of sentences that it was not trained on. 32 places hold most of them whole."""
    network, (_, held) = encoder.load(), sentences.load(DATA)
    held = held.first(60)
    logits = network.logits(network.embedded(held.texts, 32))[:, 0]
    assert np.mean((logits > 0) == held.labels) > 0.6


@needs(DATA)
@pytest.mark.long
def test_few_sentences_leave_the_ranges_of_the_calibration() -> None:
    """Their results would be refused. With 64 sentences in the calibration there were four times as
    many."""
    network, (train, held) = encoder.load(), sentences.load(DATA)
    known, others = (
        network.embedded(s.texts[:count], encoder.TOKENS)
        for s, count in ((train, demo_encoder._CALIBRATED), (held, 256))
    )
    graph = trace(network.logit, (known[0],))
    seen, values = every_value(graph, [known]), every_value(graph, [others])
    calibrated = calibrate(fold(graph), [known], margin=encoder.MARGIN, exact=seen)
    outside = np.zeros(len(others), bool)
    for node in calibrated:
        if node.op == "function":
            source = calibrated[node.inputs[0]]
            x = values[source.name].reshape(len(others), -1)
            low, high = np.min(source.attrs["low"]), np.max(source.attrs["high"])
            outside |= (x.min(1) < low) | (x.max(1) > high)
    assert outside.sum() <= 5


def test_sizes_are_checked_first(capsys: pytest.CaptureFixture[str]) -> None:
    for words, text in (
        (["--tokens", "12"], "power of two"),
        (["--tokens", "256"], "to 128"),
        (["--layers", "3"], "at most 2"),
        (["--sentences", "0"], "at least 1"),
        (["--memory", "much"], "number of bytes"),
    ):
        assert cli.main(["demo", "encoder", *words]) == 1
        assert text in capsys.readouterr().err


def on_a_small_ring(
    function: Any, example: Any, *, calibration: Any, precision_bits: float, device: str, **how: Any
) -> Program:
    """What jali.compile does, with parameters that are not secure. They have levels for an inverse
    of a degree of thousands, which some draws of weights lead to."""
    return compiled(
        trace(function, example),
        list(calibration),
        precision_bits=precision_bits,
        lanes=1,
        insecure_ring=Ring(10, 13),
        **how,
    )


@pytest.mark.long
def test_demo(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_compiled, "compile_function", on_a_small_ring)
    words = ["encoder", "--tokens", "2", "--layers", "1", "--sentences", "2", "--device", "cpu"]
    assert command.main([*words, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["max_logit_error"] < 2**-4 * result["largest_logit"]
    assert result["agreement_with_plain"] == 1 and result["bootstraps"] > 0
    assert command.main([*words, "--plan"]) == 0
    printed = capsys.readouterr().out
    assert "agreement to expect" in printed and "products" in printed and "inverse_sqrt" in printed
