"""The matrix-vector accelerator by formulas: the equations, counted out by loops, and the memory
that its entities want."""

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jali import errors
from jali.simulate import matvec
from jali.simulate.allocator import exact, greedy, sweep
from jali.simulate.machine import Machine
from jali.simulate.matvec import CkksSet, Product
from jali.simulate.sensitivity import sensitivity
from jali.simulate.steps import Kind

SETS = matvec.published_sets()
A, BC = Machine.load("mv_set_a"), Machine.load("mv_set_bc")
ANALYSIS = Product(1024, 1024, SETS["Set-B"])  # the paper's III-B


@pytest.mark.parametrize("l", range(1, 16))
def test_transforms_of_a_key_switch_counted_out(l: int) -> None:  # noqa: E741
    """Algorithm 2 as loops."""
    forward = inverse = 0
    for i in range(l):
        inverse += 1
        forward += sum(i != j for j in range(l)) + 1
    for _half in range(2):
        inverse += 1
        forward += l
    found = matvec.transforms_of_key_switch(l)
    assert (found.forward, found.inverse) == (forward, inverse)


@pytest.mark.parametrize("l", range(1, 16))
def test_transforms_of_a_partial_sum_beside_the_algorithms(l: int) -> None:  # noqa: E741
    """The paper's count against its own algorithms: a key switch, then a rescale of both halves."""
    paper = matvec.transforms_of_partial_sum(l)
    switch = matvec.transforms_of_key_switch(l)
    assert paper.forward == switch.forward + 2 * (l - 1) + 2
    assert paper.inverse == switch.inverse + 2 - 2
    assert paper.total == l * (l + 4) + l + 2


def test_the_analysis_of_the_paper() -> None:
    reads = ANALYSIS.reads()
    total = sum(reads.values())
    shares = {name: round(100 * read / total, 1) for name, read in reads.items()}
    assert total == pytest.approx(42.5e9, rel=0.002)
    assert shares == {
        "keys": 35.3,
        "partial sum": 30.9,
        "NTT twiddles": 24.3,
        "input": 4.4,
        "INTT twiddles": 2.8,
        "matrix": 2.2,
    }


def test_sizes_by_hand() -> None:
    """l 7, N 2^14, 8 bytes: a residue polynomial is 128 KiB."""
    assert ANALYSIS.sizes() == {
        "ciphertext": 14 * 2**17,
        "input": 14 * 2**17,
        "plaintext": 7 * 2**17,
        "matrix": 1024 * 7 * 2**17,
        "NTT twiddles": 7 * 2**17,
        "INTT twiddles": 7 * 2**17,
        "key": 2 * 56 * 2**17,
    }


def test_figure_3() -> None:
    """What the greedy allocator holds as the memory grows: bytes in the order of cost, and 5.5 MB
    for all that is reused."""
    entities = ANALYSIS.entities()
    sizes = [0, 1_835_008, 2_752_512, 4_587_520, 5_505_024, 64_000_000]
    found = sweep(entities, sizes, greedy)
    assert [round(a.outer_bytes / 1e9, 1) for a in found] == [42.5, 29.4, 19.1, 17.2, 16.0, 16.0]
    order = ["partial sum", "NTT twiddles", "input", "INTT twiddles"]
    for count, allocation in enumerate(found[:5]):
        assert [e.name for e in allocation.held] == order[:count]
    assert found[4].peak == 5_505_024
    assert [a.saving for a in sweep(entities, sizes, exact)] == [a.saving for a in found]


def test_greedy_is_best_for_every_size_of_this_product() -> None:
    """The paper's rule loses nothing here. If the partial sum does not fit, both take the
    twiddles."""
    entities = ANALYSIS.entities()
    for sram in range(0, 7_000_000, 100_000):
        assert greedy(entities, sram).saving == exact(entities, sram).saving
    assert [e.name for e in greedy(entities, 1_000_000).held] == ["NTT twiddles"]


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(1, 4096), st.integers(1, 8192), st.sampled_from(sorted(SETS)))
def test_reads_cover_sizes(m: int, n: int, name: str) -> None:
    """Nothing is read less than once, and an entity's reads are whole multiples of its size, as the
    equations have them."""
    product = Product(m, n, SETS[name])
    if product.ciphertexts > 1:
        with pytest.raises(errors.Unsupported, match="ciphertexts"):
            product.reads()
        return
    reads, sizes = product.reads(), product.sizes()
    l = SETS[name].l  # noqa: E741
    assert reads["matrix"] == sizes["matrix"]
    assert reads["partial sum"] == m * l * sizes["ciphertext"]
    assert reads["keys"] / sizes["key"] == m + product.folds
    assert 2**product.folds >= product.chunks > 2**product.folds // 2
    assert sum(e.cost for e in product.entities()) == pytest.approx(sum(reads.values()), rel=0.05)


def test_cycles_and_seconds() -> None:
    assert matvec.cycles(A, Kind.NTT, 8192) == 13 * (512 + 23) == 6955
    assert matvec.cycles(BC, Kind.INTT, 32768) == 15 * (2048 + 23) == 31065
    times = {
        name: matvec.partial_sum_s(machine, SETS[name])
        for name, machine in (("Set-A", A), ("Set-B", BC), ("Set-C", BC))
    }
    butterflies = [t["butterflies"] * 1e3 for t in times.values()]
    assert butterflies == pytest.approx([0.075, 0.500, 3.30], rel=0.005)
    assert [t["DRAM"] * 1e3 for t in times.values()] == pytest.approx(
        [0.023, 0.203, 1.48], rel=0.005
    )
    for time in times.values():
        assert time["butterflies"] > time["DRAM"]  # compute-bound, as the paper says


def test_a_product_is_its_partial_sums_and_its_chunks() -> None:
    ckks = SETS["Set-B"]
    one = matvec.partial_sum_s(BC, ckks)
    switch = 1 / matvec.key_switch_rate(BC, ckks)["butterflies"]
    for m, n in ((1600, 1600), (1024, 2048), (512, 1344)):
        product = Product(m, n, ckks)
        found = matvec.product_s(BC, product)
        expected = m * one["butterflies"] + product.folds * switch
        assert found["butterflies"] == pytest.approx(expected, rel=1e-12)
        assert found["DRAM"] < found["butterflies"]
    with pytest.raises(errors.Unsupported, match="2 ciphertexts"):
        matvec.product_s(BC, Product(4096, 9216, ckks))


def test_bounds_of_table_v() -> None:
    bounds = matvec.key_switch_rate(BC, SETS["Set-B"])
    assert {name: round(rate) for name, rate in bounds.items()} == {
        "butterflies": 2388,
        "DRAM": 5245,
    }


def test_resources() -> None:
    assert matvec.resources(A) == {"dsp": 4896, "bram": 192, "uram": 576}
    assert matvec.resources(BC) == {"dsp": 5712, "bram": 896, "uram": 672}
    for machine in (A, BC):
        assert matvec.resources(machine)["dsp"] <= float(machine.resources["dsp_limit"])


def test_scratchpads_hold_what_the_paper_puts_there() -> None:
    """Set-A and Set-B; Set-C does not (a contradiction)."""
    for machine, name in ((A, "Set-A"), (BC, "Set-B")):
        held = matvec.scratchpad_bytes(machine, SETS[name])
        assert sum(held.values()) <= float(machine.memories["scratchpad"].bytes)


def test_what_the_bounds_depend_on() -> None:
    found = sensitivity(lambda m: matvec.key_switch_rate(m, SETS["Set-B"])["DRAM"], BC)
    assert [d.path for d in found] == ["parameters.word_bytes"]
    assert found[0].change == pytest.approx(1 / 1.1 - 1)
    found = sensitivity(lambda m: matvec.cycles(m, Kind.NTT, 16384), BC)
    assert [d.path for d in found] == ["parameters.network_latency"]
    assert found[0].change == pytest.approx(0, abs=0.001)


def test_benchmarks_are_those_of_table_iv() -> None:
    found = matvec.benchmarks()
    assert len(found) == 7
    assert found["VGG-6"] == (4096, 25088)
    counts = [Product(*found["VGG-6"], ckks).ciphertexts for ckks in SETS.values()]
    assert counts == [7, 4, 2]


def test_bad_sizes_are_refused() -> None:
    with pytest.raises(errors.InvalidArgument, match="power of two"):
        CkksSet("bad", 1000, 3)
    with pytest.raises(errors.InvalidArgument, match="positive"):
        Product(0, 5, SETS["Set-A"])
    with pytest.raises(errors.Unsupported, match="mv_set_a"):
        matvec.cycles(Machine.load("strix"), Kind.NTT, 1024)
    with pytest.raises(errors.Unsupported, match="no unit for FFT"):
        matvec.cycles(A, Kind.FFT, 1024)
    with pytest.raises(errors.Unsupported, match="at most 8192 points"):
        matvec.cycles(A, Kind.NTT, 16384)


def test_the_bounds_of_the_seven_matrices_are_those_of_the_page() -> None:
    """Every cell of the page's table, and where it is empty, the refusal of several ciphertexts."""
    page = (Path(__file__).parents[3] / "docs" / "hardware.md").read_text(encoding="utf-8")
    section = page.partition("### Bounds of the seven matrices")[2].partition("###")[0]
    rows = {name: cells for name, *cells in re.findall(r"^\| ([\w-]+) \|(.*?)\|(.*?)\|(.*?)\|$", section, re.M)}  # fmt: skip
    shares = []
    for name, (m, n) in matvec.benchmarks().items():
        for cell, (set_name, ckks) in zip(rows.get(name, ["", "", ""]), SETS.items(), strict=True):  # fmt: skip
            machine = Machine.load("mv_set_a" if set_name == "Set-A" else "mv_set_bc")
            product = Product(m, n, ckks)
            if not cell.strip():
                with pytest.raises(errors.Unsupported, match="ciphertexts"):
                    matvec.product_s(machine, product)
                continue
            times = matvec.product_s(machine, product)
            digits = len(cell.strip().partition(".")[2])
            assert f"{times['butterflies']:.{digits}f}" == cell.strip(), (name, set_name)
            shares.append(times["DRAM"] / times["butterflies"])
    assert len(shares) == 16 and (round(min(shares), 2), round(max(shares), 2)) == (0.3, 0.45)
    assert "take 30 to 45% of that" in section
