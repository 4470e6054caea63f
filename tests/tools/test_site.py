"""The site: its check refuses what comes from another host and nothing else, its links lead
somewhere, and its reference shows docstrings as they are written."""

import functools
import importlib.util
import inspect
import itertools
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import jali
from jali import ckks, nn, tfhe
from jali._core.array import Encrypted

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import check_site  # noqa: E402

HOST = "//cdn.example.org"


@pytest.mark.parametrize(
    ("file", "text", "bad"),
    [
        (
            "a.html",
            '<script src="_static/x.js"></script><a href="https://example.org/">there</a>',
            False,
        ),
        ("a.html", f'<script defer src="https:{HOST}/mathjax.js"></script>', True),
        ("a.html", f"<img alt='x' src='{HOST}/x.png'>", True),
        ("a.html", f'<link rel="stylesheet" href="https:{HOST}/x.css" />', True),
        ("a.html", f'<link href="https:{HOST}/x.woff2" as="font" rel="preload">', True),
        ("a.html", '<link rel="canonical" href="https://example.org/a.html">', False),
        ("a.css", f"@font-face {{ src: url(https:{HOST}/x.woff2) }}", True),
        ("a.css", "a { background: url(../x.png) }", False),
    ],
)
def test_what_a_page_loads(tmp_path: Path, file: str, text: str, bad: bool) -> None:
    (tmp_path / "index.html").write_text("<p>nothing</p>")
    (tmp_path / file).write_text(text)
    assert bool(list(check_site.check(tmp_path))) == bad


def test_a_folder_without_pages_is_no_site(tmp_path: Path) -> None:
    assert list(check_site.check(tmp_path))


def test_the_reference_has_what_arrays_inherit() -> None:
    """The methods of Shaped are those of EncryptedArray. What Encrypted and Python's classes have
    is left out."""
    page = (ROOT / "docs/_templates/autosummary/class.rst").read_text()
    (line,) = (line for line in page.splitlines() if ":inherited-members:" in line)
    ends = set(line.split(":inherited-members:")[1].replace(",", " ").split())
    for kind in (ckks.EncryptedArray, tfhe.EncryptedArray, tfhe.EncryptedIntegers):
        shown = list(itertools.takewhile(lambda base: base.__name__ not in ends, kind.__mro__))
        assert any("reshape" in vars(base) for base in shown) and Encrypted not in shown


def test_pages_link_to_pages_that_the_site_has() -> None:
    """Sphinx warns of links to Markdown files that are missing or outside docs/, and the site is
    built without warnings."""
    docs = ROOT / "docs"
    wrong, links = [], 0
    for page in sorted(docs.rglob("*.md")):
        if (
            page == docs / "README.md" or "generated" in page.parts
        ):  # these are not of the site, or made by its build
            continue
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)#\s:]+\.md)(?:#[^)]*)?\)", text):
            links += 1
            there = (page.parent / target).resolve()
            if not there.is_file() or not there.is_relative_to(docs):
                wrong.append(f"{page.relative_to(ROOT)}: {target}")
    assert links > 100 and not wrong, wrong


@functools.cache
def site_conf() -> Any:
    """docs/conf.py as a module."""
    spec = importlib.util.spec_from_file_location("site_conf", ROOT / "docs" / "conf.py")
    assert spec is not None and spec.loader is not None
    conf = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(conf)
    return conf


def page_of(text: str) -> list[str]:
    """A docstring as docs/conf.py gives it to Sphinx."""
    lines = inspect.cleandoc(text).splitlines()
    site_conf().plain_docstring(None, "function", "f", None, None, lines)
    return lines


def test_the_reference_shows_docstrings_as_they_are() -> None:
    """Arguments are a list, also behind code. A star, a bar or a name that ends in an underscore is
    no markup."""
    text = """Batches (n, *shape) of |x| for `a` and ``*b``.

        f(*x)

    first: of names_, at
        most *n.
    second: b_c.

    >>> f(*x)
    a_ * b
    """
    assert [line for line in page_of(text) if line] == [
        r"Batches (n, \*shape) of \|x\| for `a` and ``*b``.",
        "::",
        "    f(*x)",
        r"* ``first``: of names\_, at",
        r"  most \*n.",
        "* ``second``: b_c.",
        ">>> f(*x)",
        "a_ * b",
    ]


def test_docstrings_of_the_reference_have_no_broken_markup() -> None:
    """Sphinx warns of it, and the site is built without warnings."""
    core = pytest.importorskip("docutils.core")
    modules = (jali, ckks, ckks.functions, tfhe, tfhe.trees, nn)
    things = [getattr(module, name) for module in modules for name in module.__all__]
    quiet = {"report_level": 2, "halt_level": 5, "warning_stream": False}
    broken = []
    for thing in things:
        inner = vars(thing).items() if inspect.isclass(thing) else ()
        for one in (thing, *(one for name, one in inner if not name.startswith("_"))):
            text = inspect.getdoc(getattr(one, "__func__", one)) if callable(one) else None
            made = core.publish_doctree("\n".join(page_of(text or "")), settings_overrides=quiet)
            messages = made.findall(lambda node: node.tagname == "system_message")
            broken += [f"{one}: {m.astext()}" for m in messages if m["level"] >= 2]
    assert len(things) > 100 and not broken, "\n".join(broken)
