"""Operations are declared once: a class with typed arguments, and an entry in the table of every
room that knows something of operations."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import pytest
from graph_nodes import node_of

import jali
from jali import nn
from jali.compiler.ir.execute import execute
from jali.compiler.ir.folded_ops import Affine
from jali.compiler.ir.graph import Graph
from jali.compiler.ir.linear_ops import Scale
from jali.compiler.ir.loop_graph import ByStep, Loop
from jali.compiler.ir.operation import Input, Linear, Operation
from jali.compiler.ir.traced_ops import OPERATIONS, Multiply
from jali.compiler.layout.execute_lowered import SLOTS
from jali.compiler.layout.lowered_ops import LOWERED
from jali.compiler.noise.array_noise import GAINS
from jali.compiler.planning.node_costs import COSTS
from jali.compiler.program import graph_file
from jali.compiler.program.verifiers import FOLDED, SCALED, verify_graph
from jali.compiler.runtime.interpreter import EVALUATIONS


def subclasses(cls: type[Operation]) -> set[type[Operation]]:
    direct = set(cls.__subclasses__())
    return direct.union(*(subclasses(one) for one in direct))


#: The classes that others do not extend.
CONCRETE = sorted((cls for cls in subclasses(Operation) if not cls.__subclasses__()), key=repr)


def declares(cls: type[Operation], method: str) -> bool:
    """Whether a class or one of its bases says it, rather than Operation."""
    return any(method in vars(base) for base in cls.__mro__[: cls.__mro__.index(Operation)])


#: What rooms know of the operations of lowered graphs.
TABLES: dict[str, Mapping[type[Operation], object]] = {
    "cost": COSTS,
    "noise": GAINS,
    "evaluation": EVALUATIONS,
    "value of its slots": SLOTS,
}
#: Loops are computed iteration by iteration, and the value of an input is given.
WITHOUT_VALUE = (Input, Loop, ByStep)


def missing(cls: type[Operation]) -> list[str]:
    """What nobody has said of an operation that can be a node of some stage."""
    traced, folded, lowered = cls in OPERATIONS.values(), cls in FOLDED, cls in LOWERED
    found = [] if traced or folded or lowered else ["a stage"]
    if traced or folded:
        found += ["a shape"] * (not declares(cls, "result_shape"))
        found += ["a value"] * (not declares(cls, "compute") and cls not in WITHOUT_VALUE)
    if lowered or cls in SCALED:
        found += ["a depth"] * (not declares(cls, "depth") and cls is not Loop)
    if lowered:
        found += [f"a {what}" for what, table in TABLES.items() if cls not in table]
    return found


@pytest.mark.parametrize("cls", CONCRETE, ids=lambda cls: cls.__name__)
def test_an_operation_is_declared_wholly(cls: type[Operation]) -> None:
    """Stage, shape, clear value, depth, cost, noise, evaluation."""
    assert missing(cls) == []


def test_what_a_new_operation_lacks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass(frozen=True, eq=False)
    class Cube(Operation):
        name = "cube"

    assert missing(Cube) == ["a stage"]
    monkeypatch.setitem(OPERATIONS, "cube", Cube)  # type: ignore[arg-type]
    assert missing(Cube) == ["a shape", "a value"]
    monkeypatch.delitem(OPERATIONS, "cube")  # type: ignore[arg-type]
    monkeypatch.setitem(globals(), "LOWERED", (*LOWERED, Cube))
    assert missing(Cube) == ["a depth", *(f"a {what}" for what in TABLES)]


@pytest.mark.parametrize("what", TABLES)
def test_tables_have_no_entry_for_what_is_no_operation(what: str) -> None:
    assert set(TABLES[what]) == set(LOWERED)


@pytest.mark.parametrize("cls", OPERATIONS.values(), ids=lambda cls: cls.name)
def test_files_have_the_arguments_of_an_operation(cls: type[Operation]) -> None:
    """In the order of the class, by which the bytes of a graph are the same on every machine."""
    assert list(graph_file.ARGUMENTS[cls.name]) == [field.name for field in fields(cls)]


@pytest.mark.parametrize("cls", CONCRETE, ids=lambda cls: cls.__name__)
def test_arguments_do_not_change(cls: type[Operation]) -> None:
    assert cls.__dataclass_params__.frozen  # type: ignore[attr-defined]
    assert cls.__doc__


def test_no_other_operation_has_the_name_of_a_traced_one() -> None:
    for name, cls in OPERATIONS.items():
        assert [one for one in CONCRETE if one.name == name] == [cls]


def test_of_gives_the_operation_of_its_class_and_refuses_others() -> None:
    node = nn.trace(lambda x: 2 * x, np.zeros(3)).nodes[-1]
    scale: Scale = Scale.of(node)
    assert scale.factor == 2 and Linear.of(node) is scale
    with pytest.raises(jali.InternalError, match=f"{node.name} is scale, not Multiply"):
        Multiply.of(node)


def test_facts_that_no_pass_has_found_are_refused_by_their_name() -> None:
    node = nn.trace(lambda x: 2 * x, np.zeros(3)).nodes[-1]
    for fact, says in (("range", "range"), ("scaling", "scale"), ("level", "level")):
        with pytest.raises(jali.InternalError, match=f"has no {says} yet"):
            getattr(node, fact)


def test_people_see_arguments_and_facts_by_name() -> None:
    x = np.linspace(-1, 1, 60).reshape(20, 3)
    program = jali.compile(lambda v: 2 * v + 1, x[0], calibration=x)
    node = program.stages["calibrate"].nodes[-1]
    assert node.op == "affine"
    assert node.attrs["maps"] is Affine.of(node).maps and node.attrs["low"] == node.range.low
    assert "level" not in node.attrs and "layout" not in node.attrs
    last = program.stages["levels"].nodes[-1]
    assert last.attrs["level"] == last.level == 0 and last.attrs["rms"] == last.scaling.rms


def test_operations_of_another_stage_are_refused() -> None:
    x, y = node_of("x", "input", (), (3,), {}), node_of("y", "transform", ("x",), (3,), {})
    with pytest.raises(jali.InternalError, match="is transform, which this stage does not have"):
        verify_graph("fold", Graph((x, y), ("y",), "fold"))
    with pytest.raises(NotImplementedError):
        execute(Graph((x, y), ("y",), "fold"), np.zeros((1, 3)))


PACKAGE = Path(jali.__file__).parent
#: Texts for people show operations and facts by name: plots and the graph itself.
BY_NAME = re.compile(r"\.attrs\b|\.op\s*(==|!=|in\b|not in\b)|match \w+(\.\w+)*\.op\b")


@pytest.mark.parametrize(
    "path",
    sorted(
        path.relative_to(PACKAGE).as_posix()
        for room in ("compiler", "cli", "bench", "demo", "program")
        for path in (PACKAGE / room).rglob("*.py")
        if path.parent.name != "ir"
    ),
)
def test_rooms_ask_for_classes_not_for_names(path: str) -> None:
    text = (PACKAGE / path).read_text(encoding="utf-8")
    found = [line for line in text.splitlines() if BY_NAME.search(line)]
    if re.search(r"frontends/(from_)?torch", path):  # nodes of PyTorch's own graphs
        found = [line for line in found if '"call_function"' not in line]
        found = [line for line in found if not re.search(r'"(placeholder|get_attr|output)"', line)]
    if "step.op" in text:  # steps of the client's part, whose operations have names alone
        found = [line for line in found if "step.op" not in line]
    assert not found
