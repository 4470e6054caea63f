#!/usr/bin/env python3
"""Refuses code that writes the estimate of a ciphertext past the noise model of its scheme.

CKKS: only the model, src/jali/params/ckks/estimate.*, lineage.*, noise.* and noise_*.*, writes
fields of an Estimate, a Claim or a Lineage, builds one from numbers, or sets a claim. Exact
integers: only src/jali/params/discrete/estimate.* and noise.* write fields of an Estimate or a
Range, or build one. Everything else calls a rule of the model, which has its formula beside it. So
a room may not

- assign to a member that has the name of such a field, also through a reference or a pointer;
- take a reference or a pointer to such a field that it could write through, or swap it;
- build one of these types from numbers in braces or parentheses;
- call what belongs to the rules themselves (set_claim, claim_sum).

The names of the fields are read from the headers, so that a new field is covered at once. Other
types have members of the same names: OTHERS lists where these are written. Tests and fuzzers make
estimates that lie on purpose, and are not looked at.

Usage: tools/check_noise.py [ROOT]. Prints one line for each violation; the exit status is 1 if
there are any.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import checking


class Scheme(NamedTuple):
    """One scheme: which files are its model, where its types are, and which files it looks at."""

    model: re.Pattern[str]
    types: dict[str, str]
    looks_at: re.Pattern[str]


DISCRETE = r"(?:src/jali|python/src|bench)/(?:\w+/)*discrete"
SCHEMES = (
    Scheme(
        re.compile(r"src/jali/params/ckks/(?:estimate|lineage|noise|noise_\w+)\.(?:h|cpp)"),
        {
            "Estimate": "src/jali/params/ckks/estimate.h",
            "Claim": "src/jali/params/ckks/estimate.h",
            "Lineage": "src/jali/params/ckks/lineage.h",
        },
        re.compile(rf"(?!{DISCRETE})"),
    ),
    Scheme(
        re.compile(r"src/jali/params/discrete/(?:estimate|noise)\.(?:h|cpp)"),
        {
            "Estimate": "src/jali/params/discrete/estimate.h",
            "Range": "src/jali/params/discrete/estimate.h",
        },
        re.compile(rf"{DISCRETE}(?!/choose)"),  # a search makes the estimates that it tries
    ),
)
FOLDERS = ("src/jali", "python/src", "bench")
# These rooms and files know no Estimate. Their objects may have such names.
ELSEWHERE = (
    "src/jali/approx/", "src/jali/backend/", "src/jali/device/", "src/jali/integers/",
    "src/jali/lwe/", "src/jali/params/", "src/jali/random/", "src/jali/ring/", "src/jali/rlwe/",
    "src/jali/schemes/tfhe/", "src/jali/wire/tfhe", "python/src/tfhe", "bench/tfhe/",
)  # fmt: skip
# Members of other types: what each file writes, and of which type it is.
OTHERS = {
    "src/jali/schemes/ckks/auto_evaluator.cpp": {"out.real"},  # Plaintext
    "src/jali/schemes/ckks/compact.cpp": {"out.message", "out.peak", "out.real"},  # CompactPlaintext
    "src/jali/schemes/ckks/diagonal.cpp": {"out.message", "out.peak"},  # Diagonal
    "src/jali/schemes/ckks/encoder.cpp": {"out.message", "out.peak", "out.real"},  # Plaintext
    "src/jali/schemes/ckks/secret/decryptor.cpp": {"out.message", "out.peak"},  # Plaintext
    "src/jali/circuits/ckks/block_transform.cpp": {
        "out.message", "out.peak", "out.real", "out.principal", "row.message",
    },  # Diagonal, Rows
    "src/jali/circuits/ckks/modular_reduction_apply.cpp": {"double_angle.peak"},  # Combination
    "src/jali/circuits/ckks/polynomial_evaluate.cpp": {"sum.peak"},  # Combination
    "src/jali/circuits/ckks/function.cpp": {".error", ".degree"},  # Wanted
    "src/jali/client/manifest.cpp": {"manifest.inputs"},  # Manifest
    "src/jali/client/manifest_bytes.cpp": {"port.peak", "manifest.inputs"},  # Port, Manifest
    "src/jali/wire/ckks.cpp": {
        "out.message", "out.peak",  # Plaintext
        *(f"claimed.{name}" for name in
          ("variance", "message", "peak", "error", "noise", "real", "principal", "lineage")),  # Received
    },
    "src/jali/wire/ckks_params.cpp": {"b.degree"},  # BootstrapLiteral
    "src/jali/schemes/discrete/encoder.cpp": {"out.range"},  # Plaintext
    "src/jali/schemes/discrete/secret/decryptor.cpp": {"out.coefficient", "out.slot"},  # Noise
}  # fmt: skip

COMMENT_OR_STRING = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"', re.DOTALL)
MEMBER = re.compile(
    r"^  (?:double|bool|Lineage|Range|std::u?int\d+_t) (\w+(?:\{\})?(?: = [\w.+-]+)?"
    r"(?:, \w+(?: = [\w.+-]+)?)*);",
    re.MULTILINE,
)
# What stands before a member: names, calls, indices, dots and arrows, or nothing in an initialiser.
OBJECT = r"(?P<object>(?:[\w:]+(?:\([^()]*\)|\[[^\[\]]*\])*(?:\.|->)|\)(?:\.|->))*[\w:]*(?:\([^()]*\)|\[[^\[\]]*\])*)"


def fields_of(root: Path, types: dict[str, str]) -> set[str]:
    """The names of the fields of these types."""
    out: set[str] = set()
    for name, header in types.items():
        text = COMMENT_OR_STRING.sub("", (root / header).read_text(encoding="utf-8"))
        body = re.search(rf"^struct {name} \{{(.*?)^\}};", text, re.MULTILINE | re.DOTALL)
        if body is None:
            raise ValueError(
                f"{header} has no struct {name}: say in tools/check_noise.py where it is"
            )
        for match in MEMBER.finditer(body.group(1)):
            out |= {part.split("=")[0].strip(" {}") for part in match.group(1).split(",")}
    return out


def patterns(fields: set[str], names_of_types: Iterable[str]) -> list[tuple[re.Pattern[str], str]]:
    names = "|".join(sorted(fields))
    place = rf"{OBJECT}(?P<dot>\.|->)\s*(?P<field>{names})\b"
    types = "|".join(names_of_types)
    return [
        (re.compile(rf"{place}\s*(?:=(?!=)|[-+*/|&^%]=|\+\+|--)"), "assigns to"),
        (re.compile(rf"(?:\+\+|--)\s*{place}"), "assigns to"),
        (
            re.compile(
                rf"(?<!const )(?<![\w:])(?:\w+::)*(?:auto|double|bool|Lineage)\s*&&?\s*\w+\s*=\s*{place}\s*[;,]"
            ),
            "takes a reference to",
        ),
        (re.compile(rf"(?<![&\w)\]])\s*&\s*{place}\b(?!\s*(?:\.|->|\())"), "takes the address of"),
        (re.compile(rf"\(\s*{place}\s*\)\s*(?:=(?!=)|[-+*/|&^%]=)"), "assigns to"),
        (
            re.compile(
                rf"\b(?:swap|exchange|ref|tie|addressof)\s*\((?:[^();]*[,\s])?\s*{place}\s*[,)]"
            ),
            "hands out",
        ),
        (re.compile(rf"&\s*(?:\w+::)*(?:{types})::\w+"), "takes a pointer to a member,"),
        (
            re.compile(
                r"(?<!const )\bauto\s*&&?\s*\[[^\]]*\]\s*=\s*[^;]*\b(?:estimate|lineage)\s*;"
            ),
            "takes references to the fields,",
        ),
        (re.compile(rf"\b(?:{types})\b\s*\w*\s*(?:\{{\s*[^}}\s]|\(\s*[-\d.])"), "builds"),
        (re.compile(r"\b(?:estimate|lineage)\s*=\s*\{\s*[^}\s]"), "builds"),
        (re.compile(r"(?:\.|->)\s*(?:set_claim|claim_sum)\s*\("), "calls"),
    ]


def check(root: Path) -> Iterator[str]:
    for scheme in SCHEMES:
        yield from check_scheme(root, scheme)


def check_scheme(root: Path, scheme: Scheme) -> Iterator[str]:
    rules = patterns(fields_of(root, scheme.types), scheme.types)
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*")):
            name = file.relative_to(root).as_posix()
            if file.suffix not in (".h", ".cpp", ".cu", ".cuh", ".inc"):
                continue
            own = scheme.looks_at.match(name)
            other = name.startswith(ELSEWHERE) and not re.match(DISCRETE, name)
            if not own or other or scheme.model.fullmatch(name):
                continue
            text = COMMENT_OR_STRING.sub(
                lambda m: re.sub(r"[^\n]", " ", m.group()), file.read_text(encoding="utf-8")
            )
            for rule, what in rules:
                for match in rule.finditer(text):
                    found = match.groupdict()
                    member = f"{found['object']}.{found['field']}" if "field" in found else ""
                    if member in OTHERS.get(name, ()):
                        continue
                    line = text.count("\n", 0, match.start() + len(match.group()) - 1) + 1
                    shown = member or " ".join(match.group().split())
                    yield (
                        f"{name}:{line}: {what} {shown}: only the scheme's noise model writes "
                        "an estimate; call one of its rules, or add one beside its formula"
                    )


if __name__ == "__main__":
    checking.run("noise", check)
