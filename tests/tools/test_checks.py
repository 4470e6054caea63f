"""Tests the checks of tools/: each must refuse a planted violation and accept a tree without
one."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import check_actions  # noqa: E402
import check_files  # noqa: E402
import check_fuzz  # noqa: E402
import check_layers  # noqa: E402
import check_noise  # noqa: E402
import check_ops  # noqa: E402
import check_writes  # noqa: E402


def plant(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


GOOD = {
    "src/jali/base/error.h": "",
    "src/jali/base/CMakeLists.txt": "jali_room(base SOURCES error.cpp)",
    "src/jali/backend/ring_ops.h": '#include "jali/base/error.h"\n',
    "src/jali/backend/rlwe_ops.h": "",
    "src/jali/backend/embedding_ops.h": "",
    "src/jali/backend/secret/client_ops.h": '#include "jali/base/error.h"\n',
    "src/jali/backend/cpu/secret/client.cpp": '#include "jali/backend/secret/client_ops.h"\n',
    "src/jali/backend/cpu/ntt.cpp": '#include "jali/backend/ring_ops.h"\n#include "jali/backend/cpu/ntt.h"\n',
    "src/jali/backend/CMakeLists.txt": "jali_room(backend SOURCES x.cpp DEPS jali_base jali_device)",
    "src/jali/random/prng.h": "",
    "src/jali/random/CMakeLists.txt": "jali_room(random SOURCES prng.cpp DEPS jali_base)",
    "src/jali/device/pool.h": "",
    "src/jali/device/CMakeLists.txt": "jali_room(device SOURCES pool.cpp DEPS jali_base)",
    "src/jali/backend/cuda/crt/crt.cuh": '#include "jali/backend/ring_ops.h"\n',
    "src/jali/backend/cuda/rlwe_cuda.cu": '#include "jali/backend/rlwe_ops.h"\n',
    "src/jali/device/cuda/stream.cuh": '#include "jali/device/pool.h"\n',
    "src/jali/backend/cuda/ntt/ntt.cu": '#include "jali/device/cuda/stream.cuh"\n',
    "src/jali/ring/poly.h": '#include "jali/backend/ring_ops.h"\n#include "jali/random/prng.h"\n',
    "src/jali/ring/CMakeLists.txt": "jali_room(ring SOURCES poly.cpp DEPS jali_backend jali_random)",
    "src/jali/rlwe/secret/key.h": '#include "jali/rlwe/secret/other.h"\n',
    "src/jali/rlwe/CMakeLists.txt": "jali_room(rlwe SOURCES x.cpp)\n"
    "jali_room(rlwe_secret SOURCES secret/key.cpp DEPS jali_rlwe)",
    "src/jali/wire/ckks.h": "struct CkksText;\n",
    "src/jali/api/jali.h": '#include "jali/rlwe/secret/key.h"\n',
    "src/jali/api/CMakeLists.txt": "target_link_libraries(jali_api INTERFACE jali_rlwe_secret)",
    "python/jali/__init__.py": "import numpy\nfrom . import _jali\n\nif TYPE_CHECKING:\n    from jali import simulate\n\n"
    "def f():\n    import sklearn\n",
    "python/jali/low.py": "if TYPE_CHECKING:\n    from jali import high\n",
    "python/jali/middle.py": "from jali.low import f\n",
    "python/jali/compiler/ir/graph.py": "from jali.ckks.array import x\n",
    "python/jali/compiler/ir/node.py": "if TYPE_CHECKING:\n    from jali.compiler.ir.graph import x\n",
    "python/jali/compiler/passes/fold.py": "from jali.compiler.ir import graph\n",
    "python/jali/compiler/planning/plan.py": "from jali.compiler.passes.fold import x\n",
    "python/jali/compiler/compile.py": "from jali.compiler.planning.plan import x\n",
    "python/jali/nn/__init__.py": "from jali.compiler.compile import compile\n",
    "python/jali/simulate/__init__.py": "import jali.nn\n",
    "python/jali/demo/show.py": "import jali.nn\n",
    "python/jali/bench/run.py": "from jali.demo import show\nimport jali.simulate\n",
    "python/jali/compiler/planning/costs.py": "def f(x, y):\n    return x._planned + y._foreign\n",
    "python/jali/compiler/planning/search.py": "class X:\n    def _planned(self): pass\n",
    "python/jali/compiler/ciphertexts.py": "def f(x):\n    return x._settled()\n",
    "python/jali/ckks/array.py": "from jali.low import f\n\nclass A:\n    def _settled(self): pass\n",
    "python/jali/high.py": "from .middle import f\nfrom jali import low\n",
}


def test_layers_accept_a_good_tree(tmp_path: Path) -> None:
    assert check_layers.check(plant(tmp_path, GOOD)) == []


@pytest.mark.parametrize(
    ("file", "text", "what"),
    [
        ("src/jali/base/x.h", '#include "jali/ring/poly.h"\n', "base may not include"),
        ("src/jali/rlwe/x.h", '  #  include "jali/lwe/y.h"\n', "rlwe may not include"),
        ("src/jali/random/x.h", '#include "jali/arith/word.h"\n', "random may not include"),
        ("src/jali/backend/cpu/x.cpp", '#include "jali/ring/poly.h"\n', "backend/cpu may not"),
        ("src/jali/backend/cpu/x.cpp", '#include "jali/backend/ref/y.h"\n', "backend/cpu may not"),
        ("src/jali/backend/x.cpp", '#include "jali/backend/ref/y.h"\n', "backend may not"),
        (
            "src/jali/backend/secret/x.cpp",
            '#include "jali/backend/ref/secret/y.h"\n',
            "backend may",
        ),
        ("src/jali/backend/x.h", '#include "jali/backend/secret/client_ops.h"\n', "only files of"),
        ("src/jali/ring/x.cpp", '#include "jali/backend/cpu/y.h"\n', "ring may not"),
        ("src/jali/ring/x.cpp", '#include "jali/device/cuda/y.cuh"\n', "ring may not"),
        ("src/jali/device/x.cpp", '#include "jali/device/cuda/y.cuh"\n', "device may not"),
        ("src/jali/backend/x.cpp", '#include "jali/device/cuda/y.cuh"\n', "backend may not"),
        (
            "src/jali/backend/cpu/x.cpp",
            '#include "jali/device/cuda/y.cuh"\n',
            "backend/cpu may not",
        ),
        ("src/jali/schemes/ckks/x.cpp", '#include "jali/jali.h"\n', "ckks may not"),
        ("src/jali/ring/x.cpp", '#include "poly.h"\n', 'as "jali/..."'),
        ("src/jali/attic/x.cpp", '#include "jali/base/error.h"\n', "attic may not"),
        ("src/jali/ring/x.cpp", '#include "jali/arith/word.h"\n', "without linking jali_arith"),
        (
            "src/jali/base/CMakeLists.txt",
            "jali_room(base SOURCES e.cpp DEPS jali_ring)",
            "jali_base may not link jali_ring",
        ),
        (
            "src/jali/random/CMakeLists.txt",
            "jali_room(random SOURCES e.cpp)\ntarget_link_libraries(jali_random PUBLIC jali_device)",
            "jali_random may not link jali_device",
        ),
        ("src/jali/ring/x.h", '#include "jali/backend/rlwe_ops.h"\n', "may not reach"),
        ("src/jali/ring/x.h", '#include "jali/backend/embedding_ops.h"\n', "may not reach"),
        ("src/jali/rlwe/x.h", '#include "jali/backend/embedding_ops.h"\n', "may not reach"),
        ("src/jali/backend/ring_ops.h", '#include "jali/backend/rlwe_ops.h"\n', "ring/poly.h: may"),
        ("src/jali/backend/cpu/row_x.h", '#include "jali/backend/ring_ops.h"\n', "may not reach"),
        ("src/jali/backend/cuda/ntt/x.cu", '#include "jali/backend/ring_ops.h"\n', "may not reach"),
        ("src/jali/backend/cuda/crt/x.cu", '#include "jali/backend/rlwe_ops.h"\n', "may not reach"),
        ("src/jali/rlwe/x.h", "struct CkksKey;\n", "names a scheme"),
        ("src/jali/wire/frame.h", "// of CKKS\n", "names a scheme"),
        ("src/jali/params/rlwe_params.h", "// of CKKS\n", "names a scheme"),
        (
            "src/jali/schemes/ckks/x.h",
            '#include "jali/rlwe/secret/secret_key.h"\n',
            "only files of secret/ may include",
        ),
        (
            "src/jali/schemes/ckks/CMakeLists.txt",
            "jali_room(ckks SOURCES x.cpp DEPS jali_rlwe_secret)",
            "only libraries jali_ROOM_secret may link jali_rlwe_secret",
        ),
        (
            "python/jali/x.py",
            "try:\n    import sklearn.svm\nexcept ImportError:\n    pass\n",
            "sklearn",
        ),
        ("python/jali/ckks/y.py", "from torch import nn\n", "torch"),
        ("python/jali/low.py", "from jali import high\n", "a circle"),
        ("python/jali/low.py", "def f():\n    import jali.high\n", "a circle"),
        ("python/jali/low.py", "from . import middle\n", "jali.low imports jali.middle"),
        (
            "python/jali/ckks/y.py",
            "import jali.compiler.ir.graph\n",
            "jali.ckks.y may not import jali.compiler.ir.graph",
        ),
        ("python/jali/tfhe/y.py", "def f():\n    import jali.ckks.array\n", "jali.tfhe.y may not"),
        (
            "python/jali/compiler/ir/graph.py",
            "from jali.compiler.passes import fold\n",
            "jali.compiler.ir.graph may not import jali.compiler.passes.fold",
        ),
        (
            "python/jali/compiler/passes/levels.py",
            "if TYPE_CHECKING:\n    from jali.compiler.planning.plan import x\n",
            "jali.compiler.passes.levels may not import jali.compiler.planning.plan",
        ),
        (
            "python/jali/compiler/frontends/loops.py",
            "from jali.compiler.passes.fold import x\n",
            "jali.compiler.frontends.loops may not import jali.compiler.passes.fold",
        ),
        (
            "python/jali/compiler/passes/fold.py",
            "def f():\n    import jali.nn\n",
            "jali.compiler.passes.fold may not import jali.nn",
        ),
        ("python/jali/compiler/cellar/x.py", "", "jali.compiler.cellar.x is in no room"),
        (
            "python/jali/nn/__init__.py",
            "def f():\n    import jali.simulate\n",
            "jali.nn may not import jali.simulate",
        ),
        (
            "python/jali/tfhe/y.py",
            "import jali.bench.run\n",
            "jali.tfhe.y may not import jali.bench",
        ),
        (
            "python/jali/demo/show.py",
            "from jali import simulate\n",
            "jali.demo.show may not import jali.simulate",
        ),
        (
            "python/jali/__init__.py",
            "def f():\n    from jali.demo import show\n",
            "jali may not import jali.demo.show",
        ),
        (
            "python/jali/compiler/ir/graph.py",
            "from jali.compiler.ir.node import y\n",
            "a circle",
        ),
        (
            "python/jali/compiler/program/x.py",
            "def f(x):\n    return x._planned()\n",
            "jali.compiler.program.x:2 uses x._planned, a private member",
        ),
        (
            "python/jali/compiler/runtime/x.py",
            "def f(x):\n    return x._settled()\n",
            "jali.compiler.runtime.x:2 uses x._settled, a private member",
        ),
    ],
)
def test_layers_refuse(tmp_path: Path, file: str, text: str, what: str) -> None:
    violations = check_layers.check(plant(tmp_path, {**GOOD, file: text}))
    assert any(what in line for line in violations), violations


def repository(root: Path, files: dict[str, str]) -> Path:
    plant(root, files)
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    return root


@pytest.mark.parametrize(
    ("name", "text", "bad"),
    [
        ("a.py", "see https://example.org/home/page and ../work/x\n", False),
        ("a.py", "path = '/" + "home/someone/x'\n", True),
        ("a.py", "path = '/" + "root/x'\n", True),
        ("big.txt", "x" * 1_000_001, True),
        ("t10k-images-idx3-ubyte", "x", True),
        ("a.txt", "<" * 7 + " HEAD\n", True),
        ("a.py", "x = 1\n" * 600, False),
        ("a.py", "x = 1\n" * 601, True),
        ("src/a.cuh", "// x\n" * 601, True),
        ("docs/a.md", "x\n" * 601, False),
        ("stubs/a.pyi", "x: int\n" * 601, False),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_files(tmp_path: Path, name: str, text: str, bad: bool) -> None:
    assert bool(list(check_files.check(repository(tmp_path, {name: text})))) == bad


HASH = "11d5960a326750d5838078e36cf38b85af677262"


@pytest.mark.parametrize(
    ("line", "bad"),
    [
        (f"      - uses: actions/checkout@{HASH}  # v4.4.0", False),
        (f'      - "uses": "actions/checkout@{HASH}"', False),
        ("      - uses: ./.github/actions/own", False),
        ("      - run: echo uses", False),
        ("      - uses: docker://debian@sha256:" + "0" * 64, False),
        ("      - uses: actions/checkout@v4", True),
        ("        uses: actions/checkout", True),
        (f"      - uses: actions/checkout@{HASH[:12]}", True),
        (f"      - uses: actions/checkout@{HASH}0", True),
        (f"      - uses: actions/checkout@v4  # {HASH}", True),
        ("      - uses: docker://debian:12", True),
        ("      - {uses: actions/checkout@v4}", True),
        ("    uses: owner/repo/.github/workflows/w.yml@main", True),
    ],
)
def test_actions_are_pinned(tmp_path: Path, line: str, bad: bool) -> None:
    plant(tmp_path, {".github/workflows/tests.yml": f"jobs:\n  one:\n    steps:\n{line}\n"})
    assert len(list(check_actions.check(tmp_path))) == bad


def test_the_actions_of_this_project_are_pinned() -> None:
    assert list(check_actions.check(ROOT)) == []


@pytest.mark.parametrize(
    ("name", "text", "bad"),
    [
        ("python/jali/x.py", "with open(path) as f: f.read()", 0),
        ("python/jali/x.py", "with path.open('rb') as f: f.read()", 0),
        ("python/jali/x.py", "text.replace('a', 'w')", 0),
        ("python/jali/x.py", "with open(path, 'w') as f: pass", 1),
        ("python/jali/x.py", "with path.open(mode='ab') as f: pass", 1),
        ("python/jali/x.py", "path.write_bytes(data)", 1),
        ("python/jali/x.py", "os.replace(a, b)", 1),
        ("python/jali/x.py", "np.save(path, x); figure.savefig(path)", 2),
        ("python/jali/_core/files.py", "figure.savefig(buffer)", 0),
        ("src/jali/wire/x.cpp", "std::ifstream in(path);", 0),
        ("src/jali/wire/x.cpp", "std::ofstream out(path);", 1),
        ("src/jali/wire/x.cpp", "::open(path, O_RDONLY);  // not O_WRONLY", 0),
        ("python/src/x.cpp", "::open(path, O_WRONLY);", 1),
        ("src/jali/base/replace_file.cpp", "::open(path, O_WRONLY | O_CREAT);", 0),
        ("bench/x.py", "path.write_text(text)", 0),
    ],
)
def test_files_are_written_in_one_place(tmp_path: Path, name: str, text: str, bad: int) -> None:
    assert len(list(check_writes.check(plant(tmp_path, {name: text})))) == bad


def test_this_project_writes_files_in_one_place() -> None:
    assert list(check_writes.check(ROOT)) == []


@pytest.mark.parametrize(
    ("name", "text", "bad"),
    [
        ("src/jali/schemes/ckks/sums.cpp", "out.estimate.peak = 1;", 1),
        ("src/jali/schemes/ckks/sums.cpp", "out.back().estimate . variance *= 2;", 1),
        (
            "src/jali/schemes/ckks/sums.cpp",
            "sum->estimate\n    .noise = sum->estimate.error = 0;",
            2,
        ),
        ("src/jali/schemes/ckks/sums.cpp", "auto& e = x.estimate;\ne.message = 1;", 1),
        ("src/jali/schemes/ckks/sums.cpp", "double& peak = x.estimate.peak;", 1),
        ("src/jali/schemes/ckks/sums.cpp", "params::Lineage& l = xs[i]->estimate.lineage;", 1),
        ("src/jali/schemes/ckks/sums.cpp", "double* peak = &x.estimate.peak;", 1),
        ("src/jali/schemes/ckks/sums.cpp", "at(k).estimate.lineage = {};", 1),
        (
            "src/jali/schemes/ckks/sums.cpp",
            "x.estimate.lineage.root = ~x.estimate.lineage.root;",
            1,
        ),
        ("src/jali/schemes/ckks/sums.cpp", "Estimate plain{0, 1, 2};", 1),
        ("src/jali/schemes/ckks/sums.cpp", "out.estimate = {0, 1, 2};", 1),
        ("src/jali/schemes/ckks/sums.cpp", "return Estimate{.peak = 1};", 2),
        ("src/jali/schemes/ckks/sums.cpp", "x.estimate.set_claim({1, 2, 3});", 1),
        ("src/jali/schemes/ckks/sums.cpp", "++x.estimate.lineage.power;", 1),
        ("src/jali/schemes/ckks/sums.cpp", "(x.estimate.peak) = 1;", 1),
        ("src/jali/schemes/ckks/sums.cpp", "std::swap(most, x.estimate.peak);", 1),
        ("src/jali/schemes/ckks/sums.cpp", "std::tie(x.estimate.peak, y) = z;", 1),
        ("src/jali/schemes/ckks/sums.cpp", "x.estimate.*(&params::Estimate::peak) = 1;", 1),
        ("src/jali/schemes/ckks/sums.cpp", "auto& [variance, peak] = x.estimate;", 1),
        ("src/jali/schemes/ckks/sums.cpp", "const auto& [variance, peak] = x.estimate;", 0),
        ("src/jali/schemes/ckks/sums.cpp", "y(std::min(x.estimate.peak, 1.0) == 1);", 0),
        ("python/src/ckks_values.cpp", "expected.variance_shared = 1;", 1),
        ("src/jali/wire/ckks.cpp", "out.estimate.peak = reader.f64();", 1),
        ("src/jali/wire/ckks.cpp", "out.peak = reader.f64();  // of a plaintext", 0),
        ("src/jali/params/ckks/noise_sums.cpp", "out.peak = 1;", 0),
        ("src/jali/schemes/discrete/sums.cpp", "out.estimate.slot = 1;", 1),
        ("src/jali/schemes/discrete/sums.cpp", "out.estimate.range.high += 1;", 1),
        ("src/jali/schemes/discrete/sums.cpp", "const Range r{0, 5, false};", 1),
        ("src/jali/circuits/discrete/slot_sum.cpp", "sum.estimate = Estimate{1, 1, {}};", 1),
        ("python/src/discrete/array.cpp", "out.estimate.coefficient = 0;", 1),
        ("src/jali/params/discrete/noise.cpp", "out.slot = 1;", 0),
        ("src/jali/schemes/discrete/sums.cpp", "out.estimate = noise.add(a, b);\nRange r;", 0),
        ("src/jali/schemes/tfhe/evaluator.cpp", "out.noise = 1;", 0),
        (
            "src/jali/schemes/ckks/sums.cpp",
            '// x.estimate.peak = 1;\nf("x.estimate.peak = 1;");',
            0,
        ),
        ("src/jali/schemes/ckks/sums.cpp", "const double& peak = x.estimate.peak;", 0),
        ("src/jali/schemes/ckks/sums.cpp", "const params::Lineage& l = x->estimate.lineage;", 0),
        (
            "src/jali/schemes/ckks/sums.cpp",
            "if (x.estimate.peak == 1 && a && b.estimate.real) y();",
            0,
        ),
        ("src/jali/schemes/ckks/sums.cpp", "out.estimate = noise.add(a, b);\nEstimate x{};", 0),
    ],
)
def test_noise_has_one_owner(tmp_path: Path, name: str, text: str, bad: int) -> None:
    headers = {f: (ROOT / f).read_text() for s in check_noise.SCHEMES for f in s.types.values()}
    violations = list(check_noise.check(plant(tmp_path, {**headers, name: text})))
    assert len(violations) == bad, violations
    assert all(v.startswith(f"{name}:") for v in violations)


def test_this_project_writes_estimates_in_one_place() -> None:
    ckks, discrete = (check_noise.fields_of(ROOT, s.types) for s in check_noise.SCHEMES)
    assert {"message", "variance_shared", "lineage", "term"} < ckks
    assert {"slot", "coefficient", "range", "low", "high", "wraps"} == discrete
    assert not list(check_noise.check(ROOT))


def test_ops_refuse_an_operation_that_the_gpu_test_lacks(tmp_path: Path) -> None:
    engine = """class RingOps;
class Engine {
  virtual std::string name() const = 0;
  virtual const RingOps& ring() const = 0;
  virtual const RlweOps& rlwe() const = 0;
  virtual std::unique_ptr<Captured> capture(std::function<void()> work) const;
};
"""
    ring = """class RingOps : public Table {
  virtual void ntt(View x) const = 0;
};
class Elsewhere {
  virtual void other() const = 0;
};
"""
    rlwe = """class RlweOps : public Table {
  virtual void outer_sum(View acc0, std::span<const Turned> terms,
                         bool accumulate) const;
};
"""
    test = "o.engine.ring().ntt(v[0]); o.engine\n.capture([] {}); o.engine.ring().outer_sum(v[0], terms, false);"
    ring_file, rlwe_file = (f"{check_ops.BACKEND}/{name}_ops.h" for name in ("ring", "rlwe"))
    plant(
        tmp_path, {check_ops.ENGINE: engine, ring_file: ring, rlwe_file: rlwe, check_ops.TEST: test}
    )
    assert ["outer_sum" in line for line in check_ops.check(tmp_path)] == [True]
    plant(tmp_path, {check_ops.TEST: test.replace("ring().outer", "rlwe().outer")})
    assert check_ops.check(tmp_path) == []
    plant(tmp_path, {check_ops.TEST: "o.engine.ring().ntt(v[0]); o.engine.rlwe().outer_sum();"})
    assert ["capture" in line for line in check_ops.check(tmp_path)] == [True]
    plant(tmp_path, {check_ops.ENGINE: engine.replace("rlwe()", "other()")})
    assert ["table rlwe" in line for line in check_ops.check(tmp_path)] == [True]
    plant(tmp_path, {rlwe_file: "class RlweOps {};\n"})
    assert check_ops.check(tmp_path)
    assert check_ops.check(ROOT) == []


def test_fuzz_refuses_a_method_that_the_target_lacks(tmp_path: Path) -> None:
    headers = {name for target in check_fuzz.TARGETS for name in target.classes.values()}
    plant(tmp_path, {name: (ROOT / name).read_text() for name in headers})
    targets = {
        str(file.relative_to(ROOT)): file.read_text()
        for target in check_fuzz.TARGETS
        for file in (ROOT / target.folder).glob("*.cpp")
    }
    plant(tmp_path, targets)
    assert check_fuzz.check(tmp_path) == []
    for file, called, instead, says in (
        (
            "ckks/auto_evaluator.cpp",
            "automatic->square(",
            "ev().square(",
            "AutoEvaluator::square",
        ),
        ("tfhe/evaluator.cpp", "ev().refresh(", "refresh(", "Evaluator::refresh"),
        ("tfhe/integers.cpp", "c.a.sort(", "sort(", "Arithmetic::sort"),
    ):
        name = f"fuzz/{file}"
        plant(tmp_path, {name: targets[name].replace(called, instead)})
        assert [says in line for line in check_fuzz.check(tmp_path)] == [True]
        plant(tmp_path, targets)
    header = "src/jali/schemes/ckks/evaluator.h"
    text = (ROOT / header).read_text()
    declared = (
        "\n  std::vector<Ciphertext> cube(const Ciphertext& a,\n    int b) const;\n  // HMULT"
    )
    plant(tmp_path, {**targets, header: text.replace("\n  // HMULT", declared)})
    assert ["Evaluator::cube" in line for line in check_fuzz.check(tmp_path)] == [True]
    plant(tmp_path, {header: text.replace("class Evaluator {", "struct Evaluator {")})
    assert any("can read" in line for line in check_fuzz.check(tmp_path))
    assert check_fuzz.check(ROOT) == []


STUBS = ("bench_gpu_programs", "bench_bootstrap", "bootstrap_many")


@pytest.mark.parametrize(
    ("lacking", "test_status", "allow", "status"),
    [
        ("", 0, "", 0),
        ("", 1, "1", 1),
        ("pytest", 0, "", 0),
        ("hypothesis", 0, "", 0),
        ("gtest", 0, "", 4),
        ("gtest", 0, "1", 0),
        ("numpy", 0, "1", 1),
        ("capability", 0, "", 0),
    ],
)
def test_gpu_check_says_what_is_left_out_and_fails_for_tests_of_the_gpu(
    tmp_path: Path, lacking: str, test_status: int, allow: str, status: int
) -> None:
    def command(name: str, text: str) -> None:
        plant(tmp_path, {name: "#!/bin/bash\n" + text})
        (tmp_path / name).chmod(0o755)

    for name in ("cmake", "git"):
        command(f"bin/{name}", "exit 0\n")
    command("bin/nvidia-smi", f"echo {'8.6' if lacking == 'capability' else '9.0'}\n")
    command("bin/curl", "exit 1\n")
    command("bin/python", f'echo "ran $*"; [[ "$*" != *import*{lacking or "nothing"}* ]]\n')
    command("build/tests/gpu/test_gpu_x", f"exit {test_status}\n")
    for name in STUBS:
        command(f"build/bench/cpp/{name}", 'echo "$0 $*"\n')
    plant(
        tmp_path,
        {
            "tests/gpu/CMakeLists.txt": "jali_test(gpu_x SOURCES x.cpp)\n",
            "tests/python/test_some.py": "from hypothesis import given\n",
            "tests/python/test_rest.py": "",
            "python/jali/__init__.py": "",
            "build/site/jali/left_from_before.py": "",
        },
    )
    done = subprocess.run(
        ["bash", str(ROOT / "tools" / "gpu_check.sh"), "build", "2"],
        cwd=tmp_path,
        env={
            "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin",
            "PYTHON": str(tmp_path / "bin" / "python"),
            "GTest_ROOT": str(tmp_path),
            "GTest_DIR": "" if lacking == "gtest" else "here",
            "ALLOW_SKIPS": allow,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stdout + done.stderr
    if lacking == "numpy" or test_status:
        assert "figures are in" not in done.stdout
        return
    assert [p.name for p in (tmp_path / "build/site/jali").iterdir()] == ["__init__.py"]
    assert ("-m pytest -q tests/python" in done.stdout) == (lacking != "pytest")
    assert ("--ignore=tests/python/test_some.py" in done.stdout) == (lacking == "hypothesis")
    assert "--ignore=tests/python/test_rest.py" not in done.stdout
    last = done.stdout.split("figures are in")[1]
    assert ("left out" in last) == bool(lacking)
    names = {"gtest": "tests/gpu are", "capability": "benchmarks of TFHE are"}
    assert names.get(lacking, lacking) in last
    (results,) = (tmp_path / "bench/results").iterdir()
    assert ("bench tfhe_gates --device cuda" in results.read_text()) == (lacking != "capability")


DOCUMENT = """
```python
x = 2
```
```python
assert x == {value}
```
<!-- docs: skip no server here -->
```bash
exit 3
```
```cpp
static_assert(2 == {value});
```
"""


@pytest.mark.parametrize(("value", "status", "failed"), [(2, 0, 0), (3, 1, 2)])
def test_docs(tmp_path: Path, value: int, status: int, failed: int) -> None:
    plant(tmp_path, {"page.md": DOCUMENT.format(value=value)})
    runner = [sys.executable, str(ROOT / "tools" / "run_docs.py"), str(tmp_path)]
    done = subprocess.run(runner, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    assert f"{failed} failed, 1 skipped" in done.stdout
    assert "no server here" in done.stdout


def test_ops_refuse_an_operation_of_a_sibling_that_no_comparison_calls(tmp_path: Path) -> None:
    compare, support = check_ops.SIBLINGS["tfhe"]
    header = f"{check_ops.BACKEND}/tfhe_ops.h"
    table = """class TfheOps {
  virtual void combine(LweView out) const = 0;
  virtual void prepare(void* out) const = 0;
};
"""
    plant(tmp_path, {header: table, compare: "have.combine(x);", support: "engine->prepare(key);"})
    assert check_ops.check_siblings(tmp_path) == []
    plant(tmp_path, {support: "engine->prepared(key);"})
    assert ["prepare of" in line for line in check_ops.check_siblings(tmp_path)] == [True]
    plant(tmp_path, {header: "class Other {};"})
    assert ["can read" in line for line in check_ops.check_siblings(tmp_path)] == [True]
