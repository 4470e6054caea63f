#!/usr/bin/env python3
"""Refuses a second way of writing files: in what users install, base/replace_file.cpp alone opens
files for writing.

C++: src/jali and python/src may not open a file for writing or rename one, except in that file.
Python: python/jali calls jali._core.files instead of open(.., "w"), Path.write_bytes, savefig(path)
and the like. The store of a service's keys is the exception: parts of uploads grow, and become files
of the store when they are whole, by a link. So are the bodies of requests, which are files of one process.

Usage: tools/check_writes.py [ROOT]. Prints one line for each violation; the exit status is 1 if
there are any.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import checking

CXX_ALLOWED = "src/jali/base/replace_file.cpp"
PYTHON_ALLOWED = (
    "python/jali/_core/files.py",
    "python/jali/serve/blobs.py",
    "python/jali/serve/bodies.py",
    "python/jali/serve/keys.py",
)
CXX = re.compile(
    r"\b(?:ofstream|fstream|fopen|freopen|creat|mkstemp|O_WRONLY|O_RDWR|O_CREAT|rename)\b(?!>)"
)
#: Methods and functions that write to a path, whatever it is called on.
WRITING = {
    "write_text", "write_bytes", "touch", "savefig", "imsave", "tofile", "savetxt", "savez", "savez_compressed", "dump",
    "replace_file", "NamedTemporaryFile", "mkstemp",
}  # fmt: skip


def writes(call: ast.Call) -> bool:
    """Whether a call of Python writes to a file by its name."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name in WRITING:
        return True
    module = isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name)
    owner = call.func.value.id if module else ""  # type: ignore[union-attr]
    if owner in ("os", "shutil"):
        return name in ("replace", "rename", "copy", "copyfile", "move", "link", "symlink") or (
            name == "open" and not any(getattr(a, "attr", "") == "devnull" for a in call.args)
        )
    if owner == "np" and name == "save":
        return True
    if name != "open":
        return False
    modes = [*call.args, *(k.value for k in call.keywords if k.arg == "mode")]
    texts = [m.value for m in modes if isinstance(m, ast.Constant) and isinstance(m.value, str)]
    return any(set(text) <= set("rwxabt+") and set(text) & set("wxa+") for text in texts)


def check(root: Path) -> Iterator[str]:
    for folder in ("src/jali", "python/src"):
        for file in sorted((root / folder).rglob("*")):
            name = file.relative_to(root).as_posix()
            if file.suffix not in (".h", ".cpp", ".cu", ".cuh") or name == CXX_ALLOWED:
                continue
            for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
                code = line.partition("//")[0]
                if "#include" not in code and (match := CXX.search(code)):
                    yield f"{name}:{number}: {match.group()}: write files with replace_file (base/replace_file.h)"
    for file in sorted((root / "python/jali").rglob("*.py")):
        name = file.relative_to(root).as_posix()
        if name in PYTHON_ALLOWED:
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and writes(node):
                yield f"{name}:{node.lineno}: write files with jali._core.files"


if __name__ == "__main__":
    checking.run("writes", check)
