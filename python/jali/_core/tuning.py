"""The choices that ``jali tune`` made among an engine's implementations, which all give the same results.

They lie in the user's cache folder, by device and version of Jali; an Evaluator reads them unless it is given
``variants=``.
"""

from __future__ import annotations

import copy
import functools
import json
import os
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jali import device as devices
from jali._jali import build_info
from jali._jali import device as _device
from jali.errors import Unsupported

__all__ = ["Choices", "cache_file", "chosen", "families", "key", "text", "write"]

FORMAT = 1
WORDS = ("w32", "w52", "w64")
Choices = dict[str, str]  # by family


def cache_file() -> Path:
    """$XDG_CACHE_HOME/jali/tune.json."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "jali" / "tune.json"


def families(device: str) -> dict[str, list[str]]:
    """What there is to choose on "cpu" or a "cuda" device; the first name is the engine's own choice."""
    if device.startswith("cuda"):
        return {name: list(variants) for name, variants in _device.cuda_variants().items()}
    return {"isa": ["auto", *_device.cpu_isas()]}


def key(device: str) -> str:
    """A device's name and the version that measured on it."""
    return f"{devices.name(device)}, jali {build_info()['version']}"


def chosen(device: str, word: str, log_n: int) -> Choices:
    """What jali tune found for "cpu" or "cuda:0"; nothing where it has not run.

    Warns, once, of a file that cannot be used; the engine's own choices serve then.
    """
    try:
        path = cache_file()
        changed = path.stat().st_mtime_ns
    except (OSError, RuntimeError):  # no file, or nobody's home
        return {}
    if device != "cpu" and not re.fullmatch(r"cuda:\d{1,3}", device):
        return {}  # the engine refuses it
    return _read(path, changed).get(key(device), {}).get(word, {}).get(str(log_n), {})


@functools.lru_cache(maxsize=1)
def _read(path: Path, changed: int) -> dict[str, dict[str, dict[str, Choices]]]:
    """The choices by device, word and log2 N."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return _checked(content)
    except (OSError, ValueError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else error
        warnings.warn(
            f"{path} cannot be used ({why}), so every engine makes its own choices: run 'jali tune' "
            "again, or delete the file",
            RuntimeWarning,
            stacklevel=2,
        )
        return {}


def _checked(content: Any) -> dict[str, dict[str, dict[str, Choices]]]:
    """The devices of a file's content. Raises ValueError with what is wrong."""
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f"it is not of format {FORMAT}")
    devices = content.get("devices")
    if not isinstance(devices, dict):
        raise ValueError("it names no devices")
    for key, words in devices.items():
        known = families("cpu" if "core" in key else "cuda")
        current = key.endswith(f"jali {build_info()['version']}")
        for word, rings in _items(words):
            for log_n, choices in _items(rings):
                if word not in WORDS or not log_n.isdecimal():
                    raise ValueError(f"'{word}', '{log_n}' is no word and ring")
                for family, name in _items(choices):
                    if not isinstance(name, str):
                        raise ValueError(f"'{family}' has no name as its choice")
                    if current and known and name not in known.get(family, []):
                        raise ValueError(f"'{name}' is no variant of '{family}'")
    return devices


def _items(value: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, dict):
        raise ValueError(f"{value!r} stands where a table should")
    yield from value.items()


def write(device: str, found: dict[str, dict[str, Choices]]) -> Path:
    """Adds a device's choices to the file, in folders made for it; what is damaged there is replaced.

    Raises Unsupported where it cannot be written; it is as it was then, and nothing lies beside it.
    """
    path = cache_file()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            known = _read(path, path.stat().st_mtime_ns) if path.exists() else {}
        devices = copy.deepcopy(known)  # others read that one
        mine = devices.setdefault(key(device), {})
        for word, rings in found.items():
            mine.setdefault(word, {}).update(rings)
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, json.dumps({"format": FORMAT, "devices": devices}, indent=1))
    except OSError as error:
        raise Unsupported(
            f"{path} cannot be written ({error.strerror or error}): make room for it there, or name another "
            "folder in XDG_CACHE_HOME"
        ) from None
    return path


def _replace(path: Path, text: str) -> None:
    """The file with a new content, or, after an error, with the old one."""
    beside = path.with_suffix(f".{os.getpid()}")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def text(choices: Choices) -> str:
    """For people."""
    return ", ".join(f"{k}={v}" for k, v in choices.items()) or "the engine's own"
