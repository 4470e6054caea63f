"""precision_bits="auto" and batch="auto": the fewest bits that keep what is asked for, and as many
examples as cost next to nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx_files
import pytest

import jali
from jali import cli, nn
from jali.compiler.frontends.answers import Answers, asked_answers
from jali.compiler.planning.batches import cost_of_run, widest
from jali.compiler.planning.neighbours import smallest

WEIGHTS = np.random.default_rng(11).normal(size=(3, 4))


def scores(x: Any) -> Any:
    return WEIGHTS @ x


def far_from_ties(count: int, gap: float) -> np.ndarray:
    """Examples whose two largest scores differ by at least `gap`."""
    x = np.random.default_rng(12).uniform(-1, 1, (count, 4))
    ordered = np.sort(x @ WEIGHTS.T, axis=1)
    return x[ordered[:, -1] - ordered[:, -2] >= gap]


def decrypted(program: nn.Program, x: np.ndarray) -> np.ndarray:
    client = program.client()
    found = client.decrypt(program.server(client.evaluation_keys())(client.encrypt(x)))
    assert isinstance(found, np.ndarray)
    return found


def test_the_fewest_bits_that_keep_the_largest_score() -> None:
    x = far_from_ties(400, 0.25)
    y = x @ WEIGHTS.T
    program = jali.compile(scores, x[0], calibration=x, precision_bits="auto")
    ordered = np.sort(y, axis=1)
    worst = [2.0**-bits * np.abs(y).max() for bits in range(2, 20)]  # two scores, each off by it
    keeps = [(ordered[:, -1] - ordered[:, -2] > 2 * 4 / 3 * off).all() for off in worst]
    assert program.precision_bits == 2 + keeps.index(True) < 10
    assert program.answers == (0, len(x))
    for seed in range(4):
        noisy = program.simulate(x, rng=seed)
        assert isinstance(noisy, np.ndarray) and np.array_equal(noisy.argmax(1), y.argmax(1))
    found = decrypted(program, x[:40])
    assert np.array_equal(found.argmax(1), y[:40].argmax(1))
    assert 0 < np.abs(found - y[:40]).max() < 2.0**-program.precision_bits * np.abs(y).max()
    assert "none of the" in program.explain("program")
    again = nn.Program.from_bytes(program.to_bytes())
    assert (again.precision_bits, again.answers) == (program.precision_bits, program.answers)


@pytest.mark.parametrize("tolerance", [0.3, 0.004])
def test_the_fewest_bits_that_keep_a_tolerance(tolerance: float) -> None:
    x = np.random.default_rng(13).uniform(-1, 1, (60, 4))
    y = x @ WEIGHTS.T
    how: dict[str, Any] = {"precision_bits": "auto", "answers": tolerance}
    program = jali.compile(scores, x[0], calibration=x, **how)
    error = 4 / 3 * 2.0**-program.precision_bits * np.abs(y).max()
    assert error <= tolerance < 2 * error and program.answers is None
    assert np.abs(decrypted(program, x) - y).max() < tolerance


def test_every_number_keeps_its_sign() -> None:
    x = np.random.default_rng(14).uniform(-1, 1, (400, 4))
    x = x[np.abs(x @ WEIGHTS.T).min(axis=1) > 0.1]
    y = x @ WEIGHTS.T
    program = jali.compile(scores, x[0], calibration=x, precision_bits="auto", answers="sign")
    assert 4 / 3 * 2.0**-program.precision_bits * np.abs(y).max() < np.abs(y).min()
    assert np.array_equal(decrypted(program, x[:40]) > 0, y[:40] > 0)
    one = jali.compile(lambda v: v.sum(), x[0], calibration=x[:50], precision_bits="auto")
    near = np.abs(x[:50].sum(axis=1))  # of a single number, the sign is the answer
    assert one.answers is not None and one.answers[0] == 0
    assert 4 / 3 * 2.0**-one.precision_bits * near.max() < near.min()


def test_answers_along_the_last_axis_and_of_several_outputs(rng: np.random.Generator) -> None:
    largest, results = Answers(True), rng.normal(size=(30, 5, 4))
    ordered = np.sort(results, axis=-1)
    least = ((ordered[..., -1] - ordered[..., -2]) / 2).min(axis=1)
    assert np.allclose(2.0 ** -largest.needed(results) * 4 / 3 * np.abs(results).max(), least)
    others = rng.normal(size=(30, 1))
    both = largest.every_needed([results, others])
    assert np.array_equal(both, np.maximum(largest.needed(results), largest.needed(others)))
    assert largest.least_bits([others]) == max(2, np.ceil(largest.needed(others).max()))


def test_a_tie_is_told_of_and_the_others_decide() -> None:
    x = np.concatenate([far_from_ties(300, 0.25), np.zeros((1, 4))])  # all scores are 0
    with pytest.warns(UserWarning, match=rf"^1 of the {len(x)} answers .* may change"):
        program = jali.compile(scores, x[0], calibration=x, precision_bits="auto")
    assert program.answers == (1, len(x)) and program.precision_bits < 10


def test_what_does_not_compile_takes_the_most_bits_that_do() -> None:
    tried: list[float] = []

    def at(bits: float, lanes: int) -> float:
        tried.append(bits)
        if bits > 13:
            raise jali.Unsupported("too deep.")
        return bits

    known: Any = (at, lambda made: made)
    assert smallest(*known, 17.0, 1) == (13.0, 13.0) and tried == [17, 15, 13]
    assert smallest(*known, 4.0, 1) == (4.0, 4.0)


def test_as_many_examples_as_cost_next_to_nothing(rng: np.random.Generator) -> None:
    x = rng.uniform(-1, 1, (40, 4))
    one = jali.compile(lambda v: scores(v) ** 2, x[0], calibration=x)
    program = jali.compile(lambda v: scores(v) ** 2, x[0], calibration=x, batch="auto")
    lanes = program.manifest.lanes
    assert lanes >= 64 and lanes & (lanes - 1) == 0
    assert program.params.log_n == one.params.log_n
    assert program.sizes().keys_expanded <= 1.1 * one.sizes().keys_expanded
    many = np.tile(x, (2, 1))
    found = decrypted(program, many)
    # Each slot is a number of its own, whose rounding errors are larger where the secret key's
    # value is: fewer than one in 20,000 is beyond the bound (test_nn_promise), and none four times.
    off = np.abs(found - (many @ WEIGHTS.T) ** 2) / ((x @ WEIGHTS.T) ** 2).max()
    assert np.sqrt(np.square(off).mean()) < 2**-11 and off.max() < 2**-8


def test_examples_that_cost_more_are_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search itself: of 64 that fit, 64 and 16 cost too much, and there is no plan for 4."""
    x = np.random.default_rng(15).uniform(-1, 1, (20, 4))
    program = jali.compile(scores, x[0], calibration=x)
    plan = _plan_of(program)
    costs = {64: 3.0, 16: 1.2, 4: None, 1: 1.0}
    room = plan.interpreter.params.slots // 4
    tried = []

    def at(lanes: int) -> int:
        tried.append(lanes)
        if costs.get(lanes * 64 // room) is None:
            raise jali.Unsupported("no plan")
        return lanes * 64 // room

    monkeypatch.setattr(
        "jali.compiler.planning.batches.cost_of_run", lambda made: 1000 * costs[made.number]
    )

    class Numbered:
        def __init__(self, number: int) -> None:
            self.number = number

        def __getattr__(self, name: str) -> Any:
            return getattr(plan, name)

    assert widest(at, Numbered, 1) == 1  # type: ignore[arg-type]
    assert tried[:3] == [room, room // 4, room // 16]
    assert cost_of_run(plan) > 0


def _plan_of(program: nn.Program) -> Any:
    from jali.compiler.planning.plan import Plan

    demand, costs = program.manifest.demand, program.costs
    return Plan(program.stages, program._interpreter(), demand, costs, program.layout_costs)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"answers": "argmax"}, 'answers= decides the precision: give precision_bits="auto", too'),
    ({"answers": "most", "precision_bits": "auto"}, 'answers is "argmax", "sign" or a tolerance'),
    ({"answers": 0, "precision_bits": "auto"}, "a tolerance above 0"),
    ({"answers": True, "precision_bits": "auto"}, "a tolerance above 0"),
    ({"answers": 1e-30, "precision_bits": "auto"}, "a tolerance of 1e-30 takes .* give a larger"),
    ({"precision_bits": "most"}, "from 1 to 40, or \"auto\", not 'most'"),
    ({"batch": "many"}, "a power of two, or \"auto\", not 'many'"),
    ({"batch": "auto", "scheme": "discrete"}, "give a number of examples"),
]


@pytest.mark.parametrize(("how", "says"), WRONG, ids=[str(how) for how, _ in WRONG])
def test_wrong_arguments(how: dict[str, Any], says: str) -> None:
    x = np.random.default_rng(16).uniform(-1, 1, (20, 4))
    with pytest.raises(jali.InvalidArgument, match=says):
        jali.compile(scores, x[0], calibration=x, **how)


def test_estimators_are_read_as_they_are(rng: np.random.Generator) -> None:
    linear = pytest.importorskip("sklearn.linear_model")
    tree = pytest.importorskip("sklearn.tree")
    x = rng.normal(size=(200, 3))
    classifier = linear.LogisticRegression().fit(x, x[:, 0] > 0)
    assert asked_answers(None, classifier, "logits") == Answers(True)
    assert asked_answers("sign", classifier, "logits") == Answers(False)
    fitted = tree.DecisionTreeClassifier(max_depth=2).fit(x, x[:, 0] > 0)
    assert jali.compile(fitted, precision_bits="auto").error < 1e-9  # type: ignore[attr-defined]
    with pytest.raises(jali.InvalidArgument, match="leave out answers="):
        jali.compile(fitted, precision_bits="auto", answers="argmax")


def test_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("onnx")
    model, out = onnx_files.squares(tmp_path / "m.onnx"), tmp_path / "p.jali"
    x = np.random.default_rng(17).uniform(-1, 1, (60, 2))
    np.save(tmp_path / "x.npy", x)
    words = ["compile", str(model), "--calibration", str(tmp_path / "x.npy"), "-o", str(out)]
    words += ["--precision-bits", "auto", "--batch", "auto", "--answers", "0.05", "--no-summary"]
    assert cli.main([*words, "--json"]) == 0
    program = nn.Program.load(out)
    (want,) = onnx_files.evaluated(model, x=x)
    error = 4 / 3 * 2.0**-program.precision_bits * np.abs(want).max()
    assert error <= 0.05 < 2 * error and program.manifest.lanes > 1
    assert json.loads(capsys.readouterr().out)["warnings"] == []
    assert cli.main([*words[:6], "--answers", "sign", "--force"]) == 1
    assert "give --precision-bits auto, too" in capsys.readouterr().err
    for wrong in (["--batch", "many"], ["--answers", "most"], ["--precision-bits", "few"]):
        with pytest.raises(SystemExit) as left:
            cli.main([*words, *wrong])
        assert left.value.code == 2 and wrong[0] in capsys.readouterr().err


def test_alternatives_were_compiled_and_say_what_they_cost() -> None:
    x = np.random.default_rng(18).uniform(-1, 1, (60, 4))
    y = np.tanh(x @ WEIGHTS.T)
    asked = jali.compile(lambda v: np.tanh(scores(v)), x[0], calibration=x, explain=True)
    plans = asked.alternatives()
    assert 3 <= len(plans) <= 5 and plans[0].name == "as asked for"
    assert plans[0].precision_bits == 10 and plans[0].relative_time == 1
    settings = [dict(one.settings) for one in plans]
    assert {"precision_bits": 8.0} in settings and any("batch" in one for one in settings)
    for one in plans:
        program, sizes = one.program, one.program.sizes()
        assert program.precision_bits == one.precision_bits
        assert program.manifest.lanes == one.examples
        assert (program.params.depth, sizes.keys_sent) == (one.levels, one.key_bytes)
        assert sizes.keys_expanded + sizes.matrices == one.server_bytes
        assert one.seconds is not None and one.seconds > 0 and one.bootstraps == 0
        found = program.simulate(x, rng=1)
        assert np.abs(found - y).max() < 2.0**-one.precision_bits * np.abs(y).max()
    cheaper = plans[settings.index({"precision_bits": 8.0})]
    assert cheaper.levels <= plans[0].levels and cheaper.relative_time < 1
    assert cheaper.key_bytes < plans[0].key_bytes
    assert np.abs(decrypted(cheaper.program, x[:1]) - y[:1]).max() < 2**-8
    table = str(plans).splitlines()
    assert len(table) == 2 + len(plans) and "keys to send" in table[1]
    assert "precision_bits=8 " in str(plans) and "as asked for" in table[2]
    again = nn.Program.from_bytes(asked.to_bytes())
    with pytest.raises(jali.InvalidArgument, match="explain=True"):
        again.alternatives()
    assert again.to_bytes() == asked.to_bytes()


def test_a_program_of_little_has_three_plans(tmp_path: Path, capsys: Any) -> None:
    """Fewer bits save nothing here. Names of columns are those of all plans."""
    graph, out = tmp_path / "g.graph", tmp_path / "p.jali"
    x = np.random.default_rng(19).uniform(-1, 1, (40, 4))
    nn.graph_file.save(nn.trace(scores, x[0]), graph)
    np.save(tmp_path / "x.npy", x)
    words = ["compile", str(graph), "--calibration", str(tmp_path / "x.npy"), "-o", str(out)]
    assert cli.main([*words, "--explain", "--no-summary"]) == 0
    text = capsys.readouterr().out
    assert "plans that were tried" in text and "--batch " in text
    assert cli.main([*words, "--explain", "--no-summary", "--force", "--json"]) == 0
    plans = json.loads(capsys.readouterr().out)["alternatives"]
    assert 3 <= len(plans) <= 5 and plans[0]["settings"] == {} and "program" not in plans[0]


def test_who_has_one_plan_says_so() -> None:
    whole = np.arange(60).reshape(20, 3)
    program: Any = jali.compile(lambda v: v * 2, whole[0], calibration=whole, scheme="discrete")
    with pytest.raises(jali.Unsupported, match="exact integers have one plan"):
        program.alternatives()
    with pytest.raises(jali.InvalidArgument, match="leave out explain="):
        jali.compile(lambda v: v * 2, whole[0], calibration=whole, scheme="discrete", explain=True)
    alone = jali.compile(scores, np.ones(4), calibration=np.eye(4).repeat(5, 0))
    with pytest.raises(jali.InvalidArgument, match="compiled alone"):
        alone.alternatives()


def test_answers_of_models_whose_client_computes_the_end(tmp_path: Path) -> None:
    """What is kept is read from what the client decrypts; a tolerance of what it computes of that
    would say something else."""
    pytest.importorskip("onnx")
    from onnx.helper import make_node

    nodes = [make_node("Gemm", ["x", "w", "b"], ["u"]), make_node("Softmax", ["u"], ["y"])]
    model = onnx_files.save(tmp_path / "m.onnx", nodes, {"x": (2,)}, ("y",))
    x = np.random.default_rng(20).uniform(-1, 1, (200, 2))
    ordered = np.sort(onnx_files.evaluated(model, x=x)[0], axis=1)
    x = x[ordered[:, -1] - ordered[:, -2] > 0.05]
    how: dict[str, Any] = {"calibration": x, "precision_bits": "auto"}
    for answers in (None, 0.01):
        with pytest.raises(jali.InvalidArgument, match="of what it decrypts: say what is to stay"):
            jali.compile(str(model), x[:1], answers=answers, **how)
    program = jali.compile(str(model), x[:1], answers="argmax", explain=True, **how)
    (want,) = onnx_files.evaluated(model, x=x[:20])
    assert program.answers == (0, len(x)) and program.precision_bits < 10
    for one in (program, program.alternatives()[0].program, program.alternatives()[1].program):
        found = decrypted(one, x[:20])
        assert np.allclose(found.sum(axis=1), 1) and np.array_equal(found.argmax(1), want.argmax(1))
