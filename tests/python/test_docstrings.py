"""Docstrings have a line for each argument and field, and those of public functions name every
argument."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import jali
from jali import authenticated, ckks, device, discrete, remote, tfhe
from jali.serve import (
    answers,
    check,
    frames,
    keys,
    local_pool,
    marginal,
    memory,
    pool,
    postgres_index,
    process,
    programs,
    refusal,
    routes,
    service,
    tickets,
    uploads,
    wanted,
)
from jali.tfhe import trees

PACKAGE = Path(jali.__file__).resolve().parent
FIELD = re.compile(r"^(\w+(?:, \w+)*): ")
INNER = re.compile(r"[.)] (?:[a-z_]+)(?:, [a-z_]+)*: ")
#: Sentences with a colon, and what values of a field stand for.
PROSE = {"View"}
SERVE = (
    answers,
    check,
    frames,
    keys,
    local_pool,
    marginal,
    memory,
    pool,
    postgres_index,
    process,
    programs,
    refusal,
    routes,
    service,
    tickets,
    uploads,
    wanted,
)
MODULES = (
    ckks,
    ckks.explicit,
    ckks.functions,
    discrete,
    tfhe,
    trees,
    device,
    authenticated,
    remote,
    *SERVE,
)


def run_in(text: str) -> list[str]:
    """The lines of a docstring that hold a second field, or what is raised, behind a field."""
    found, in_field = [], False
    for line in text.splitlines():
        starts = FIELD.match(line) is not None
        in_field = starts or (in_field and line.startswith("    "))
        if in_field and (INNER.search(line) or re.search(r"(^ *|[.)] )Raises ", line)):
            found.append(line.strip())
    return found


def docstrings() -> Iterator[tuple[str, str]]:
    """(where, text) of the package's docstrings."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                name = getattr(node, "name", "module")
                text = ast.get_docstring(node)
                if text and name not in PROSE:
                    yield f"{path.relative_to(PACKAGE)}: {name}", text


def test_every_field_has_a_line() -> None:
    found = [f"{where}: {line}" for where, text in docstrings() for line in run_in(text)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("text", "bad"),
    [
        ("steps: of its loop. compute: from both operands.", True),
        ("values: of any shape. Raises InvalidArgument for others.", True),
        ("gap: how far the largest is above all\n    others. error: how near it is.", True),
        ("gap: how far.\nerror: how near, as of ``sign``: absolute.", False),
        ("count: a number.\n\nRaises InvalidArgument for others.", False),
    ],
)
def test_fields_that_run_on_are_found(text: str, bad: bool) -> None:
    assert bool(run_in(text)) == bad


def own_names(node: ast.ClassDef | ast.FunctionDef) -> set[str]:
    """The arguments of a function, or the fields of a class and the arguments of its objects."""
    if isinstance(node, ast.FunctionDef):
        given = node.args
        return {one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)}
    names: set[str] = set()
    for inner in node.body:
        if isinstance(inner, ast.AnnAssign) and isinstance(inner.target, ast.Name):
            names.add(inner.target.id)
        elif isinstance(inner, ast.FunctionDef) and inner.name == "__init__":
            names |= own_names(inner)
    return names


def in_paragraphs(node: ast.ClassDef | ast.FunctionDef) -> list[str]:
    """The arguments and fields that a docstring explains within a paragraph."""
    names = "|".join(sorted(own_names(node))) or "-"
    text = " ".join((ast.get_docstring(node) or "").split("\n"))
    lines = (ast.get_docstring(node) or "").splitlines()
    at_starts = {one for line in lines if (m := FIELD.match(line)) for one in m[1].split(", ")}
    found = re.findall(rf"[.)] ((?:{names})(?:, (?:{names}))*): ", re.sub(r" +", " ", text))
    return [one for group in found for one in group.split(", ") if one not in at_starts]


def test_the_compiler_has_a_line_for_each_field() -> None:
    """Also for the first one, which does not follow a sentence."""
    found = [
        f"{path.relative_to(PACKAGE)}: {node.name}: {name}"
        for path in sorted((PACKAGE / "compiler").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, (ast.ClassDef, ast.FunctionDef))
        for name in in_paragraphs(node)
    ]
    assert not found, "\n".join(found)


def test_docstrings_of_the_compiler_have_a_hundred_columns() -> None:
    """As the code has, but for tables and examples."""
    found = []
    for path in sorted((PACKAGE / "compiler").rglob("*.py")):
        lines = path.read_text(encoding="utf-8").splitlines()
        for node in ast.walk(ast.parse("\n".join(lines))):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(
                node
            ):
                text = lines[node.body[0].lineno - 1 : node.body[0].end_lineno]
                long = [one for one in text if len(one) > 100]
                found += [one for one in long if not one.lstrip().startswith((">>>", "|"))]
    assert not found, "\n".join(found)


def test_fields_within_a_paragraph_are_found() -> None:
    (node,) = ast.parse('def f(x, y):\n    """The sum. x: one. y: other."""').body
    assert isinstance(node, ast.FunctionDef) and in_paragraphs(node) == ["x", "y"]
    (node,) = ast.parse('def f(x, y):\n    """The sum.\n\n    x: one.\n    y: other.\n    """').body
    assert isinstance(node, ast.FunctionDef) and in_paragraphs(node) == []


def public() -> Iterator[tuple[str, Any, str]]:
    """(name, function, docstring) of public functions and methods; a class's is part of that of its
    methods."""
    for module in MODULES:
        for name in module.__all__:
            thing = getattr(module, name)
            if not inspect.isclass(thing):
                if inspect.isfunction(thing):
                    yield f"{module.__name__}.{name}", thing, inspect.getdoc(thing) or ""
                continue
            for inner, method in vars(thing).items():
                method = getattr(method, "__func__", method)
                if inspect.isfunction(method) and not inner.startswith("_"):
                    text = f"{inspect.getdoc(method)}\n{inspect.getdoc(thing)}"
                    yield f"{module.__name__}.{name}.{inner}", method, text


def test_every_argument_is_explained() -> None:
    silent = [
        f"{name}: {argument}"
        for name, function, text in public()
        for argument in inspect.signature(function).parameters
        if argument not in ("self", "cls") and not re.search(rf"\b{argument}\b", text)
    ]
    assert len(list(public())) > 100
    assert not silent, "\n".join(silent)


def test_the_docstring_of_compile_fits_on_a_screen() -> None:
    text = inspect.getdoc(jali.compile) or ""
    assert len(text.splitlines()) <= 50
    for argument in inspect.signature(jali.compile).parameters:
        assert re.search(rf"^{argument}: ", text, flags=re.MULTILINE), argument
    (guide,) = re.findall(r"docs/how-to/[\w-]+\.md", text)
    assert (Path(__file__).parents[2] / guide).is_file()
