"""The bytes of manifests and programs of trees: a JSON document in UTF-8, whose arrays are texts in
base 64, in the frame that every object of Jali has (docs/format.md).

Bytes from elsewhere are checked before anything is made of them: lengths, types and ranges of all
fields, and that trees are trees. The checksum finds damage. It does not say who wrote the bytes.
"""

from __future__ import annotations

import base64
import json
import os
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from jali._core import files, schema
from jali._core.columns import printable
from jali._jali import program as _program
from jali._jali.tfhe import Params
from jali.errors import (
    CorruptData,
    InvalidArgument,
)
from jali.tfhe.trees.ensemble import (
    EQUAL,
    MISSING_YES,
    MOST_SCORES,
    TRUNCATE,
    Ensemble,
    Head,
    Question,
    Tree,
)

if TYPE_CHECKING:
    from jali.tfhe.trees.manifest import Manifest

__all__ = [
    "ensemble_document",
    "ensemble_of",
    "field",
    "load",
    "manifest_document",
    "manifest_fields",
    "params_document",
    "params_of",
    "payload",
    "read",
    "save",
    "whole",
    "written",
]

MAX_BYTES = 1 << 30
_MOST = 1 << 27  # numbers of an array
_MOST_ROWS = 1 << 16
_MOST_SHIFT = 62
_LARGEST = 1e100  # of a number, so that sums are finite

Document = dict[str, Any]


def written(kind: str, content: Document) -> bytes:
    """The bytes of a document. kind: "manifest" or "program"."""
    text = json.dumps(content, sort_keys=True, allow_nan=False).encode()
    return _program.payload_to_bytes("tfhe", kind, [text])


def read(kind: str, data: bytes | bytearray | memoryview, max_bytes: int = MAX_BYTES) -> Document:
    """The document of bytes. Raises CorruptData, VersionError and LimitExceeded."""
    text = bytes(payload(kind, data, max_bytes))
    # All arrays are texts, so that a document has few lists and objects: nested ones would take
    # much more memory than their text.
    if text.count(b"[") + text.count(b"{") > 64:
        raise CorruptData("the bytes are made of too many lists and objects")
    try:
        document = schema.parsed(text)
    except ValueError:
        raise CorruptData("the document cannot be read") from None
    if not isinstance(document, dict):
        raise CorruptData(f"the bytes are no {kind} of trees")
    return document


def payload(kind: str, data: bytes | bytearray | memoryview, max_bytes: int) -> memoryview:
    """What the frame of bytes holds. kind: also "message". Raises CorruptData, VersionError and
    LimitExceeded."""
    view = files.octets(data)
    files.refuse_earlier(view, kind)
    offset, count = _program.payload_of(view, "tfhe", kind, max_bytes)
    return view[offset : offset + count]


def save(file: str | os.PathLike[str], data: bytes) -> None:
    """Write bytes to a path, which is replaced at once or stays as it was. Raises FileError."""
    files.save(file, data)


def load(file: str | os.PathLike[str], max_bytes: int = MAX_BYTES) -> bytes:
    """The bytes of a file. Raises FileError and LimitExceeded."""
    return files.load(file, max_bytes)


# --- fields -------------------------------------------------------------------------------------


def field(document: Document, name: str) -> Any:
    """A field of a document."""
    if name not in document:
        raise CorruptData(f"the file has no {name}")
    return document[name]


def whole(document: Document, name: str, low: int, high: int) -> int:
    """A whole number of this range."""
    value = field(document, name)
    if type(value) is not int or not low <= value <= high:
        raise CorruptData(f"the file's {name} is no whole number from {low} to {high}")
    return value


def _flag(document: Document, name: str) -> bool:
    value = field(document, name)
    if type(value) is not bool:
        raise CorruptData(f"the file's {name} is not true or false")
    return value


def _number(document: Document, name: str) -> float:
    value = field(document, name)
    if type(value) not in (int, float) or not abs(value) <= _LARGEST:
        raise CorruptData(f"the file's {name} is no finite number")
    return float(value)


def _one_of(document: Document, name: str, names: tuple[str, ...]) -> str:
    value = field(document, name)
    if value not in names or not isinstance(value, str):
        raise CorruptData(f"the file's {name} is none of {', '.join(names)}")
    return value


def _text(array: npt.NDArray[Any]) -> str:
    kind = "<f8" if array.dtype.kind == "f" else "<i8"
    return base64.b64encode(np.ascontiguousarray(array, kind).tobytes()).decode()


def _array(document: Document, name: str, kind: str, most: int = _MOST) -> npt.NDArray[Any]:
    """An array of numbers, kind "f" or "i", of one axis."""
    value = field(document, name)
    if not isinstance(value, str) or len(value) > most * 11 + 4:
        raise CorruptData(f"the file's {name} is no array of at most {most} numbers")
    try:
        raw = base64.b64decode(value, validate=True)
        return np.frombuffer(raw, f"<{kind}8").astype(np.float64 if kind == "f" else np.int64)
    except ValueError:
        raise CorruptData(f"the file's {name} is no array") from None


def _whole_array(
    document: Document, name: str, low: int, high: int, length: int | None = None
) -> npt.NDArray[np.int64]:
    array = _array(document, name, "i")
    if length is not None and len(array) != length:
        raise CorruptData(f"the file's {name} has {len(array)} numbers instead of {length}")
    if array.size and (array.min() < low or array.max() > high):
        raise CorruptData(f"the file's {name} has numbers that are not from {low} to {high}")
    return array


def _pairs(document: Document, name: str) -> npt.NDArray[np.int64]:
    """Pairs of whole numbers, at least one."""
    array = _whole_array(document, name, 0, _MOST)
    if len(array) % 2 or not len(array):
        raise CorruptData(f"the file's {name} are no pairs")
    return array.reshape(-1, 2)


def _float_array(document: Document, name: str, length: int, *, infinite: bool = False) -> Any:
    array = _array(document, name, "f")
    wrong = np.isnan(array) if infinite else ~(np.abs(array) <= _LARGEST)
    if len(array) != length or wrong.any():
        raise CorruptData(f"the file's {name} is no array of {length} numbers")
    return array


def params_document(params: Params) -> str:
    """Parameters as text."""
    return base64.b64encode(params.to_bytes()).decode()


def params_of(document: Document, security: int, log2_p_fail: float) -> Params:
    """The parameters of a document."""
    value = field(document, "params")
    if not isinstance(value, str) or len(value) > 1 << 16:
        raise CorruptData("the file has no parameters")
    try:
        return Params.from_bytes(
            base64.b64decode(value, validate=True), security=security, log2_p_fail=log2_p_fail
        )
    except ValueError as error:
        if isinstance(error, InvalidArgument):
            raise
        raise CorruptData("the file has no parameters") from None


# --- questions, heads and classes ---------------------------------------------------------------


def _questions_document(questions: tuple[Question, ...]) -> Document:
    sets = [of for q in questions for of in (q.yes, q.no)]
    return {
        "question_feature": _text(np.array([q.feature for q in questions], np.int64)),
        "question_edge": _text(np.array([q.edge for q in questions], np.float64)),
        "question_missing": _text(np.array([q.missing for q in questions], np.int64)),
        "question_found": _text(np.array([q.found for q in questions], np.int64)),
        "set_length": _text(np.array([-1 if of is None else len(of) for of in sets], np.int64)),
        "set_values": _text(np.array([v for of in sets for v in of or ()], np.float64)),
    }


def _questions_of(document: Document, features: int) -> tuple[Question, ...]:
    feature = _whole_array(document, "question_feature", 0, features - 1)
    count = len(feature)
    edge = _float_array(document, "question_edge", count, infinite=True)
    missing = _whole_array(document, "question_missing", 0, MISSING_YES, count)
    found = _whole_array(document, "question_found", EQUAL, TRUNCATE, count)
    length = _whole_array(document, "set_length", -1, _MOST, 2 * count)
    values = _float_array(document, "set_values", int(np.maximum(length, 0).sum()), infinite=True)
    sets, at = [], 0
    for k in length.tolist():
        sets.append(None if k < 0 else tuple(values[at : at + k].tolist()))
        at += max(k, 0)
    fields = zip(feature.tolist(), edge.tolist(), missing.tolist(), found.tolist(), strict=True)
    return tuple(
        Question(f, e, m, sets[2 * k], sets[2 * k + 1] or (), how)
        for k, (f, e, m, how) in enumerate(fields)
    )


def _head_document(head: Head) -> Document:
    numbers = {name: float(getattr(head, name)) for name in ("divisor", "factor", "offset")}
    return {"head": {**vars(head), **numbers}}


def _head_of(document: Document) -> Head:
    given = field(document, "head")
    if not isinstance(given, dict):
        raise CorruptData("the file's head is no object")
    head = Head(
        divisor=_number(given, "divisor"),
        complement=_flag(given, "complement"),
        link=_one_of(given, "link", Head.LINKS),
        factor=_number(given, "factor"),
        offset=_number(given, "offset"),
        pair=_flag(given, "pair"),
        flat=_flag(given, "flat"),
        rule=_one_of(given, "rule", Head.RULES),
    )
    if not 1e-9 <= head.divisor <= 1e9:
        raise CorruptData("the file's divisor is not from 1e-9 to 1e9")
    return head


def _model_document(model: Ensemble | Manifest) -> Document:
    """What ensembles and manifests have in common."""
    return {
        **_questions_document(model.questions),
        **_head_document(model.head),
        "base": _text(model.base),
        "features": model.features,
        "compared_as": model.compared_as,
        "missing": model.missing,
        "infinite": model.infinite,
        "classes": model.classes.tolist(),
        **({"names": list(model.names)} if model.names else {}),
    }


def _names_of(document: Document, features: int) -> tuple[str, ...]:
    names = document.get("names", [])
    if not isinstance(names, list) or len(names) not in (0, features):
        raise CorruptData("the file's names are not those of its features")
    if not all(isinstance(x, str) and x == printable(x) for x in names):
        raise CorruptData(
            "the file's names are no texts of 1 to 1,000 characters without control characters"
        )
    return tuple(names)


def _model_fields(document: Document) -> Document:
    features = whole(document, "features", 1, _MOST)
    base = _array(document, "base", "f", MOST_SCORES)
    head = _head_of(document)
    if not 1 <= len(base) <= MOST_SCORES or not (np.abs(base) <= _LARGEST).all():
        raise CorruptData("the file has no scores")
    if head.pair and (len(base) > 1 or head.complement):
        raise CorruptData("the file gives several probabilities as one and its complement")
    classes = field(document, "classes")
    if not isinstance(classes, list) or len(classes) > MOST_SCORES:
        raise CorruptData("the file's classes are no list")
    kinds = {type(c) for c in classes}
    if len(kinds) > 1 or not kinds <= {bool, int, float, str}:
        raise CorruptData("the file's classes are no names or numbers of one kind")
    try:
        named = np.array(classes)
    except OverflowError:
        raise CorruptData("the file's classes are too large") from None
    wanted = 2 if len(base) == 1 else len(base) + head.complement
    if head.rule in ("first", "above", "from") and len(named) != wanted:
        raise CorruptData("the file has another number of classes than its scores need")
    if named.dtype.kind not in "biufU":
        raise CorruptData("the file's classes are too large")
    return {
        "questions": _questions_of(document, features),
        "head": head,
        "base": base,
        "features": features,
        "compared_as": _one_of(document, "compared_as", ("float32", "float64")),
        "missing": _flag(document, "missing"),
        "infinite": _flag(document, "infinite"),
        "classes": named,
        "names": _names_of(document, features),
    }


# --- manifests ----------------------------------------------------------------------------------


def manifest_document(manifest: Manifest) -> Document:
    """A manifest as a document."""
    return {
        **_model_document(manifest),
        "params": params_document(manifest.params),
        "columns": _text(np.array(manifest.columns, np.int64).reshape(-1)),
        "parts": _text(np.array(manifest.parts, np.int64)),
        "rows": manifest.rows,
        "outputs": _text(np.array(manifest.outputs, np.int64).reshape(-1)),
        "step": _text(manifest.step),
        "errors": _text(manifest.errors),
    }


def manifest_fields(document: Document, security: int, log2_p_fail: float) -> Document:
    """The fields of a manifest. Raises CorruptData."""
    model = _model_fields(document)
    params = params_of(document, security, log2_p_fail)
    scores, asked = len(model["base"]), len(model["questions"])
    room = (1 << (params.message_bits + params.carry_bits)) - 1
    columns, outputs = (_pairs(document, name) for name in ("columns", "outputs"))
    parts = _whole_array(document, "parts", 1, _MOST)
    if columns[:, 0].max() >= asked or not 1 <= columns[:, 1].min() <= columns[:, 1].max() <= room:
        raise CorruptData("the file encrypts answers that it does not have")
    if outputs[:, 0].max() >= scores or outputs[:, 1].max() > _MOST_SHIFT - room.bit_length():
        raise CorruptData("the file has outputs that belong to no score")
    if parts.sum() != len(columns):
        raise CorruptData("the file's ciphertexts do not hold its columns")
    ends = np.cumsum(parts)
    for begin, end in zip(ends - parts, ends, strict=True):
        if (columns[begin:end, 1] != columns[begin, 1]).any():
            raise CorruptData("a ciphertext of the file holds answers of several values")
    step, errors = (_float_array(document, name, scores) for name in ("step", "errors"))
    if not (step > 0).all() or not (errors >= 0).all():
        raise CorruptData("the file's steps are not above 0")
    return {
        **model,
        "params": params,
        "columns": tuple((int(a), int(b)) for a, b in columns),
        "parts": tuple(parts.tolist()),
        "rows": whole(document, "rows", 1, _MOST_ROWS),
        "outputs": tuple((int(a), int(b)) for a, b in outputs),
        "step": step,
        "errors": errors,
    }


# --- ensembles ----------------------------------------------------------------------------------


def ensemble_document(ensemble: Ensemble) -> Document:
    """An ensemble as a document."""

    def joined(parts: list[npt.NDArray[Any]], kind: type) -> str:
        return _text(np.concatenate([np.array([], kind), *(p.reshape(-1) for p in parts)]))

    trees = ensemble.trees
    return {
        **_model_document(ensemble),
        "tree_nodes": _text(np.array([len(t.question) for t in trees], np.int64)),
        "tree_scores": _text(np.array([len(t.scores) for t in trees], np.int64)),
        "scores": joined([np.array(t.scores) for t in trees], np.int64),
        "question": joined([t.question for t in trees], np.int64),
        "no": joined([t.no for t in trees], np.int64),
        "yes": joined([t.yes for t in trees], np.int64),
        "values": joined([t.values[t.leaves] for t in trees], np.float64),
    }


def ensemble_of(document: Document) -> Ensemble:
    """The ensemble of a document. Raises CorruptData."""
    model = _model_fields(document)
    scores, asked = len(model["base"]), len(model["questions"])
    nodes = _whole_array(document, "tree_nodes", 1, _MOST)
    widths = _whole_array(document, "tree_scores", 1, scores, len(nodes))
    total = int(nodes.sum())
    ids = _whole_array(document, "scores", 0, scores - 1, int(widths.sum()))
    question = _whole_array(document, "question", -1, asked - 1, total)
    no, yes = (_whole_array(document, name, 0, _MOST, total) for name in ("no", "yes"))
    ends = np.cumsum(nodes)
    leaves = [int((question[e - n : e] < 0).sum()) for n, e in zip(nodes, ends, strict=True)]
    values = _float_array(document, "values", int((np.array(leaves, np.int64) * widths).sum()))
    trees, at, of = [], 0, 0
    for count, end, width, here in zip(
        nodes.tolist(), ends.tolist(), widths.tolist(), leaves, strict=True
    ):
        inside = slice(end - count, end)
        tree = question[inside], no[inside], yes[inside]
        _check_tree(*tree)
        full = np.zeros((count, width))
        full[tree[0] < 0] = values[at : at + here * width].reshape(here, width)
        named = ids[of : of + width].tolist()
        if len(set(named)) < width:
            raise CorruptData("a tree of the file adds to a score twice")
        trees.append(Tree(*tree, tuple(named), full))
        at, of = at + here * width, of + width
    return Ensemble(trees=tuple(trees), **model)


def _check_tree(question: Any, no: Any, yes: Any) -> None:
    """Raises CorruptData unless every node but the root is the child of one node before it."""
    inner = question >= 0
    children = np.concatenate([no[inner], yes[inner]])
    parents = np.concatenate([np.flatnonzero(inner)] * 2)
    if (children <= parents).any() or not np.array_equal(
        np.sort(children), np.arange(1, len(question))
    ):
        raise CorruptData("a tree of the file is no tree")
