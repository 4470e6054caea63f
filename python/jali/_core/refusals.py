"""Errors for what users look for and do not find: attributes, operators, functions of NumPy, and
names of modules.

The sentences are data: every package has a file ``refusals.toml``, which is read when the first
sentence is needed. It has three kinds of tables, for each class or module:

    [names.Client]               # attributes that many look for
    "sk secret_key" = "the secret key stays inside the Client: save(path) stores it"

    [operators.Client]           # special methods, which the class refuses by refuse_operators()
    [numpy.EncryptedArray]       # functions of NumPy

A key is one name, or several that are separated by spaces. A name ``*X`` stands for all public
names of the class or module X, and for those of its table; ``*`` alone for all names that nothing
else is known of. A class has the rows of its base classes, too. ``{name}`` in a sentence is the
name that was asked for. A name without a row gets the names that are spelt nearly like it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import cache, lru_cache, partial
from types import ModuleType
from typing import Any, NoReturn

from jali.errors import NotOffered, Unsupported

__all__ = [
    "Answering",
    "answer",
    "answer_names",
    "is_refusal",
    "not_offered",
    "of_module",
    "refuse_operators",
    "sentence",
    "tables",
]

#: How alike the letters of two names are, from 0 to 1, if one of them may be a typing error.
ALIKE = 0.6
#: The same for names of rows: their sentences say nothing of how the name is spelt.
ALIKE_ROW = 0.8
#: Where the sentence for an attribute is looked for: an array is asked for numpy.roll(x) as
#: x.roll(), too.
NAMES = ("names", "numpy")


@cache
def tables(package: str) -> dict[str, dict[str, dict[str, str]]]:
    """The rows of a package: {"names", "operators" or "numpy": {class or module: {one name:
    sentence}}}."""
    import tomllib
    from pathlib import Path

    file = Path(__file__).parents[1].joinpath(*package.split(".")[1:], "refusals.toml")
    if not file.is_file():
        return {}
    return {
        kind: {
            owner: {name: text for names, text in rows.items() for name in names.split()}
            for owner, rows in owners.items()
        }
        for kind, owners in tomllib.loads(file.read_text(encoding="utf-8")).items()
    }


def _package(module: str) -> str:
    """The package whose file has the rows of this module's classes, which is the one that users
    import: jali.ckks of jali.ckks.client and of jali._jali.ckks, jali.nn of all modules of
        jali.compiler and jali.program."""
    known = (
        module.replace("jali._jali", "jali")
        .replace("jali.compiler", "jali.nn")
        .replace("jali.program", "jali.nn")
    )
    return ".".join(known.split(".")[:2])


def _owners(thing: type | ModuleType) -> list[tuple[str, str]]:
    """The packages and names of the tables of a class or module, its own first."""
    if isinstance(thing, ModuleType):
        return [(_package(thing.__name__), thing.__name__)]
    ours = [base for base in thing.__mro__ if base.__module__.startswith("jali.")]
    return [(_package(base.__module__), base.__name__) for base in ours]


def _rows(thing: type | ModuleType, kind: str) -> dict[str, str]:
    """The rows of a class or module. Those of a class come before those of its bases."""
    out: dict[str, str] = {}
    for package, owner in _owners(thing):
        out = tables(package).get(kind, {}).get(owner, {}) | out
    return out


def _other(thing: type | ModuleType, name: str) -> type | ModuleType:
    """The class or module that a row names as *X."""
    package = thing.__name__ if isinstance(thing, ModuleType) else _package(thing.__module__)
    found: type | ModuleType = sys.modules.get(name) or getattr(sys.modules[package], name)
    return found


def sentence(thing: type | ModuleType, name: str, *kinds: str) -> str | None:
    """What the first of these tables of a class or module that has a row says of a name; None if
    there is no row."""
    found = (_in_table(thing, name, kind) for kind in kinds)
    return next((text for text in found if text is not None), None)


def _in_table(thing: type | ModuleType, name: str, kind: str) -> str | None:
    rows = _rows(thing, kind)
    text = rows.get(name)
    if text is None:
        for key, all_of_it in rows.items():
            if key.startswith("*") and key != "*":
                other = _other(thing, key[1:])
                from_row = sentence(other, name, *NAMES)
                if name in _public(other) or (isinstance(other, type) and from_row):
                    text = all_of_it
                else:
                    text = from_row
                if text is not None:
                    break
    return None if text is None else text.replace("{name}", name)


def _public(thing: type | ModuleType) -> list[str]:
    """The names that exist. A module has those of its __all__."""
    names = getattr(thing, "__all__", None) if isinstance(thing, ModuleType) else None
    return [name for name in (dir(thing) if names is None else names) if not name.startswith("_")]


def _folded(name: str) -> str:
    return name.lower().replace("_", "")


def _alike(name: str, names: Iterable[str], cutoff: float) -> list[str]:
    """Up to three of the names, the most alike first."""
    import difflib

    by_letters: dict[str, list[str]] = {}
    for one in names:
        by_letters.setdefault(_folded(one), []).append(one)
    near = difflib.get_close_matches(_folded(name), by_letters, 3, cutoff)
    return [one for letters in near for one in sorted(by_letters[letters])][:3]


def _shown(thing: type | ModuleType) -> str:
    """The name by which users know a class: its own, or that of the public class that it is derived
    from."""
    if isinstance(thing, ModuleType):
        return thing.__name__
    for base in thing.__mro__:
        package = sys.modules.get(_package(base.__module__))
        if base.__name__ in getattr(package, "__all__", ()):
            return base.__name__
    return thing.__name__


def not_offered(thing: type | ModuleType, name: str) -> NotOffered:
    """The error for a name that a class or module does not have."""
    return NotOffered(f"{_shown(thing)} has no {name}: {_says(thing, name)}")


@lru_cache(maxsize=256)  # hasattr() may be asked in a loop, and names alike take long to find
def _says(thing: type | ModuleType, name: str) -> str:
    says = sentence(thing, name, *NAMES)
    if says is not None:
        return says
    there = _public(thing)
    rows = [row for row in _rows(thing, "names") if not row.startswith("*") and len(row) > 3]
    nearest = _alike(name, [*rows, *there], ALIKE_ROW)[:1]
    if nearest and nearest[0] in rows:
        return f"if you mean {nearest[0]}: {sentence(thing, nearest[0], *NAMES)}"
    alike = _alike(name, there, ALIKE)
    if alike:
        return f"did you mean {' or '.join(alike)}?"
    return _rows(thing, "names").get("*", f"dir({_shown(thing)}) lists what there is")


def _missing(self: Any, name: str) -> Any:
    """Python calls it if an attribute was not found, or if a property raised AttributeError."""
    kind = type(self)
    if any(name in vars(base) for base in kind.__mro__):
        return object.__getattribute__(self, name)  # raises the error of the property again
    if name.startswith("_"):  # what Python, IPython and pickle look for
        raise AttributeError(
            f"{kind.__name__!r} object has no attribute {name!r}", name=name, obj=self
        )
    raise not_offered(kind, name)


class Answering(type):
    """The metaclass of public classes, which answers names that are asked of the class itself, such
    as ckks.Client.lod.

    The extension's classes cannot have it, since nanobind gives them one of its own: Python's
    message is their answer.
    """


def _missing_of_class(kind: type, name: str) -> NoReturn:
    """Python calls it if an attribute of a class was not found."""
    answers = any("__getattr__" in vars(base) for base in kind.__mro__)
    # A dataclass that is being made asks for the defaults of its fields, and does not answer yet.
    if name.startswith("_") or not answers:
        raise AttributeError(
            f"type object {kind.__name__!r} has no attribute {name!r}", name=name, obj=kind
        )
    raise not_offered(kind, name)


# Outside the class, since type checkers would accept every attribute of the classes.
Answering.__getattr__ = _missing_of_class  # type: ignore[attr-defined]


class Answer:
    """The __getattr__ of a class: _missing, without a signature of its own in nanobind's stubs of
    the extension."""

    __slots__ = ()
    __nb_signature__ = ""
    refuses = True

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else partial(_missing, instance)


def answer(*modules: ModuleType) -> None:
    """Lets the objects of every public class of these modules answer unknown attributes by a
    sentence.

    The classes do not declare __getattr__ in their own code, since type checkers would then accept
    every attribute.
    """
    for module in modules:
        for name in module.__all__:
            kind = getattr(module, name)
            if isinstance(kind, type) and not issubclass(kind, BaseException):
                answer_names(kind)


def answer_names(kind: type) -> None:
    """Lets the objects of a class answer unknown attributes by a sentence."""
    if not any("__getattr__" in vars(base) for base in kind.__mro__):
        kind.__getattr__ = Answer()  # type: ignore[attr-defined]


def of_module(name: str, asked: str) -> AttributeError:
    """The error for a name that a module does not have, for its __getattr__."""
    if asked.startswith("_"):
        return AttributeError(f"module {name!r} has no attribute {asked!r}")
    return not_offered(sys.modules[name], asked)


def refuse_operators(kind: type, names: str) -> None:
    """Lets a class refuse operators, by the names of their methods, which are separated by
    spaces."""
    for name in names.split():
        if any(name in vars(base) for base in kind.__mro__ if base is not object):
            raise TypeError(f"{kind.__name__} has {name}")
        setattr(kind, name, _refusing(name))


def _refusing(name: str) -> Callable[..., NoReturn]:
    def refuse(self: object, *_: object, **__: object) -> NoReturn:
        raise Unsupported(sentence(type(self), name, "operators") or name)

    refuse.refuses = True  # type: ignore[attr-defined]
    return refuse


def is_refusal(member: object) -> bool:
    """Whether a member of a class was put there by this module."""
    return bool(getattr(member, "refuses", False))
