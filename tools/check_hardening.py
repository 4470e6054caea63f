#!/usr/bin/env python3
"""Reads how an extension module was linked and compiled: an attacker who can overrun a buffer shall
find nothing to overwrite.

Of every module: addresses that the loader fills in are read-only before any code runs (RELRO,
BIND_NOW), no stack is executable, and the code is not written to (no TEXTREL). Of those that were
compiled with JALI_HARDEN: stacks are guarded (__stack_chk_fail), and functions that know the size
of their buffer check it (_FORTIFY_SOURCE: __memcpy_chk and the like).

Usage: tools/check_hardening.py FILE... Prints one line for each violation; the exit status is 1 if
there are any.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterator
from pathlib import Path

_LOAD, _DYNAMIC, _STACK, _RELRO = 1, 2, 0x6474E551, 0x6474E552
_NULL, _STRTAB, _STRSZ, _TEXTREL, _BIND_NOW, _FLAGS, _FLAGS_1 = 0, 5, 10, 22, 24, 30, 0x6FFFFFFB


def check(file: Path, compiled: bool = True) -> Iterator[str]:
    """What is wrong with a module. compiled: whether it was compiled with JALI_HARDEN, too."""
    data = file.read_bytes()
    if data[:6] != b"\x7fELF\2\1":
        yield f"{file.name}: no ELF file of 64 bits, low byte first"
        return
    (offset,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    # (type, flags, offset in the file, address, and so on, bytes in the file) of every segment
    segments = [struct.unpack_from("<IIQQQQ", data, offset + k * size) for k in range(count)]
    by_type = {segment[0]: segment for segment in segments}
    if _RELRO not in by_type:
        yield f"{file.name}: no RELRO: link with -z relro"
    if _STACK not in by_type or by_type[_STACK][1] & 1:
        yield f"{file.name}: the stack is executable: link with -z noexecstack"
    entries: dict[int, int] = {}
    _, _, at, _, _, length = by_type[_DYNAMIC]
    for tag, value in struct.iter_unpack("<qQ", data[at : at + length]):
        if tag == _NULL:
            break
        entries[tag] = value
    now = _BIND_NOW in entries or entries.get(_FLAGS, 0) & 8 or entries.get(_FLAGS_1, 0) & 1
    if not now:
        yield f"{file.name}: addresses are bound late, and stay writable: link with -z now"
    if _TEXTREL in entries or entries.get(_FLAGS, 0) & 4:
        yield f"{file.name}: the loader writes to its code: compile with -fPIC"
    if not compiled:
        return
    names = _names(data, segments, entries[_STRTAB], entries[_STRSZ])
    if "__stack_chk_fail" not in names:
        yield f"{file.name}: stacks are not guarded: compile with -fstack-protector-strong"
    if not any(n.startswith("__") and n.endswith("_chk") for n in names):
        yield f"{file.name}: no buffer is checked: compile with -D_FORTIFY_SOURCE=2"


def _names(data: bytes, segments: list[tuple[int, ...]], address: int, size: int) -> set[str]:
    """The names of dynamic symbols, of which the table of texts at this address is made."""
    for kind, _, offset, start, _, length in segments:
        if kind == _LOAD and start <= address < start + length:
            first = offset + address - start
            return {n.decode("ascii", "replace") for n in data[first : first + size].split(b"\0")}
    return set()


if __name__ == "__main__":
    found = [line for name in sys.argv[1:] for line in check(Path(name))]
    print("\n".join([*found, f"hardening: {len(found)} violations" if found else "hardening: ok"]))
    sys.exit(1 if found else 0)
