"""Unknown names: the sentences of refusals.toml are all alive, typing errors get the name that was
meant, and nothing else sees any of it."""

from __future__ import annotations

import copy
import inspect
import pickle
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import array_world
import numpy as np
import pytest
from conftest import World

import jali
from jali import authenticated, ckks, device, discrete, nn, tfhe
from jali._core import refusals
from jali.ckks import explicit, functions
from jali.errors import NotOffered

PACKAGES = ("jali._core", "jali.ckks", "jali.tfhe", "jali.discrete", "jali.nn")
MODULES = (
    *(jali, ckks, explicit, functions, tfhe, discrete),
    *(nn, nn.scalar, nn.integers, device, authenticated),
)


def public_classes() -> list[type]:
    """The classes that users find in modules."""
    found = [getattr(module, name) for module in MODULES[1:] for name in module.__all__]
    return sorted(
        {k for k in found if isinstance(k, type) and not issubclass(k, BaseException)}, key=str
    )


def classes() -> list[type]:
    """All that answer unknown names: the public classes, and what is derived from them."""
    from jali.compiler.frontends.tracing import Traced

    return [*public_classes(), Traced]


def rows(kind: str) -> Iterator[tuple[str, str, str]]:
    """The package, the owner and the name of every row."""
    for package in PACKAGES:
        for owner, names in refusals.tables(package).get(kind, {}).items():
            for name in names:
                yield package, owner, name


def owned_by(package: str, owner: str) -> list[Any]:
    """The module, or the classes, that have the rows of this table."""
    if owner in sys.modules:
        return [sys.modules[owner]]
    return [k for k in classes() if (package, owner) in refusals._owners(k)]


def made(kind: type) -> Any:
    """An object of a class whose __init__ did not run: what its class alone answers."""
    if issubclass(kind, tuple):
        return tuple.__new__(kind)
    return kind.__new__(kind) if kind.__module__.startswith("jali._jali") else object.__new__(kind)


def text_of(package: str, owner: str, kind: str, name: str) -> str:
    return refusals.tables(package)[kind][owner][name].replace("{name}", name)


def is_reached(thing: Any, name: str, text: str) -> bool:
    """Whether a user who asks this class or module for the name reads this sentence."""
    there = vars(thing) if isinstance(thing, ModuleType) else dir(thing)
    return name not in there and str(refusals.not_offered(thing, name)).endswith(text)


def test_every_sentence_for_a_name_is_reached() -> None:
    every = list(rows("names"))
    dead = []
    for package, owner, name in every:
        things = owned_by(package, owner)
        assert things, f"{package}: nothing is called {owner}"
        own = [k for k in things if isinstance(k, type) and k.__name__ == owner]
        if name.startswith(
            "*"
        ):  # for all names of another class, or for names of which nothing is known
            continue
        text = text_of(package, owner, "names", name)
        exists = any(name in dir(k) for k in own)
        if exists or not any(is_reached(thing, name, text) for thing in things):
            dead.append(f"{owner}.{name} of {package}")
    assert not dead, f"these exist, or another sentence comes first: {dead}"
    assert len(every) > 400


@pytest.mark.parametrize(
    ("thing", "name", "says"),
    [
        (ckks.Ciphertext, "rotate", "bind it to an Evaluator first"),
        (ckks.Ciphertext, "sigmoid", "bind it to an Evaluator first"),
        (tfhe.Ciphertext, "argmax", "x = evaluator.bind"),
        (tfhe.CompactCiphertext, "reshape", "x = evaluator.bind"),
        (ckks, "sigmoid", "f = ckks.functions.sigmoid"),
        (ckks, "softmax", "functions.exp"),
        (functions, "airy", "ckks.Polynomial.approximate"),
        (nn, "sigmoid", "jali.nn.scalar.sigmoid"),
    ],
)
def test_rows_for_many_names_are_reached(thing: Any, name: str, says: str) -> None:
    assert says in str(refusals.not_offered(thing, name))


def test_every_sentence_of_a_function_of_numpy_is_reached() -> None:
    for package, owner, name in rows("numpy"):
        said = text_of(package, owner, "numpy", name)
        things = owned_by(package, owner)
        assert any(refusals.sentence(thing, name, "numpy", "names") == said for thing in things), (
            name
        )
        function = name.split(".")[0]
        somewhere = hasattr(np, function) or function in ("norm", "expit", "astype")
        assert somewhere, f"NumPy has no {name}"


def test_every_sentence_of_an_operator_is_reached() -> None:
    refused = {
        (kind, name)
        for kind in classes()
        for name in dir(kind)
        if refusals.is_refusal(inspect.getattr_static(kind, name)) and name != "__getattr__"
    }
    named = set()
    for package, owner, name in rows("operators"):
        here = [(k, name) for k in owned_by(package, owner) if (k, name) in refused]
        assert here, f"{owner} does not refuse {name}"
        named |= set(here)
    assert named == refused  # each has its sentence
    for kind, name in refused:
        with pytest.raises(jali.Unsupported, match=r"\w+ \w+ \w+"):
            getattr(kind, name)(made(kind))


def typing_errors(name: str) -> set[str]:
    """A letter is missing, doubled, or changes places with the next, and capitals inside a word."""
    out = {name[:k] + name[k + 1 :] for k in range(1, len(name))}
    out |= {name[:k] + name[k] + name[k:] for k in range(len(name))}
    out |= {name[:k] + name[k + 1] + name[k] + name[k + 2 :] for k in range(1, len(name) - 1)}
    first, *rest = name.split("_")
    out |= {first + "".join(word.title() for word in rest), name.replace("_", ""), name.title()}
    return out


def test_typing_errors_get_the_name_that_was_meant() -> None:
    count = 0
    for thing in (*MODULES, *public_classes()):
        rows_here = refusals._rows(thing, "names").keys() | refusals._rows(thing, "numpy").keys()
        there = set(vars(thing)) if isinstance(thing, ModuleType) else set(dir(thing))
        for name in refusals._public(thing):
            wrong = sorted(typing_errors(name) - there - rows_here) if len(name) > 4 else []
            for typed in wrong:
                said = str(refusals.not_offered(thing, typed))
                if not refusals.sentence(thing, typed, "names", "numpy"):
                    assert f"has no {typed}: " in said
                    assert name in said, said
                    count += 1
    assert count > 5000


def test_objects_answer(one: World) -> None:
    client, server = one.client, one.server
    for thing, typed, meant in (
        (client, "encrpt", "did you mean encrypt?"),
        (client, "decrypt_", "did you mean decrypt?"),
        (client, "evaluationKeys", "did you mean evaluation_keys?"),
        (one.params, "slot", "did you mean slots?"),
        (one.keys, "to_byte", "did you mean to_bytes?"),
        (server, "binds", "did you mean bind?"),
        (server.bind(client.encrypt([1.0])), "rotat", "did you mean rotate?"),
        (server.explicit, "multply", "did you mean multiply"),
        (ckks, "Clinet", "did you mean Client?"),
        (tfhe, "Evaluater", "did you mean Evaluator?"),
        (jali, "ckk", "did you mean ckks?"),
        (functions, "sigmod", "did you mean sigmoid"),
        (device, "availible", "did you mean available?"),
        (authenticated, "seal_replay", "did you mean seal_reply?"),
        (client, "secretkey_", "if you mean secret_key: the secret key stays inside"),
        (client, "frobnicate", r"dir\(Client\) lists what there is"),
    ):
        with pytest.raises(NotOffered, match=meant) as caught:
            getattr(thing, typed)
        assert isinstance(caught.value, jali.Error) and isinstance(caught.value, AttributeError)
        assert not hasattr(thing, typed) and getattr(thing, typed, 3) == 3


def in_python() -> list[type]:
    """The public classes that are written in Python, whose metaclass is ours; a named tuple cannot
    have one."""
    return [
        kind
        for kind in public_classes()
        if not kind.__module__.startswith("jali._jali") and not issubclass(kind, tuple)
    ]


def test_classes_themselves_answer() -> None:
    for kind, typed, meant in (
        (ckks.Client, "lod", "Client has no lod: did you mean load?"),
        (ckks.Client, "frm_bytes", "if you mean from_bytes: from_secret_bytes"),
        (ckks.Client, "sk", "the secret key stays inside"),
        (tfhe.Client, "laod", "did you mean load?"),
        (ckks.EncryptedArray, "reshap", "did you mean reshape"),
        (ckks.Batcher, "curv", "did you mean curve?"),
        (nn.Program, "lod", "did you mean load?"),
        (tfhe, "Servr", "an Evaluator computes on the server"),
        (ckks, "Clint", "did you mean Client?"),
        (jali, "compil", "did you mean compile?"),
    ):
        with pytest.raises(NotOffered, match=meant):
            getattr(kind, typed)
    for kind in in_python():
        for name in [name for name in refusals._public(kind) if len(name) > 4][:1]:
            assert name in str(refusals.not_offered(kind, name[:-1]))
        with pytest.raises(NotOffered):
            kind.something_of_nobody  # type: ignore[attr-defined]  # noqa: B018
        assert not hasattr(kind, "_private") and not hasattr(kind, "__await__")
        with pytest.raises(AttributeError, match=r"^type object") as caught:
            kind._private  # type: ignore[attr-defined]  # noqa: B018
        assert not isinstance(caught.value, jali.Error)


def test_classes_of_the_extension_leave_it_to_python() -> None:
    """nanobind's metaclass can be neither changed nor derived from.

    Python suggests a name where it shows an error that nobody caught.
    """
    assert len(in_python()) > 20
    for kind in public_classes():
        if kind.__module__.startswith("jali._jali"):
            with pytest.raises(AttributeError) as caught:
                kind.frobnicate  # type: ignore[attr-defined]  # noqa: B018
            assert (caught.value.obj, caught.value.name) == (kind, "frobnicate")


def test_a_dataclass_that_is_being_made_is_not_answered() -> None:
    @dataclass
    class Half(metaclass=refusals.Answering):
        field: int

    before = refusals._says.cache_info()
    assert not hasattr(Half, "fiel") and Half(1).field == 1
    assert refusals._says.cache_info() == before
    refusals.answer_names(Half)
    with pytest.raises(NotOffered, match="dir"):
        Half.fiel  # type: ignore[attr-defined]  # noqa: B018


def test_what_python_and_notebooks_look_for_is_simply_not_there(one: World) -> None:
    x = one.bind([1.0])
    for thing in (one.client, one.params, one.server, x, x.ciphertext, one.keys, ckks, jali):
        for name in (
            *("_repr_html_", "_ipython_display_", "_ipython_canary_method_should_not_exist_"),
            *("__dataframe__", "__array_interface__", "__cuda_array_interface__", "__wrapped__"),
        ):
            with pytest.raises(AttributeError) as caught:
                getattr(thing, name)
            assert not isinstance(caught.value, jali.Error)
    for kind in public_classes():
        assert not hasattr(made(kind), "__await__"), (
            kind
        )  # also of objects that were never constructed
    assert copy.copy(one.params) is one.params and copy.deepcopy(x) is x
    for thing in (one.client, one.keys, x):
        with pytest.raises(TypeError):
            pickle.dumps(thing)
    point = ckks.BatchPoint(1, 1.0, 1)
    assert pickle.loads(pickle.dumps(point)) == point == copy.deepcopy(point)


def test_errors_of_properties_stay_their_own() -> None:
    class Half:
        @property
        def there(self) -> int:
            raise AttributeError("from inside")

    refusals.answer_names(Half)
    with pytest.raises(AttributeError, match=r"^from inside$"):
        Half().there  # noqa: B018


def test_the_names_of_classes_are_those_that_exist() -> None:
    """dir(), which help(), completion and the site's reference list, has no guessed name."""
    for kind in classes():
        for name in dir(kind):
            member = inspect.getattr_static(kind, name)
            assert name.startswith("__") or not refusals.is_refusal(member), f"{kind}.{name}"
        for package, owner in refusals._owners(kind):
            guessed = refusals.tables(package).get("names", {}).get(owner, {})
            if owner == kind.__name__:
                assert not set(guessed) & set(dir(kind))


def test_no_method_is_wrapped() -> None:
    """A call of a public method is one frame: the method itself."""
    for kind in classes():
        for name, member in vars(kind).items():
            if inspect.isfunction(member) and not name.startswith("_"):
                assert not hasattr(member, "__wrapped__"), f"{kind.__name__}.{name}"
    for name in functions.__all__:
        assert not hasattr(getattr(functions, name), "__wrapped__"), name


def test_sentences_are_read_when_one_is_needed() -> None:
    code = """
import sys
import jali
from jali._core import refusals
assert "tomllib" not in sys.modules and "difflib" not in sys.modules
assert refusals.tables.cache_info().currsize == 0
params = jali.ckks.Params.create(depth=1)
assert not hasattr(params, "_private") and refusals.tables.cache_info().currsize == 0
try:
    params.slot
except AttributeError as error:
    assert "did you mean slots?" in str(error)
try:
    from jali.ckks import Clinet
except ImportError:
    pass
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and not done.stderr, done.stderr


def test_unknown_names_of_an_array_name_the_class_that_users_know() -> None:
    small = array_world.small()
    for x in (small.bind(np.ones(3)), small.bind(np.ones((2, 3)))):
        with pytest.raises(
            NotOffered, match=r"^EncryptedArray has no reshap: did you mean reshape"
        ):
            x.reshap  # noqa: B018


def test_every_public_class_is_tried() -> None:
    assert len(public_classes()) > 35
