"""Rounded and binned classifiers of trees on encrypted rows, against scikit-learn, and the demo.
test_trees_exact.py has models as they are."""

from __future__ import annotations

import itertools
import json
import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from trees_world import ROOM, data, given

import jali
from jali import tfhe
from jali.cli import demo as command
from jali.demo import trees as demo
from jali.tfhe import trees
from jali.tfhe.trees.blocks import strides
from jali.tfhe.trees.circuit import Room

ensemble = pytest.importorskip("sklearn.ensemble", reason="scikit-learn is not installed")
tree = pytest.importorskip("sklearn.tree", reason="scikit-learn is not installed")

REAL = tfhe.Params.preset(demo.PRESET)


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
    edges_of: dict[int, list[float]] = {}
    for question in program.manifest.questions:
        edges_of.setdefault(question.feature, []).append(question.edge)
    for feature, of in edges_of.items():
        for row, edge in enumerate(of[:30]):
            other[3 * row : 3 * row + 3, feature] = np.nextafter(edge, [edge, -np.inf, np.inf])
    scores = program.simulate(other)
    np.testing.assert_array_equal(scores, given(rounded, seen(other)))
    np.testing.assert_array_equal(program.labels(scores), rounded.predict(seen(other)))
    assert np.mean(rounded.predict(seen(x)) == y) >= np.mean(model.predict(seen(x)) == y) - 0.3


def test_a_model_may_have_whole_votes_already(rng: np.random.Generator) -> None:
    """Leaves of one class need no rounding, and rounding leaves them as they are."""
    x, y = data(rng, 2)
    y = np.where(x[:, 0] > 0.25, "yes", "no")
    model = ensemble.RandomForestClassifier(5, max_features=None, random_state=0).fit(x, y)
    program = trees.compile(model, REAL)
    np.testing.assert_array_equal(program.simulate(x), model.predict_proba(x))
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
@pytest.mark.parametrize("reach", [False, True])
def test_indices_are_unique_and_weights_are_small(values: int, reach: bool) -> None:
    """Every combination of edges that features have passed has an index of its own."""
    norm2 = (values**0.5 + 1) ** 2  # what the presets have
    room = Room(values, norm2)
    most = values // 2 if reach else values
    for features in (1, 2, 3, 4):
        for counts in itertools.combinations_with_replacement(range(1, 16), features):
            cells = math.prod(count + 1 for count in counts)
            found = strides(counts, room, reach)
            if found is None:
                # Up to 16 values whatever is unique has little noise; so has what trees of allowed
                # depth compare.
                assert cells > most or (values > 16 and 2 ** sum(counts) > most)
                continue
            each, large = found
            places = itertools.product(*(range(c + 1) for c in counts))
            assert sorted(np.dot(p, each) for p in places) == list(range(cells))
            parts = [(s % room.large, s // room.large) if large else (s, 0) for s in each]
            noise = sum(n * (a * a + b * b) for n, (a, b) in zip(counts, parts, strict=True))
            assert noise + reach <= norm2


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
    np.testing.assert_array_equal(
        trees.compile(rounded, REAL).simulate(x), rounded.predict_proba(x)
    )


def test_models_that_cannot_be_rounded_are_refused_by_name(rng: np.random.Generator) -> None:
    x, y = data(rng, 2)
    forest = ensemble.RandomForestClassifier
    with pytest.raises(jali.Unsupported, match="list cannot"):
        trees.rounded([])
    with pytest.raises(jali.Unsupported, match="RandomForestRegressor cannot"):
        trees.rounded(ensemble.RandomForestRegressor(3).fit(x, x[:, 0]))
    with pytest.raises(jali.InvalidArgument, match="fit"):
        trees.rounded(forest(3))
    with pytest.raises(jali.Unsupported, match="2 labels at once"):
        trees.rounded(forest(3).fit(x, np.stack([y, y], axis=1)))
    with pytest.raises(jali.InvalidArgument, match="one class"):
        trees.rounded(forest(3).fit(x, np.zeros(len(x))))
    categories = ensemble.HistGradientBoostingClassifier(max_iter=2, categorical_features=[1])
    with pytest.raises(jali.Unsupported, match="categories"):
        trees.rounded(categories.fit(x, x[:, 1] == 1))
    fitted = forest(3, max_depth=2, random_state=0).fit(x, y)
    for step in (0, -1, 0.3, 2, 2**-17):
        with pytest.raises(jali.InvalidArgument, match="step"):
            trees.rounded(fitted, step)
    with pytest.raises(jali.InvalidArgument, match="largest"):
        trees.rounded(fitted, 1, largest=3)
    with pytest.raises(jali.InvalidArgument, match=r"Params"):
        trees.compile(trees.rounded(fitted), 3)  # type: ignore[arg-type]
    with pytest.raises(jali.Unsupported, match="carries"):
        trees.compile(trees.rounded(fitted), tfhe.Params.preset("boolean"))
    dull = tree.DecisionTreeClassifier(max_depth=1).fit(x, np.arange(len(x)) == 0)
    dull.tree_.value[:] = [1, 0]
    with pytest.raises(jali.InvalidArgument, match="same answer"):
        trees.compile(dull, REAL)


def test_questions_that_no_tree_asks_are_encrypted_and_not_read(rng: np.random.Generator) -> None:
    """So the client does not learn which edges a model uses, and the server may be sent anything in
    their place."""
    x, y = data(rng, 2)
    edges = trees.quantile_edges(x, 8)
    model = ensemble.RandomForestClassifier(2, max_depth=2, random_state=0)
    model = trees.rounded(model.fit(trees.bins(x, edges), y))
    program = trees.compile(model, ROOM, edges)
    assert len(program.manifest.questions) == sum(map(len, edges))
    assert len(program.manifest.parts) == 2 * len(program.manifest.questions)
    assert len(program.used) < len(program.manifest.parts)
    client = program.client(threads=1)
    server = program.server(client.evaluation_keys(), threads=1)
    request = client.encrypt(x[:3])
    other = tfhe.Client(ROOM, threads=1).encrypt(np.zeros((3, 1), np.int64))
    chunk = [c if k in program.used else other for k, c in enumerate(request.chunks[0])]
    changed = trees.Message(request.program, 3, False, (tuple(chunk),))
    for sent in (request, changed):
        np.testing.assert_array_equal(
            client.decrypt(server(sent)), given(model, trees.bins(x[:3], edges))
        )


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
    program = trees.compile(model.rounded, REAL, model.edges, split_sums=True)
    scores = program.simulate(test.features)
    np.testing.assert_array_equal(scores, model.scores(test.features))
    assert model.accuracy(model.rounded, test) >= 0.95
    assert program.look_ups <= 15


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
