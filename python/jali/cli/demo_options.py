"""Options that the commands ``jali demo`` share."""

from __future__ import annotations

from argparse import Namespace

from jali.cli.parser import Parser
from jali.errors import InvalidArgument

__all__ = ["add_common", "check_positive"]


def add_common(parser: Parser) -> None:
    """Adds --device, --threads and --json."""
    parser.add_argument("--device", default="auto", help="the server's: auto, cpu, cuda, cuda:1")
    parser.add_argument("--threads", type=int, metavar="T", help="on the CPU (every core)")
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object and nothing else"
    )


def check_positive(options: Namespace, *names: str) -> None:
    """Raises InvalidArgument for an option, and for --threads, that is given and below 1."""
    for name in (*names, "threads"):
        value = getattr(options, name)
        if value is not None and value < 1:
            raise InvalidArgument(f"--{name} must be at least 1")
