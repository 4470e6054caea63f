"""What newcomers from PyTorch and scikit-learn look for in programs, clients, servers and messages: a sentence for each name.

A name that a class comes to define loses its sentence by itself.
"""

from __future__ import annotations

from jali._core.refusals import refuse_names
from jali.errors import NotOffered
from jali.nn import scalar
from jali.nn.message import Message
from jali.nn.program import Program
from jali.nn.roles import Client, Server

__all__ = ["install", "of_module"]

RUN = "a server runs a program: server = program.server(client.evaluation_keys()), then client.decrypt(server(client.encrypt(x)))"
CLIENT = "a client encrypts and decrypts: client = program.client(), then client.encrypt(x) and client.decrypt(reply)"
ENCRYPTED = "its numbers are encrypted: client.decrypt(reply) gives those of a server's reply as NumPy arrays"
_RUNS = ("predict", "predict_proba", "transform", "forward", "infer", "run", "execute", "eval")
_SAVES = ("dump", "dumps", "export", "serialize", "write")

PROGRAM = {
    **dict.fromkeys(
        _RUNS, f"{RUN}; program.clear(x) is what the model gives, without encryption"
    ),
    **dict.fromkeys(("encrypt", "decrypt"), CLIENT),
    **dict.fromkeys(
        ("evaluation_keys", "keys", "keygen", "generate_keys"),
        "a client makes the keys: client = program.client(), then client.evaluation_keys()",
    ),
    **dict.fromkeys(_SAVES, "write program.save(path), or program.to_bytes()"),
    **dict.fromkeys(
        ("score", "accuracy", "evaluate", "test"),
        "program.simulate(x) is what decryption would give: compare it with the labels",
    ),
    **dict.fromkeys(
        ("inputs", "outputs"), "program.manifest.inputs and program.manifest.outputs say what they are"
    ),
    **dict.fromkeys(("graph", "layers"), "program.stages has the graph after every stage"),
    **dict.fromkeys(
        ("print", "show", "describe", "report"),
        "write print(program.summary()) for the price list, program.explain(stage) or program.plot(path)",
    ),
}  # fmt: skip

CLIENTS = {
    **dict.fromkeys(_RUNS, RUN),
    **dict.fromkeys(
        ("keys", "public_key", "public_keys", "keygen", "generate_keys"),
        "client.evaluation_keys() makes the public keys, which the server takes",
    ),
    **dict.fromkeys(
        ("save", "load", "to_bytes", "from_bytes", *_SAVES),
        "client.secret.save(path) keeps the secret key; nn.Client(manifest, secret=ckks.Client.load(path)) has it again",
    ),
    "params": "client.manifest.params are its parameters",
}

SERVER = {
    **dict.fromkeys(_RUNS, "write server(request), with request = client.encrypt(x)"),
    **dict.fromkeys(("encrypt", "decrypt"), f"a server has no secret key: {CLIENT}"),
    **dict.fromkeys(
        ("save", "load", "to_bytes", "from_bytes", *_SAVES),
        "save the program and the keys, program.save(path) and keys.save(path): program.server(keys) makes the server again",
    ),
    "params": "server.manifest.params are its parameters",
}

MESSAGE = {
    **dict.fromkeys(
        ("save", "load", "from_bytes", *_SAVES),
        "message.to_bytes() gives bytes; nn.Message.request(data, manifest) reads those of a client, nn.Message.reply(data, manifest) a server's",
    ),
    **dict.fromkeys(("decrypt", "numpy", "tolist", "item", "shape", "dtype"), ENCRYPTED),
}

#: Names that jali.nn does not have.
MODULE = {
    **dict.fromkeys(
        ("load", "save"), "program.save(path) writes and nn.Program.load(path) reads; so do those of nn.Manifest"
    ),
    **dict.fromkeys(
        ("Linear", "Conv1d", "Conv2d", "Sequential", "Module", "ReLU", "BatchNorm2d", "Flatten", "LSTM", "RNN", "GRU"),
        "layers are those of torch.nn: jali.compile takes the trained module",
    ),
    **dict.fromkeys(
        ("tanh", "exp", "log", "sqrt"), "write NumPy's in the function that is compiled: numpy.tanh(x)"
    ),
    **dict.fromkeys(("relu6", "softmax", "sign"), "jali.nn.scalar has the functions of single numbers"),
}  # fmt: skip


def of_module(name: str) -> NotOffered:
    """The error for a name that jali.nn does not have."""
    if name in scalar.__all__ and name.islower():
        sentence = f"it is in jali.nn.scalar: jali.nn.scalar.{name}"
    else:
        sentence = MODULE.get(name, "dir(jali.nn) lists what there is")
    return NotOffered(f"jali.nn has no {name}: {sentence}")


def install() -> None:
    """Gives the classes of jali.nn their sentences."""
    for kind, sentences in (
        (Program, PROGRAM),
        (Client, CLIENTS),
        (Server, SERVER),
        (Message, MESSAGE),
    ):
        refuse_names(kind, sentences)
