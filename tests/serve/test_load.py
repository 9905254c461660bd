"""Many requests at once: waiting requests block no others, and descriptors suffice for what the docs promise."""
import os
import resource
import tempfile
import threading

from driver import Client, Failure
from holdings import slack_kib

LIMIT = -32003  # "limit" of include/cordon/error.h
WAIT_MS = 3600000
REQUESTS_MAX = WAITING_MAX = 256


def code_of(client, n, seconds=30):
    try:
        client.wait(n, seconds)
    except Failure as f:
        return f.data["code"]
    return "ok"


def waiting(client, pool, count, method="pool.acquire", **params):
    return [client.send(method, dict(params, pool=pool, wait_ms=WAIT_MS)) for _ in range(count)]


def test_waiting_for_a_pool_is_in_nobodys_way():
    with Client() as c:
        pool = c.call("pool.open", guest="python", size=1, max_size=1)["pool"]
        taken = c.call("pool.acquire", pool=pool)["session"]
        other = c.open(guest="python")
        ids = waiting(c, pool, WAITING_MAX)
        # One more does not fit; everything else does.
        assert code_of(c, waiting(c, pool, 1)[0]) == "limit"
        run = c.send("session.execute", {"session": taken, "code": "while True: pass"})
        assert c.execute(other, "6 * 7")["result"] == 42
        while not c.call("cancel", request_id=run)["cancelled"]:
            pass
        assert code_of(c, run) == "ok"
        c.call("session.close", session=other)
        # In turn: the first gets it when it is given back, and nobody else does.
        c.call("session.close", session=taken)
        first = c.wait(ids[0])["session"]
        assert c.execute(first, "1")["result"] == 1
        # A request that waits can be cancelled.
        assert c.call("cancel", request_id=ids[1])["cancelled"]
        assert code_of(c, ids[1]) == "cancelled"
        c.call("session.close", session=first)
        second = c.wait(ids[2])["session"]
        assert c.execute(second, "2")["result"] == 2
        # The end of the pool is the end of the waiting.
        c.call("pool.close", pool=pool)
        assert {code_of(c, n) for n in ids[3:]} == {"state"}


def test_executions_that_wait_are_carried_out_in_turn():
    with Client() as c:
        pool = c.call("pool.open", guest="python", size=2, max_size=2)["pool"]
        ids = [c.send("pool.execute", {"pool": pool, "code": str(i), "wait_ms": WAIT_MS}) for i in range(200)]
        assert [c.wait(n)["result"] for n in ids] == list(range(200))
        n = c.send("pool.execute", {"pool": pool, "code": "1", "wait_ms": 0})
        assert code_of(c, n) == "ok"  # none is taken: it waits for one that is made


def test_a_client_that_leaves_while_it_waits():
    c = Client()
    pool = c.call("pool.open", guest="python", size=1, max_size=1)["pool"]
    c.call("pool.acquire", pool=pool)
    waiting(c, pool, 20)
    waiting(c, pool, 20, "pool.execute", code="1")
    c.out.close()
    assert c.process.wait(10) == 0
    c.inp.close()


def with_descriptors(count, fn):
    """The soft limit of what fn starts."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))
    try:
        return fn()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_64_sessions_with_the_usual_limit_of_descriptors():
    with with_descriptors(1024, Client) as c:
        sessions = [c.open(guest="python") for _ in range(64)]
        assert [c.execute(s, "1")["result"] for s in sessions] == [1] * 64
        c.fails(LIMIT, "maximum of 64 sessions", "session.open", guest="python")


def test_a_pool_lasts():
    """201 were the end of the server."""
    with with_descriptors(1024, Client) as c:
        pool = c.call("pool.open", guest="python", size=4)["pool"]

        def use(count, failed):
            try:
                for i in range(count):
                    n = c.send("pool.execute", {"pool": pool, "code": "1", "wait_ms": WAIT_MS})
                    assert c.wait(n)["result"] == 1
            except BaseException as e:
                failed.append(e)

        failed = []
        threads = [threading.Thread(target=use, args=(30, failed)) for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert not failed, failed[0]


def resident_kib(client):
    with open("/proc/%d/status" % client.process.pid, encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS:"))


def test_memory_of_transfers_is_given_back():
    """Each thread kept a piece of 8 MiB or more: 180 MB in all."""
    with tempfile.NamedTemporaryFile() as f, Client() as c:
        f.write(bytes(1 << 20))
        f.flush()
        os.chmod(f.name, 0o666)
        s = c.open(guest="sh")
        for _ in range(20):
            ids = [c.send("files.upload", {"session": s, "path": f"/tmp/{i}", "from": f.name}) for i in range(24)]
            assert {c.wait(n)["length"] for n in ids} == {1 << 20}
            ids = [c.send("files.download", {"session": s, "path": f"/tmp/{i}", "to": f.name}) for i in range(24)]
            assert {c.wait(n)["length"] for n in ids} == {1 << 20}
        assert resident_kib(c) < slack_kib(64 << 10), resident_kib(c)
