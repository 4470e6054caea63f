"""jali.compile of models of trees as they were fitted: every answer is the model's, and sums are
those of its leaves."""

from __future__ import annotations

import copy
import os
import warnings
from typing import Any

import lies
import numpy as np
import pytest
from trees_world import ROOM, given, is_classifier

import jali
from jali import tfhe
from jali.tfhe import trees
from jali.tfhe.trees.ensemble import Builder, Ensemble, Head, Question

datasets = pytest.importorskip("sklearn.datasets", reason="scikit-learn is not installed")
ensemble = pytest.importorskip("sklearn.ensemble", reason="scikit-learn is not installed")
tree = pytest.importorskip("sklearn.tree", reason="scikit-learn is not installed")
pipeline = pytest.importorskip("sklearn.pipeline", reason="scikit-learn is not installed")

SEED = {"random_state": 0}
HIST = {"max_iter": 8, "max_leaf_nodes": 12, **SEED}

CLASSIFIERS = {
    "tree": tree.DecisionTreeClassifier(**SEED),
    "extra tree": tree.ExtraTreeClassifier(max_depth=6, **SEED),
    "forest": ensemble.RandomForestClassifier(6, **SEED),
    "cut forest": ensemble.RandomForestClassifier(6, min_samples_leaf=7, **SEED),
    "extra trees": ensemble.ExtraTreesClassifier(4, max_depth=5, **SEED),
    "boosting": ensemble.GradientBoostingClassifier(n_estimators=6, **SEED),
    "stumps": ensemble.GradientBoostingClassifier(n_estimators=30, max_depth=1, **SEED),
    "histograms": ensemble.HistGradientBoostingClassifier(**HIST),
    "bagging": ensemble.BaggingClassifier(n_estimators=5, max_features=0.5, **SEED),
    "adaboost": ensemble.AdaBoostClassifier(n_estimators=12, **SEED),
}
REGRESSORS = {
    "tree": tree.DecisionTreeRegressor(**SEED),
    "extra tree": tree.ExtraTreeRegressor(max_depth=6, **SEED),
    "forest": ensemble.RandomForestRegressor(5, max_depth=7, **SEED),
    "extra trees": ensemble.ExtraTreesRegressor(4, max_depth=6, **SEED),
    "boosting": ensemble.GradientBoostingRegressor(n_estimators=15, **SEED),
    "histograms": ensemble.HistGradientBoostingRegressor(**HIST),
    "poisson": ensemble.HistGradientBoostingRegressor(loss="poisson", **HIST),
    "bagging": ensemble.BaggingRegressor(n_estimators=4, max_features=0.5, **SEED),
}


def near_edges(program: trees.Program, rows: np.ndarray) -> np.ndarray:
    """Rows whose numbers lie at edges of the model, and as near to them as floats can."""
    rows = rows[: 3 * (len(rows) // 3)].astype(np.float64)
    for k, question in enumerate(program.manifest.questions):
        at = 3 * (k % (len(rows) // 3))
        if question.yes is None and np.isfinite(question.edge):
            # Above is near enough to be rounded to the edge where numbers are compared as float32.
            sides = [question.edge, *np.nextafter(question.edge, [-np.inf, np.inf])]
            rows[at : at + 3, question.feature] = sides
    return rows


def check(model: Any, program: trees.Program, rows: np.ndarray) -> None:
    """Simulated answers are the model's: within the bound that the program states and the rounding
    of floating-point numbers."""
    want, found = given(model, rows), program.simulate(rows)
    assert found.shape == want.shape
    scale = max(1.0, float(np.abs(want).max()))
    assert np.abs(found - want).max() <= program.error + 1e-13 * scale
    assert np.abs(program.clear(rows) - want).max() <= 1e-13 * scale
    if is_classifier(model) or hasattr(model, "offset_"):
        np.testing.assert_array_equal(program.labels(found), model.predict(rows))


SOURCES = [
    (kind, source)
    if source != "load_digits" or kind in ("tree", "forest", "extra tree", "bagging")
    else pytest.param(kind, source, marks=pytest.mark.long)  # ten classes are ten sums
    for kind in CLASSIFIERS
    for source in ("load_breast_cancer", "load_wine", "load_digits")
]


@pytest.mark.parametrize(("kind", "source"), SOURCES)
def test_classifiers_give_their_answers(kind: str, source: str) -> None:
    """Labels and scores of whole data sets, of which half was not seen, and of rows at the edges of
    the comparisons."""
    x, y = getattr(datasets, source)(return_X_y=True)
    model = copy.deepcopy(CLASSIFIERS[kind]).fit(x[::2], y[::2])
    program = jali.compile(model)
    check(model, program, x)
    check(model, program, near_edges(program, x[:600]))


@pytest.mark.parametrize("kind", REGRESSORS)
def test_regressors_give_sums_of_their_leaves(kind: str) -> None:
    x, y = datasets.load_diabetes(return_X_y=True)
    y = y + 0.1 * np.arange(len(y))  # so that leaves are no whole numbers
    model = copy.deepcopy(REGRESSORS[kind]).fit(x[::2], y[::2])
    program = jali.compile(model, x[:1], calibration=x)
    if kind != "poisson":  # whose exp makes more of an error
        check(model, program, x)
        check(model, program, near_edges(program, x))
        assert program.error <= 2**-32 * (y.max() - y.min()) * 4
    np.testing.assert_allclose(program.simulate(x), model.predict(x), rtol=1e-7)


@pytest.mark.parametrize("contamination", ["auto", 0.05])
def test_isolation_forests_give_their_scores(contamination: Any) -> None:
    """Path lengths are sums of leaves. With a share of outliers, scores of some rows of the fit are
    at the limit."""
    x, _ = datasets.load_breast_cancer(return_X_y=True)
    model = ensemble.IsolationForest(
        n_estimators=20, contamination=contamination, max_features=0.4, **SEED
    )
    model.fit(x)
    program = jali.compile(model)
    check(model, program, x)
    np.testing.assert_allclose(
        program.simulate(x) + model.offset_, model.score_samples(x), rtol=1e-8
    )


def test_several_numbers_for_a_row_are_predicted_at_once() -> None:
    x, y = datasets.load_diabetes(return_X_y=True)
    model = ensemble.RandomForestRegressor(3, max_depth=5, **SEED)
    model.fit(x, np.stack([y, 1e-3 * y**2, x[:, 0]], axis=1))
    program = jali.compile(model)
    # Every number has a step of its own.
    want = model.predict(x)
    assert (np.abs(program.simulate(x) - want).max(axis=0) <= 2**-30 * np.ptp(want, axis=0)).all()


@pytest.mark.parametrize("kind", ["boosting", "histograms", "adaboost", "forest"])
@pytest.mark.parametrize("source", ["load_breast_cancer", "load_wine"])
def test_probabilities_are_made_at_the_client(kind: str, source: str) -> None:
    x, y = getattr(datasets, source)(return_X_y=True)
    model = copy.deepcopy(CLASSIFIERS[kind]).fit(x[::2], y[::2])
    program = jali.compile(model, output="probability")
    found = program.simulate(x)
    np.testing.assert_allclose(found, model.predict_proba(x), atol=program.error + 1e-12)
    np.testing.assert_array_equal(program.labels(found), model.predict(x))
    exponential = ensemble.GradientBoostingClassifier(n_estimators=3, loss="exponential", **SEED)
    exponential.fit(x, y == 0)
    program = jali.compile(exponential, output="probability")
    np.testing.assert_allclose(program.simulate(x), exponential.predict_proba(x), atol=1e-8)


@pytest.mark.parametrize("bits", [1, 4, 10, 20, 48])
def test_fewer_bits_take_fewer_look_ups_and_the_bound_holds(bits: int) -> None:
    x, y = datasets.load_diabetes(return_X_y=True)
    model = ensemble.GradientBoostingRegressor(n_estimators=9, **SEED).fit(x, y)
    program = jali.compile(model, precision_bits=bits)
    spans = [np.ptp(one.tree_.value[one.tree_.children_left < 0]) for (one,) in model.estimators_]
    assert program.error <= 2.0**-bits * model.learning_rate * sum(spans)
    check(model, program, x)
    other = jali.compile(model)
    assert program.look_ups < other.look_ups if bits < 32 else program.look_ups > other.look_ups


def test_ties_are_broken_as_by_the_model(rng: np.random.Generator) -> None:
    """Of an even number of trees with pure leaves many rows get as many votes for one class as for
    another."""
    x = rng.integers(0, 4, (600, 5)).astype(float)
    y = rng.integers(0, 4, 600)
    for count in (2, 4, 6):
        for least in (1, 3):  # leaves of thirds, whose sums are no floating-point numbers
            model = ensemble.RandomForestClassifier(count, min_samples_leaf=least, **SEED).fit(x, y)
            program = jali.compile(model)
            found, want = program.simulate(x), model.predict_proba(x)
            ordered = np.sort(want, axis=1)
            assert least > 1 or (ordered[:, -1] == ordered[:, -2]).any()
            # Where the model's own sums are equal but for the last bits, which depend on the order
            # of its additions, the first class is the answer.
            near = want >= want.max(axis=1, keepdims=True) - 1e-14
            np.testing.assert_array_equal(found.argmax(axis=1), near.argmax(axis=1))
            np.testing.assert_array_equal(
                program.labels(found), model.classes_[near.argmax(axis=1)]
            )


def test_missing_numbers_go_the_way_of_the_model(rng: np.random.Generator) -> None:
    x, y = datasets.load_wine(return_X_y=True)
    holes = x.copy()
    holes[rng.random(x.shape) < 0.2] = np.nan
    for model in (
        ensemble.HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=3),
        ensemble.RandomForestClassifier(5, **SEED),
        tree.DecisionTreeRegressor(**SEED),
        ensemble.BaggingClassifier(n_estimators=3, **SEED),
    ):
        for seen in (holes, x):  # numbers may be missing that were not at the fit
            model.fit(seen, y)
            try:
                model.predict(holes)
            except ValueError:  # in older releases of scikit-learn
                continue
            check(model, jali.compile(model), holes)
    boosting = ensemble.GradientBoostingClassifier(n_estimators=2).fit(x, y)
    for program, rows in ((jali.compile(boosting), holes), (jali.compile(boosting), x + np.inf)):
        with pytest.raises(jali.InvalidArgument, match=r"missing|not finite"):
            program.simulate(rows)


def test_categories_are_compared_as_by_the_model(rng: np.random.Generator) -> None:
    """Known ones, unknown ones, and missing ones."""
    x = rng.integers(0, 9, (400, 3)) * 5.0 - 7.0
    x[:, 2] = rng.normal(size=400)
    y = np.isin(x[:, 0], [3.0, 13.0, 28.0]) * 2.0 + np.isin(x[:, 1], [-7.0, 8.0]) + x[:, 2] / 9
    x[::17, 0] = np.nan
    seen = x.copy()
    seen[:, :2] = np.where(np.isnan(x[:, :2]), np.nan, (x[:, :2] + 7) / 5)  # whole numbers from 0
    model = ensemble.HistGradientBoostingRegressor(max_iter=9, categorical_features=[0, 1])
    for rows in (x, seen):
        if rows is x and not hasattr(model.fit(seen, y), "_preprocessor"):
            continue  # releases that take whole numbers from 0 on alone
        model.fit(rows, y)
        strange = rows.copy()
        strange[::5, 0], strange[::7, 1], strange[::9, 1] = 4.5, 1000.0, np.nan
        if rows is seen:
            strange[::5, 0], strange[::7, 1] = np.nan, np.nan
        for some in (rows, strange):
            check(model, jali.compile(model), some)


def chain(depth: int) -> Ensemble:
    """A tree that is one long path, with a leaf beside each of its nodes."""
    nodes = 2 * depth + 1
    asked: list[Question | None] = [
        Question(k // 2, float(k)) if k % 2 == 0 and k < 2 * depth else None for k in range(nodes)
    ]
    no, yes = np.arange(nodes) + 1, np.arange(nodes) + 2
    values = (np.arange(nodes) * 37 % 101)[:, None] / 8
    builder = Builder()
    builder.add(asked, no, yes, [0], values)
    how = (depth, "float64", False, False, np.array([]))
    return Ensemble(tuple(builder.questions), tuple(builder.trees), np.zeros(1), Head(), *how)


def test_deep_trees_and_long_paths_are_computed(rng: np.random.Generator) -> None:
    """A path has more comparisons than one index holds, and than Python recurses."""
    for depth in (20, 400):
        program = trees.compile(chain(depth))
        rows = np.where(rng.random((50, depth)) < 3 / depth, -1.0, 1e9)
        np.testing.assert_array_equal(program.simulate(rows), program.clear(rows))
        assert len(set(program.clear(rows).tolist())) > 5


def test_random_ensembles_are_exact(rng: np.random.Generator) -> None:
    """Trees of any shape with leaves of any size, in rooms of every size, against a walk through
    the trees."""
    rooms = {"message_1_carry_1": 4, "message_2_carry_2": 16, "message_3_carry_3": 64}
    for round_ in range(36):
        builder, features, scores = Builder(), int(rng.integers(1, 6)), int(rng.integers(1, 4))
        for _ in range(int(rng.integers(1, 7))):
            asked: list[Question | None] = [None]
            no, yes = [0], [0]
            for _ in range(int(rng.integers(0, 40))):
                leaf = int(rng.choice([k for k, q in enumerate(asked) if q is None]))
                missing = int(rng.integers(1, 3))
                asked[leaf] = Question(int(rng.integers(features)), float(rng.integers(5)), missing)
                no[leaf], yes[leaf] = len(asked), len(asked) + 1
                asked, no, yes = [*asked, None, None], [*no, 0, 0], [*yes, 0, 0]
            own = rng.permutation(scores)[: int(rng.integers(1, scores + 1))].tolist()
            spread = 4.0 ** int(rng.integers(0, 8))
            values = rng.integers(-spread, spread + 1, (len(asked), len(own))) / 4.0
            builder.add(asked, no, yes, own, values)
        how = (features, "float64", True, False, np.array([]))
        base = rng.normal(size=scores).round(2)
        head = Head(flat=False)
        model = Ensemble(tuple(builder.questions), tuple(builder.trees), base, head, *how)
        rows = rng.integers(-1, 7, (200, features)) / 1.0
        rows[rng.random(rows.shape) < 0.1] = np.nan
        name = list(rooms)[round_ % 3]
        try:
            program = trees.compile(model, name, split_sums=bool(round_ % 2))
        except jali.InvalidArgument as error:
            assert "same answer" in str(error)
            continue
        assert program.error == 0
        np.testing.assert_allclose(
            program.simulate(rows), program.clear(rows), rtol=1e-12, atol=1e-9
        )


def test_a_reply_says_no_more_than_the_sums() -> None:
    """Rows of equal sums get equal numbers, also if different leaves make the sums."""
    x, y = datasets.load_breast_cancer(return_X_y=True)
    model = ensemble.RandomForestClassifier(40, max_depth=6, min_samples_leaf=1, **SEED).fit(x, y)
    for program in (jali.compile(trees.rounded(model)), jali.compile(model, precision_bits=6)):
        inputs = program.manifest.inputs(x)[:, program.used]
        numbers = program.plan.circuit.clear(inputs)
        by_sum: dict[float, set[bytes]] = {}
        for row, result in zip(numbers, program.simulate(x)[:, 1], strict=True):
            by_sum.setdefault(float(result), set()).add(row.tobytes())
        assert len(by_sum) > 20 and all(len(of) == 1 for of in by_sum.values())


MODELS = {
    "regressor": (ensemble.RandomForestRegressor(3, max_depth=4, **SEED), "load_diabetes", {}),
    "classes": (ensemble.RandomForestClassifier(2, max_depth=6, **SEED), "load_digits", {}),
    "boosting": (CLASSIFIERS["boosting"], "load_breast_cancer", {"precision_bits": 12}),
    "anomalies": (ensemble.IsolationForest(n_estimators=2, **SEED), "load_wine", {}),
}


@pytest.mark.parametrize("kind", MODELS)
def test_encrypted_rows_get_the_answers(kind: str) -> None:
    """From bytes to bytes, one row and several."""
    unfitted, source, how = MODELS[kind]
    x, y = getattr(datasets, source)(return_X_y=True)
    model = copy.deepcopy(unfitted).fit(x, y)
    program = trees.compile(model, ROOM, **how)
    manifest = trees.Manifest.from_bytes(program.manifest.to_bytes(), security=0)
    client = trees.Client(manifest, threads=1)
    again = trees.Program.from_bytes(program.to_bytes(), security=0)
    server = again.server(client.evaluation_keys(), threads=1)
    for rows in (x[:2], x[50]):
        request = trees.Message.request(client.encrypt(rows).to_bytes(), server.manifest)
        reply = trees.Message.reply(server(request).to_bytes(), client.manifest)
        found = client.decrypt(reply)
        want = program.simulate(np.atleast_2d(rows))
        np.testing.assert_array_equal(found, want if rows.ndim == 2 else want[0])
        assert np.abs(found - given(model, np.atleast_2d(rows)).reshape(found.shape)).max() <= (
            program.error + 1e-12
        )
    labels = client.labels(client.decrypt(server(client.encrypt(x[:2]))))
    if kind != "regressor":
        np.testing.assert_array_equal(labels, model.predict(x[:2]))


def test_other_parties_messages_are_refused() -> None:
    x, y = datasets.load_wine(return_X_y=True)
    program = trees.compile(tree.DecisionTreeClassifier(max_depth=2).fit(x, y), ROOM)
    other = trees.compile(tree.DecisionTreeClassifier(max_depth=3).fit(x, y), ROOM)
    client = program.client(threads=1)
    server = program.server(client.evaluation_keys(), threads=1)
    request = client.encrypt(x[:2])
    with pytest.raises(jali.InvalidArgument, match="another program"):
        server(other.client(threads=1).encrypt(x[:2]))
    with pytest.raises(jali.InvalidArgument, match="another program"):
        trees.Message.request(request.to_bytes(), other.manifest)
    with pytest.raises(jali.InvalidArgument, match="no reply"):
        client.decrypt(request)
    with pytest.raises(jali.InvalidArgument, match="no request"):
        server(server(request))
    with pytest.raises(jali.KeyMismatch):
        server(program.client(threads=1).encrypt(x[:2]))
    with pytest.raises(jali.InvalidArgument, match="Message"):
        server(request.to_bytes())  # type: ignore[arg-type]
    with pytest.raises(jali.InvalidArgument, match="Message"):
        client.decrypt(request.to_bytes())  # type: ignore[arg-type]
    (chunk,) = request.chunks
    for chunks in ((), (chunk, chunk), (chunk[:-1],), ((*chunk, chunk[0]),)):
        with pytest.raises(jali.InvalidArgument, match="ciphertexts"):
            server(trees.Message(request.program, 2, False, chunks))
    with pytest.raises(jali.ParamsMismatch):
        trees.Client(program.manifest, secret=tfhe.Client(tfhe.Params.preset("boolean")))
    with pytest.raises(jali.LimitExceeded, match=f"max_bytes={ROOM.key_bytes}"):
        client.evaluation_keys(max_bytes=ROOM.key_bytes - 1)
    client.evaluation_keys(max_bytes=ROOM.key_bytes)
    with pytest.raises(jali.InvalidArgument, match="Manifest"):
        trees.Client(program)  # type: ignore[arg-type]
    data = request.to_bytes()
    for cut in range(0, len(data), 7):
        with pytest.raises(jali.Error):
            trees.Message.request(data[:cut], program.manifest)
    with pytest.raises(jali.CorruptData, match="left over"):
        trees.Message.request(lies.sealed(data + b"\0"), program.manifest)


def test_rows_that_do_not_fit_are_refused_and_no_number_is_shown() -> None:
    x, y = datasets.load_wine(return_X_y=True)
    client = trees.compile(tree.DecisionTreeClassifier(max_depth=2).fit(x, y), ROOM).client()
    bad = np.full((2, 13), 123457.0)
    bad[1, 3] = np.inf
    for rows, words in (
        (x[:, :5], "5 features"),
        (x[:0], "shape"),
        (x[None], "shape"),
        (bad, "not finite"),
        ([["123457"] * 12 + ["x"]], "numbers"),
        (np.ma.masked_greater(x, 5), "masked"),
    ):
        with pytest.raises(jali.InvalidArgument, match=words) as caught:
            client.encrypt(rows)
        assert "123457" not in str(caught.value)


def test_bytes_from_elsewhere_never_give_a_foreign_error(rng: np.random.Generator) -> None:
    """Fields are changed with a valid hash: what is taken can be used, and everything else is
    refused as an error of Jali."""
    import json

    from jali._jali import program as _program
    from jali.tfhe.trees import stored

    x, y = datasets.load_wine(return_X_y=True)
    model = ensemble.RandomForestClassifier(2, max_depth=3, **SEED).fit(x, y)
    program = trees.compile(model, ROOM)
    small = stored._text(np.array([0, 1, 2], np.int64))
    strange: list[Any] = [
        None, True, -1, 0, 1, 1 << 70, 2.5, 1e308, float("nan"), "", "x", "AAAA", small, [], [[]], {}, ["a", "b"], [1, "a"],
        stored._text(np.array([np.nan, np.inf, -1e308])), stored._text(np.array([-(2**62), 2**62], np.int64)), "\x1b[2J",
    ]  # fmt: skip
    for kind, data in (("manifest", program.manifest.to_bytes()), ("program", program.to_bytes())):
        document = stored.read(kind, data)
        fields = [(name,) for name in document] + [("head", name) for name in document["head"]]
        for path in fields:
            for value in strange:
                changed = json.loads(json.dumps(document))
                inside = changed if len(path) == 1 else changed[path[0]]
                inside[path[-1]] = value
                text = json.dumps(changed).encode()
                raw = _program.payload_to_bytes("tfhe", kind, [text])
                try:
                    if kind == "program":
                        made = trees.Program.from_bytes(raw, security=0)
                        made.simulate(x[:2])
                    else:
                        taken = trees.Manifest.from_bytes(raw, security=0)
                        with np.errstate(all="ignore"):
                            taken.inputs(np.zeros((2, min(taken.features, 20))))
                            taken.head.labels(
                                taken.results(np.ones((2, len(taken.outputs)), np.int64)),
                                taken.classes,
                            )
                except jali.Error as error:
                    assert "\x1b" not in str(error)
            del inside[path[-1]]
            text = json.dumps(changed).encode()
            raw = _program.payload_to_bytes("tfhe", kind, [text])
            with pytest.raises(jali.CorruptData):
                (trees.Program if kind == "program" else trees.Manifest).from_bytes(raw, security=0)
        for _ in range(200):
            broken = bytearray(data)
            broken[int(rng.integers(len(broken)))] ^= 1 << int(rng.integers(8))
            with pytest.raises((jali.CorruptData, jali.VersionError)):
                (trees.Program if kind == "program" else trees.Manifest).from_bytes(
                    broken, security=0
                )


def test_programs_and_manifests_are_saved(tmp_path: Any) -> None:
    x, y = datasets.load_wine(return_X_y=True)
    program = jali.compile(ensemble.RandomForestClassifier(3, max_depth=3, **SEED).fit(x, y))
    program.save(tmp_path / "program")
    program.manifest.save(tmp_path / "manifest")
    again = trees.Program.load(tmp_path / "program")
    assert again.manifest.fingerprint == program.manifest.fingerprint
    assert trees.Manifest.load(tmp_path / "manifest").fingerprint == program.manifest.fingerprint
    np.testing.assert_array_equal(again.simulate(x), program.simulate(x))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["manifest", "program"]
    with pytest.raises(jali.FileError):
        trees.Program.load(tmp_path / "nothing")
    with pytest.raises(jali.FileError):
        program.save(tmp_path / "no folder" / "program")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(jali.FileError, match="not a file"):
        program.save(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "other")
    program.save(tmp_path / "link")  # the link stays, and what it names is written
    assert (tmp_path / "link").is_symlink()
    again = trees.Program.load(tmp_path / "other")
    assert again.manifest.fingerprint == program.manifest.fingerprint
    with pytest.raises(jali.InvalidArgument, match="path"):
        program.save(3)  # type: ignore[arg-type]


def test_the_cost_of_deep_forests_is_said_first() -> None:
    x, y = datasets.load_diabetes(return_X_y=True)
    y = y + 0.1 * np.arange(len(y))
    with pytest.warns(
        UserWarning, match=r"look-ups, about \d+ minutes.*max_leaf_nodes=.*precision_bits="
    ) as caught:
        dear = jali.compile(ensemble.RandomForestRegressor(60, **SEED).fit(x, y))
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # what the warning advises
        smaller = ensemble.RandomForestRegressor(60, max_leaf_nodes=30, **SEED).fit(x, y)
        cheap = jali.compile(smaller, precision_bits=10)
    assert cheap.look_ups < dear.look_ups / 4
    summary = trees.compile(smaller, ROOM).summary(threads=1)
    assert summary.look_ups == trees.compile(smaller, ROOM).look_ups
    for words in ("look-ups a row", "time a row", "public keys", "memory", "differ by at most"):
        assert words in str(summary)


def test_what_cannot_be_compiled_is_refused_with_advice_that_works(
    rng: np.random.Generator,
) -> None:
    x, y = datasets.load_wine(return_X_y=True)
    forest = ensemble.RandomForestClassifier(3, max_depth=3, **SEED)
    with pytest.raises(jali.InvalidArgument, match="fit"):
        jali.compile(forest)
    from sklearn.preprocessing import StandardScaler

    steps = pipeline.make_pipeline(StandardScaler(), copy.deepcopy(forest)).fit(x, y)
    with pytest.raises(jali.Unsupported, match=r"jali\.compile\(pipeline\[-1\]\)"):
        jali.compile(steps, x[:1], calibration=x)
    program = jali.compile(steps[-1])
    found = program.simulate(steps[:-1].transform(x))
    np.testing.assert_array_equal(program.labels(found), steps.predict(x))
    with pytest.raises(jali.Unsupported, match="GradientBoostingRegressor"):
        jali.compile(ensemble.AdaBoostRegressor(n_estimators=2).fit(x, y), x[:1])
    jali.compile(ensemble.GradientBoostingRegressor(n_estimators=2).fit(x, y))
    with pytest.raises(jali.Unsupported, match="2 labels at once"):
        jali.compile(copy.deepcopy(forest).fit(x, np.stack([y, y], axis=1)))
    with pytest.raises(jali.Unsupported, match="no probabilities"):
        jali.compile(ensemble.IsolationForest(n_estimators=2).fit(x), output="probability")
    from sklearn.linear_model import LinearRegression

    begun = ensemble.GradientBoostingRegressor(n_estimators=2, init=LinearRegression()).fit(x, y)
    with pytest.raises(jali.Unsupported, match="init=None"):
        jali.compile(begun)
    jali.compile(ensemble.GradientBoostingRegressor(n_estimators=2, init=None).fit(x, y))
    jali.compile(ensemble.GradientBoostingRegressor(n_estimators=2, init="zero").fit(x, y))
    with pytest.raises(jali.InvalidArgument, match="same answer"):
        jali.compile(tree.DecisionTreeRegressor().fit(x, np.ones(len(x))))
    fitted = copy.deepcopy(forest).fit(x, y)
    with pytest.raises(jali.InvalidArgument, match="13"):
        jali.compile(fitted, x[:1, :4])
    for wrong in (0, 49, True, "10"):
        with pytest.raises(jali.InvalidArgument, match="precision_bits"):
            jali.compile(fitted, precision_bits=wrong)
    with pytest.raises(jali.InvalidArgument, match="output"):
        jali.compile(fitted, output="label")
    with pytest.raises(jali.InvalidArgument, match="example is missing"):
        jali.compile(lambda x: x)


def test_labels_of_one_row_are_those_of_its_row() -> None:
    """The scores of one row were taken for scores of several rows with two classes."""
    rng = np.random.default_rng()
    x = rng.normal(size=(60, 4))
    y = np.digitize(x[:, 0], [-0.5, 0.5])
    for model in (
        ensemble.RandomForestClassifier(3, max_depth=2).fit(x, y),
        ensemble.GradientBoostingClassifier(n_estimators=2).fit(x, y > 0),
        ensemble.IsolationForest(n_estimators=3).fit(x),
        tree.DecisionTreeRegressor(max_depth=2).fit(x, np.c_[y, x[:, 1]]),
    ):
        program = jali.compile(model)
        found, want = program.simulate(x[:4]), model.predict(x[:4])
        assert np.allclose(program.labels(found), want)
        for row, label in zip(found, want, strict=True):
            assert np.allclose(program.labels(row), label)
        for wrong in ([[1, 2], [1]], "x", None, np.ones((2, 2, 2)), np.ones((3, 7)), found + 1j, found * np.nan):  # fmt: skip
            with pytest.raises(jali.InvalidArgument, match="give what decrypt gave"):
                program.labels(wrong)


@pytest.mark.filterwarnings("error")
def test_what_is_no_table_of_real_numbers_is_refused() -> None:
    """Complex numbers lost their imaginary parts, texts and dates were numbers, and rows of
    different lengths gave an error of NumPy's."""
    x = np.linspace(-1, 1, 80).reshape(20, 4)
    model = tree.DecisionTreeClassifier(max_depth=2).fit(x, x[:, 0] > 0)
    program = jali.compile(model)
    client = program.client(secret=tfhe.Client(program.params, threads=1))
    for wrong in (x + 1j, x.astype(str), x.astype("M8[s]"), [[1, 2], [1]], "x"):
        for call in (program.simulate, program.clear, client.encrypt, lambda rows: jali.compile(model, rows)):  # fmt: skip
            with pytest.raises(jali.InvalidArgument, match="rows are no table of real numbers"):
                call(wrong)
    assert (program.clear(x.astype(object)) == program.clear(x)).all()
