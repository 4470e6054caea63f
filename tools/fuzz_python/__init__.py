"""Programs of hostile objects and arguments for the public face of jali.ckks; __main__.py runs them."""

from importlib import import_module

from fuzz_python.case import Case
from fuzz_python.hostile import CIPHERTEXT, field
from fuzz_python.registry import COVERED, EXEMPT

__all__ = ["CIPHERTEXT", "COVERED", "EXEMPT", "Case", "field"]

# A seed's programs depend on this order.
for _room in ("arrays", "evaluator", "client", "explicit"):
    import_module(f"fuzz_python.{_room}")
