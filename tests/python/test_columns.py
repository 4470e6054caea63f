"""Tables whose columns are not those of the model, in its order, are refused wherever data comes in:
numbers are taken by their places, and another order gave wrong results without a word."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import jali
from jali import nn
from jali._core.columns import check_columns, columns_of
from jali.tfhe import trees

pd = pytest.importorskip("pandas")
pytest.importorskip("sklearn")

NAMES = ["age", "income", "height in m"]


def table(rng: np.random.Generator, rows: int = 40) -> Any:
    return pd.DataFrame(rng.uniform(-1, 1, (rows, 3)), columns=NAMES)


class World(NamedTuple):
    table: Any
    program: Any
    other: Any  # a program of a function, which knows its columns from its calibration
    trees: Any


@pytest.fixture(scope="module")
def world() -> World:
    from sklearn.linear_model import LinearRegression
    from sklearn.tree import DecisionTreeClassifier

    x = table(np.random.default_rng(1))
    y = x["age"] + 2 * x["income"] - x["height in m"]
    weights = np.array([0.5, 0.25, -0.5])
    model, tree = LinearRegression().fit(x, y), DecisionTreeClassifier(max_depth=2, random_state=0)
    return World(
        x,
        jali.compile(model, x[:1], calibration=x),
        jali.compile(lambda v: v * weights, x.iloc[0], calibration=x),
        jali.compile(tree.fit(x, y > 0)),
    )


#: Every place where a program, a client or a manifest takes data.
ENTRANCES: dict[str, Callable[[World], Any]] = {
    "client.encrypt": lambda w: w.program.client().encrypt,
    "a client elsewhere": lambda w: (
        nn.Client(nn.Manifest.from_bytes(w.program.manifest.to_bytes())).encrypt
    ),
    "a client of a loaded program": lambda w: (
        nn.Program.from_bytes(w.program.to_bytes()).client().encrypt
    ),
    "program.clear": lambda w: w.program.clear,
    "program.simulate": lambda w: w.program.simulate,
    "of a function, client.encrypt": lambda w: w.other.client().encrypt,
    "of a function, program.clear": lambda w: w.other.clear,
    "of a function, program.simulate": lambda w: w.other.simulate,
    "of trees, client.encrypt": lambda w: w.trees.client().encrypt,
    "of trees, a client elsewhere": lambda w: (
        trees.Client(trees.Manifest.from_bytes(w.trees.manifest.to_bytes())).encrypt
    ),
    "of trees, a client of a loaded program": lambda w: (
        trees.Program.from_bytes(w.trees.to_bytes()).client().encrypt
    ),
    "of trees, program.clear": lambda w: w.trees.clear,
    "of trees, program.simulate": lambda w: w.trees.simulate,
}


@pytest.mark.parametrize("entrance", ENTRANCES)
def test_tables_in_another_order_are_refused(entrance: str, world: World) -> None:
    take = ENTRANCES[entrance](world)
    program = world.trees if "trees" in entrance else world.other if "of a f" in entrance else world.program  # fmt: skip
    good = world.table.head(4)
    take(good)
    take(good.to_numpy())
    bad = good[["income", "age", "height in m"]]
    with pytest.raises(jali.InvalidArgument, match="in another order") as error:
        take(bad)
    advice = str(error.value).partition("give ")[2]

    class client:  # the names that the advice uses
        manifest = program.manifest

    mended = eval(advice, {"table": bad, "client": client, "program": client, "list": list})
    assert mended.equals(good)
    take(mended)
    for wrong, why in (
        (good.assign(label=1.0), "beside its own: give table"),
        (good.rename(columns={"age": "Alter"}), "it lacks age"),
        (good[["age", "income"]], "it lacks height in m"),
    ):
        with pytest.raises(jali.InvalidArgument, match=why):
            take(wrong)
    take(pd.DataFrame(good.to_numpy()))  # columns without names, as an array


def test_a_row_in_another_order_is_refused(world: World) -> None:
    client, row = world.program.client(), world.table.iloc[0]
    client.encrypt(row)
    for entrance in (client.encrypt, world.program.clear, world.program.simulate):
        with pytest.raises(jali.InvalidArgument, match=r"in another order.*row\[list"):
            entrance(row[::-1])
    with pytest.raises(jali.InvalidArgument, match="in another order"):
        world.trees.client().encrypt(row[::-1])
    rows = [world.table.iloc[0], world.table.iloc[1]]
    client.encrypt(rows)
    with pytest.raises(jali.InvalidArgument, match=r"in another order.*row\[list"):
        client.encrypt([rows[0], rows[1][::-1]])


def test_a_part_of_a_column_is_no_row(world: World) -> None:
    for entrance in (world.program.client().encrypt, world.trees.client().encrypt):
        for part in (world.table["age"][:3], world.table["age"][5:8]):
            with pytest.raises(jali.InvalidArgument, match="it lacks age, income"):
                entrance(part)


def test_records_are_refused_with_what_converts_them(world: World) -> None:
    from numpy.lib import recfunctions

    records, client = world.table[:2].to_records(index=False), world.program.client()
    with pytest.raises(jali.InvalidArgument, match="not records") as error:
        client.encrypt(records)
    code = str(error.value).partition("convert them by numpy.lib.")[2]
    array = eval(code, {"recfunctions": recfunctions, "records": records})
    np.testing.assert_array_equal(array, world.table[:2])
    client.encrypt(array)


def test_compile_holds_every_table_to_one_order(world: World) -> None:
    x, swapped = world.table, world.table[["income", "age", "height in m"]]

    def double(v: Any) -> Any:
        return 2 * v

    for example, calibration in (
        (x.iloc[0], swapped),
        (x.iloc[0], [x[:20], swapped[20:]]),
        (x.iloc[0].to_numpy(), [x[:20], swapped[20:]]),
        (swapped.iloc[0], [(x, None)]),
    ):
        with pytest.raises(jali.InvalidArgument, match="in another order") as error:
            jali.compile(double, example, calibration=calibration)
        assert "[['" in str(error.value)
    low, high = x.min(), x.max()
    jali.compile(double, x.iloc[0], calibration=x, input_range=(low, high))
    with pytest.raises(jali.InvalidArgument, match=r"a row of input_range.*row\[\['age'"):
        jali.compile(double, x.iloc[0], calibration=x, input_range=(low[::-1], high))


def test_names_of_several_inputs(rng: np.random.Generator) -> None:
    x, y = table(rng), table(rng).rename(columns=str.upper)
    program = jali.compile(lambda a, b: a + b, (x.iloc[0], y.iloc[0]), calibration=(x, y))
    assert [port.columns for port in program.manifest.inputs] == [tuple(x), tuple(y)]
    client = program.client()
    client.encrypt(x[:2], y[:2])
    with pytest.raises(jali.InvalidArgument, match=r"inputs\[0\]"):
        client.encrypt(y[:2], x[:2])
    with pytest.raises(jali.InvalidArgument, match=r"inputs\[1\].columns"):
        client.encrypt(x[:2], y[:2][list(y)[::-1]])


def test_numbered_columns_in_another_order(rng: np.random.Generator) -> None:
    x = pd.DataFrame(rng.uniform(-1, 1, (40, 3)))
    for given, wrong in ((x, x[[2, 0, 1]]), (x[[2, 0, 1]], x)):
        program = jali.compile(lambda v: 2 * v, given[:1].squeeze(), calibration=given)
        client = program.client()
        client.encrypt(given[:2])
        with pytest.raises(jali.InvalidArgument, match="in another order") as error:
            client.encrypt(wrong[:2])
        mended = eval(str(error.value).partition("give ")[2], {"table": wrong})
        assert np.array_equal(mended, given)


def test_series_that_are_no_rows_have_no_names(rng: np.random.Generator) -> None:
    """The labels of a column, or of a time series, are not names of features."""
    column = pd.Series(rng.uniform(-1, 1, 40))
    shuffled = column.sample(frac=1, random_state=1)
    program = jali.compile(lambda v: 2 * v, 0.5, calibration=[column, shuffled])
    assert program.manifest.inputs[0].columns == ()
    program.client().encrypt(shuffled)
    days = pd.Series(rng.uniform(-1, 1, 60), index=[f"day {k}" for k in range(60)])
    program = jali.compile(lambda v: v.sum(), days[:5], calibration=days.to_numpy().reshape(12, 5))
    assert program.manifest.inputs[0].columns == ()
    program.client().encrypt(days[5:10])


def test_numbers_of_a_file_without_a_header_are_no_names(rng: np.random.Generator) -> None:
    """Its first row would be in the manifest, and in errors."""
    x = pd.DataFrame(rng.uniform(-1, 1, (40, 3)), columns=["5.1", "0.25", "Iris"])
    program = jali.compile(lambda v: 2 * v, x.iloc[0], calibration=x)
    assert program.manifest.inputs[0].columns == ()
    assert b"0.25" not in program.manifest.to_bytes()


@pytest.mark.parametrize("names", [["a\nb", "c", "d"], ["\x1b[2J", "", "é"], ["x" * 5000, "\u202e", "\ud800"], [("a", 1), ("a", 2), ("b", 1)]])  # fmt: skip
def test_any_names_survive_the_manifest(names: list[Any], rng: np.random.Generator) -> None:
    x = pd.DataFrame(
        rng.uniform(-1, 1, (40, 3)), columns=pd.Index(names, dtype=object, tupleize_cols=False)
    )
    program = jali.compile(lambda v: 2 * v, x.iloc[0].to_numpy(), calibration=x)
    manifest = nn.Manifest.from_bytes(program.manifest.to_bytes())
    assert manifest.inputs[0].columns == program.manifest.inputs[0].columns
    assert all(name.isprintable() for name in manifest.inputs[0].columns)
    assert len(manifest.inputs[0].columns) == 3
    client = nn.Client(manifest)
    client.encrypt(x[:2])
    with pytest.raises(jali.InvalidArgument, match="in another order") as error:
        client.encrypt(x[:2].iloc[:, ::-1])
    assert str(error.value).isprintable()


def test_edges_keep_the_names_of_their_table(rng: np.random.Generator) -> None:
    from sklearn.tree import DecisionTreeClassifier

    x = table(rng)
    swapped = x[["income", "age", "height in m"]]
    edges = trees.quantile_edges(x, 8)
    with pytest.raises(jali.InvalidArgument, match=r"give table\[list\(edges.names\)\]"):
        trees.bins(swapped, edges)
    model = DecisionTreeClassifier(max_depth=2, random_state=0)
    model.fit(trees.bins(x, edges), x["age"] > 0)
    program = trees.compile(model, edges=edges)
    assert np.array_equal(program.simulate(x), program.simulate(x.to_numpy()))
    for take in (program.simulate, program.clear, program.client().encrypt):
        with pytest.raises(jali.InvalidArgument, match="in another order"):
            take(swapped)


def test_tables_of_other_libraries() -> None:
    class Polars:
        columns = ("b", "a")

    class Arrow:
        columns = (object(), object())
        column_names = ("b", "a")

    assert columns_of(Polars()) == columns_of(Arrow()) == ("b", "a")
    with pytest.raises(jali.InvalidArgument, match=r"give table\[list\(names\)\]"):
        check_columns(("a", "b"), Polars(), "the table", "list(names)")
    with pytest.raises(jali.InvalidArgument, match=r"give table.select\(list\(names\)\)"):
        check_columns(("a", "b"), Arrow(), "the table", "list(names)")
    for other in (np.ones((2, 2)), [1.0, 2.0], (1, 2), "text", None, 3, b"ab", {"a": 1}):
        assert columns_of(other) == ()


def test_names_that_boosters_keep() -> None:
    check_columns(("height_in_m", "age"), pd.DataFrame(columns=["height in m", "age"]), "", "")
    with pytest.raises(jali.InvalidArgument, match=r"in another order|other columns"):
        check_columns(("height_in_m", "age"), pd.DataFrame(columns=["age", "height in m"]), "", "")
