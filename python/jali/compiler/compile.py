"""jali.compile: a model in, an encrypted program out."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from jali._core import checks
from jali._core.columns import Columns
from jali._core.console import bytes_text, counted_text, one_text
from jali.compiler.driver import compiled
from jali.compiler.frontends.answers import DEFAULT_BITS, answers_of, asked_answers
from jali.compiler.frontends.model_source import is_estimator, is_module, is_onnx, may_be_trees
from jali.compiler.frontends.tracing import trace_function
from jali.compiler.integers.choose import Dtypes, cheaper, exact_if_possible, exact_program
from jali.compiler.integers.quantised import Quantised
from jali.compiler.ir.execute import checked_examples
from jali.compiler.ir.graph import Array, Graph
from jali.compiler.ir.traced_ops import verify
from jali.compiler.passes.calibrate import MARGIN
from jali.compiler.planning.batches import MOST_LANES
from jali.compiler.program.program import Program
from jali.compiler.progress import Progress, Told
from jali.errors import InvalidArgument, Unsupported

if TYPE_CHECKING:
    from jali.compiler.frontends.cut_models import Ranges
    from jali.program.clear.parts import Parts
    from jali.tfhe import trees

__all__ = ["compile", "trace"]

_ONE = "If the first axis of the example is the batch, give example[0] in its place: a function takes one example"
_FEW = 10  # fewer examples than this say little about ranges
_DEAR = 1 << 30  # bytes of keys in a server
_MEMORY = {"cpu": 4 << 30, "cuda": 16 << 30}


def compile(
    module: Any,
    example: Any = None,
    *,
    calibration: Any = None,
    precision_bits: float | str | None = None,
    batch: int | str = 1,
    answers: str | float | None = None,
    device: str = "cpu",
    memory: int | str | None = None,
    upload: int | str | None = None,
    margin: float = MARGIN,
    ranges: str = "seen",
    input_range: Any = None,
    output: str = "logits",
    scheme: str | None = None,
    client_side: bool = True,
    explain: bool = False,
    constants: Mapping[str, Any] | None = None,
    relu_degree: int | None = None,
    progress: Told | None = None,
) -> Program:
    """The program of a trained model for encrypted inputs.

        program = jali.compile(model, X[:1], calibration=X)
        client = program.client()
        server = program.server(client.evaluation_keys())
        client.decrypt(server(client.encrypt(x)))

    module: a module of PyTorch, a fitted estimator of scikit-learn, a model in ONNX or its path, a
        recorded graph, or a function of arrays, which is called once.
    example: arrays as the model takes them: a batch, or for a function, one example. A tuple for
        several arguments.
    calibration: examples like those that will be encrypted, as batches (n, *shape), or an iterable
        of batches, from which ranges follow.
    precision_bits: results differ from the model's by at most 2^-precision_bits of the largest
        result of the calibration (docs/noise.md). None stands for 10, and for classifiers of
        scikit-learn, as "auto" does for all models, for the fewest that keep `answers`.
    batch: examples in one ciphertext, a power of two up to 32,768, or "auto": as many as are free.
    answers: what "auto" keeps: "argmax" along the last axis, "sign", or a tolerance in the units of
        the results. None is "argmax" or, of one number, "sign".
    device: "cpu" or "cuda", the kind of device that the plan is for.
    memory: bytes of the server's device for matrices and keys of bootstrapping, as a number or as
        "1.5 GB". None stands for all keys and 4 GiB of matrices, or 16 GiB on "cuda".
    upload: bytes of keys that a client sends at most; None stands for all. See Program.uploads.
    margin: how far ranges reach beyond the calibration's, at both ends, in units of their width.
    ranges: "seen" takes the ranges of the calibration, which an unlike input may leave. "proven"
        takes ranges that no input leaves which a client accepts; they cost levels.
    input_range: (low, high) of the numbers that are encrypted, if you know it: one pair for all,
        or one for each number. A list of these, or None, for several inputs.
    output: "logits" or "probability", for classifiers of scikit-learn.
    scheme: "ckks", which approximates, or "discrete", exact integers, for models that compute whole
        numbers of whole numbers; it gives an nn.integers.Program. None takes exact integers for
        such a model if the examples are integers, no precision_bits are given, and neither a run
        nor the messages cost more than with CKKS.
    client_side: whether the client of a model in ONNX or PyTorch computes its look-ups and one-hot
        vectors before it encrypts, and its softmax or argmax after it decrypts, with their numbers.
    explain: whether other settings are compiled, too, for program.alternatives().
    constants: values of a model's inputs in ONNX that are no secret, by name: {"sr": 16000}.
    relu_degree: if given, ReLUs become polynomials of this degree, from 2 to 8, that are fitted to
        the calibration. This changes the model; Program.fitted and the summary say how much.
    progress: called as progress(stage, fraction) when a stage begins. If it raises, the work ends.

    Models of trees are computed by TFHE, without an example: see jali.tfhe.trees.compile.
    Raises Unsupported for what cannot be compiled, with what to put in its place, and
    InvalidArgument for shapes that do not fit and for numbers that are not finite.
    docs/how-to/compile-a-model.md explains the arguments and runs an example of each.

    >>> examples = np.linspace(-1, 1, 60).reshape(20, 3)
    >>> program = jali.compile(lambda x: 2 * x, examples[0], calibration=examples)
    >>> program.precision_bits > 0
    True
    """
    columns = Columns(module)
    _check_constants(module, constants)
    if scheme not in (None, "ckks", "discrete"):
        raise InvalidArgument(f'scheme is "ckks", "discrete" or None, not {checks.shown(scheme)}')
    if may_be_trees(module) and _is_trees(module):
        if scheme is not None:
            raise InvalidArgument("models of trees are computed by TFHE: leave out scheme=")
        columns.check((example[0] if isinstance(example, tuple) and example else example,))
        columns.check((calibration,))
        if answers is not None:
            raise InvalidArgument("models of trees are computed exactly: leave out answers=")
        if explain or upload is not None or relu_degree is not None:
            raise InvalidArgument(
                "models of trees have one plan: leave out explain=, upload= and relu_degree="
            )
        bits = None if precision_bits == "auto" else precision_bits
        return cast(Any, _trees(module, example, cast(Any, bits), output, progress))  # type: ignore[no-any-return]
    if example is None:
        raise InvalidArgument(
            "example is missing: give arrays as the model takes them, such as X[:1]"
        )
    automatic = isinstance(precision_bits, str) and precision_bits == "auto"
    if answers is not None and not automatic:
        raise InvalidArgument('answers= decides the precision: give precision_bits="auto", too')
    read = asked_answers(answers, module, output) if automatic else None
    precision = DEFAULT_BITS if precision_bits is None or automatic else _precision(precision_bits)
    by_answers = precision_bits is None and is_estimator(module)
    lanes, explained = _lanes(batch), checks.flag(explain, "explain")
    if explained and scheme == "discrete":
        raise InvalidArgument("exact integers have one plan: leave out explain=")
    integers = scheme == "discrete" or (scheme is None and isinstance(module, Quantised))
    if (upload is not None or relu_degree is not None) and integers:
        raise InvalidArgument("exact integers have one plan: leave out upload= and relu_degree=")
    degree = None
    if relu_degree is not None:
        from jali.compiler.passes.fitted_relus import checked_degree

        degree = checked_degree(relu_degree)
    if lanes is None and scheme == "discrete":
        raise InvalidArgument('batch="auto" counts the costs of CKKS: give a number of examples')
    if device not in ("cpu", "cuda"):
        raise InvalidArgument(
            f'device is "cpu" or "cuda", the kind that the plan is for, not {checks.shown(device)}: device= of the server names the one that computes'
        )
    room = None if memory is None else checks.size(memory, "memory")
    sending = None if upload is None else checks.size(upload, "upload")
    if sending == 0:
        raise InvalidArgument("upload is a number of bytes of at least 1")
    if not _is_number(margin) or not 0 <= margin <= 100:
        raise InvalidArgument(f"margin must be a number from 0 to 100, not {checks.shown(margin)}")
    if ranges not in ("seen", "proven"):
        raise InvalidArgument(f'ranges is "seen" or "proven", not {checks.shown(ranges)}')
    told = Progress(progress)
    with told.raised():
        told.at("trace", 0.0)
        at_client = checks.flag(client_side, "client_side") and scheme != "discrete"
        graph, parts, known = _traced(module, example, output, at_client, constants)
        _check_answers(answers, automatic, parts)
        given = example if isinstance(example, tuple) else (example,)
        sent = _sent(parts)
        if sent is not None:
            given = tuple(sent(given)[0])
        columns.see(given)
        dtypes = Dtypes()
        dtypes.see(given)
        examples = _examples(graph, _batches(example, calibration), columns, dtypes, sent)
        columns.check(given)
        if parts is not None and parts.after is not None:
            from jali.compiler.frontends.cut_models import check_end

            check_end(graph, parts, examples)
        _warn_of_unused(graph)
        declared = [input_range] if len(graph.inputs) == 1 else input_range
        _check_ranges(declared, len(graph.inputs))
        declared = _known_ranges(declared, known)
        columns.see_ranges(declared)
        names = columns.of([node.shape for node in graph.inputs])
        exact = None
        if integers:
            scale = module.scale if isinstance(module, Quantised) else 1
            whole = exact_program(
                graph, examples, dtypes, declared, float(margin), lanes or 1, scale
            )
            told.at("program", 1.0)
            return cast(Any, whole.named(names))  # type: ignore[no-any-return]
        unsaid = scheme is None and precision_bits is None and sending is None and degree is None
        if unsaid and parts is None and lanes is not None:
            exact = exact_if_possible(graph, dtypes, examples, declared, float(margin), lanes)
        how: dict[str, Any] = {
            "precision_bits": None if automatic else precision,
            "lanes": lanes,
            "margin": float(margin),
            "proven": ranges == "proven",
            "input_ranges": declared,
            "memory": _MEMORY[device] if room is None else room,
            "key_memory": float("inf") if room is None else None,
            "device": device,
            "upload": sending,
            "relu_degree": degree,
        }
        read = answers_of(module, output) if by_answers else read
        try:
            program = compiled(
                graph, examples, **how, progress=told, answers=read, explain=explained
            )
        except (InvalidArgument, Unsupported):
            if exact is None:
                raise
            return cast(Any, exact.named(names))  # type: ignore[no-any-return]
        if exact is not None and (chosen := cheaper(exact, program)) is not None:
            return cast(Any, chosen.named(names))  # type: ignore[no-any-return]
        if output == "probability":
            how |= {"precision_bits": program.precision_bits, "lanes": program.manifest.lanes}
            how |= {"upload": None}
            _warn_of_dear(program, lambda: compiled(trace(module, example), examples, **how))
        return _with_parts(_named(program, names), parts)


def _traced(
    module: Any,
    example: Any,
    output: str,
    client_side: bool,
    constants: Mapping[str, Any] | None,
) -> tuple[Graph, Parts | None, Ranges]:
    """The graph of what is encrypted of a model, what its client computes, and the ranges of what
    it encrypts as far as that says them."""
    if output != "logits" or isinstance(module, type) or not (is_onnx(module) or is_module(module)):
        return trace(module, example, output=output, constants=constants), None, None
    from jali.compiler.frontends.cut_models import trace_in_parts

    if is_module(module):
        _check_filled(example if isinstance(example, tuple) else (example,))
    return trace_in_parts(
        module, example, constants, client_side, lambda: trace(module, example, constants=constants)
    )


def _check_filled(given: Sequence[Any]) -> None:
    """Raises InvalidArgument for examples of a module without a number."""
    for value in given:
        if not _numbers(value).size:
            raise InvalidArgument(
                f"the example has the shape {np.shape(value)}, without a number: give a batch of one example at least, as X[:1] is"
            )


def _sent(parts: Parts | None) -> Callable[[Sequence[Any]], tuple[list[Array], bool]] | None:
    """What gives of a batch what is encrypted, if the client computes a part before. A batch may
    hold more than the model takes, as its labels."""
    if parts is None or parts.before is None:
        return None
    count = len(parts.before.arguments)
    return lambda batch: parts.sent(batch[:count])


def _check_answers(answers: Any, automatic: bool, parts: Parts | None) -> None:
    """Raises InvalidArgument for answers that would be read of results which the client computes of
    what it decrypts: only of the latter is it known how far they are off."""
    if not automatic or parts is None or parts.after is None or answers in ("argmax", "sign"):
        return
    raise InvalidArgument(
        'the client computes the end of this model of what it decrypts: say what is to stay of that, answers="argmax" or "sign", or give precision_bits= '
        "as a number, or client_side=False"
    )


def _with_parts(program: Program, parts: Parts | None) -> Program:
    """The program whose client computes these parts."""
    if parts is None:
        return program
    made = replace(program, manifest=replace(program.manifest, parts=parts))
    if program.others is None:
        return made
    plans = tuple(replace(one, program=_with_parts(one.program, parts)) for one in program.others)
    return replace(made, others=replace(program.others, plans=plans))


def _known_ranges(declared: Any, known: Ranges) -> Any:
    """The ranges that were declared and, of arrays without one, those that the model says."""
    if known is None:
        return declared
    given = [None] * len(known) if declared is None else declared
    return [ends if mine is None else mine for mine, ends in zip(given, known, strict=True)]


def _named(program: Program, names: Sequence[Sequence[str]]) -> Program:
    """The program whose clients know the names of the columns of each input."""
    pairs = zip(program.manifest.inputs, names, strict=True)
    inputs = tuple(replace(port, column_text="\n".join(of)) for port, of in pairs)
    named = replace(program, manifest=replace(program.manifest, inputs=inputs))
    if program.others is None:
        return named
    rest = tuple(
        replace(one, program=_named(one.program, names)) for one in program.others.plans[1:]
    )
    itself = replace(program.others[0], program=replace(named, others=None))
    return replace(named, others=replace(program.others, plans=(itself, *rest)))


def _warn_of_dear(program: Program, of_logits: Callable[[], Program]) -> None:
    """Warns if the program's keys take much and those of logits, which are compiled for it,
    less."""
    keys = program.sizes().keys_expanded
    if keys < _DEAR:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fewer = of_logits().sizes().keys_expanded
    if fewer < keys:
        warnings.warn(
            f'keys take {bytes_text(keys)} in the server, and {bytes_text(fewer)} with output="logits", of which the client computes the '
            "probabilities, scipy.special.expit(logits)",
            UserWarning,
            stacklevel=3,
        )


def _lanes(batch: Any) -> int | None:
    """Examples in one ciphertext; None for "auto"."""
    if isinstance(batch, str) and batch == "auto":
        return None
    message = 'batch must be a power of two, or "auto"'
    lanes = checks.whole(batch, 1, message)
    if lanes & (lanes - 1) or lanes > MOST_LANES:
        raise InvalidArgument(f"batch must be a power of two up to {MOST_LANES:,}, not {batch}")
    return lanes


def _is_trees(model: Any) -> bool:
    from jali.tfhe.trees import is_trees

    return is_trees(model)


def _trees(
    model: Any,
    example: Any,
    precision_bits: float | None,
    output: str,
    progress: Told | None,
) -> trees.Program:
    """The program of trees. An example, if one is given, is checked against the model."""
    from jali.tfhe.trees.program import compiled as tree_program
    from jali.tfhe.trees.questions import table_of

    told = Progress(progress)
    with told.raised():
        told.at("trace", 0.0)
        how = {"precision_bits": precision_bits, "output": output}
        program = tree_program(model, **how, stacklevel=4)  # type: ignore[arg-type]
        told.at("program", 1.0)
    if example is not None:
        rows = table_of(example[0] if isinstance(example, tuple) and len(example) == 1 else example)
        program.manifest.table(rows[None] if rows.ndim == 1 else rows)
    return program


def trace(
    module: Any,
    example: Any,
    *,
    output: str = "logits",
    constants: Mapping[str, Any] | None = None,
) -> Graph:
    """The graph of a model, before anything is done with it. Arguments as of ``compile``.

    >>> graph = jali.nn.trace(lambda x: 2 * x, np.ones(3))
    >>> isinstance(graph, jali.nn.Graph)
    True
    """
    _check_constants(module, constants)
    if isinstance(module, Graph):
        return verify(module)
    if output not in ("logits", "probability"):
        raise InvalidArgument(f'output is "logits" or "probability", not {checks.shown(output)}')
    if isinstance(module, type):
        raise InvalidArgument(
            f"{module.__name__} is a class: give an object of it, with weights that were trained"
        )
    if output != "logits" and not is_estimator(module):
        raise InvalidArgument(
            f"output={output!r} is for classifiers of scikit-learn: end the model with a sigmoid or a softmax"
        )
    given = example if isinstance(example, tuple) else (example,)
    if is_module(module):
        _check_filled(given)
        from jali.compiler.frontends.from_torch import trace_module

        return trace_module(module, given)
    arrays = [_numbers(x) for x in given]
    if not all(np.all(np.isfinite(x)) for x in arrays):
        raise InvalidArgument("the example holds NaN or infinity: replace these numbers")
    if is_onnx(module):
        from jali.compiler.frontends.from_onnx import loaded, trace_onnx

        model = loaded(module)
        return trace_onnx(model, arrays, constants)
    if is_estimator(module):
        if len(arrays) != 1 or arrays[0].ndim not in (1, 2):
            raise InvalidArgument("an estimator takes a matrix (examples, features)")
        from jali.compiler.frontends.from_sklearn import trace_estimator

        return trace_estimator(module, arrays[0].shape[-1], output)
    if isinstance(module, (str, os.PathLike)):
        raise InvalidArgument(
            f"{os.fspath(module)}: a path must end with .onnx. Load what other files hold, and give the model"
        )
    if not callable(module):
        raise Unsupported(
            f"{one_text(type(module).__name__)} cannot be compiled: give a module of PyTorch, a fitted estimator of scikit-learn, a model "
            "in ONNX, a recorded graph or a function of arrays"
        )
    _check_method(module)
    try:
        return trace_function(module, arrays)
    except InvalidArgument as error:
        if any(x.ndim < 2 for x in arrays):
            raise
        kind = type(error)
        raise kind(f"{error}. {_ONE}") from None


def _check_constants(module: Any, constants: Any) -> None:
    if constants is None:
        return
    if not is_onnx(module):
        raise InvalidArgument(
            "constants= is for models in ONNX: give a function that has these values, such as functools.partial(f, sr=16000)"
        )
    if not isinstance(constants, Mapping):
        raise InvalidArgument(
            f'constants= is a dict of values by the names of inputs, such as {{"sr": 16000}}, not {checks.shown(constants)}'
        )


def _check_method(function: Any) -> None:
    """Raises InvalidArgument for a method of a model, such as predict: the model itself is
    compiled."""
    owner = getattr(function, "__self__", None)
    if is_estimator(owner) or (is_module(owner) and not isinstance(owner, type)):
        more = ' and output="probability"' if function.__name__ == "predict_proba" else ""
        raise InvalidArgument(
            f"the model itself is compiled: give the {type(owner).__name__}{more}, not its method {function.__name__}"
        )


def _numbers(value: Any) -> Array:
    if is_module(value):  # a tensor of PyTorch
        value = value.detach().cpu()
        value = value.double() if value.is_floating_point() else value
    checks.unmasked(value, "examples")
    value = checks.dense(value)
    try:
        array = np.asarray(value)
    except ValueError:
        raise InvalidArgument(
            "the rows of an example differ in length: give every example the same shape"
        ) from None
    if array.dtype.kind not in "biuf":
        found = f"an array of {array.dtype}" if hasattr(value, "dtype") else checks.shown(value)
        raise InvalidArgument(
            f"an example is an array of real numbers, with one for each argument of the model in a tuple, not {found}"
        )
    return array.astype(np.float64)


def _nested(value: Any) -> bool:
    """Whether it is a list of numbers, or of lists of them."""
    inner = value
    while isinstance(inner, list) and inner:
        inner = inner[0]
    return inner is not value and isinstance(inner, (int, float, np.number))


def _batches(example: Any, calibration: Any) -> Iterable[Any]:
    """The batches of the calibration, or the example if there is none."""
    calibration = checks.dense(calibration)
    if calibration is None:
        return [example]
    if isinstance(calibration, tuple) or hasattr(calibration, "__array__") or _nested(calibration):
        return [calibration if isinstance(calibration, tuple) else (calibration,)]
    if isinstance(calibration, Iterable) and not isinstance(calibration, (str, bytes, dict)):
        return calibration
    raise InvalidArgument(
        f"calibration is an array of examples, a tuple of arrays, or an iterable of batches, not {checks.shown(calibration)}"
    )


def _examples(
    graph: Graph,
    batches: Iterable[Any],
    columns: Columns,
    dtypes: Dtypes,
    sent: Callable[[Any], tuple[list[Array], bool]] | None = None,
) -> list[Array]:
    """Examples (n, *shape) for every input.

    sent: what is encrypted of a batch, if the client computes a part before.
    """
    inputs = graph.inputs
    found: list[list[Array]] = [[] for _ in inputs]
    for batch in batches:
        if isinstance(batch, dict):
            raise InvalidArgument(
                f"a batch of the calibration is a dict of {', '.join(map(str, batch))}: give a tuple of arrays, in the order of the "
                "model's inputs"
            )
        arrays = batch if isinstance(batch, (tuple, list)) else (batch,)
        if sent is not None:
            if any(hasattr(x, "__len__") and not len(x) for x in arrays):
                continue  # of a loader, for example
            arrays = sent(arrays)[0]
        if len(arrays) < len(inputs):
            raise InvalidArgument(
                f"the model takes {counted_text(len(inputs), 'array')}, and a batch of the calibration has {len(arrays)}"
            )
        columns.see(arrays[: len(inputs)])
        dtypes.see(arrays[: len(inputs)])
        for node, values, into in zip(inputs, arrays, found, strict=False):
            array = _numbers(values)
            if array.ndim and not len(array):
                continue  # of a loader, for example
            if (1, *array.shape[1:]) == node.shape != array.shape:
                raise InvalidArgument(
                    f"the example of {node.name} has the shape {node.shape}, and those of the calibration have {array.shape[1:]}. {_ONE}"
                )
            into.append(checked_examples(node, array))
    if not all(found):
        raise InvalidArgument(
            "the calibration holds no example: give a few hundred like those that will be encrypted"
        )
    examples = [np.concatenate(into) for into in found]
    if len({len(x) for x in examples}) > 1:
        raise InvalidArgument("the calibration has different numbers of examples for its inputs")
    if len(examples[0]) < _FEW:
        say = "says" if len(examples[0]) == 1 else "say"
        warnings.warn(
            f"the program is calibrated with {counted_text(len(examples[0]), 'example')}, which {say} little about the numbers that occur: pass "
            "calibration= with a few hundred like those that will be encrypted",
            UserWarning,
            stacklevel=3,
        )
    return examples


def _warn_of_unused(graph: Graph) -> None:
    unused = [
        n.name for n in graph.inputs if not graph.users(n.name) and n.name not in graph.outputs
    ]
    if unused:
        warnings.warn(
            f"no result depends on {', '.join(unused)}, which clients encrypt and send all the same: leave it out of the model's inputs",
            UserWarning,
            stacklevel=3,
        )


def _check_ranges(ranges: Any, inputs: int) -> None:
    if ranges is not None and (not isinstance(ranges, (list, tuple)) or len(ranges) != inputs):
        raise InvalidArgument("input_range needs one pair, or None, for each input, in a list")
    for pair in ranges or ():
        try:
            count = 2 if pair is None else len([np.asarray(v, np.float64) for v in pair])
        except (TypeError, ValueError):
            count = 0
        if count != 2:
            raise InvalidArgument(
                f"input_range is (low, high), of one number for all or one for each, not {checks.shown(pair)}"
            )


def _is_number(value: Any) -> bool:
    """Whether it is a real number of Python or NumPy."""
    real = isinstance(value, (int, float, np.integer, np.floating))
    return real and not isinstance(value, bool)


def _precision(value: Any) -> float:
    if not _is_number(value) or not 1 <= value <= 40:
        raise InvalidArgument(
            f'precision_bits must be a number from 1 to 40, or "auto", not {checks.shown(value)}'
        )
    return float(value)
