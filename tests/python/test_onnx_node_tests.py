"""ONNX's own node tests: what is taken has the value that onnx expects, and the rest is refused by
a sentence."""

from __future__ import annotations

import traceback

import pytest

pytest.importorskip("onnx")

from onnx_node_tests import cases, outcome

#: The least share that is taken; how many tests there are depends on the version of onnx.
SHARE = 0.75


def test_node_tests_are_right_or_refused() -> None:
    found: dict[str, str] = {}
    for case in cases():
        try:
            found[case.name] = outcome(case)
        except Exception:
            found[case.name] = f"crash: {traceback.format_exc(limit=-3)}"
    lost = {k: v for k, v in found.items() if not v.startswith(("taken", "refused"))}
    assert not lost, "\n".join(f"{name}: {what}" for name, what in lost.items())
    taken = sum(what == "taken" for what in found.values())
    assert taken >= SHARE * len(found), f"{taken} of {len(found)} are taken"
