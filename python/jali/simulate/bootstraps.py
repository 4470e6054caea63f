"""Bootstrappings of TFHE as a program for every machine: the trace that an engine would record,
made from the sizes of a set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from jali.errors import InvalidArgument
from jali.simulate import fitted
from jali.simulate.lowering import butterflies
from jali.simulate.machine import Machine
from jali.simulate.steps import Kind, Steps
from jali.simulate.strix import TfheSet, published_sets
from jali.simulate.trace import Header, Operand, Record, Trace

__all__ = ["BootstrapProgram", "parse", "trace_of"]

SIZES = ("n", "k", "N", "l_b", "l_k")
MOST = {"n": 65536, "k": 16, "N": 65536, "l_b": 64, "l_k": 64, "ciphertexts": 1_000_000}


def trace_of(tfhe: TfheSet, ciphertexts: int) -> Trace:
    """The trace of one programmable bootstrapping of so many ciphertexts, without a key switch:
    classic rotations, words of 64 bits, one table for all."""
    word, parts = 8, tfhe.k + 1
    digits = parts * tfhe.l_b
    transforms = (digits + parts) * ciphertexts * tfhe.n
    reads = (
        Operand("plaintext", 0, 0, tfhe.N * word),
        Operand("key", 1, 0, tfhe.n * digits * parts * tfhe.N * word),
        Operand("ciphertext", 2, 0, ciphertexts * (tfhe.n + 1) * word),
    )
    writes = (Operand("ciphertext", 3, 0, ciphertexts * (tfhe.k * tfhe.N + 1) * word),)
    record = Record(
        line=2,
        op="bootstrap",
        start=0,
        thread=0,
        shape={"batch": ciphertexts, "steps": tfhe.n, "tables": 1, "encrypted": False, "log_many": 0},
        reads=reads,
        writes=writes,
        bytes_read=sum(operand.bytes for operand in reads),
        bytes_written=writes[0].bytes,
        mults=0,
        stream_bytes=0,
        complex_butterflies=transforms * butterflies(Kind.FFT, tfhe.N),
        complex_products=digits * parts * ciphertexts * tfhe.n * (tfhe.N // 2),
        seconds=0.0,
    )  # fmt: skip
    fields = {
        **{"n": tfhe.n, "k": tfhe.k, "N": tfhe.N, "torus": 8 * word},
        **{"rotation": "classic", "group": 1},
        **{"rotation_gadget": (1, tfhe.l_b), "switch_gadget": (1, tfhe.l_k)},
    }
    return Trace(Header("tfhe", "generated", "", "none", fields), (record,))


@dataclass(frozen=True)
class BootstrapProgram:
    """`ciphertexts` bootstrappings of a set at once."""

    tfhe: TfheSet
    ciphertexts: int = 1

    def __call__(self, machine: Machine) -> Steps:
        return fitted.fitted(trace_of(self.tfhe, self.ciphertexts))(machine)

    @property
    def bootstrappings(self) -> int:
        """As many as there are ciphertexts."""
        return self.ciphertexts

    def resized(self, ciphertexts: int) -> BootstrapProgram:
        """The same with another number of ciphertexts."""
        return replace(self, ciphertexts=ciphertexts)


def parse(name: str, options: Mapping[str, int]) -> BootstrapProgram:
    """The program of "tfhe:I" or "tfhe:n=918,k=1,N=2048,l_b=1,l_k=4". Raises InvalidArgument."""
    sets = published_sets()
    for key, value in options.items():
        if not 1 <= value <= MOST[key]:
            raise InvalidArgument(f"{key} is 1 to {MOST[key]}, not {value}")
    sizes: dict[str, Any] = {key: value for key, value in options.items() if key in SIZES}
    if name not in sets and (name or len(sizes) < len(SIZES)):
        raise InvalidArgument(f"there is no set {name!r}: use tfhe:{'|'.join(sets)}, or all of {', '.join(SIZES)}")  # fmt: skip
    tfhe = replace(sets[name], **sizes) if name else TfheSet("given", **sizes)
    return BootstrapProgram(tfhe, options.get("ciphertexts", 1))
