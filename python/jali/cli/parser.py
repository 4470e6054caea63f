"""The parser of every command."""

from __future__ import annotations

import argparse
import sys
from typing import NoReturn

__all__ = ["Parser"]


class Parser(argparse.ArgumentParser):
    """A parser that reports wrong usage in one line, as all errors are reported."""

    def error(self, message: str) -> NoReturn:
        print(f"error: {message}: see '{self.prog} --help'", file=sys.stderr)
        raise SystemExit(2)
