"""Machine files: formulas, overrides and modes, and one clean error for whatever is wrong with
them."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jali
from jali.simulate import Kind, Machine, shipped
from jali.simulate.number import evaluate

TOY = """
format = 1
name = "toy"
frequency_hz = { value = 1e9, source = "assumed" }
clusters = "cores"
published_off = ["fill"]
[parameters]
cores = { value = 2, source = "paper:IV" }
clp = { value = 4, source = "calibrated:Table V" }
[widths]
coefficient = { value = 4, source = "paper:VI" }
[limits]
fill = "The first output of a transform."
[units.ntt]
scope = "cluster"
count = { value = 1, source = "paper:IV" }
lanes = "2 * clp"
area_mm2 = { value = 3, source = "paper:III" }
[units.ntt.kinds."NTT+INTT"]
passes = { value = "log2n", source = "paper:IV-B" }
fill = { value = 23, source = "calibrated" }
latency = { value = "n / clp", source = "paper:V-A", limit = "fill", off = 0 }
[memories.scratchpad]
scope = "cluster"
bytes = { value = 1024, source = "paper:IV" }
holds = ["ciphertext"]
area_mm2 = { value = 5, source = "paper:III" }
[buses.key]
carries = ["key"]
bytes_a_cycle = { value = 64, source = "paper:IV", limit = "fill", off = inf }
[channels.dram]
carries = ["all"]
bytes_a_second = { value = 77e9, source = "paper:V-A" }
"""


def cycles(machine: Machine, n: int, count: int = 1) -> int:
    return machine.units["ntt"].cycles(Kind.NTT, n, count)


def test_formulas_and_timings() -> None:
    m = Machine.parse(TOY)
    assert cycles(m, 1024) == 10 * (128 + 23) and cycles(m, 1024, 3) == 3 * 10 * (128 + 23)
    assert cycles(m, 1000) == math.ceil(math.log2(1000) * (125 + 23))
    assert m.units["ntt"].kinds[Kind.INTT].latency.at(1024) == 256
    assert m.instances(m.units["ntt"]) == 2 and m.area_mm2 == 2 * 3 + 2 * 5
    assert m.unit_of(Kind.INTT) is m.units["ntt"] and m.unit_of(Kind.MAC) is None
    assert {n.path for n in m.constants("calibrated", "assumed")} == {
        "frequency_hz",
        "parameters.clp",
        "units.ntt.kinds.NTT+INTT.fill",
    }


def test_modes() -> None:
    strict = Machine.parse(TOY)
    published = strict.in_mode("published")
    assert published.switched_off == {"fill"} and not strict.switched_off
    assert published.units["ntt"].kinds[Kind.NTT].latency.at(1024) == 0
    assert float(published.buses["key"].bytes_a_cycle) == math.inf
    assert float(strict.buses["key"].bytes_a_cycle) == 64
    with pytest.raises(jali.InvalidArgument, match="mode"):
        Machine.parse(TOY, "fast")


def test_overrides() -> None:
    m = Machine.parse(TOY)
    wide = m.changed({"clp": 8, "clusters": 5})
    assert cycles(wide, 1024) == 10 * (64 + 23) and wide.instances(wide.units["ntt"]) == 5
    assert float(wide.parameters["cores"]) == 2
    assert cycles(m.changed({"units.ntt.lanes": 1024}), 1024) == 10 * 24
    slow = m.changed(scale={"channels.dram.bytes_a_second": 0.5}).changed(scale={"clp": 2})
    assert float(slow.channels["dram"].bytes_a_second) == 38.5e9 and cycles(slow, 64) == 6 * (
        4 + 23
    )
    assert slow.changed({"cores": 3}).scales == slow.scales
    counted = Machine.parse(TOY.replace("clp = { value = 4,", "clp = { value = 4, whole = true,"))
    assert cycles(counted.changed({"clp": 8}), 1024) == 10 * (64 + 23)
    with pytest.raises(jali.InvalidArgument, match=r"clp: 2.5 is no whole .*\(with clp = 2.5\)"):
        counted.changed({"clp": 2.5})
    with pytest.raises(jali.InvalidArgument, match=r"lanes: .* above 0 \(with clp = 0\)"):
        m.changed({"clp": 0})
    for bad in ("lanes", "units.fft.lanes", "parameters.zz", ""):
        with pytest.raises(jali.InvalidArgument, match="no number"):
            m.changed({bad: 3})
    for value in (math.nan, math.inf, True, "8"):
        with pytest.raises(jali.InvalidArgument, match="finite"):
            m.changed({"clp": value})  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("format = 1", "format = 2", "format"),
        ("lanes = ", "lanse = ", "lanse"),
        ('lanes = "2 * clp"', "lanes = 8", "source"),
        ('source = "paper:III"', 'source = "guess"', "source begins"),
        ('holds = ["ciphertext"]', 'holds = ["cyphertext"]', "holds"),
        ('"NTT+INTT"', '"NTT+NNT"', "NNT"),
        ('"NTT+INTT"', '"NTT+LOAD"', "LOAD"),
        ('scope = "cluster"\nbytes', 'scope = "core"\nbytes', "scope"),
        ("value = 1, source", "value = 1.5, source", "whole"),
        ("value = 1, source", "value = 0, source", "above 0"),
        ("value = 1024, source", "value = -1, source", "above 0"),
        ("value = 77e9", 'value = "77e9 / 0"', "bytes_a_second.*divides by zero"),
        ("value = 77e9", 'value = "__import__(1)"', "formula"),
        ("value = 77e9", 'value = "9 ** 9 ** 9 ** 9"', "bytes_a_second"),
        ("value = 77e9", 'value = "clp."', "bytes_a_second"),
        ("value = 77e9", 'value = "pcl"', "no number pcl: use cores, clp"),
        ("value = 77e9", 'value = "9.0 ** 999"', "too large"),
        ('"NTT+INTT"', '"NTT+INTT+NTT"', "NTT is there twice"),
        ("[memories.scratchpad]", "[units.ntt.kinds.INTT]\n[memories.scratchpad]", "INTT is there twice"),
        ("value = 77e9", "value = nan", "number or a formula"),
        ("value = 77e9", "value = true", "number or a formula"),
        ("value = 1e9", "value = 0", "frequency"),
        ('limit = "fill", off = 0', 'limit = "fill"', "stand together"),
        ('limit = "fill", off = 0', 'limit = "fil", off = 0', "no limit"),
        ('published_off = ["fill"]', 'published_off = ["fell"]', "no limit"),
        ('[limits]\nfill = "', "[limits]\nfill = 7 # ", "limits.fill"),
        ("[channels.dram]", "[channels]\n[chanels.dram]", "chanels"),
        ("clp = {", "n = {", "parameters.n: n is of the polynomials"),
        ("[channels.dram]", '[channels.two]\ncarries = ["key"]\nbytes_a_second = "1.0"\n[channels.dram]', "already"),
        ("[widths]", "[widths", "TOML"),
        ("value = 77e9", "value = " + "9" * 5000, "TOML: a number is too long"),
        ("coefficient = { value = 4", "coefficient = { value = 0", "widths.coefficient.*above 0"),
        ("value = 1, source", "value = inf, source", "inf is no whole number"),
        ("value = 1, source", "value = 65537, source", "no whole number from 1 to 2.16"),
        ("cores = { value = 2,", "cores = { value = 2.5, whole = true,", "cores: 2.5 is no whole"),
        ("cores = { value = 2,", "cores = { value = 0, whole = true,", "cores: 0 is no whole"),
        ("cores = { value = 2,", "cores = { value = 2, whole = 1,", "'whole' is true or false"),
        ('passes = { value = "log2n",', 'passes = { value = "log2n", whole = true,', "no whole number"),
    ],
)  # fmt: skip
def test_one_error_names_the_place(old: str, new: str, message: str) -> None:
    assert old in TOY
    with pytest.raises(jali.InvalidArgument, match=message):
        Machine.parse(TOY.replace(old, new, 1))


def test_formulas_of_n_are_checked_where_they_are_used() -> None:
    text = TOY.replace('lanes = "2 * clp"', 'lanes = "n - 512"')
    assert cycles(Machine.parse(text), 1024) == 10 * (2 + 23)
    with pytest.raises(jali.InvalidArgument, match="lanes"):
        cycles(Machine.parse(text), 512)


def test_files(tmp_path: Path) -> None:
    assert {"strix", "strix_nofold", "mv_set_a", "mv_set_bc", "h100"} <= set(shipped())
    with pytest.raises(jali.InvalidArgument, match="no machine 'strx'"):
        Machine.load("strx")
    with pytest.raises(jali.FileError):
        Machine.load(tmp_path / "none.toml")
    file = tmp_path / "toy.toml"
    file.write_text(TOY.replace("format = 1", "format = 3"))
    with pytest.raises(jali.InvalidArgument, match=r"toy\.toml: format"):
        Machine.load(file)
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(jali.InvalidArgument, match="UTF-8"):
        Machine.load(file)
    file.write_text("#" * (1 << 20) + TOY)
    with pytest.raises(jali.LimitExceeded):
        Machine.load(file)


def tries(text: str) -> None:
    """Reads a file; only Jali's errors may come out."""
    try:
        for mode in ("strict", "published"):
            machine = Machine.parse(text, mode)
            assert machine.instances(machine.units["ntt"]) >= 1
    except jali.Error as error:
        assert str(error)
    except KeyError as error:
        assert error.args == ("ntt",)  # the unit has another name now


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_corrupt_files_give_one_error(data: st.DataObject) -> None:
    lines = TOY.splitlines()
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(lines) - 1))
        match data.draw(st.sampled_from(("drop", "double", "swap", "cut", "put"))):
            case "drop":
                del lines[at]
            case "double":
                lines.insert(at, lines[at])
            case "swap":
                other = data.draw(st.integers(0, len(lines) - 1))
                lines[at], lines[other] = lines[other], lines[at]
            case "cut":
                lines[at] = lines[at][: data.draw(st.integers(0, len(lines[at])))]
            case "put":
                place = data.draw(st.integers(0, len(lines[at])))
                text = data.draw(
                    st.text("0123456789eE.+-*/(){}[]=\",'nclp inf#\\\x00é", max_size=6)
                )
                lines[at] = lines[at][:place] + text + lines[at][place:]
    tries("\n".join(lines))


VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers(-(10**40), 10**40) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)


@settings(max_examples=200, deadline=None)
@given(st.text("0123456789.+-*/%(), clpnmaxfork=<lambda>:[]'", max_size=40))
def test_formulas_are_arithmetic_or_an_error(text: str) -> None:
    try:
        value = evaluate(text, {"clp": 4.0, "n": 16.0}, "here")
    except jali.InvalidArgument as error:
        assert str(error).startswith("here: ")
    else:
        assert math.isfinite(value)


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.sampled_from(("value", "source", "limit", "off", "x")), VALUES))
def test_numbers_of_any_shape(raw: dict[str, object]) -> None:
    from jali.simulate.number import read_number

    try:
        number = read_number(raw, "here", {"clp": 4.0})
    except jali.InvalidArgument as error:
        assert "here" in str(error)
    else:
        assert number.value is not None and not math.isnan(number.value)
