"""If memory runs out, jali.OutOfMemory is raised with a clear message, and everything works
afterwards."""

from __future__ import annotations

from alone import run


def test_every_step_says_that_memory_is_short() -> None:
    """Repeats each kind of work under several limits, and keeps the results until no memory is
    left."""
    out = run(
        """
        import resource
        params = ckks.Params.create(depth=6, scale_bits=40, log_n=13, security=0, name="insecure_test")
        client = ckks.Client(params, threads=1)
        keys = client.evaluation_keys(range(1, 6))
        server = ckks.Evaluator(params, keys, "cpu", threads=1)
        values = np.ones((4, params.slots))
        many = client.encrypt(values)
        blob, public = keys.to_bytes(), client.public_key()
        x = server.bind(many)
        secret = client.secret_to_bytes()
        plan = ckks.MatVec(np.eye(64), params)
        works = {
            "parameters": lambda: ckks.Params.create(depth=3, scale_bits=40),
            "client": lambda: ckks.Client(params, threads=1),
            "secret": lambda: ckks.Client.from_secret_bytes(secret, params, threads=1),
            "public key": lambda: client.public_key(),
            "keys": lambda: client.evaluation_keys(range(1, 6)),
            "encryptor": lambda: ckks.Encryptor(public, threads=1),
            "encrypt": lambda: client.encrypt(values),
            "decrypt": lambda: client.decrypt(many),
            "evaluator": lambda: ckks.Evaluator(params, keys, "cpu", threads=1),
            "threads": lambda: ckks.Evaluator(params, None, "cpu", threads=8),
            "write": lambda: keys.to_bytes(),
            "load": lambda: ckks.EvaluationKeys.from_bytes(blob, params),
            "plan": lambda: ckks.MatVec(np.eye(256), params),
            "prepare": lambda: server.prepare(plan),
            "multiply": lambda: (x * x).ciphertext,
            "rotate": lambda: x.rotate(1),
            "array": lambda: x * values,
        }
        unlimited = resource.getrlimit(resource.RLIMIT_AS)
        room = [bytes(k % 500) for k in range(100_000)]  # freed below, so that Python itself has room
        del room[::2]
        for name, work in works.items():
            refused = 0
            for spare in (1 << 12, 1 << 20, 3 << 20, 8 << 20, 40 << 20):
                held, said = [None] * 400, None
                size = int(open("/proc/self/statm").read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
                resource.setrlimit(resource.RLIMIT_AS, (size + spare, unlimited[1]))
                try:
                    for k in range(len(held)):
                        held[k] = work()
                except jali.OutOfMemory as error:
                    said = str(error)
                finally:
                    resource.setrlimit(resource.RLIMIT_AS, unlimited)
                del held
                if said is not None:
                    refused += 1
                    assert "use " in said, said
            print(name, refused)
        # Everything works without the limit.
        for work in works.values():
            work()
        assert np.allclose(client.decrypt(x * x), 1, atol=1e-6)
        assert right(client, server)
        """,
        600,
    )
    refused = {line.rsplit(" ", 1)[0]: int(line.rsplit(" ", 1)[1]) for line in out.splitlines()}
    for name in ("client", "keys", "encrypt", "decrypt", "evaluator", "load", "multiply"):
        assert refused[name] > 1, (name, refused)
