"""Ensembles of decision trees on encrypted rows, against scikit-learn."""

from __future__ import annotations

import itertools
import json
import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from tfhe_world import make

import jali
from jali import tfhe
from jali.cli import demo as command
from jali.demo import trees as demo
from jali.tfhe import trees
from jali.tfhe.trees.look_ups import Room

ensemble = pytest.importorskip("sklearn.ensemble", reason="scikit-learn is not installed")
tree = pytest.importorskip("sklearn.tree", reason="scikit-learn is not installed")

REAL = tfhe.Params.preset(demo.PRESET)


def data(rng: np.random.Generator, classes: int, rows: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """Rows of 6 features of different kinds, and labels that depend on them."""
    x = rng.normal(size=(rows, 6))
    x[:, 1] = rng.integers(0, 3, rows)
    x[:, 2] = np.exp(3 * x[:, 2])
    score = x[:, 0] + x[:, 1] * (x[:, 3] > 0) - (x[:, 2] > 1) + rng.normal(size=rows) / 4
    labels = np.digitize(score, np.quantile(score, np.arange(1, classes) / classes))
    return x, np.array(["red", "green", "blue", "black"])[labels]


def models(seed: int) -> dict[str, tuple[Any, dict[str, float]]]:
    """Models of every kind, and how they are rounded."""
    forest, boosting = ensemble.RandomForestClassifier, ensemble.GradientBoostingClassifier
    return {
        "tree": (tree.DecisionTreeClassifier(max_depth=4, random_state=seed), {"step": 1 / 8}),
        "forest": (forest(12, max_leaf_nodes=5, random_state=seed), {}),
        "forest of four votes": (forest(7, max_depth=4, random_state=seed), {"step": 1 / 4}),
        "extra trees": (ensemble.ExtraTreesClassifier(9, max_depth=3, random_state=seed), {}),
        "boosting": (
            boosting(n_estimators=12, max_depth=3, random_state=seed),
            {"step": 1 / 8, "largest": 7 / 8},
        ),
        "histograms": (
            ensemble.HistGradientBoostingClassifier(max_iter=9, max_depth=3, max_leaf_nodes=6),
            {"step": 1 / 4, "largest": 7 / 4},
        ),
        "stumps": (
            boosting(n_estimators=40, max_depth=1, learning_rate=0.5, random_state=seed),
            {"step": 1 / 4, "largest": 7 / 4},
        ),
    }


def scores_of(model: Any, rows: np.ndarray) -> np.ndarray:
    return (
        model.decision_function if hasattr(model, "decision_function") else model.predict_proba
    )(rows)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kind", models(0))
@pytest.mark.parametrize("binned", [False, True])
def test_programs_compute_what_scikit_learn_computes(
    kind: str, classes: int, binned: bool, rng: np.random.Generator
) -> None:
    """All bits of every score, and every label, on rows that the model has not seen."""
    (x, y), (other, _) = data(rng, classes), data(rng, classes)
    model, rounding = models(int(rng.integers(1 << 31)))[kind]
    edges = trees.quantile_edges(x, 8) if binned else None

    def seen(rows: np.ndarray) -> np.ndarray:
        return rows if edges is None else trees.bins(rows, edges)

    rounded = trees.rounded(model.fit(seen(x), y), **rounding)
    program = trees.compile(rounded, REAL, edges)
    # Rows at the edges, and as near to them as can be.
    for feature, of in enumerate(program.questions.edges):
        for row, edge in enumerate(of[:30]):
            other[3 * row : 3 * row + 3, feature] = np.nextafter(edge, [edge, -np.inf, np.inf])
    scores = program.clear(other)
    np.testing.assert_array_equal(scores, scores_of(rounded, seen(other)))
    np.testing.assert_array_equal(program.questions.labels(scores), rounded.predict(seen(other)))
    assert np.mean(rounded.predict(seen(x)) == y) >= np.mean(model.predict(seen(x)) == y) - 0.3
    # What the evaluator will check: sums of answers and of votes fit, and their noise, too.
    asked = len(program.weights) // 2
    most = np.repeat([1, program.questions.large], asked) @ program.weights
    assert most.max() < 16
    assert (program.weights**2).sum(axis=0).max() <= REAL.max_norm2
    assert (program.tables.max(axis=1) @ program.sums).max() < 16
    assert program.tables.min() == 0


def test_a_model_may_have_whole_votes_already(rng: np.random.Generator) -> None:
    """Leaves of one class need no rounding, and rounding leaves them as they are."""
    x, y = data(rng, 2)
    y = np.where(x[:, 0] > 0.25, "yes", "no")
    model = ensemble.RandomForestClassifier(5, max_features=None, random_state=0).fit(x, y)
    program = trees.compile(model, REAL)
    np.testing.assert_array_equal(program.clear(x), model.predict_proba(x))
    np.testing.assert_array_equal(trees.rounded(model).predict_proba(x), model.predict_proba(x))
    assert program.look_ups < 5  # trees that compare the same feature share one


def test_rounding_keeps_the_model_and_the_sum_of_votes(rng: np.random.Generator) -> None:
    x, y = data(rng, 3)
    model = ensemble.RandomForestClassifier(5, max_depth=3, random_state=0).fit(x, y)
    before = model.predict_proba(x)
    for step in (1, 1 / 2, 1 / 8):
        rounded = trees.rounded(model, step)
        for one, other in zip(rounded.estimators_, model.estimators_, strict=True):
            shares, kept = one.predict_proba(x), other.predict_proba(x)
            np.testing.assert_array_equal(np.rint(shares / step) * step, shares)
            np.testing.assert_array_equal(shares.sum(axis=1), 1)
            assert np.abs(shares - kept).max() < step
    np.testing.assert_array_equal(model.predict_proba(x), before)
    boosted = ensemble.GradientBoostingClassifier(n_estimators=9, random_state=0).fit(x, y)
    rounded = trees.rounded(boosted, 2**-10)
    # Every tree is rounded by half a step at most, and so is the first guess.
    assert np.abs(rounded.decision_function(x) - boosted.decision_function(x)).max() <= 10 * 2**-11
    # Of two classes no score is 0.
    boosted.fit(x, y == "red")
    scores = trees.rounded(boosted, 1 / 4, largest=1).decision_function(x) * 8
    assert (scores % 2 == 1).all()


@pytest.mark.parametrize("values", [4, 16, 64])
def test_indices_are_unique_and_weights_are_small(values: int) -> None:
    """Every combination of edges that features have passed has an index of its own."""
    norm2 = (values**0.5 + 1) ** 2  # what the presets have
    room = Room(values, norm2)
    for features in (1, 2, 3, 4):
        for counts in itertools.combinations_with_replacement(range(1, 16), features):
            edges = {f: set(np.arange(float(c))) for f, c in enumerate(counts)}
            cells = math.prod(count + 1 for count in counts)
            strides = room.strides(edges)
            if strides is None:
                # Up to 16 values whatever is unique has little noise; so has what trees of allowed depth compare.
                assert cells > values or (values > 16 and 2 ** sum(counts) > values)
                continue
            places = itertools.product(*(range(c + 1) for c in counts))
            assert sorted(np.dot(p, strides) for p in places) == list(range(cells))


def test_all_trees_of_depth_four_fit(rng: np.random.Generator) -> None:
    """16 leaves that all differ, of features that all differ."""
    score = rng.random((4000, 1))
    # Every feature tells something, so that leaves differ whichever are asked.
    x = score + rng.random((4000, 40))
    seed = int(rng.integers(1 << 32))
    model = tree.DecisionTreeClassifier(
        max_depth=4, max_features=1, splitter="random", random_state=seed
    )
    model.fit(x, rng.random(4000) < score[:, 0])
    assert model.get_n_leaves() > 8
    rounded = trees.rounded(model, 1 / 8)
    np.testing.assert_array_equal(trees.compile(rounded, REAL).clear(x), rounded.predict_proba(x))


@pytest.fixture(scope="module")
def sides() -> tuple[tfhe.Client, tfhe.Evaluator]:
    client = tfhe.Client(make(max_norm2=25), threads=1)
    return client, tfhe.Evaluator(client.params, client.evaluation_keys(), threads=1)


@pytest.mark.parametrize("kind", ["forest of four votes", "boosting"])
def test_encrypted_rows_get_scikit_learns_scores(
    kind: str, sides: tuple[tfhe.Client, tfhe.Evaluator], rng: np.random.Generator
) -> None:
    client, server = sides
    x, y = data(rng, 3)
    model, rounding = models(int(rng.integers(1 << 31)))[kind]
    rounded = trees.rounded(model.fit(x, y), **rounding)
    program = trees.compile(rounded, client.params)
    questions = program.questions
    for rows in (x[:4], x[4:5]):
        request = questions.encrypt(client, rows)
        scores = questions.decrypt(client, program(server, request))
        np.testing.assert_array_equal(scores, scores_of(rounded, rows))
    # The same from bytes, of which those that are not used may be anything.
    unused = np.flatnonzero(~program.weights.any(axis=1))
    sent = [one.to_bytes() for one in request]
    for i in unused:
        sent[i] = b""
    again = questions.decrypt(client, program(server, sent))
    np.testing.assert_array_equal(again, scores)


def test_a_server_refuses_what_is_no_request(
    sides: tuple[tfhe.Client, tfhe.Evaluator], rng: np.random.Generator
) -> None:
    client, server = sides
    x, y = data(rng, 2)
    model = trees.rounded(ensemble.RandomForestClassifier(3, max_depth=2).fit(x, y))
    program = trees.compile(model, client.params)
    request = program.questions.encrypt(client, x[:2])
    with pytest.raises(jali.InvalidArgument, match="list of"):
        program(server, request[:-1])
    with pytest.raises(jali.InvalidArgument, match="list of"):
        program(server, request[0])  # type: ignore[arg-type]
    with pytest.raises(jali.InvalidArgument, match="Evaluator"):
        program(client, request)  # type: ignore[arg-type]
    number = client.encrypt_uint([1, 2], bits=4)
    with pytest.raises(jali.InvalidArgument, match="integers"):
        program(server, [number] * len(request))
    used = int(np.flatnonzero(program.weights.any(axis=1))[-1])
    longer = [*request]
    longer[used] = client.encrypt([0, 1, 0], largest=1)
    with pytest.raises(jali.InvalidArgument, match="shapes"):
        program(server, longer)
    stranger = program.questions.encrypt(tfhe.Client(client.params, threads=1), x[:2])
    with pytest.raises(jali.KeyMismatch):
        program(server, stranger)
    with pytest.raises(jali.ParamsMismatch):
        trees.compile(model, REAL)(server, request)
    with pytest.raises(jali.InvalidArgument, match="for each row"):
        program.questions.decrypt(client, request[0])


@pytest.mark.parametrize("kind", ["forest", "boosting", "histograms"])
@pytest.mark.parametrize("classes", [2, 3])
def test_questions_travel_as_text(kind: str, classes: int, rng: np.random.Generator) -> None:
    x, y = data(rng, classes)
    model, rounding = models(int(rng.integers(1 << 31)))[kind]
    program = trees.compile(trees.rounded(model.fit(x, y), **rounding), REAL)
    text = program.questions.to_json()
    again = trees.Questions.from_json(text)
    assert again.to_json() == text
    np.testing.assert_array_equal(again.answers(x), program.questions.answers(x))
    results = rng.integers(0, 16, (5, program.sums.shape[1]))
    scores = program.questions.scores(results)
    np.testing.assert_array_equal(again.scores(results), scores)
    np.testing.assert_array_equal(again.labels(scores), program.questions.labels(scores))
    given = json.loads(text)
    for key, wrong in (
        ("edges", [[2, 1]]),
        ("edges", 3),
        ("large", 0),
        ("score_of", [classes]),
        ("score_of", []),
        ("base", [0] * (classes + 1)),
        ("step", float("nan")),
        ("count", "2"),
        ("is_mean", 1),
        ("classes", ["red"]),
        ("classes", [["red"], ["green"]]),
        ("classes", [{}, {}]),
        ("compared_as", "int64"),
    ):
        with pytest.raises(jali.CorruptData, match="no questions"):
            trees.Questions.from_json(json.dumps({**given, key: wrong}))
        with pytest.raises(jali.CorruptData, match="no questions"):
            trees.Questions.from_json(json.dumps({k: v for k, v in given.items() if k != key}))
    for wrong in ("", "[]", "{", b"\xff"):
        with pytest.raises(jali.CorruptData, match="no questions"):
            trees.Questions.from_json(wrong)


def test_rows_that_are_no_rows_are_refused(rng: np.random.Generator) -> None:
    x, y = data(rng, 2)
    model = trees.rounded(ensemble.RandomForestClassifier(3, max_depth=2).fit(x, y))
    answers = trees.compile(model, REAL).questions.answers
    missing = x[:2].copy()
    missing[1, 3] = np.nan
    for rows, words in (
        (x[:, :5], "5 features"),
        (x[0], "shape"),
        (x[:0], "shape"),
        (missing, "missing"),
        (x * 1e39, "finite"),
        ([["a"] * 6], "numbers"),
    ):
        with pytest.raises(jali.InvalidArgument, match=words):
            answers(rows)


def test_models_that_do_not_fit_are_refused_by_name(rng: np.random.Generator) -> None:
    x, y = data(rng, 2)
    forest, boosting = ensemble.RandomForestClassifier, ensemble.GradientBoostingClassifier
    with pytest.raises(jali.InvalidArgument, match="round them first"):
        trees.compile(forest(3, max_depth=2, min_samples_leaf=40).fit(x, y), REAL)
    with pytest.raises(jali.InvalidArgument, match="round them first"):
        trees.compile(boosting(n_estimators=3).fit(x, y), REAL)
    noise = rng.integers(0, 2, len(y))
    with pytest.raises(jali.InvalidArgument, match="max_depth=4"):
        trees.compile(trees.rounded(forest(3).fit(x, noise)), REAL)
    with pytest.raises(jali.InvalidArgument, match="larger step"):
        trees.compile(trees.rounded(boosting(n_estimators=3).fit(x, y), 2**-10), REAL)
    with pytest.raises(jali.Unsupported, match="carries"):
        trees.compile(trees.rounded(forest(3).fit(x, y)), tfhe.Params.preset("boolean"))
    dull = tree.DecisionTreeClassifier(max_depth=1).fit(x, np.arange(len(x)) == 0)
    dull.tree_.value[:] = [1, 0]
    with pytest.raises(jali.InvalidArgument, match="same answer"):
        trees.compile(dull, REAL)
    with pytest.raises(jali.Unsupported, match="RandomForestRegressor cannot"):
        trees.compile(ensemble.RandomForestRegressor(3).fit(x, noise), REAL)
    with pytest.raises(jali.Unsupported, match="list cannot"):
        trees.rounded([])
    with pytest.raises(jali.InvalidArgument, match="fit"):
        trees.rounded(forest(3))
    with pytest.raises(jali.Unsupported, match="2 labels at once"):
        trees.rounded(forest(3).fit(x, np.stack([y, y], axis=1)))
    with pytest.raises(jali.InvalidArgument, match="one class"):
        trees.rounded(forest(3).fit(x, np.zeros(len(x))))
    categories = ensemble.HistGradientBoostingClassifier(max_iter=2, categorical_features=[1])
    with pytest.raises(jali.Unsupported, match="categories"):
        trees.rounded(categories.fit(x, x[:, 1] == 1))
    fitted = forest(3, max_depth=2).fit(x, y)
    for step in (0, -1, 0.3, 2, 2**-17):
        with pytest.raises(jali.InvalidArgument, match="step"):
            trees.rounded(fitted, step)
    with pytest.raises(jali.InvalidArgument, match="largest"):
        trees.rounded(fitted, 1, largest=3)
    with pytest.raises(jali.InvalidArgument, match=r"Params"):
        trees.compile(trees.rounded(fitted), "message_2_carry_2")


def test_edges_that_do_not_fit_are_refused(rng: np.random.Generator) -> None:
    x, y = data(rng, 2)
    edges = trees.quantile_edges(x, 4)
    raw = trees.rounded(ensemble.RandomForestClassifier(20, max_depth=4).fit(x, y))
    with pytest.raises(jali.InvalidArgument, match=r"trees\.bins"):
        trees.compile(raw, REAL, edges)
    with pytest.raises(jali.InvalidArgument, match="5 features"):
        trees.compile(raw, REAL, edges[:5])
    with pytest.raises(jali.InvalidArgument, match="ascending"):
        trees.bins(x, [of[::-1] for of in edges])
    with pytest.raises(jali.InvalidArgument, match="no lists"):
        trees.bins(x, 6 * [["a"]])
    with pytest.raises(jali.InvalidArgument, match="at least 2"):
        trees.quantile_edges(x, 1)


def test_every_test_row_of_the_demo_has_scikit_learns_score() -> None:
    train, test = demo.load()
    assert len(train.labels) + len(test.labels) == 569
    model = demo.fitted(train)
    program = trees.compile(model.rounded, REAL, model.edges)
    scores = program.clear(test.features)
    np.testing.assert_array_equal(scores, model.scores(test.features))
    assert model.accuracy(model.rounded, test) >= 0.95
    assert program.look_ups <= 25


def test_command_prints_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["trees", "--rows", "3", "--batch", "2", "--json"]) == 0
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    result = json.loads(out)
    assert result["rows"] == 3
    assert result["agreement_with_plain"] == result["equal_scores"] == 1
    assert result["bytes_up"] > 1000 and result["bytes_down"] > 10_000


def test_command_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["trees", "--rows", "2"]) == 0
    out = capsys.readouterr().out
    for word in ("accuracy", "agreement with scikit-learn", "look-ups", "time a row", "malignant"):
        assert word in out
    with pytest.raises(jali.InvalidArgument, match="--rows"):
        command.main(["trees", "--rows", "0"])
    with pytest.raises(jali.Error, match="abacus"):
        command.main(["trees", "--device", "abacus"])
    with pytest.raises(jali.InvalidArgument, match="preset"):
        command.main(["trees", "--preset", "abacus"])


@pytest.mark.long
def test_command_on_the_whole_split(capsys: pytest.CaptureFixture[str]) -> None:
    for preset in (demo.PRESET, "message_2_carry_2"):
        assert command.main(["trees", "--rows", "all", "--json", "--preset", preset]) == 0
        result = json.loads(capsys.readouterr().out)
        assert result["rows"] == 142
        assert result["agreement_with_plain"] == result["equal_scores"] == 1
        assert result["accuracy"] >= 0.95


def test_a_missing_package_is_named() -> None:
    code = (
        "import sys; sys.modules['sklearn'] = None\n"
        "import jali\n"
        "from jali.cli import demo\n"
        "try: demo.main(['trees'])\n"
        "except jali.Unsupported as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert f"{sys.executable} -m pip install scikit-learn" in done.stdout
