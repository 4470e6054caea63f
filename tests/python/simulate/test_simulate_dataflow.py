"""The matrix-vector accelerator's dataflow as a program of Jali: its recorded operations beside the
paper's equations (7) to (12).

The program is the paper's: m rotations, each with a key of its own, one digit for each residue, one
special prime, nothing hoisted. Rotations begin at 1, since a rotation by 0 takes no key.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from jali import ckks
from jali.simulate import matvec, trace, workloads
from jali.simulate.allocator import entities_of
from jali.simulate.lower import lower
from jali.simulate.machine import Machine
from jali.simulate.matvec import CkksSet, Product
from jali.simulate.roofline import bounds
from jali.simulate.scheduler import schedule
from jali.simulate.steps import Entity, Kind, Steps

WORD = 8  # bytes of a coefficient of w64


def diagonal(matrix: npt.NDArray[np.float64], i: int, slots: int) -> npt.NDArray[np.float64]:
    """The i-th extended diagonal: element j has row j mod m and column (j + i) mod n."""
    m, n = matrix.shape
    j = np.arange(slots)
    return matrix[j % m, (j + i) % n]


def recorded(m: int, n: int, depth: int, rng: np.random.Generator) -> tuple[Steps, Product]:
    """The program's steps, and the product that it computes; its result is checked."""
    params = ckks.Params.create(
        depth=depth,
        scale_bits=40,
        log_n=11,
        word="w64",
        dnum=depth + 1,
        security=0,
        name="insecure_dataflow",
    )
    assert (params.q_count, params.p_count) == (depth + 1, 1)
    folds = [m << t for t in range((n // m - 1).bit_length())]
    client = ckks.Client(params, threads=1)
    keys = client.evaluation_keys(rotations=sorted({*range(1, m + 1), *folds}))
    server = ckks.Evaluator(params, keys, threads=1, trace=True)
    e = server.explicit
    matrix, vector = rng.uniform(-1, 1, (m, n)), rng.uniform(-1, 1, n)
    x = client.encrypt(np.tile(vector, params.slots // n))
    plaintexts = [e.encode(diagonal(matrix, i, params.slots)) for i in range(1, m + 1)]
    server.trace().clear()

    total = None
    for i, plaintext in enumerate(plaintexts, 1):
        product = e.rescale(e.multiply_plain(e.rotate(x, i), plaintext))
        total = product if total is None else e.add(total, product)
    for by in folds:
        total = e.add(total, e.rotate(total, by))

    steps = lower(trace.parse(server.trace().json_lines()))
    assert np.allclose(client.decrypt(total)[:m], matrix @ vector, atol=1e-4)
    return steps, Product(m, n, CkksSet("dataflow", 2 * params.slots, depth + 1), WORD)


@pytest.fixture(scope="module", params=[(4, 8, 2), (64, 128, 6)], ids=["4x8", "64x128"])
def program(request: pytest.FixtureRequest) -> tuple[Steps, Product]:
    """Figure 2's 4 x 8 with 3 residues, and 64 x 128 with the 7 of Set-B."""
    return recorded(*request.param, np.random.default_rng())


def polynomials(steps: Steps, kind: Kind) -> int:
    return int(steps.count[steps.kind == kind].sum())


def loaded(steps: Steps, entity: Entity) -> int:
    return steps.moved(Kind.LOAD).get(entity, 0)


def key_switches(product: Product, at: int) -> int:
    """Rotations of the whole product at the top level, or of the chunks below it."""
    return product.m if at == product.ckks.l else (product.n // product.m - 1).bit_length()


def test_jalis_own_plan_on_the_papers_hardware(rng: np.random.Generator) -> None:
    """RNNT-LSTM with baby steps and giant steps on the machine of Set-B, as docs/hardware.md has it
    beside the paper's dataflow."""
    params = ckks.Params.preset("n14_d7", word="w52")
    matrix, vector = rng.uniform(-1, 1, (1024, 2048)) / 45, rng.uniform(-1, 1, 2048)
    plan = ckks.MatVec(matrix, params)
    client = ckks.Client(params, threads=1)
    keys = client.evaluation_keys(rotations=plan.rotations)
    server = ckks.Evaluator(params, keys, "cpu", threads=1, trace=True)
    server.prepare(plan)
    x = [server.bind(client.encrypt(slots)) for slots in plan.pack(vector)]
    server.trace().clear()
    y = server.matvec_blocks(plan, x)
    found = plan.unpack([client.decrypt(part, length=params.slots) for part in y])
    assert np.allclose(found, matrix @ vector, atol=1e-6)

    steps = lower(trace.parse(server.trace().json_lines()))
    machine = Machine.load("mv_set_bc")
    result, limits = schedule(steps, machine), bounds(steps, machine)
    assert len(plan.rotations) == 42
    assert loaded(steps, Entity.KEY) == 42 * 4 * 2 * 10 * 16384 * WORD  # 4 digits, 10 limbs
    assert round(1e3 * result.seconds, 1) == 15.5
    assert (limits.name, round(1e3 * limits.seconds, 1)) == ("dram", 11.2)
    # What the paper's dataflow takes at least: 1,024 partial sums, if every transform is always
    # busy.
    least = matvec.product_s(machine, Product(1024, 2048, matvec.published_sets()["Set-B"], WORD))
    assert max(least.values()) > 30 * result.seconds


@pytest.mark.long
def test_the_papers_own_dataflow_of_the_same_product() -> None:
    """The other row of docs/hardware.md."""
    machine = Machine.load("mv_set_bc")
    steps = workloads.matvec(machine, Product(1024, 2048, matvec.published_sets()["Set-B"], WORD))
    result, limits = schedule(steps, machine), bounds(steps, machine)
    assert round(1e3 * result.seconds) == 975
    assert (limits.name, round(1e3 * limits.seconds)) == ("ntt", 519)
    assert round(loaded(steps, Entity.KEY) / 1e9, 1) == 15.1


def test_transforms_are_those_of_the_algorithms(program: tuple[Steps, Product]) -> None:
    steps, product = program
    l = product.ckks.l  # noqa: E741
    forward = inverse = 0
    for at in (l, l - 1):
        switch = matvec.transforms_of_key_switch(at)
        forward += key_switches(product, at) * switch.forward
        inverse += key_switches(product, at) * switch.inverse
    forward += product.m * 2 * (l - 1)  # Algorithm 1: both halves
    inverse += product.m * 2
    assert (polynomials(steps, Kind.NTT), polynomials(steps, Kind.INTT)) == (forward, inverse)


def test_equations_7_and_8_are_near_what_runs(program: tuple[Steps, Product]) -> None:
    """For each partial sum the equations have two NTTs more and two INTTs less; chunks are beside
    them."""
    steps, product = program
    counted = matvec.transforms_of_partial_sum(product.ckks.l)
    below = matvec.transforms_of_key_switch(product.ckks.l - 1)
    chunks = key_switches(product, product.ckks.l - 1)
    forward = polynomials(steps, Kind.NTT) - chunks * below.forward
    inverse = polynomials(steps, Kind.INTT) - chunks * below.inverse
    assert forward == product.m * (counted.forward - 2)
    assert inverse == product.m * (counted.inverse + 2)


def test_bytes_of_keys_and_matrix(program: tuple[Steps, Product]) -> None:
    """Equations (11) and (12). The keys of chunks are one level lower. Each half of a ciphertext
    reads the plaintext again, which the paper counts once."""
    steps, product = program
    low = Product(product.m, product.n, CkksSet("low", product.ckks.N, product.ckks.l - 1), WORD)
    chunks = key_switches(product, product.ckks.l - 1)
    keys = product.m * product.sizes()["key"] + chunks * low.sizes()["key"]
    assert loaded(steps, Entity.KEY) == keys
    assert loaded(steps, Entity.PLAINTEXT) == 2 * product.reads()["matrix"]
    matrix = [e for e in entities_of(steps) if e.name.startswith("plaintext")]
    assert sum(e.bytes for e in matrix) == product.sizes()["matrix"]


def test_keys_are_read_once_and_the_input_m_times(program: tuple[Steps, Product]) -> None:
    """A part of a key for each digit. Rotation m serves the last diagonal and the first chunk, so
    that its parts are read twice."""
    steps, product = program
    entities, l = entities_of(steps), product.ckks.l  # noqa: E741
    keys = [e for e in entities if e.name.startswith("key")]
    chunks = key_switches(product, l - 1)
    assert chunks == 1
    assert (len(keys), sum(e.reads for e in keys)) == (product.m * l, product.m * l + l - 1)
    assert sum(e.bytes for e in keys) == product.m * product.sizes()["key"]
    inputs = [e for e in entities if e.name.startswith("ciphertext") and not e.made]
    assert sum(e.cost for e in inputs) == product.m * product.sizes()["ciphertext"]  # (9)
