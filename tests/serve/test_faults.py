"""cordon serve: the server, the client, a session or the disk fails, at any moment."""
import json
import os
import random
import signal
import socket
import subprocess
import tempfile
import threading
import time

from driver import CORDON, HELD, Need, is_alive
from serving import KEY, Server
from test_v1 import Stream


def children(pid):
    """All descendants."""
    found, todo = set(), [pid]
    while todo:
        try:
            for task in os.listdir("/proc/%d/task" % todo[0]):
                with open("/proc/%d/task/%s/children" % (todo[0], task)) as f:
                    more = [int(n) for n in f.read().split()]
                    found.update(more)
                    todo += more
        except OSError:
            pass
        todo.pop(0)
    return found


def wait_gone(pids):
    deadline = time.monotonic() + 60
    while any(is_alive(p) for p in pids):
        assert time.monotonic() < deadline, [p for p in pids if is_alive(p)]
        time.sleep(0.01)


def test_clients_that_die():
    """At any byte of a request, and at any moment of an answer."""
    r = random.Random(1)
    with Server() as one:
        c = one.client()
        s = c.open()
        body = json.dumps({"code": "for i in range(3000): print(i)"}).encode()
        data = (b"POST /v1/sessions/%s/executions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nAccept: text/event-stream\r\n"
                b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (s.encode(), KEY.encode(), len(body))) + body
        before = len(os.listdir("/proc/%d/fd" % one.p.pid))
        for i in range(150):
            k = socket.create_connection(("127.0.0.1", one.port), 60)
            k.sendall(data[:r.randrange(len(data))] if i % 3 == 0 else data)
            if i % 3 == 1:
                k.recv(r.randrange(1, 4000))
            if i % 2:
                k.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
            k.close()
        while any(e["state"] == "running" for e in c.call("GET", "/v1/executions")["executions"]):
            pass
        assert c.execute(s, "1")["result"] == 1
        while len(os.listdir("/proc/%d/fd" % one.p.pid)) > before + 5:
            c.call("GET", "/v1/version")
        assert c.call("GET", "/v1/questions") == {"tool_calls": [], "approvals": []}


def test_a_session_is_killed():
    with Server() as one:
        c = one.client()
        s, other = c.open(), c.open()
        for streamed in (False, True):
            pid = c.call("GET", "/v1/sessions/" + s)["pid"]
            stream = Stream(one, "/v1/sessions/%s/executions" % s, {"code": "print(1, flush=True)\n" + HELD["python"]})
            stream.until("stdout")
            os.kill(pid, signal.SIGKILL)
            result = stream.until("result")
            assert result["success"] is False and result["error_kind"] in ("crashed", "internal", "cancelled"), result
            assert c.execute(s, "2")["result"] == 2
        assert c.execute(other, "3")["result"] == 3
        # A session that is deleted ends the stream of its execution.
        stream = Stream(one, "/v1/sessions/%s/executions" % s, {"code": "print(1, flush=True)\n" + HELD["python"]})
        stream.until("stdout")
        c.call("DELETE", "/v1/sessions/" + s)
        last = None
        while True:
            event = stream.next()
            if event is None:
                break
            last = event
        assert last[0] in ("result", "problem"), last


def work(one, key, stop):
    """A client that opens, runs, writes and closes until the server is gone."""
    try:
        c = one.client(key)
        while not stop.is_set():
            s = c.open()
            c.execute(s, "open('f', 'w').write('x')")
            c.call("PUT", "/v1/sessions/%s/files?path=g" % s, b"y")
            c.call("DELETE", "/v1/sessions/" + s)
    except Exception:  # the server is killed: anything may be cut off
        pass


def test_the_server_is_killed_at_any_moment():
    r = random.Random(2)
    with tempfile.TemporaryDirectory(prefix="cordon-serve-") as folder:
        state = os.path.join(folder, "state")
        names = []
        for round in range(6):
            with Server("--park", "1ms", state=state) as one:
                admin = one.client()
                assert sorted(k["name"] for k in admin.call("GET", "/v1/keys")["keys"]) == sorted(names), "a key is lost"
                names.append("k%d" % round)
                key = admin.call("POST", "/v1/keys", {"name": names[-1]})["key"]
                stop = threading.Event()
                threads = [threading.Thread(target=work, args=(one, key, stop)) for _ in range(3)]
                for t in threads:
                    t.start()
                time.sleep(r.random())
                pids = children(one.p.pid)
                one.p.kill()
                one.p.wait()
                stop.set()
                for t in threads:
                    t.join()
                wait_gone(pids)
        with Server(state=state) as one:
            for name in names:
                path = os.path.join(state, "audit", name + ".jsonl")
                if os.path.exists(path):
                    p = subprocess.run([CORDON, "audit", "verify", path], capture_output=True, text=True)
                    assert p.returncode == 0, p


def test_the_disk_is_full():
    if os.geteuid() != 0:
        raise Need("root, to mount a small file system")
    with tempfile.TemporaryDirectory(prefix="cordon-serve-") as folder:
        state = os.path.join(folder, "state")
        os.mkdir(state, 0o700)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m,mode=0700", "tmpfs", state], capture_output=True).returncode != 0:
            raise Need("mounts")
        try:
            with Server("--park", "1ms", state=state) as one:
                c = one.client()
                key = c.call("POST", "/v1/keys", {"name": "before"})["key"]
                s = c.open()
                c.call("PUT", "/v1/sessions/%s/files?path=f" % s, os.urandom(1 << 20))
                with open(os.path.join(state, "fill"), "wb") as f:
                    try:
                        while f.write(b"x" * 65536) and f.flush() is None:
                            pass
                    except OSError:
                        pass
                # What cannot be parked stays; what cannot be kept is an error; what runs goes on.
                assert c.execute(s, "1")["success"] in (True, False)
                statuses = [c.raw("POST", "/v1/keys", {"name": "full%d" % i})[0] for i in range(40)]
                assert set(statuses) <= {201, 507} and statuses[-1] == 507, statuses
                assert len(c.call("GET", "/v1/sessions/%s/files?path=f" % s)) == 1 << 20
                os.unlink(os.path.join(state, "fill"))
                c.call("POST", "/v1/keys", {"name": "after"})
                assert one.client(key).call("GET", "/v1/sessions") == {"sessions": []}
                assert c.execute(s, "2")["result"] == 2
        finally:
            subprocess.run(["umount", state], capture_output=True)
