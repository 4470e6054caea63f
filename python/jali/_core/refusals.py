"""Refusals in sentences: names that a class does not have although many look for them, and calls that do not fit.

Most sentences belong to the schemes. A name that a class defines, itself or in a base class, is never refused.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, NoReturn, TypeVar, cast

from jali.errors import NotOffered, Unsupported, WrongCall

__all__ = [
    "ARRAY",
    "DECRYPT",
    "explain",
    "explain_calls",
    "explain_functions",
    "is_refusal",
    "refuse_names",
    "refuse_operators",
    "wrong_call",
]

DECRYPT = "only the client can see the numbers: Client.decrypt(x) gives them as a NumPy array"

Function = TypeVar("Function", bound=Callable[..., Any])

#: Attributes that encrypted arrays of every scheme refuse with the same sentence.
ARRAY = {
    **dict.fromkeys(("decrypt", "tolist", "item", "numpy", "view", "tobytes"), DECRYPT),
    **dict.fromkeys(("strides", "flags", "base", "data", "ctypes", "tofile"), DECRYPT),
    **dict.fromkeys(("byteswap", "getfield", "setfield"), DECRYPT),
    **dict.fromkeys(("add", "plus"), "write x + y"),
    **dict.fromkeys(("sub", "subtract", "minus"), "write x - y"),
    **dict.fromkeys(("mul", "multiply"), "write x * y"),
    **dict.fromkeys(
        ("to_bytes", "serialize", "save", "dump", "dumps"),
        "write x.ciphertext.to_bytes() or x.ciphertext.save(path); the reader binds the ciphertext again",
    ),
    **dict.fromkeys(
        ("append", "fill", "put", "resize", "partition", "setflags"),
        "encrypted values never change: compute a new one",
    ),
    **dict.fromkeys(
        ("nbytes", "itemsize"),
        "x.ciphertext.nbytes says what it takes in memory, and len(x.ciphertext.to_bytes()) in a message",
    ),
}


class Refused:
    """Stands for an attribute that does not exist, and says what to use instead.

    A class with ``__getattr__`` would do the same, but would make every access to its attributes five times as slow.
    """

    __slots__ = ("_sentence",)
    __nb_signature__ = ""  # what nanobind's stubs write of it: nothing

    def __init__(self, sentence: str) -> None:
        self._sentence = sentence

    def __get__(self, instance: object, owner: type | None = None) -> NoReturn:
        raise NotOffered(self._sentence)


def is_refusal(member: object) -> bool:
    """Whether a member of a class was put there by this module."""
    return isinstance(member, Refused | Visible) or getattr(member, "refuses", False)


def _defines(kind: type, name: str) -> bool:
    return any(name in vars(base) for base in kind.__mro__ if base is not object)


def _visible(thing: object) -> list[str]:
    """The names of dir() that exist."""
    kind = type(thing)
    return [
        name
        for name in object.__dir__(thing)
        if not any(isinstance(vars(base).get(name), Refused) for base in kind.__mro__)
    ]


class Visible:
    """The __dir__ of a class that refuses names."""

    __slots__ = ()
    __nb_signature__ = ""  # as for Refused

    def __get__(self, instance: object, owner: type | None = None) -> Callable[[], list[str]]:
        return functools.partial(_visible, instance)


def refuse_names(kind: type, sentences: Mapping[str, str]) -> None:
    """Lets a class refuse attributes with a sentence. hasattr() and dir() do not find them."""
    for name, sentence in sentences.items():
        if not _defines(kind, name):
            setattr(kind, name, Refused(sentence))
    kind.__dir__ = Visible()  # type: ignore[method-assign,assignment]


def refuse_operators(kind: type, sentences: Mapping[str, str]) -> None:
    """Lets a class refuse operators, by the names of their methods: several with one sentence, separated by spaces."""
    for names, sentence in sentences.items():

        def refuse(*_: object, _sentence: str = sentence, **__: object) -> NoReturn:
            raise Unsupported(_sentence)

        refuse.refuses = True  # type: ignore[attr-defined]
        for name in names.split():
            if not _defines(kind, name):
                setattr(kind, name, refuse)


def wrong_call(
    name: str,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    *,
    method: bool = True,
) -> WrongCall:
    """What is wrong with arguments that a function does not take. method: its first argument, self, is not counted."""
    args = args[method:]
    parameters = list(inspect.signature(function).parameters.values())[method:]
    many = [p.name for p in parameters if p.kind is p.VAR_POSITIONAL]
    takes = ", ".join(p.name for p in parameters)
    ordered = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    known = {p.name for p in parameters}
    given = {p.name for p, _ in zip(ordered, args, strict=False)} | set(kwargs)
    if not parameters:
        return WrongCall(f"{name} takes no arguments")
    for keyword in kwargs:
        if keyword in many:
            return WrongCall(f'{name} takes {keyword} without a name: leave out "{keyword}="')
        if keyword not in known:
            return WrongCall(f'{name} has no argument "{keyword}": it takes {takes}')
    if len(args) > len(ordered):
        return WrongCall(
            f"{name} takes at most {len(ordered)} arguments without a name, not {len(args)}: "
            f"it takes {takes}"
        )
    missing = [
        p.name
        for p in parameters
        if p.default is p.empty and p.name not in given and p.name not in many
    ]
    if missing:
        return WrongCall(f"{name} needs {missing[0]}: it takes {takes}")
    return WrongCall(f"{name} was given an argument twice: it takes {takes}")


def _explained(
    name: str, function: Callable[..., Any], *, method: bool = True
) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            began = error.__traceback__ is not None and error.__traceback__.tb_next is not None
            if began:
                raise
            raise wrong_call(name, function, args, kwargs, method=method) from None

    return call


def explain(name: str) -> Callable[[Function], Function]:
    """Lets a function, whom users know by this name, say what is wrong with its arguments."""

    def explaining(function: Function) -> Function:
        return cast(Function, _explained(name, function, method=False))

    return explaining


def explain_calls(kind: type, *, constructor: bool = True, named: str = "") -> None:
    """Lets the public methods of a class say what is wrong with their arguments. It costs 0.1 us a call.

    named: the name of the class that users know, if it is another one.
    """
    known = named or kind.__name__
    for name, member in list(vars(kind).items()):
        called = name == "__call__" or (name == "__init__" and constructor)
        shown = known if called else f"{known}.{name}"
        if name.startswith("_") and not called:
            continue
        if isinstance(member, classmethod):
            setattr(kind, name, classmethod(_explained(shown, member.__func__)))
        elif inspect.isfunction(member) and not is_refusal(member):
            setattr(kind, name, _explained(shown, member))


def explain_functions(module: ModuleType, named: str) -> None:
    """Lets the public functions of a module say what is wrong with their arguments. named: the module's name for users."""
    for name in module.__all__:
        member = getattr(module, name)
        if inspect.isfunction(member):
            setattr(module, name, explain(f"{named}.{name}")(member))
