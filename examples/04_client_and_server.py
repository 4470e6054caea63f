"""Course 4: a client and a server in two processes that exchange bytes.

The server process gets parameters, evaluation keys and ciphertexts. It never gets the secret key,
which is needed to decrypt. It computes the mean and the variance of the client's numbers.
"""

import multiprocessing
from multiprocessing.connection import Connection

import numpy as np

import jali
from jali import authenticated, ckks

COUNT = 1024


def serve(wire: Connection, key: bytes) -> None:
    """The server: it takes and sends bytes. `key` only seals replies; it cannot decrypt."""
    params = ckks.Params.from_bytes(wire.recv_bytes())
    # Loading checks lengths before it takes memory, that every residue is below its prime, and that
    # the object belongs to these parameters. If a check fails, it raises a jali.Error.
    keys = ckks.EvaluationKeys.from_bytes(wire.recv_bytes(), params)
    server = ckks.Evaluator(params, keys)
    request = wire.recv_bytes()
    x = server.bind(ckks.Ciphertext.from_bytes(request, params))
    answers = {"mean": x.mean(), "variance": x.var()}
    for place, answer in answers.items():
        reply = answer.ciphertext.to_bytes()
        wire.send_bytes(authenticated.seal_reply(key, reply, request=request, place=place))


def main() -> None:
    """The client: it sends keys and encrypted numbers, and decrypts the replies."""
    params = ckks.Params.create(depth=3, scale_bits=40)
    client = ckks.Client(params)
    values = np.random.default_rng().normal(0.3, 0.5, COUNT)

    # The server authenticates its replies with this key. An attacker on the wire does not have it,
    # and so cannot replace a reply by another one.
    key = authenticated.new_key()
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs, key))
    server.start()
    theirs.close()

    # The keys serve this computation alone: there are only the rotations that the sum needs.
    keys = client.evaluation_keys(rotations=ckks.sum_rotations(COUNT))
    encrypted = client.encrypt(values)
    sent = [params.to_bytes(), keys.to_bytes(), encrypted.to_bytes()]
    for blob in sent:
        ours.send_bytes(blob)
    received = [
        authenticated.open_reply(key, ours.recv_bytes(), request=sent[-1], place=place)
        for place in ("mean", "variance")
    ]
    server.join()

    mean, variance = (client.decrypt(ckks.Ciphertext.from_bytes(blob, params)) for blob in received)
    print("sent:", ", ".join(f"{len(blob):,} bytes" for blob in sent))
    print("received:", ", ".join(f"{len(blob):,} bytes" for blob in received))
    print(f"mean {mean:.8f}, variance {variance:.8f}")
    assert abs(mean - values.mean()) < 1e-5
    assert abs(variance - values.var()) < 1e-5

    # Bytes that were damaged on the way are refused with a jali.Error.
    damaged = bytearray(received[0])
    damaged[len(damaged) // 2 :] = b""
    try:
        ckks.Ciphertext.from_bytes(bytes(damaged), params)
        raise AssertionError("half a ciphertext was accepted")
    except jali.Error as error:
        print(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
