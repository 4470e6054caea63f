"""Nothing hangs if threads cannot start, if a process forks, or if a function calls itself."""

from __future__ import annotations

import os
import re

import pytest
from alone import run


def test_a_child_computes_with_what_its_parent_made() -> None:
    """A forked child uses and drops all objects that have worker threads, and then ends
    normally."""
    out = run(
        """
        params, client, keys = small()
        client = ckks.Client(params, threads=2)
        keys = client.evaluation_keys(rotations=[1])
        server = ckks.Evaluator(params, keys, "cpu", threads=2)
        assert right(client, server) and server.threads == 2
        for dropped in (True, False):
            sys.stdout.flush()
            child = os.fork()
            if child == 0:
                assert server.threads == 1
                assert right(client, server)
                assert right(client, ckks.Evaluator(params, keys, "cpu", threads=2))
                if dropped:
                    del server, client
                print("right")
                sys.exit(0)
            assert os.waitpid(child, 0)[1] == 0
        assert right(client, server) and server.threads == 2
        """
    )
    assert out.split() == ["right", "right"]


def test_a_pool_of_forked_processes() -> None:
    out = run(
        """
        import multiprocessing
        params, client, keys = small()
        server = ckks.Evaluator(params, keys, "cpu", threads=2)
        assert right(client, server)
        def work(k):
            return right(client, server)
        with multiprocessing.get_context("fork").Pool(3) as pool:
            print(sum(pool.map(work, range(12))))
            pool.close()
            pool.join()
        """
    )
    assert out.split() == ["12"]


def test_children_of_a_process_whose_threads_compute() -> None:
    """Other threads may hold locks at the fork. In the child the locks are free, or an error says
    what is wrong."""
    out = run(
        """
        params, client, keys = small()
        server = ckks.Evaluator(params, keys, "cpu", threads=2, trace=True)
        plan = ckks.LinearTransform(params, {0: np.ones(params.slots)})
        x = server.bind(client.encrypt(np.ones(16)))
        captured = server.capture(lambda a: a * a + a, x)
        batcher = server.batcher(lambda a: a * a)
        stop = False
        def work():
            while not stop:
                right(client, server)
                server.trace().clear()
                captured(x)
                server.prepare(plan)
                batcher([x, x])
        threads = [threading.Thread(target=work) for _ in range(3)]
        for t in threads:
            t.start()
        children = []
        for _ in range(25):
            time.sleep(0.02)
            child = os.fork()
            if child == 0:
                good = right(client, server)
                for use in (lambda: captured(x), lambda: server.linear_transform(plan, x), lambda: batcher([x])):
                    try:
                        use()
                    except jali.Unsupported as error:
                        assert "when this process was forked" in str(error)
                os._exit(0 if good else 1)
            children.append(os.waitpid(child, 0)[1])
        stop = True
        for t in threads:
            t.join()
        assert right(client, server)
        print(children)
        """,
        240,
    )
    assert re.fullmatch(r"\[0(, 0)*\]\s*", out), out


def test_threads_that_cannot_start_are_done_without() -> None:
    """A limit on memory leaves no room for the stacks of sixty threads."""
    out = run(
        """
        import resource
        params, client, keys = small()
        threading.stack_size(0)
        size = int(open("/proc/self/statm").read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (size + (200 << 20), -1))
        server = ckks.Evaluator(params, keys, "cpu", threads=60)
        assert right(client, server)
        print(server.threads)
        """
    )
    assert 1 <= int(out) < 60


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user, whom limits bind")
def test_a_limit_on_processes() -> None:
    out = run(
        """
        import resource
        params, client, keys = small()
        os.setuid(54321)
        resource.setrlimit(resource.RLIMIT_NPROC, (3, 3))
        server = ckks.Evaluator(params, keys, "cpu", threads=8)
        assert right(client, server)
        print(server.threads)
        """
    )
    assert 1 <= int(out) < 8


def test_a_function_that_calls_itself_is_refused() -> None:
    out = run(
        """
        params, client, keys = small()
        server = ckks.Evaluator(params, keys, "cpu")
        x = server.bind(client.encrypt(np.ones(16)))
        box = {}
        def function_of_itself(a):
            return box["captured"](a) if "captured" in box else a + a
        box["captured"] = server.capture(function_of_itself, x)
        def batcher_of_itself(a):
            return box["batcher"]([a])[0]
        box["batcher"] = server.batcher(batcher_of_itself)
        for call in (lambda: box["captured"](x), lambda: box["batcher"]([x])):
            try:
                call()
            except jali.InvalidArgument as error:
                print(error)
        # Functions may use other captured functions and batchers.
        double = server.capture(lambda a: a + a, x)
        thrice = server.capture(lambda a: double(a) + a, x)
        assert np.allclose(client.decrypt(thrice(x)), 3, atol=1e-3)
        assert np.allclose(client.decrypt(server.map(lambda a: server.map(lambda b: b + b, [a])[0], [x])[0]), 2)
        """
    )
    assert out.count("is running in this thread") == 2
    assert "this captured function" in out and "this batcher" in out


def test_what_a_batcher_measured_is_told_while_it_runs() -> None:
    """The batcher's function and other threads may ask while it works."""
    run(
        """
        params, client, keys = small()
        server = ckks.Evaluator(params, keys, "cpu")
        x = server.bind(client.encrypt(np.ones(16)))
        started = threading.Event()
        def function(a):
            started.set()
            time.sleep(0.2)
            assert batcher.batch >= 0
            return a + a
        batcher = server.batcher(function)
        thread = threading.Thread(target=batcher, args=([x, x],))
        thread.start()
        started.wait()
        print(batcher.batch, batcher.curve)
        thread.join()
        assert batcher.batch == 1
        """
    )
