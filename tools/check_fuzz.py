#!/usr/bin/env python3
"""Refuses public methods of the evaluators that no file of their fuzz target calls:
fuzz/ckks, fuzz/discrete or fuzz/tfhe.

A target passes objects that a loader accepts to every operation. An operation that it does not call
is not fuzzed.

Usage: tools/check_fuzz.py [ROOT]. Prints one line for each violation; the exit status is 1 if there
are any.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import checking


@dataclass(frozen=True)
class Target:
    """A fuzz target: its folder, the classes that it calls with their headers, and what it need not
    call.

    receivers: the expressions by which the target calls a class. Other classes have methods of the
        same names.
    """

    folder: str
    classes: dict[str, str]
    exempt: dict[str, set[str]]
    receivers: dict[str, str]


CLASSES = {
    "Evaluator": "src/jali/schemes/ckks/evaluator.h",
    "AutoEvaluator": "src/jali/schemes/ckks/auto_evaluator.h",
    "ArrayEvaluator": "src/jali/schemes/ckks/array_evaluator.h",
    "Encoder": "src/jali/schemes/ckks/encoder.h",
    "SecretEncryptor": "src/jali/schemes/ckks/secret/encryptor.h",
    "PublicEncryptor": "src/jali/schemes/ckks/encryptor.h",
    "Decryptor": "src/jali/schemes/ckks/secret/decryptor.h",
    "Program": "src/jali/schemes/ckks/program.h",
    "Batcher": "src/jali/schemes/ckks/batcher.h",
    "Bootstrapper": "src/jali/bootstrap/bootstrapper.h",
    "Packings": "src/jali/bootstrap/packings.h",
    "LinearTransform": "src/jali/circuits/ckks/linear_transform.h",
    "MatVec": "src/jali/circuits/ckks/matvec.h",
    "SlotSum": "src/jali/circuits/ckks/slot_sum.h",
}
# These methods take nothing hostile. They return facts about an object, they make plans before any
# ciphertext is read, or they take views in the engine's memory, which a prepared LinearTransform
# makes.
EXEMPT = {
    "Evaluator": {"params", "ring", "engine", "key_bytes", "rotation", "rotated_sums"},
    "AutoEvaluator": {"explicit_evaluator"},
    "ArrayEvaluator": {"explicit_evaluator"},
    "Program": {"arity", "bytes"},
    "Batcher": {"batch", "curve"},
    "LinearTransform": {"level", "input_scale", "plan", "key_bytes", "plaintext_bytes", "bytes"},
    "MatVec": {
        *(
            "rows",
            "columns",
            "level",
            "input_layout",
            "output_layout",
            "blocks",
            "plan",
            "key_bytes",
        ),
        *("plaintext_bytes", "bytes", "working_bytes", "cost", "prepare", "pack", "unpack"),
    },
    "SlotSum": {"rotations", "steps", "cost", "largest"},
}
# A method at the class's own level of braces: two spaces, a type, a name and a parenthesis.
METHOD = re.compile(
    r"^  (?!explicit |friend |using |return )[\w:][^;{}()=]*?[ &*>](\w+)\(", re.MULTILINE
)
RECEIVERS = {
    "Evaluator": r"ev\(\)",
    "AutoEvaluator": "automatic",
    "ArrayEvaluator": "arrays",
    "Bootstrapper": "bootstrapper",
    "Packings": "packings",
}
TFHE_CLASSES = {
    "Evaluator": "src/jali/schemes/tfhe/evaluator.h",
    "Gates": "src/jali/schemes/tfhe/gates.h",
    "Client": "src/jali/schemes/tfhe/secret/client.h",
    "PublicEncryptor": "src/jali/schemes/tfhe/secret/encryptor.h",
    "Arithmetic": "src/jali/integers/arithmetic.h",
}
TFHE_EXEMPT = {
    "Evaluator": {
        "params",
        "key_id",
        "engine",
        "prepared_keys",
        "keys",
        "free_bytes",
        "rotations_that_fit",
    },
    "Gates": {"evaluator"},
    "Client": {"params", "key_id", "secret_key", "engine"},
    "PublicEncryptor": {"params", "key_id"},
    "Arithmetic": {"machine"},
}
TFHE_RECEIVERS = {
    "Evaluator": r"ev\(\)",
    "Gates": "gates",
    "Client": "client",
    "PublicEncryptor": "owner",
    "Arithmetic": r"\ba",
}
DISCRETE_CLASSES = {
    "Evaluator": "src/jali/schemes/discrete/evaluator.h",
    "Encoder": "src/jali/schemes/discrete/encoder.h",
    "SecretEncryptor": "src/jali/schemes/discrete/secret/encryptor.h",
    "PublicEncryptor": "src/jali/schemes/discrete/encryptor.h",
    "Decryptor": "src/jali/schemes/discrete/secret/decryptor.h",
    "Program": "src/jali/schemes/discrete/program.h",
    "Batcher": "src/jali/schemes/discrete/batcher.h",
    "IntegerSlotSum": "src/jali/circuits/discrete/slot_sum.h",
}
# rotated_sums takes views in the engine's memory.
DISCRETE_EXEMPT = {
    "Evaluator": {"params", "ring", "key_bytes", "rotated_sums"},
    "Program": {"arity", "bytes"},
    "Batcher": {"batch", "curve"},
}
DISCRETE_RECEIVERS = {
    "Evaluator": r"ev\(\)",
    "Encoder": "encoder",
    "SecretEncryptor": r"\bown",
    "PublicEncryptor": "others",
    "Decryptor": "decryptor",
    "Program": "program",
    "Batcher": "batcher",
    "IntegerSlotSum": r"\bsum",
}
TARGETS = [
    Target("fuzz/ckks", CLASSES, EXEMPT, RECEIVERS),
    Target("fuzz/tfhe", TFHE_CLASSES, TFHE_EXEMPT, TFHE_RECEIVERS),
    Target("fuzz/discrete", DISCRETE_CLASSES, DISCRETE_EXEMPT, DISCRETE_RECEIVERS),
]


def calls(text: str, receiver: str) -> set[str]:
    """The names of the methods that are called on a receiver."""
    return set(re.findall(rf"{receiver}\s*(?:\.|->)\s*(\w+)\(", text))


def methods(text: str, name: str) -> set[str]:
    """The public methods of a class in a header."""
    body = re.split(rf"^class {name} {{", text, flags=re.MULTILINE)[-1].split("\n};", 1)[0]
    public = "".join(
        part.split(" private:", 1)[0]
        for part in re.split(r"^ public:", body, flags=re.MULTILINE)[1:]
    )
    return set(METHOD.findall(public)) - {"operator"}


def check(root: Path) -> list[str]:
    out = []
    for target in TARGETS:
        files = sorted((root / target.folder).glob("*.cpp"))
        text = "".join(file.read_text(encoding="utf-8") for file in files)
        for name, header in target.classes.items():
            found = methods((root / header).read_text(encoding="utf-8"), name)
            if not found:
                out.append(f"{header}: class {name} has no methods that this check can read")
            called = calls(text, target.receivers.get(name, ""))
            missing = sorted(found - target.exempt.get(name, set()) - called)
            out += [f"{target.folder}: {name}::{one} of {header} is not called" for one in missing]
    return out


if __name__ == "__main__":
    checking.run("fuzz", check)
