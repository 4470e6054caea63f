"""Long work reacts to Ctrl-C and every other signal while it runs, and an interruption damages
nothing."""

from __future__ import annotations

from textwrap import dedent

from alone import run

WORLD = """
params = ckks.Params.create(bootstrap=True, precision_bits=20, levels_after=3, log_n=12, security=0,
                            name="insecure_test", order="slots_first")
client = ckks.Client(params, threads=2)
matrix = np.eye(params.slots // 2)
matrix[:, : params.slots // 8] = 0.001
plan = ckks.MatVec(matrix, params, bias=np.ones(len(matrix)))
keys = client.evaluation_keys(plan.rotations, bootstrap=True)
server = ckks.Evaluator(params, keys, "cpu", threads=2)
blob = keys.to_bytes()
v = np.linspace(-1, 1, params.slots)
x = server.bind(client.encrypt(v, level=params.bootstrap_level))
captured = server.capture(lambda a: a.bootstrap(), x)
batcher = server.batcher(lambda a: a.bootstrap(), max_batch=2)
works = {
    "keys": lambda: client.evaluation_keys(range(1, 40)),
    "evaluator": lambda: ckks.Evaluator(params, keys, "cpu"),
    "load": lambda: ckks.EvaluationKeys.from_bytes(blob, params),
    "bytes": lambda: keys.to_bytes(),
    "prepare": lambda: server.prepare(plan),
    "set-up": lambda: ckks.Evaluator(params, keys, "cpu").prepare_bootstrap(),
    "bootstrap": lambda: x.bootstrap(),
    "captured": lambda: captured(x),
    "batcher": lambda: batcher([x, x, x]),
    "encrypt": lambda: client.encrypt(np.ones((300, params.slots))),
}
"""


def test_signals_are_heard_while_the_core_works() -> None:
    """Between two instructions Python runs a handler once for any number of signals.

    If it runs twice at one instruction, the call itself has let it run.
    """
    out = run(
        WORLD
        + dedent("""
        import collections, contextlib
        heard = collections.Counter()
        def count(_, frame):
            heard[frame, frame.f_lasti] += 1
        signal.signal(signal.SIGALRM, count)
        def refused():
            with contextlib.suppress(jali.InsecureParams):
                ckks.Params.create(bootstrap=True, levels_after=100, precision_bits=50, iterations=2)
        def wide(size):
            return server.bind(client.encrypt(np.ones((8 * size, params.slots)), level=params.bootstrap_level))
        def prepare(size):  # a plan is prepared once
            made = ckks.MatVec(np.resize(matrix, (size * len(matrix), len(matrix))), params, level=2)
            return lambda: server.prepare(made)
        def bootstrap(size):
            y = wide(size)
            return lambda: y.bootstrap()
        def captured(size):
            y = wide(size)
            many = server.capture(lambda a: a.bootstrap(), y)
            return lambda: many(y)
        def set_up(size):
            return lambda: ckks.Evaluator(params, keys, "cpu", threads=1).prepare_bootstrap()
        long = {
            "parameters": lambda size: refused,
            "keys": lambda size: lambda: client.evaluation_keys(range(1, min(200 * size, params.slots))),
            "prepare": prepare,
            "set-up": set_up,
            "bootstrap": bootstrap,
            "captured": captured,
        }
        for name, make in long.items():
            # A call looks for signals when it begins and every tenth of a second, so a fast machine
            # gets more work.
            for size in (1, 2, 4, 8, 16):
                work = make(size)
                heard.clear()
                signal.setitimer(signal.ITIMER_REAL, 0.005, 0.005)
                work()
                signal.setitimer(signal.ITIMER_REAL, 0)
                if max(heard.values(), default=0) > 1:
                    print(name)
                    break
        """),
        600,
    )
    assert out.split() == ["parameters", "keys", "prepare", "set-up", "bootstrap", "captured"]


def test_what_was_interrupted_works_on() -> None:
    """Every kind of work is interrupted at random moments, many times. Then all of them still give
    right results."""
    run(
        WORLD
        + dedent("""
        import random
        seed = random.randrange(2**32)
        print("seed", seed)
        random.seed(seed)
        class Stop(Exception):
            pass
        def stop(*_):
            raise Stop
        signal.signal(signal.SIGALRM, stop)
        stopped = 0
        for name, work in works.items():
            start = time.perf_counter()
            work()
            taken = time.perf_counter() - start
            for _ in range(4):
                try:
                    try:
                        signal.setitimer(signal.ITIMER_REAL, random.uniform(0.001, taken))
                        work()
                    finally:
                        signal.setitimer(signal.ITIMER_REAL, 0)
                except Stop:
                    stopped += 1
        assert stopped > 0
        def near(value, expected):
            return np.max(np.abs(client.decrypt(value)[: len(expected)] - expected)) < 1e-3
        assert near(works["bootstrap"](), v) and near(works["captured"](), v)
        assert all(near(y, v) for y in works["batcher"]())
        assert ckks.Evaluator(params, works["load"](), "cpu").bind(x.ciphertext).level == x.level
        again = ckks.Evaluator(params, works["keys"](), "cpu")
        assert near(again.bind(x.ciphertext).rotate(2), np.roll(v, -2))
        w = np.linspace(-1, 1, len(matrix))
        server.prepare(plan)
        (packed,) = plan.pack(w)
        y = server.matvec(plan, server.bind(client.encrypt(packed)))
        assert np.max(np.abs(plan.unpack([client.decrypt(y, length=params.slots)]) - (matrix @ w + 1))) < 1e-2
        """),
        600,
    )


def test_a_thread_that_waits_for_its_turn_hears_too() -> None:
    run(
        """
        params, client, keys = small()
        server = ckks.Evaluator(params, keys, "cpu")
        x = server.bind(client.encrypt(np.ones(16)))
        release, inside = threading.Event(), threading.Event()
        def function(a):
            inside.set()
            release.wait()
            return a
        release.set()
        captured = server.capture(function, x)
        release.clear()
        inside.clear()
        thread = threading.Thread(target=captured, args=(x,))
        thread.start()
        inside.wait()
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        try:
            captured(x)
        except KeyboardInterrupt:
            print("heard")
        release.set()
        thread.join()
        captured(x)
        """
    )
