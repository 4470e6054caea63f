#!/usr/bin/env python3
"""Checks that every part of Jali looks only at the parts below it.

C++: a file of src/jali/ROOM includes "jali/OTHER/..." only when OTHER has a smaller number in ROOMS
or is ROOM itself; rooms of equal number are strangers. The folders of backend/ are strangers to each
other; each may include backend/*.h. A room links, directly or through what it links, every room that
it includes, and links nothing that it may not include.
Python: modules of python/jali import the standard library, numpy and jali at the top level; anything
else only inside a function (extras).

Usage: tools/check_layers.py [ROOT]. Exit status 1 with one line a violation.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import checking

ROOMS = {
    "base": 0,
    "arith": 1,
    "random": 1,
    "device": 1,
    "backend": 2,
    "ring": 3,
    "params": 4,
    "rlwe": 5,
    "lwe": 5,
    "ckks": 6,
    "tfhe": 6,
    "circuits": 7,
    "bootstrap": 8,
    "switching": 8,
    "wire": 9,
    "api": 10,
}
ENGINES = ("ref", "cpu", "cuda", "trace")  # folders of backend/

INCLUDE = re.compile(r'^\s*#\s*include\s*"(jali/[^"]+)"', re.MULTILINE)
RELATIVE = re.compile(r'^\s*#\s*include\s*"(?!jali/)([^"]+)"', re.MULTILINE)
ROOM_CALL = re.compile(r"jali_room\s*\(\s*(\w+)([^)]*)\)")
LINK_CALL = re.compile(r"target_link_libraries\s*\(\s*jali_(\w+)([^)]*)\)")


def place(path: str) -> tuple[str, str]:
    """(room, engine) of a path "jali/..."; engine is "" outside the folders of backend/."""
    parts = path.split("/")
    if len(parts) == 2:
        return "api", ""  # jali/jali.h
    engine = parts[2] if parts[1] == "backend" and len(parts) > 3 else ""
    return parts[1], engine


def target_place(name: str) -> tuple[str, str]:
    """(room, engine) of a CMake target name without its "jali_", e.g. backend_cpu."""
    room, _, rest = name.partition("_")
    return (room, rest if rest in ENGINES else "") if room in ROOMS else (name, "")


def allowed(user: tuple[str, str], used: tuple[str, str]) -> bool:
    room, engine = user
    other, other_engine = used
    if room not in ROOMS or other not in ROOMS:
        return False
    if room == other:
        return other_engine in ("", engine)
    if ROOMS[other] >= ROOMS[room]:
        return False
    # The engines of backend/ are seen through engines.h alone.
    return not other_engine


def check_includes(root: Path, includes: dict[str, set[str]]) -> Iterator[str]:
    for file in sorted((root / "src" / "jali").rglob("*")):
        if file.suffix not in (".h", ".cpp", ".cc", ".cu", ".cuh", ".inc"):
            continue
        name = file.relative_to(root).as_posix()
        text = file.read_text(encoding="utf-8")
        user = place(file.relative_to(root / "src").as_posix())
        for path in INCLUDE.findall(text):
            used = place(path)
            includes.setdefault(user[0], set()).add(used[0])
            if not allowed(user, used):
                yield f'{name}: {"/".join(filter(None, user))} may not include "{path}"'
        for path in RELATIVE.findall(text):
            yield f'{name}: write "{path}" as "jali/..." from the source root'


def check_links(root: Path, includes: dict[str, set[str]]) -> Iterator[str]:
    links: dict[str, set[str]] = {}
    for file in sorted((root / "src" / "jali").rglob("CMakeLists.txt")):
        name = file.relative_to(root).as_posix()
        text = re.sub(r"#.*", "", file.read_text(encoding="utf-8"))
        for target, body in ROOM_CALL.findall(text) + LINK_CALL.findall(text):
            user = target_place(target)
            links.setdefault(user[0], set())
            for dep in re.findall(r"\bjali_(\w+)", body):
                if dep in ("flags", target):
                    continue
                used = target_place(dep)
                links[user[0]].add(used[0])
                # Engines are made through engines.h: other rooms, and backend as their sum, may link them.
                seen_as = used if user[0] == used[0] and user[1] else (used[0], "")
                if not allowed(user, seen_as):
                    yield f"{name}: jali_{target} may not link jali_{dep}"

    def reach(room: str, seen: set[str]) -> set[str]:
        for dep in links.get(room, ()):
            if dep not in seen:
                seen.add(dep)
                reach(dep, seen)
        return seen

    for room, used in sorted(includes.items()):
        if room in links:
            for missing in sorted(used - reach(room, {room})):
                yield f"src/jali/{room}/CMakeLists.txt: includes {missing}/ without linking jali_{missing}"


def top_level_imports(tree: ast.Module) -> Iterator[tuple[int, str, int]]:
    """(line, module, relative level) of every import that runs when the module is imported."""
    pending: list[ast.AST] = list(tree.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name, 0) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, node.module or "", node.level
        elif isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            pending.extend(node.orelse)
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            pending.extend(ast.iter_child_nodes(node))


def check_python(root: Path) -> Iterator[str]:
    known = sys.stdlib_module_names | {"numpy", "jali"}
    for file in sorted((root / "python" / "jali").rglob("*.py")):
        for line, module, level in top_level_imports(ast.parse(file.read_text(encoding="utf-8"))):
            if not level and module.split(".")[0] not in known:
                yield (
                    f"{file.relative_to(root).as_posix()}:{line}: import {module} inside the function that "
                    "needs it: the base install has numpy alone"
                )


def check(root: Path) -> list[str]:
    includes: dict[str, set[str]] = {}
    found = list(check_includes(root, includes))
    return found + list(check_links(root, includes)) + list(check_python(root))


if __name__ == "__main__":
    checking.run("layers", check)
