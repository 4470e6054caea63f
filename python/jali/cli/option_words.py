"""What the library says of its arguments, in the words of the command line."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from jali.errors import Error

__all__ = ["in_options", "said_in_options"]

_NAMES = (
    "answers|batch|calibration|constants|device|input_range|margin|max_entries|memory|precision_bits"
    "|ranges|relu_degree|upload"
)
_OTHERWISE = {"constants": "constant"}  # which is given once for each
#: An argument with its value, if that is given: precision_bits=8, ranges="proven", memory=.
_ARGUMENT = re.compile(rf'\b(?P<name>{_NAMES}|scheme)=(?P<value>"[^"]*"|\([^)]*\)|[\d.,]*\d)?')
_SUBJECT = re.compile(rf"^(?P<name>{_NAMES}|scheme)(?= (?:must|is)\b)")


def in_options(text: str) -> str:
    """A sentence of the library whose arguments are named as options: precision_bits=8 is
    --precision-bits 8."""

    def option(found: re.Match[str]) -> str:
        value = (found.groupdict().get("value") or "").strip('"')
        if value.startswith("("):
            value = value.strip("()").replace(",", "").upper()
        elif value.replace(",", "").isdigit():
            value = value.replace(",", "")
        name = _OTHERWISE.get(found["name"], found["name"].replace("_", "-"))
        return f"--{name}" + (f" {value}" if value else "")

    text = _SUBJECT.sub(option, _ARGUMENT.sub(option, text))
    return text.replace("jali.compile", "jali compile")


@contextmanager
def said_in_options(about: str | None = None) -> Iterator[list[str]]:
    """Gives the sentences of warnings, each of which goes to standard error as one line when it is
    raised. Errors of the library are raised again in the words of the command line.

    about: the file that errors are about, which they then name.
    """
    said: list[str] = []

    def show(message: Warning | str, *_: object) -> None:
        said.append(in_options(" ".join(str(message).split())))
        print(f"warning: {said[-1]}", file=sys.stderr)

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = show  # type: ignore[assignment]
            yield said
    except Error as error:
        text = in_options(str(error))
        named = text if about is None or about in text else f"{about}: {text}"
        raise type(error)(named) from None
