"""The operations that programs are made of. The module of a room adds its own with @operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fuzz_python.case import Case

OPERATIONS: dict[str, Callable[[Case], Any]] = {}
COVERED: set[str] = set()


def operation(*methods: str) -> Callable[[Callable[[Case], Any]], Callable[[Case], Any]]:
    """Adds a function to the operations. methods: those of ckks that it calls, as
    "Class.method"."""

    def add(function: Callable[[Case], Any]) -> Callable[[Case], Any]:
        OPERATIONS[function.__name__] = function
        COVERED.update(methods)
        return function

    return add


#: Public methods that no operation calls, and why.
EXEMPT = {
    "Params.*": "parameters are read and made by tests/python/test_ckks_bytes.py and test_errors.py",
    "Client.__init__": "made once for every word",
    "Client.from_secret_bytes": "its bytes never come from a peer; fuzz/loader.cpp reads them",
    "Client.secret_to_bytes": "as above",
    "Client.load": "as above",
    "Client.save": "as above",
    "Client.key_id": "takes no argument",
    "Evaluator.trace": "made without one",
    "ExplicitEvaluator.__init__": "made by Evaluator.explicit alone",
}
