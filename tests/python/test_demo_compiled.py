"""What the demos of compiled programs share: requests whose results decryption refuses."""

from __future__ import annotations

from argparse import Namespace

import numpy as np
import pytest

import jali
from jali.cli import demo_cifar, demo_encoder
from jali.cli.demo_compiled import Session


def session(json: bool = True) -> Session:
    """Half the squares of numbers that were all small in the calibration, and may be ten times as
    large."""
    x = np.random.default_rng(5).uniform(-0.1, 0.1, (50, 4))
    options = Namespace(json=json, device="cpu", program=None, threads=1)
    return Session(
        lambda v: np.square(v) * 0.5, (x[0],), (x,), options, precision_bits=10, input_range=(-1, 1)
    )


def test_requests_that_are_refused_lose_no_others(capsys: pytest.CaptureFixture[str]) -> None:
    x = np.stack([np.full(4, 0.05), np.full(4, 0.99), np.full(4, -0.08), np.full(4, 0.98)])
    found, figures = session(json=False).run(x, batch=1)
    assert found.shape == (4, 4) and figures.refused == 2
    assert np.abs(found[[0, 2]] - np.square(x[[0, 2]]) / 2).max() < 2.0**-10 * 0.005
    assert np.isnan(found[[1, 3]]).all()
    assert figures.noise_bits > 10  # of those that were answered
    assert dict(figures.lines())["refused at decryption"].startswith("2 examples, which left")
    printed = capsys.readouterr().out
    assert printed.count("refused: ") == 2 and "request 2 of 4" in printed
    assert "compile with examples like it" in printed


def test_if_all_requests_are_refused_that_is_an_error() -> None:
    for x, batch in ((np.full((1, 4), 0.99), None), (np.full((2, 4), 0.99), 1)):
        with pytest.raises(jali.WrongDecryption, match="outside of the ranges of the calibration"):
            session().run(x, batch=batch)


def test_nothing_is_said_of_refusals_if_there_are_none() -> None:
    found, figures = session().run(np.full((2, 4), 0.05), batch=1)
    assert np.isfinite(found).all() and figures.refused == 0
    assert "refused at decryption" not in dict(figures.lines())


def test_what_was_refused_is_no_answer() -> None:
    """NaN is neither the first label nor blame, which would count as right by chance."""
    scores = np.array([[0.1, 0.7], [np.nan, np.nan], [0.3, -2.0]])
    assert demo_cifar._answers(scores).tolist() == [1, -1, 0]
    assert demo_encoder._answers(np.array([0.4, np.nan, -0.2])).tolist() == [1, -1, 0]
