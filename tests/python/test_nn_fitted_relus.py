"""ReLUs that become polynomials: they are the nearest in the mean of squares, what they change is
what is said of it, and programs compute them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jali
from jali import cli, nn
from jali.compiler.driver import compiled
from jali.compiler.passes.fitted_relus import Fitted, fitted_relus
from jali.errors import CorruptData, InvalidArgument, Unsupported
from jali.nn.execute import every_value, execute

WEIGHTS = [np.random.default_rng(k).normal(size=shape) for k, shape in enumerate([(8, 6), (3, 8)])]
EXAMPLES = np.random.default_rng(7).normal(size=(300, 6)) / 2


def network(x: Any) -> Any:
    return WEIGHTS[1] @ nn.scalar.relu(WEIGHTS[0] @ x)


def polynomials(graph: nn.Graph) -> list[Any]:
    return [node.operation for node in graph if node.op == "polynomial"]


@pytest.mark.parametrize("degree", [2, 3, 5, 8])
def test_no_other_polynomial_is_nearer(rng: np.random.Generator, degree: int) -> None:
    graph = nn.trace(nn.scalar.relu, np.zeros(4))
    x = rng.normal(0.3, 2.0, (500, 4))
    made, told = fitted_relus(graph, [x], degree)
    (one,) = polynomials(made)
    coefficients = np.asarray(one.coefficients)
    assert len(coefficients) == degree + 1 and told.degree == degree and told.relus == 1

    low, high = x.min(), x.max()
    spread = (low + high) / 2 + (high - low) / 2 * np.cos(np.pi * (np.arange(64) + 0.5) / 64)

    def off(c: np.ndarray) -> float:
        """The sum of squares, in which points all over the range count for a sixteenth."""
        value = np.polynomial.polynomial.polyval
        near = np.square(value(x.ravel(), c) - np.maximum(x.ravel(), 0)).sum()
        far = np.square(value(spread, c) - np.maximum(spread, 0)).mean()
        return float(near + x.size / 16 * far)

    best = off(coefficients)
    for k in range(degree + 1):
        for step in (1e-3, -1e-3):
            other = coefficients.copy()
            other[k] += step
            assert off(other) > best


def test_later_polynomials_are_fitted_to_what_earlier_ones_give() -> None:
    graph = nn.trace(lambda x: nn.scalar.relu(nn.scalar.relu(x) - 0.5), np.zeros(3))
    x = np.random.default_rng(3).uniform(-2, 2, (400, 3))
    made, told = fitted_relus(graph, [x], 2)
    assert told.relus == 2
    first, second = polynomials(made)
    inner = first.compute([x]) - 0.5
    alone = nn.trace(nn.scalar.relu, np.zeros(3))
    (expected,) = polynomials(fitted_relus(alone, [inner], 2)[0])
    np.testing.assert_allclose(second.coefficients, expected.coefficients, rtol=1e-9)


def test_relus_of_numbers_of_one_sign_stay() -> None:
    graph = nn.trace(lambda x: nn.scalar.relu(x) + nn.scalar.relu(x * x + 1), np.zeros(3))
    x = np.random.default_rng(3).uniform(-2, 2, (100, 3))
    made, told = fitted_relus(graph, [x], 2)
    assert told.relus == len(polynomials(made)) - len(polynomials(graph)) == 1
    (stays,) = (node for node in made if node.op == "function")
    assert np.all(every_value(made, [x])[stays.inputs[0]] >= 1)


def test_what_changes_is_counted(rng: np.random.Generator) -> None:
    x = rng.normal(size=(200, 6))
    graph = nn.trace(network, x[0])
    made, told = fitted_relus(graph, [x], 2)
    (exact,), (other,) = execute(graph, x), execute(made, x)
    assert told.every == 200 and told.same == int((exact.argmax(1) == other.argmax(1)).sum()) < 200
    assert told.largest == pytest.approx(np.abs(exact - other).max() / np.abs(exact).max())
    assert f"{told.same} of its 200 answers" in str(told)
    better = fitted_relus(graph, [x], 8)[1]
    assert better.largest < told.largest and better.same > told.same


def test_a_single_number_is_answered_by_its_sign(rng: np.random.Generator) -> None:
    x = rng.normal(size=(200, 6))
    graph = nn.trace(lambda x: (WEIGHTS[1] @ nn.scalar.relu(WEIGHTS[0] @ x))[0], x[0])
    made, told = fitted_relus(graph, [x], 2)
    (exact,), (other,) = execute(graph, x), execute(made, x)
    assert told.same == int(((exact > 0) == (other > 0)).sum()) < 200


def test_programs_compute_the_polynomials() -> None:
    program = jali.compile(
        network, EXAMPLES[0], calibration=EXAMPLES, precision_bits=10, relu_degree=2
    )
    exact = jali.compile(network, EXAMPLES[0], calibration=EXAMPLES, precision_bits=10)
    assert program.params.depth < exact.params.depth
    graph = nn.trace(network, EXAMPLES[0])
    made, told = fitted_relus(graph, [EXAMPLES], 2)
    (expected,) = execute(made, EXAMPLES)
    np.testing.assert_allclose(program.clear(EXAMPLES), expected)
    assert program.fitted == told and exact.fitted is None
    assert str(told) in str(program.summary("cpu", threads=1))
    client = program.client(threads=1)
    server = program.server(client.evaluation_keys(), device="cpu", threads=1)
    found = client.decrypt(server(client.encrypt(EXAMPLES[:5])))
    assert np.abs(found - expected[:5]).max() < 2.0**-10 * np.abs(expected).max()
    again = nn.Program.from_bytes(program.to_bytes())
    assert again.fitted == told
    np.testing.assert_array_equal(again.clear(EXAMPLES[:3]), program.clear(EXAMPLES[:3]))


def test_files_with_other_facts_are_refused() -> None:
    program = jali.compile(network, EXAMPLES[0], calibration=EXAMPLES, relu_degree=2)
    data = program.to_bytes()
    assert data.count(b'"degree":2') == 1 or data.count(b'"degree": 2') == 1
    for bad in (b'"degree":9', b'"degree": 9'):
        changed = data.replace(bad.replace(b"9", b"2"), bad)
        if changed != data:
            with pytest.raises(CorruptData):
                nn.Program.from_bytes(changed)


def test_explain_offers_polynomials_where_they_save_and_keep_answers() -> None:
    smooth = np.random.default_rng(5).normal(size=(300, 6))
    smooth[:, 0] += np.where(smooth[:, 0] > 0, 3, -3)  # answers that are far from each other

    def model(x: Any) -> Any:
        return WEIGHTS[1][:, :4] @ nn.scalar.relu(np.eye(4, 6) @ x) + 40 * x[0] * np.array(
            [1.0, -1, 0]
        )

    plans = jali.compile(
        model, smooth[0], calibration=smooth, precision_bits=10, explain=True
    ).alternatives()
    offered = [one for one in plans if "relu_degree" in one.settings]
    assert len(offered) == 1
    (one,) = offered
    assert one.fitted is not None and one.fitted.same >= 0.98 * one.fitted.every
    assert one.relative_time < 0.8 and one.levels < plans[0].levels
    assert one.program.fitted == one.fitted and str(one.fitted) in str(plans)
    again = jali.compile(model, smooth[0], calibration=smooth, precision_bits=10, **one.settings)
    assert again.fitted == one.fitted


def test_nothing_is_offered_that_changes_answers() -> None:
    x = np.random.default_rng(6).normal(size=(300, 6))
    graph = nn.trace(lambda x: nn.scalar.relu(x) * np.array([1, 1, -1, -1, 2, -2.0]), x[0])
    assert all(fitted_relus(graph, [x], d)[1].same < 0.98 * 300 for d in (2, 4, 6, 8))
    program = compiled(graph, [x], precision_bits=8, lanes=1, memory=1 << 32, explain=True)
    assert not any("relu_degree" in one.settings for one in program.alternatives())


def test_refusals() -> None:
    with pytest.raises(Unsupported, match="no ReLU that takes numbers of both signs: leave out"):
        jali.compile(lambda x: 2 * x, EXAMPLES[0], calibration=EXAMPLES, relu_degree=2)
    for bad in (1, 9, 2.0, True, "2"):
        with pytest.raises(InvalidArgument, match="relu_degree is a whole number from 2 to 8"):
            jali.compile(network, EXAMPLES[0], calibration=EXAMPLES, relu_degree=bad)
    logs, x = nn.trace(lambda x: np.log(nn.scalar.relu(x) + 0.05), 0.0), np.linspace(-2, 2, 99)
    with (
        np.errstate(invalid="ignore"),
        pytest.raises(InvalidArgument, match=r"not defined there\. Take a larger relu_degree"),
    ):
        fitted_relus(logs, [x], 2)
    fitted_relus(logs, [x], 8)
    looped = nn.trace(
        lambda x: nn.loop(lambda s, w: w * nn.scalar.relu(s), x, np.ones(3)), np.zeros(6)
    )
    with pytest.raises(Unsupported, match="unroll the loop, or leave out relu_degree="):
        fitted_relus(looped, [EXAMPLES], 2)
    with pytest.raises(InvalidArgument, match="leave out upload= and relu_degree="):
        jali.compile(network, EXAMPLES[0], calibration=EXAMPLES, relu_degree=2, scheme="discrete")


def test_the_command_line_says_what_polynomials_change(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph, out = tmp_path / "m.npz", tmp_path / "p.jali"
    rng = np.random.default_rng(8)
    x = np.concatenate([rng.normal(-3, 0.5, (150, 6)), rng.normal(3, 0.5, (150, 6))])
    nn.graph_file.save(nn.trace(lambda x: network(x) + 40 * WEIGHTS[1][:, :6] @ x, x[0]), graph)
    np.save(tmp_path / "x.npy", x)
    words = ["compile", graph, "--calibration", tmp_path / "x.npy", "-o", out, "--force", "--json"]
    words += ["--precision-bits", "8"]
    assert cli.main([*map(str, words), "--explain", "--no-summary"]) == 0
    plans = json.loads(capsys.readouterr().out)["alternatives"]
    (told,) = [one["fitted"] for one in plans if one["fitted"] is not None]
    assert told["every"] == 300 and told["same"] >= 294 and told["relus"] == 1
    degree = str(told["degree"])
    assert cli.main([*map(str, words), "--relu-degree", degree]) == 0
    said = json.loads(capsys.readouterr().out)["fitted"]
    assert said == [str(Fitted(**told))] == [str(nn.Program.load(out).fitted)]
    assert cli.main([*map(str, words), "--relu-degree", "9"]) == 1
    assert "--relu-degree is a whole number from 2 to 8" in capsys.readouterr().err


def test_facts_as_text() -> None:
    assert str(Fitted(2, 1, 5, 6, 0.125)) == (
        "1 ReLU became a polynomial of degree 2, fitted to the calibration: 5 of its 6 answers are those of the model, "
        "whose results change by at most 0.12 of the largest"
    )
