"""Wrong arguments of everything that users can call are refused in a sentence, never in a signature
of C++."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import discrete_world
import numpy as np
import pytest
import tfhe_world
from conftest import World

import jali
from jali import ckks, discrete, tfhe
from jali._core import refusals
from jali.ckks import explicit, functions

#: What binding code and Python say, and what never is a whole answer.
FOREIGN = re.compile(
    "incompatible function arguments|no constructor|unexpected keyword|positional argument|"
    "has no attribute|object is not|must be real number|std::|jali::|nanobind"
)

#: What Python says of a call that does not fit the signature of a function that is written in
#: Python.
PYTHON = re.compile(
    r"^[\w.<>]+\(\) (got an unexpected keyword argument '|got some positional-only arguments|got multiple values for argument '|"
    r"missing \d+ required (positional|keyword-only) arguments?: '|takes (from )?\d+ .*but \d+ .*(was|were) given)"
)

#: Whom an Evaluator makes: their constructors, which operations call, check nothing.
MADE = (
    ckks.EncryptedArray,
    ckks.Captured,
    ckks.Batcher,
    tfhe.EncryptedArray,
    tfhe.EncryptedIntegers,
    tfhe.Captured,
    ckks.BatchPoint,
    discrete.EncryptedArray,
    discrete.Captured,
)

#: Where users find classes and functions.
MODULES = (ckks, explicit, functions, discrete, tfhe)


def ckks_things(world: World) -> list[Any]:
    """An object of each public class of CKKS."""
    params, client, server = world.params, world.client, world.server
    e = server.explicit
    ct = client.encrypt([0.5, 0.25])
    plain, compact, digits = e.encode([1.0]), e.encode_compact([1.0]), e.hoist(ct)
    diagonal = e.encode_diagonal(np.ones(params.slots), params.depth, 2.0**40)
    x, dense = server.bind(ct), server.bind(client.encrypt(np.ones((2, 3))))
    plan = ckks.MatVec(np.eye(2), params)
    traced = ckks.Evaluator(params, threads=1, trace=True)
    public, policy = (
        client.public_key(),
        ckks.ReleasePolicy(origin="declared", error_bound=1e-3, largest=1.0),
    )
    return [
        *(params, client, world.keys, server, ct, plain, compact, x, dense, plan, public, policy),
        *(e, digits, diagonal, e.extend(ct), plan.input_layout, params.level(0), traced.trace()),
        *(ckks.Encryptor(public), ckks.Polynomial([1.0, 2.0]), functions.sigmoid()),
        *(functions.maximum(), functions.argmax(2, 8, gap=0.5)),
        ckks.LinearTransform(params, {0: np.ones(params.slots)}),
        *(server.capture(lambda v: v + 1, x), server.batcher(lambda v: v + 1)),
        ckks.BatchPoint(1, 1.0, 1),
        ckks.Engine(params, "cpu", threads=1),
    ]


def discrete_things() -> list[Any]:
    """An object of each public class of exact integers."""
    w = discrete_world.world()
    ct, public = w.client.encrypt([1, 2], range=(0, 9)), w.client.public_key()
    x = w.server.bind(ct)
    return [
        *(w.params, w.client, w.keys, w.server, ct, x, public, discrete.Encryptor(public)),
        *(w.server.capture(lambda v: v + 1, x), w.server.batcher(lambda v: v + 1)),
        discrete.Matrix(w.server, [[1, 2], [3, 4]]),
    ]


def tfhe_things() -> list[Any]:
    """An object of each public class of TFHE."""
    w = tfhe_world.World(tfhe_world.make())
    ct = w.client.encrypt([1, 2])
    x, words = w.server.bind(ct), w.server.bind(w.client.encrypt_uint([1, 2], bits=4))
    table = tfhe.Table(w.params, [0, 1])
    captured = w.server.capture(lambda v: v + 1, x)
    public = w.client.public_key()
    owner = tfhe.Encryptor(w.params, public)
    return [
        *(w.params, w.client, w.keys, w.server, ct, x, words, table, captured),
        *(public, owner, owner.encrypt([1, 2])),
    ]


def callables(thing: Any) -> Iterator[tuple[str, Callable[..., Any]]]:
    """What of an object users can call: itself, its methods, and the static functions of its
    class."""
    kind = type(thing)
    if callable(thing):
        yield f"{kind.__name__}()", thing
    for name in dir(kind):
        if not name.startswith("_") and hasattr(thing, name):
            member = getattr(thing, name)
            if callable(member) and not isinstance(inspect.getattr_static(kind, name), property):
                yield f"{kind.__name__}.{name}", member


def every_call(things: list[Any], modules: tuple[ModuleType, ...]) -> dict[str, Callable[..., Any]]:
    out: dict[str, Callable[..., Any]] = {"jali.build_info": jali.build_info}
    for module in modules:
        for name in module.__all__:
            public = getattr(module, name)
            if callable(public) and public not in MADE:
                out[f"{module.__name__}.{name}"] = public
    for thing in things:
        if not isinstance(thing, ckks.BatchPoint):
            module = type(thing).__module__
            out |= {f"{module}.{name}": call for name, call in callables(thing)}
    return out


def answer(call: Callable[..., Any], *args: Any, **kwargs: Any) -> BaseException | None:
    try:
        call(*args, **kwargs)
    except Exception as error:
        return error
    return None


def is_sentence(error: BaseException | None) -> bool:
    """An error of Jali; or Python's own of a call that does not fit a signature, which names the
    function and the argument."""
    if type(error) is TypeError:
        at_the_call = error.__traceback__ is not None and error.__traceback__.tb_next is None
        return at_the_call and bool(PYTHON.search(str(error)))
    return isinstance(error, jali.Error) and not FOREIGN.search(str(error))


def told(call: str, error: BaseException | None) -> str:
    return f"{call}: {type(error).__name__}: {error}"


@pytest.fixture
def calls(one: World) -> Mapping[str, Callable[..., Any]]:
    things = [*ckks_things(one), *discrete_things(), *tfhe_things()]
    classes = {
        getattr(module, name)
        for module in MODULES
        for name in module.__all__
        if inspect.isclass(getattr(module, name))
    }
    without = {k.__name__ for k in classes if not any(isinstance(t, k) for t in things)}
    assert not without, f"give this test an object of {without}"
    return every_call(things, MODULES)


def test_keywords_that_nothing_has_are_refused(calls: Mapping[str, Callable[..., Any]]) -> None:
    assert len(calls) > 200
    errors = {name: answer(call, no_such_argument=1) for name, call in calls.items()}
    failed = [told(name, error) for name, error in errors.items() if not is_sentence(error)]
    assert not failed, "\n".join(failed)


def test_too_many_arguments_are_refused(calls: Mapping[str, Callable[..., Any]]) -> None:
    many = [object() for _ in range(20)]
    errors = {name: answer(call, *many) for name, call in calls.items()}
    failed = [told(name, error) for name, error in errors.items() if not is_sentence(error)]
    assert not failed, "\n".join(failed)


@pytest.mark.parametrize(
    "wrong", [object(), "text", None, -3.5, {"a": 1}], ids=lambda wrong: type(wrong).__name__
)
def test_arguments_of_the_wrong_type_are_refused(
    calls: Mapping[str, Callable[..., Any]],
    wrong: object,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)  # "text" is a path, too
    failed = []
    for name, call in calls.items():
        for count in (1, 2, 3, 4):
            error = answer(call, *[wrong] * count)
            if error is not None and not is_sentence(error):
                failed.append(told(f"{name} of {count}", error))
    assert not failed, "\n".join(failed)


def test_methods_called_on_another_object_are_refused() -> None:
    for kind in (ckks.Params, ckks.Ciphertext, ckks.EvaluationKeys, tfhe.Ciphertext):
        for instead in (3, kind, "text"):
            error = answer(kind.to_bytes, instead)
            assert is_sentence(error), told(kind.__name__, error)
    made = ckks.Ciphertext.__new__(ckks.Ciphertext)  # never constructed
    assert is_sentence(answer(ckks.Ciphertext.to_bytes, made))


#: Calls with wrong arguments, and what the answer says.
SENTENCES = {
    "params.to_bytes(1)": r"Params\.to_bytes takes no arguments",
    "params.save()": r"Params\.save needs file: it takes file",
    "params.save(3)": "the file must be a path",
    "ct.to_bytes(compressed=True)": r"Ciphertext\.to_bytes takes no arguments",
    "ct.save('a', 'b')": r"Ciphertext\.save takes at most 1 argument without a name \(file\), not 2",
    "ct.save(path='a')": r'Ciphertext\.save has no argument "path": it takes file',
    "plain.save(file='a', mode='wb')": r'Plaintext\.save has no argument "mode"',
    "public.to_bytes('rb')": r"PublicKey\.to_bytes takes no arguments",
    "keys.to_bytes(params)": r"EvaluationKeys\.to_bytes takes no arguments",
    "keys.save('a', print)": r"EvaluationKeys\.save takes at most 1 argument .* by name",
    "keys.has_rotation()": r"EvaluationKeys\.has_rotation needs steps",
    "keys.has_rotation('1')": r"steps of EvaluationKeys\.has_rotation must be a whole number, not '1'",
    "keys.has_rotation(True)": "must be a whole number, not True",
    "keys.has_rotation([1, 2])": r"must be a whole number, not a list of length 2",
    "params.ciphertext_bytes()": r"Params\.ciphertext_bytes needs shape",
    "params.ciphertext_bytes('8')": "shape must be a whole number or a sequence",
    "params.ciphertext_bytes(8, 2)": "takes at most 1 argument without a name",
    "params.ciphertext_bytes(8, level='top')": "level of .* must be a whole number, or None",
    "params.ciphertext_bytes(8, slots=0.5)": "slots of .* must be a whole number",
    "params.ciphertext_bytes(8, batch=1)": "batch of .* must be True or False, not 1",
    "params.bootstrap_rotations('all')": "slots of .* must be a whole number or a sequence of them",
    "params.bootstrap_rotations(0, True)": "takes at most 1 argument without a name",
    "params.bootstrap_key_bytes(slots=64)": "slots of .* must be a sequence",
    "params.bootstrap_key_curve(1)": 'rotations of .* must be a sequence of whole numbers, or "powers"',
    "params.bootstrap_work(real=1)": "real of .* must be True or False",
    "params.expanded_key_bytes(1)": "rotations of .* must be a sequence of whole numbers",
    "params.expanded_bootstrap_key_bytes(memory='1 GB')": "memory of .* must be a whole number",
    "params.log2_bootstrap_beyond()": "needs error: it takes error, slots",
    "ckks.Params.presets('gpu')": r"Params\.presets takes no arguments",
    "discrete.Params.presets(1)": r"Params\.presets takes no arguments",
    "discrete.Params.preset()": r"Params\.preset needs name",
    "discrete.Params.preset(3)": r"name of Params\.preset must be a string",
    "discrete.Params.preset('int16_d2', word='w8')": "unknown word",
    "discrete.Params.preset('int16')": "use one of int16_d2",
    "plan.arrangement('natural')": r"layout of MatVec\.arrangement must be a ckks\.Layout, or None",
    "plan.pack()": r"MatVec\.pack needs values",
    "plan.unpack(3)": "outputs must be a sequence of arrays",
    "plan.working_bytes(-1)": "batch of .* must be a whole number of at least 0, not -1",
    "transform.forget(1)": r"LinearTransform\.forget takes no arguments",
    "polynomial('a')": r"x must be a number \(Evaluator\.polynomial",
    "polynomial(x)": r"Evaluator\.polynomial\(x, p\) takes an encrypted array",
    "polynomial(1, 2)": "a call of a Polynomial takes at most 1 argument",
    "trace.json_lines('a')": r"Trace\.json_lines takes no arguments",
    "trace.summary(10)": r"Trace\.summary takes no arguments",
    "trace.clear(all=True)": r"Trace\.clear takes no arguments",
    "trace.totals(1)": r"Trace\.totals takes no arguments",
    "policy.noise_std()": r"ReleasePolicy\.noise_std needs slots: it takes slots, batch",
    "policy.noise_std(8, batch='2')": "batch of .* must be a whole number of at least 0",
    "e.add(ct, 1)": r"b of ExplicitEvaluator\.add must be a ckks\.Ciphertext, not 1",
    "e.add(x, x)": r"a of ExplicitEvaluator\.add must be a ckks\.Ciphertext",
    "e.multiply_plain(ct, [1.0])": "b must be a Plaintext or a CompactPlaintext",
    "e.multiply_integer(ct, 0.5)": "b must be a whole number, not 0.5",
    "e.rotate(ct)": r"ExplicitEvaluator\.rotate needs steps: it takes a, steps",
    "e.multiply_accumulate([ct], [plain])": r"a of .* must be a sequence, each a ckks\.Extended",
    "type(e)()": r"an ExplicitEvaluator is Evaluator\.explicit",
    "tfhe.Params.presets(1)": r"Params\.presets takes no arguments",
    "t.params.ciphertext_bytes('a')": r"count of Params\.ciphertext_bytes must be a whole number",
    "t.params.seeded_ciphertext_bytes(1, 2)": "takes at most 1 argument without a name",
    "t.params.log2_failure('a')": "norm2 of .* must be a number",
    "t.params.variance_before_look_up()": "needs norm2",
    "t.params.to_bytes(1)": r"Params\.to_bytes takes no arguments",
    "t.keys.to_bytes(1)": r"EvaluationKeys\.to_bytes takes no arguments",
    "t.keys.save()": r"EvaluationKeys\.save needs file",
    "message.save(None)": "the file must be a path",
    "message.with_shape(2)": r"shape of Ciphertext\.with_shape must be a sequence",
}


@pytest.fixture
def names(one: World) -> dict[str, Any]:
    """What the calls are made on."""
    params, client, server = one.params, one.client, one.server
    ct, t = client.encrypt([0.5, 0.25]), tfhe_world.World(tfhe_world.make())
    return {
        **{
            "ckks": ckks,
            "discrete": discrete,
            "tfhe": tfhe,
            "np": np,
            "params": params,
            "client": client,
            "t": t,
        },
        **{"server": server, "keys": one.keys, "ct": ct, "x": server.bind(ct)},
        **{"e": server.explicit, "plain": server.explicit.encode([1.0])},
        "public": client.public_key(),
        "plan": ckks.MatVec(np.eye(2), params),
        "transform": ckks.LinearTransform(params, {0: np.ones(params.slots)}),
        "polynomial": ckks.Polynomial([1.0, 2.0]),
        "trace": ckks.Evaluator(params, threads=1, trace=True).trace(),
        "policy": ckks.ReleasePolicy(origin="declared", error_bound=1e-3, largest=1.0),
        "message": t.client.encrypt([1, 2]),
    }


@pytest.mark.parametrize("call", SENTENCES)
def test_wrong_arguments_are_named(
    call: str, names: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(jali.InvalidArgument, match=SENTENCES[call]) as caught:
        eval(call, names)
    assert is_sentence(caught.value) and not list(tmp_path.iterdir())


#: Calls of what is written in Python, and what Python says.
BY_PYTHON = {
    "x.copy('C')": r"\.copy\(\) takes 1 positional argument but 2 were given",
    "t.client.encrypt(no=1)": r"Client\.encrypt\(\) got an unexpected keyword argument 'no'",
    "t.server.refresh()": r"Evaluator\.refresh\(\) missing 1 required positional argument: 'x'",
    "ckks.functions.tanh(width=3)": r"tanh\(\) got an unexpected keyword argument 'width'",
    "ckks.sum_rotations()": r"sum_rotations\(\) missing 1 required positional argument: 'count'",
}


@pytest.mark.parametrize("call", BY_PYTHON)
def test_python_names_wrong_arguments(call: str, names: dict[str, Any]) -> None:
    error = answer(lambda: eval(call, names))
    assert error is not None and re.search(BY_PYTHON[call], str(error)), str(error)
    assert PYTHON.search(str(error)), str(error)


def test_right_arguments_are_taken_by_name_and_in_order(names: dict[str, Any]) -> None:
    params, keys, e, ct = names["params"], names["keys"], names["e"], names["ct"]
    assert keys.has_rotation(steps=1) and keys.has_rotation(np.int64(1))
    assert params.key_bytes("powers") > params.key_bytes([1]) == params.key_bytes(rotations=(1,))
    assert params.key_bytes(np.array([1]), True) > params.key_bytes([1])
    assert params.ciphertext_bytes(8) == params.ciphertext_bytes(np.int32(8), level=None)
    assert params.ciphertext_bytes((2, 8), batch=True) == 2 * params.ciphertext_bytes(8)
    boots = ckks.Params.create(bootstrap=True, precision_bits=12, levels_after=2)
    assert boots.bootstrap_rotations() == boots.bootstrap_rotations([0])
    assert names["polynomial"](np.float32(2)) == names["polynomial"](x=2) == 5
    assert names["polynomial"](1j) == 1 + 2j
    difference = e.sub(b=ct, a=ct)
    assert np.abs(names["client"].decrypt(difference)).max() < 1e-6
    hoisted = e.hoist(a=names["client"].encrypt([0.5, 0.25]))  # it alone keeps the ciphertext
    assert names["client"].decrypt(e.rotate_hoisted(hoisted, 1))[0] == pytest.approx(0.25, abs=1e-6)


#: Names that newcomers try, and what the answer says.
NAMES = {
    "keys + keys": r"one call makes all of them, client\.evaluation_keys\(rotations",
    "keys | keys": "one call makes all of them",
    "keys + 1": "not joined",
    "1 + keys": "not joined",
    "t.keys + t.keys": "makes all that a server needs",
    "keys.rotations": r"has_rotation\(steps\)",
    "keys.relin_keys": "has_relinearisation",
    "keys.merge(keys)": "one call makes all of them",
    "keys.secret_key": "stays inside",
    "params.n": r"2 \*\* params\.log_n",
    "params.N": r"2 \*\* params\.log_n",
    "params.poly_modulus_degree": r"2 \*\* params\.log_n",
    "params.coeff_mod_bit_sizes": r"params\.primes",
    "params.levels": r"params\.depth",
    "params.global_scale": r"params\.scale",
    "params.batch_size": r"params\.slots",
    "params.encrypt([1.0])": r"ckks\.Client\(params\)",
    "ct.copy": "no copy is needed",
    "ct.copy()": "no copy is needed",
    "ct.decrypt": r"Client\.decrypt\(ciphertext\)",
    "ct.decrypt(client)": r"Client\.decrypt\(ciphertext\)",
    "ct.rotate(1)": r"x = evaluator\.bind\(ciphertext\)",
    "ct.sum()": r"x = evaluator\.bind\(ciphertext\)",
    "ct.T": r"x = evaluator\.bind\(ciphertext\)",
    "ct.numpy()": r"Client\.decrypt\(ciphertext\)",
    "public.encrypt([1.0])": r"ckks\.Encryptor\(public_key\)",
    "plain.decode()": r"Evaluator\.explicit\.decode",
    "server(ct)": r"x = evaluator\.bind\(ciphertext\)",
    "server(x=ct)": r"x = evaluator\.bind\(ciphertext\)",
    "client([1.0])": r"client\.encrypt\(values\)",
    "t.server(message)": r"evaluator\.bind\(ciphertext\)",
    "ckks.functions.softmax": r"functions\.exp\(interval\)\(x\)",
    "ckks.functions.softmax(x)": r"functions\.inverse",
    "ckks.softmax": r"functions\.exp\(interval\)\(x\)",
    "ckks.functions.cos": r"ckks\.Polynomial\.approximate",
    "ckks.functions.swish": r"functions\.silu",
    "ckks.functions.rsqrt": r"functions\.inverse_sqrt",
    "message.copy()": "no copy is needed",
    "message.decrypt": r"Client\.decrypt\(ciphertext\)",
    "message.sum()": r"x = evaluator\.bind\(ciphertext\)",
    "t.params.slots": "no slots",
    "t.params.poly_modulus_degree": r"params\.N",
    "t.params.dumps()": r"to_bytes\(\) gives its bytes, and save\(path\) writes them",
    "t.server.decrypt(message)": r"Client\.decrypt\(x\)",
}


@pytest.mark.parametrize("call", NAMES)
def test_names_from_elsewhere_get_a_sentence(call: str, names: dict[str, Any]) -> None:
    with pytest.raises(jali.Unsupported, match=NAMES[call]) as caught:
        eval(call, names)
    assert is_sentence(caught.value)


def test_names_that_are_refused_are_not_there(names: dict[str, Any]) -> None:
    things = [(names["params"], "n"), (names["keys"], "rotations"), (names["ct"], "decrypt")]
    for thing, name in (*things, (functions, "softmax"), (names["message"], "decrypt")):
        assert not hasattr(thing, name) and name not in dir(thing)
    assert "log_n" in dir(names["params"]) and "to_bytes" in dir(names["ct"])


def test_the_advice_on_softmax_computes_it() -> None:
    params = ckks.Params.create(depth=12)
    client = ckks.Client(params, threads=1)
    server = ckks.Evaluator(params, client.evaluation_keys(rotations="powers"), threads=1)
    values = np.array([0.5, -0.25, 1.0, 0.0])
    x = server.bind(client.encrypt(values, peak=1.0))
    e = functions.exp((-1, 1), error=1e-4)(x)
    total = e.sum()
    found = client.decrypt(e * functions.inverse((1, 12), error=1e-4)(total, within=(1.4, 11)))
    assert np.allclose(found, np.exp(values) / np.exp(values).sum(), atol=1e-3)


def test_advice_names_what_exists() -> None:
    """Of every sentence, the names of Jali that it tells to write."""
    told = " ".join(
        sentence
        for owner, rows in refusals.tables("jali.ckks")["names"].items()
        if owner in ("Params", "EvaluationKeys", "Ciphertext", "PublicKey", "Plaintext")
        or owner == "jali.ckks.functions"
        for sentence in rows.values()
    )
    owners = {"params": ckks.Params, "ckks": ckks, "functions": functions}
    owners |= {"Client": ckks.Client, "client": ckks.Client, "evaluator": ckks.Evaluator}
    owners |= {"Polynomial": ckks.Polynomial}
    found = re.findall(r"\b(params|ckks|functions|[Cc]lient|evaluator|Polynomial)\.(\w+)", told)
    assert len(found) > 30
    for owner, name in found:
        assert hasattr(owners[owner], name), f"{owner}.{name}"
