#!/usr/bin/env python3
"""Checks that every part of Jali looks only at the parts below it.

Rooms: a file of src/jali/ROOM may include "jali/OTHER/..." only if OTHER is ROOM itself or has a
smaller number in ROOMS. Rooms of equal number may not include each other. A room may be a folder of
a folder (circuits/common).
Engines: the folders of backend/ may not include each other. Each may include backend/*.h. Only
backend/NAME/ may include device/NAME/.
Libraries: a room links, directly or through other rooms, every room that it includes. It may not
link a room that it may not include.
Tables: files in TABLES may include, directly or through other files, only the tables of operations
(backend/NAME_ops.h) that TABLES gives them.
Schemes: files of ring/, rlwe/, circuits/common/, integers/, device/ and wire/ and
params/rlwe_params.* may not name a scheme, unless the file's own name does (wire/ckks.cpp).
Secrets: code that touches a secret key lies in folders secret/ and in libraries jali_ROOM_secret.
Only these, and api/jali.h with jali_api, may include and link them, so that a program that only
evaluates contains none of it. Python: at the top level, modules of python/jali import only the
standard library, numpy and jali. Other packages are imported inside the function that needs them.
Imports among the modules, also those inside functions, have no circle, and go from a part of PARTS
to itself and to parts of smaller number; jali itself imports none of the programs that use the
library (simulate, demo, serve, bench, cli). Imports for type checkers alone are not counted, except
in python/jali/compiler: its rooms import only themselves and rooms of smaller number in COMPILER,
for type checkers, too. Modules of python/jali/compiler use no private member of another room or part,
except those of DOORS.

Usage: tools/check_layers.py [ROOT]. Prints one line for each violation; the exit status is 1 if
there are any.
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
    "approx": 1,
    "arith": 1,
    "random": 1,
    "device": 1,
    "backend": 2,
    "ring": 3,
    "params": 4,
    "rlwe": 5,
    "lwe": 5,
    "circuits/common": 6,
    "schemes/ckks": 6,
    "schemes/discrete": 6,
    "schemes/tfhe": 6,
    "circuits/ckks": 7,
    "circuits/discrete": 7,
    "integers": 7,
    "bootstrap": 8,
    "switching": 8,
    "wire": 9,
    "client": 10,
    "api": 11,
}
# Rooms and files that serve every scheme and may name none.
NEUTRAL = (
    "ring/", "rlwe/", "circuits/common/", "integers/", "device/", "wire/", "params/rlwe_params.",
)  # fmt: skip
SCHEMES = re.compile("ckks|discrete|tfhe", re.IGNORECASE)
# The header and the library that contain everything, also the code that touches secret keys.
EVERYTHING = ("src/jali/api/jali.h", "api")
# Folders inside a room that may not include each other: the engines, and the devices on which they
# compute.
FOLDERS = {"backend": ("ref", "cpu", "cuda", "dry", "trace"), "device": ("cuda",)}
# The tables of operations that files may reach, by the beginning of the file's path. The longest
# beginning counts. A family of kernels that is not named here needs no table.
TABLES = {
    "ring/": {"ring"},
    "rlwe/": {"ring", "rlwe"},
    "circuits/common/": {"ring", "rlwe"},
    "backend/cpu/embedding.h": {"embedding"},
    "backend/cpu/kernels_": set(),
    "backend/cpu/ring.": {"ring"},
    "backend/cpu/rlwe.": {"rlwe"},
    "backend/cpu/row_": set(),
    "backend/cuda/": set(),
    "backend/cuda/crt/": {"ring"},
    "backend/cuda/embedding/": {"embedding"},
    "backend/cuda/key_switch/": {"rlwe"},
    "backend/cuda/linear_transform/": {"rlwe"},
    "backend/cuda/mod_down/": {"rlwe"},
    "backend/cuda/rlwe_cuda.cu": {"ring", "rlwe", "embedding"},
    "backend/cuda/sampling/": {"ring"},
    "backend/cuda/secret/": {"tfhe_client"},
    "backend/cuda/tfhe_cuda.cu": {"tfhe"},
    "backend/cuda/variants/": {"ring"},
}
# The parts of python/jali, as of ROOMS, by the beginning of the module's name. The longest
# beginning counts.
PARTS = {
    "errors": 0,
    "_core": 1,
    "device": 2,
    "authenticated": 2,
    "ckks": 3,
    "discrete": 3,
    "tfhe": 3,
    "program": 4,
    "compiler": 5,
    "remote": 5,
    "cli.parser": 5,
    "nn": 6,
    "simulate": 7,
    "demo": 7,
    "serve": 7,
    "bench": 8,
    "cli": 9,
}
# Parts from this number on are programs that use the library. Importing jali imports none of them.
PROGRAMS = 7
# The rooms of python/jali/compiler, as of ROOMS: its folders, and the files beside them.
COMPILER = {
    "ciphertexts": 0,
    "progress": 0,
    "ir": 1,
    "frontends": 2,
    "passes": 2,
    "cost": 3,
    "layout": 4,
    "noise": 5,
    "runtime": 5,
    "pipeline": 6,
    "planning": 7,
    "program": 8,
    "driver": 9,
    "integers": 9,
    "compile": 10,
}
COMPILER_PACKAGE = "jali.compiler"
# The only modules of the compiler that may use private members of another room or part.
DOORS = {"jali.compiler.ciphertexts"}

SOURCES = (".h", ".cpp", ".cc", ".cu", ".cuh", ".inc")
INCLUDE = re.compile(r'^\s*#\s*include\s*"(jali/[^"]+)"', re.MULTILINE)
RELATIVE = re.compile(r'^\s*#\s*include\s*"(?!jali/)([^"]+)"', re.MULTILINE)
TABLE = re.compile(r"jali/backend/(?:secret/)?(\w+)_ops\.h")
ROOM_CALL = re.compile(r"jali_room\s*\(\s*(\w+)([^)]*)\)")
LINK_CALL = re.compile(r"target_link_libraries\s*\(\s*jali_(\w+)([^)]*)\)")


def place(path: str) -> tuple[str, str]:
    """(room, folder) of a path "jali/..."; folder is "" for a file that is in no folder of FOLDERS,
    or in the room's secret/. A room may be a folder in a folder."""
    parts = path.split("/")
    if len(parts) == 2:
        return "api", ""  # jali/jali.h
    if "/".join(parts[1:3]) in ROOMS:
        return "/".join(parts[1:3]), ""
    inside = parts[1] in FOLDERS and len(parts) > 3 and parts[2] != "secret"
    folder = parts[2] if inside else ""
    return parts[1], folder


def target_place(name: str) -> tuple[str, str]:
    """(room, folder) of a CMake target name without its "jali_", e.g. backend_cpu."""
    room, _, rest = name.partition("_")
    if f"schemes/{room}" in ROOMS:
        return f"schemes/{room}", ""
    if f"{room}/{rest.removesuffix('_secret')}" in ROOMS:
        return f"{room}/{rest.removesuffix('_secret')}", ""
    return (room, rest if rest in FOLDERS.get(room, ()) else "") if room in ROOMS else (name, "")


def allowed(user: tuple[str, str], used: tuple[str, str]) -> bool:
    room, folder = user
    other, other_folder = used
    if room not in ROOMS or other not in ROOMS:
        return False
    if room == other:
        return other_folder in ("", folder)
    if ROOMS[other] >= ROOMS[room]:
        return False
    # Other rooms use the engines of backend/ through engines.h alone. A device is used by the
    # engine of its name alone.
    return other_folder in ("", folder)


def check_includes(root: Path, includes: dict[str, set[str]]) -> Iterator[str]:
    for file in sorted((root / "src" / "jali").rglob("*")):
        if file.suffix not in SOURCES:
            continue
        name = file.relative_to(root).as_posix()
        text = file.read_text(encoding="utf-8")
        user = place(file.relative_to(root / "src").as_posix())
        for path in INCLUDE.findall(text):
            used = place(path)
            includes.setdefault(user[0], set()).add(used[0])
            if not allowed(user, used):
                yield f'{name}: {"/".join(filter(None, user))} may not include "{path}"'
            if "/secret/" in path and "/secret/" not in name and name not in EVERYTHING:
                yield f'{name}: only files of secret/ may include "{path}"'
        for path in RELATIVE.findall(text):
            yield f'{name}: write "{path}" as "jali/..." from the source root'


def check_tables(root: Path) -> Iterator[str]:
    files = {
        file.relative_to(root / "src").as_posix(): INCLUDE.findall(file.read_text(encoding="utf-8"))
        for file in sorted((root / "src" / "jali").rglob("*"))
        if file.suffix in SOURCES
    }

    def ways(start: str) -> Iterator[list[str]]:
        """For each file that `start` includes, directly or through others, one chain of includes to
        it."""
        seen, pending = {start}, [[start]]
        for way in pending:
            for used in files.get(way[-1], ()):
                if used not in seen:
                    seen.add(used)
                    pending.append([*way, used])
                    yield pending[-1]

    for file in files:
        rule = max((r for r in TABLES if file.startswith(f"jali/{r}")), key=len, default=None)
        if rule is None:
            continue
        for way in ways(file):
            table = TABLE.fullmatch(way[-1])
            if table and table[1] not in TABLES[rule]:
                yield f"src/{file}: may not reach {way[-1]}, as it does through {' and '.join(way[1:])}"


def check_neutral(root: Path) -> Iterator[str]:
    house = root / "src" / "jali"
    for file in sorted(house.rglob("*")):
        name = file.relative_to(house).as_posix()
        if not name.startswith(NEUTRAL) or file.suffix not in SOURCES or SCHEMES.search(file.name):
            continue
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            if SCHEMES.search(line):
                yield (
                    f"src/jali/{name}:{number}: names a scheme; write it for all schemes, or in a file whose "
                    "name begins with the scheme"
                )


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
                # Engines are made through engines.h, so other rooms, and the library of backend/,
                # may link them.
                seen_as = used if user[0] == used[0] and user[1] else (used[0], "")
                if not allowed(user, seen_as):
                    yield f"{name}: jali_{target} may not link jali_{dep}"
                if (
                    dep.endswith("_secret")
                    and not target.endswith("_secret")
                    and target not in EVERYTHING
                ):
                    yield f"{name}: only libraries jali_ROOM_secret may link jali_{dep}, not jali_{target}"

    def reach(room: str, seen: set[str]) -> set[str]:
        for dep in links.get(room, ()):
            if dep not in seen:
                seen.add(dep)
                reach(dep, seen)
        return seen

    for room, used in sorted(includes.items()):
        if room in links:
            for missing in sorted(used - reach(room, {room})):
                yield (
                    f"src/jali/{room.split('/')[0]}/CMakeLists.txt: {room} includes {missing}/ without "
                    f"linking jali_{missing.removeprefix('schemes/').replace('/', '_')}"
                )


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


def module_name(file: Path, package: Path) -> str:
    parts = file.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def jali_imports(
    tree: ast.Module, name: str, is_package: bool, modules: set[str], for_checkers: bool
) -> set[str]:
    """The modules of the package that a module imports anywhere in its text. for_checkers: also
    what it imports for type checkers alone."""
    found: set[str] = set()
    pending: list[ast.AST] = list(tree.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            source = node.module or ""
            if node.level:
                above = name.split(".")[: None if is_package and node.level == 1 else -node.level]
                source = ".".join([*above, *filter(None, [source])])
            found |= {
                inner if (inner := f"{source}.{alias.name}") in modules else source
                for alias in node.names
            }
        elif (
            isinstance(node, ast.If)
            and ast.unparse(node.test).endswith("TYPE_CHECKING")
            and not for_checkers
        ):
            pending.extend(node.orelse)
        else:
            pending.extend(ast.iter_child_nodes(node))
    return found & modules - {name}


def part(module: str) -> str:
    """The part of PARTS to which a module belongs; empty for jali itself and for the binding."""
    inner = module.partition(".")[2] + "."
    return max((p for p in PARTS if inner.startswith(f"{p}.")), key=len, default="")


def compiler_room(module: str) -> str:
    """The room of COMPILER to which a module belongs; empty for the package itself and for modules
    elsewhere."""
    inner = module.removeprefix(f"{COMPILER_PACKAGE}.")
    return "" if inner == module else inner.split(".")[0]


def check_compiler(imports: dict[str, set[str]]) -> Iterator[str]:
    """One violation for each module of the compiler without a room, and for each import from a room
    that may not be imported."""
    for name, used in imports.items():
        mine = compiler_room(name)
        if mine and mine not in COMPILER:
            yield f"python: {name} is in no room of COMPILER in tools/check_layers.py"
            continue
        for other in sorted(used) if mine else ():
            theirs = compiler_room(other)
            if other == COMPILER_PACKAGE:
                yield f"python: {name} may not import {other}: name the module that has what it needs"
            elif theirs in COMPILER and theirs != mine and COMPILER[theirs] >= COMPILER[mine]:
                yield f"python: {name} may not import {other}; COMPILER in tools/check_layers.py has the order"


def check_imports(root: Path) -> Iterator[str]:
    """One violation for each circle of imports, and for each import from a part that may not be
    imported."""
    package = root / "python" / "jali"
    files = {module_name(file, package): file for file in sorted(package.rglob("*.py"))}
    imports = {
        name: jali_imports(
            ast.parse(file.read_text(encoding="utf-8")),
            name,
            file.name == "__init__.py",
            set(files),
            for_checkers=bool(compiler_room(name)),
        )
        for name, file in files.items()
    }
    yield from check_compiler(imports)

    for name, used in imports.items():
        mine = part(name)
        for other in sorted(used):
            theirs = part(other)
            limit = PROGRAMS if name == package.name else PARTS.get(mine)
            if limit is not None and theirs and mine != theirs and PARTS[theirs] >= limit:
                yield f"python: {name} may not import {other}; PARTS in tools/check_layers.py has the order"

    def circle(start: str) -> list[str]:
        """The shortest way from a module to itself; empty if there is none."""
        ways = [[start, used] for used in sorted(imports[start])]
        seen = set(imports[start])
        for way in ways:
            if way[-1] == start:
                return way
            for used in sorted(imports[way[-1]] - (seen - {start})):
                seen.add(used)
                ways.append([*way, used])
        return []

    told: set[str] = set()
    for name in files:
        way = [] if name in told else circle(name)
        if way:
            told |= set(way)
            yield f"python: {' imports '.join(way)}: a circle; move what both need to a module below"


def private_names(tree: ast.Module) -> set[str]:
    """The private members and functions that a module defines."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    return {name for name in found if is_private(name)}


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def check_private(root: Path) -> Iterator[str]:
    """One violation for each private member of another room, or of another part of jali, that a
    module of the compiler uses."""
    package = root / "python" / "jali"
    trees = {
        module_name(file, package): ast.parse(file.read_text(encoding="utf-8"))
        for file in sorted(package.rglob("*.py"))
    }
    defined = {name: private_names(tree) for name, tree in trees.items()}
    for name, tree in trees.items():
        mine = compiler_room(name)
        if not mine or name in DOORS:
            continue
        own = {one for other in defined if compiler_room(other) == mine for one in defined[other]}
        theirs = set().union(*(names for names in defined.values())) - own
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr in theirs:
                yield (
                    f"python: {name}:{node.lineno} uses {ast.unparse(node)}, a private member of another "
                    f"room: give it a public name there, or a function in {', '.join(sorted(DOORS))}"
                )


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
    found = list(check_includes(root, includes)) + list(check_neutral(root))
    found += check_tables(root)
    found += [*check_links(root, includes), *check_python(root), *check_imports(root)]
    found += check_private(root)
    return found


if __name__ == "__main__":
    checking.run("layers", check)
