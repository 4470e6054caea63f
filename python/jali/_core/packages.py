"""Packages that are not needed to compute: whether they are here, and the command that installs
them."""

from __future__ import annotations

import importlib.util
import sys

__all__ = ["here", "install", "of_module"]

_MODULES = {"scikit-learn": "sklearn", "pillow": "PIL"}  # where the import is named otherwise


def here(package: str) -> bool:
    """Whether a package can be imported."""
    module = _MODULES.get(package, package.replace("-", "_"))
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def of_module(module: str) -> str:
    """The package that has a module."""
    names = {v: k for k, v in _MODULES.items()}
    top = module.split(".")[0]
    return names.get(top, top.replace("_", "-"))


def install(*packages: str) -> str:
    """The command that installs packages for this Python.

    It names them one by one and no extra of Jali's: an extra needs Jali in a package index, or its
    sources.
    """
    return f"{sys.executable} -m pip install {' '.join(packages)}"
