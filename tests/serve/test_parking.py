"""cordon serve: sessions that nobody uses are parked and come back, also after a restart."""
import json
import os
import re
import sqlite3
import tempfile
import threading

from driver import HELD, is_alive
from serving import Server, refused
from test_database import sql, state_folder
from test_v1 import Stream
from test_watching import figures

NOTICE = "was parked"


def wait_parked(c, count):
    while figures(c)['cordon_sessions{state="parked"}'] != count:
        pass


def told(result):
    return any(NOTICE in str(w) for w in result["warnings"])


def test_parked_and_back():
    with Server("--park", "1ms") as one:
        c = one.client()
        s = c.open(env={"COLOUR": "blue"}, policy={"memory_bytes": 67108864})
        base = "/v1/sessions/" + s
        assert not told(c.execute(s, "x = 1\nimport os\nos.mkdir('d'); os.chdir('d'); open('f', 'w').write('kept')"))
        pid = c.call("GET", base)["pid"]
        wait_parked(c, 1)
        while is_alive(pid):
            pass
        n = figures(c)
        assert n["cordon_session_memory_bytes"] == 0 and n['cordon_sessions{state="idle"}'] == 0
        assert c.call("GET", "/v1/sessions") == {"sessions": [s]}
        assert os.listdir(os.path.join(one.state, "parked")) == [s]
        # Any request brings it back; the next execution is told what is gone.
        status, headers, body = c.raw("GET", base + "/files?path=d/f")
        assert (status, body) == (200, b"kept")
        result = c.execute(s, "import os; [os.getcwd(), os.environ['COLOUR'], 'x' in globals()]")
        assert result["result"] == ["/home/user/d", "blue", False] and told(result), result
        wait_parked(c, 1)
        events = c.events(s, "print(open('f').read())")
        assert ("stdout", {"data": "kept\n"}) in events and told(events[-1][1])
        wait_parked(c, 1)
        status, headers, body = c.raw("GET", base)
        assert status == 200 and NOTICE in headers["Cordon-Notice"]
        # Many at once bring it back once.
        wait_parked(c, 1)
        clients = [one.client() for _ in range(8)]
        got = []
        threads = [threading.Thread(target=lambda k=k: got.append(k.call("GET", base + "/files?path=d/f"))) for k in clients]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert got == [b"kept"] * 8
        wait_parked(c, 1)
        c.call("DELETE", base)
        assert os.listdir(os.path.join(one.state, "parked")) == []
        refused(404, c.execute, s, "1")


def test_what_is_not_parked():
    with Server("--park", "1ms") as one:
        c = one.client()
        busy = c.open(languages=["python", "sh"])
        c.call("POST", "/v1/sessions/%s/commands" % busy, {"command": "sleep 1000", "background": True})
        named = c.open(workspace="named")
        idle = c.open()
        wait_parked(c, 1)
        assert os.listdir(os.path.join(one.state, "parked")) == [idle]
        n = figures(c)
        assert n['cordon_sessions{state="idle"}'] == 2
        for s in (busy, named, idle):
            c.call("DELETE", "/v1/sessions/" + s)
    with Server("--park", "none") as one:
        c = one.client()
        s = c.open()
        one.stop()
        assert not os.path.exists(os.path.join(one.state, "parked", s))


def test_code_in_a_context_goes_on():
    with Server("--park", "1ms") as one:
        c = one.client()
        busy = c.open(languages=["python", "sh"])
        got = []
        thread = threading.Thread(target=lambda: got.append(one.client().execute(busy, HELD["python"], language="python", context="b")))
        thread.start()
        while not any(e["state"] == "running" for e in c.call("GET", "/v1/executions")["executions"]):
            pass
        for n in (1, 2):  # all sessions were looked at when the second one is parked
            c.open()
            wait_parked(c, n)
        c.call("PUT", "/v1/sessions/%s/files?path=/tmp/go" % busy, b"")
        thread.join()
        assert got[0]["success"], got


def failed_parking(line, log):
    """(session, key) of a line on stderr that tells of one; None: of something else."""
    if not log:
        found = re.match("cordon: the session (.*) of the key '(.*)' could not be parked and runs on: .*: Not a directory\n$", line)
        return found and found.groups()
    event = json.loads(line)
    if event["event"] != "park_failed":
        return None
    assert "Not a directory" in event["detail"], event
    return event["session"], event["key"]


def test_a_parking_that_fails_is_told():
    for log in (["--log"], []):
        with Server("--park", "1ms", *log) as one:
            c = one.client()
            assert figures(c)['cordon_parkings_total{result="failed"}'] == 0
            parked = os.path.join(one.state, "parked")
            os.rmdir(parked)
            open(parked, "w").close()
            s = c.open(languages=["python", "sh"])
            c.execute(s, "x = 1", language="python")
            c.execute(s, "x = 2", language="python", context="b")
            lines = []
            while len(lines) < 2:
                lines += filter(None, [failed_parking(one.p.stderr.readline(), log)])
            assert lines == [(s, "admin")] * 2, lines
            assert figures(c)['cordon_parkings_total{result="failed"}'] >= 2
            # It runs on with all its contexts, and is parked when that is possible again.
            for kept, where in ((1, {}), (2, {"context": "b"})):
                result = c.execute(s, "x", language="python", **where)
                assert result["result"] == kept and not result["restarted"] and not told(result), result
            os.unlink(parked)
            os.mkdir(parked, 0o700)
            while s not in os.listdir(parked):
                pass
            result = c.execute(s, "'x' in globals()", language="python", context="b")
            assert result["result"] is False and told(result)
            assert figures(c)['cordon_parkings_total{result="parked"}'] >= 1


def test_a_restart_keeps_sessions():
    with tempfile.TemporaryDirectory(prefix="cordon-serve-") as folder:
        state = os.path.join(folder, "state")
        with Server(state=state) as one:
            key = one.client().call("POST", "/v1/keys", {"name": "k", "policy": {"level": "strict"}})["key"]
            c = one.client(key)
            s = c.open(set=["timeout_ms=1234"])
            c.call("PUT", "/v1/sessions/%s/files?path=f" % s, b"kept")
        with Server(state=state) as one:
            c, other = one.client(key), one.client()
            assert c.call("GET", "/v1/sessions") == {"sessions": [s]}
            refused(404, other.call, "GET", "/v1/sessions/" + s)
            assert c.call("GET", "/v1/sessions/" + s)["policy"]["timeout_ms"] == 1234
            assert c.call("GET", "/v1/sessions/%s/files?path=f" % s) == b"kept"
            result = c.execute(s, "1")
            assert result["result"] == 1 and told(result)
            assert not told(c.execute(s, "1"))
        # A key that is revoked takes its sessions along.
        with Server(state=state) as one:
            assert os.listdir(os.path.join(state, "parked")) == [s]
            c = one.client(key)
            assert c.call("GET", "/v1/sessions") == {"sessions": [s]}
            one.client().call("DELETE", "/v1/keys/k")
            while os.listdir(os.path.join(state, "parked")):
                pass


WRITES = "import os, time; os.mkdir('d'); os.chdir('d'); open('/home/user/f', 'w').write('kept\\n')\n"
STUBBORN = "while True:\n    try:\n        time.sleep(3600)\n    except BaseException:\n        pass\n"


def begin_work(one, c):
    """Sessions in which all kinds of work go on. When the file is there, it has begun."""
    work = {"executions": [({}, WRITES + "time.sleep(3600)"), ({}, WRITES + STUBBORN),
                           ({"tools": [{"name": "ask", "args": {}}]}, WRITES + "ask()")],
            "commands": [({"languages": ["sh"]}, "echo kept > f; sleep 3600")]}
    sessions, streams = [], []
    for path, kinds in work.items():
        for options, code in kinds:
            s = c.open(policy={"timeout_ms": None, "cpu_seconds": None}, **options)
            body = {"timeout_ms": None, "code" if path == "executions" else "command": code}
            streams.append(Stream(one, "/v1/sessions/%s/%s" % (s, path), body))
            sessions.append(s)
    s = c.open(languages=["python", "sh"])
    streams.append(Stream(one, "/v1/sessions/%s/executions" % s, {"code": WRITES + "time.sleep(3600)", "language": "python", "context": "b"}))
    place = c.open(languages=["sh"])
    c.call("POST", "/v1/sessions/%s/commands" % place, {"command": "echo kept > f; sleep 3600", "background": True})
    sessions += [s, place]
    for s in sessions:
        while c.raw("GET", "/v1/sessions/%s/files?path=f" % s)[2] != b"kept\n":
            pass
    return sessions, streams


def test_the_end_parks_what_still_runs():
    with tempfile.TemporaryDirectory(prefix="cordon-serve-") as folder:
        state = os.path.join(folder, "state")
        with Server("--grace", "10ms", state=state) as one:
            sessions, streams = begin_work(one, one.client())
            one.p.terminate()
            assert one.p.wait(120) == 0  # before the streams are closed, which would cancel their executions
            assert one.stop() == 0 and one.stderr == "", one.stderr
        assert sorted(os.listdir(os.path.join(state, "parked"))) == sorted(sessions)
        with Server(state=state) as one:
            c = one.client()
            assert sorted(c.call("GET", "/v1/sessions")["sessions"]) == sorted(sessions)
            for s in sessions:
                assert c.call("GET", "/v1/sessions/%s/files?path=f" % s) == b"kept\n"
            assert c.execute(sessions[0], "import os; os.getcwd()")["result"] == "/home/user/d"
            for s in sessions:
                c.call("DELETE", "/v1/sessions/" + s)


def test_the_end_says_what_is_lost():
    for log in (["--log"], []):
        with tempfile.TemporaryDirectory(prefix="cordon-serve-") as folder:
            state = os.path.join(folder, "state")
            with Server("--grace", "10ms", *log, state=state) as one:
                c = one.client()
                idle, busy = c.open(), c.open()
                stream = Stream(one, "/v1/sessions/%s/executions" % busy, {"code": "import time; time.sleep(3600)", "timeout_ms": None})
                stream.until("started")
                place = c.open(languages=["python", "sh"])
                context = c.call("POST", "/v1/sessions/%s/contexts" % place, {"language": "python", "context": "b"})["session"]
                fork = c.call("POST", "/v1/sessions/%s/fork" % context)["session"]
                # Nothing can be written there any more.
                parked = os.path.join(state, "parked")
                os.rmdir(parked)
                open(parked, "w").close()
                one.p.terminate()
                assert one.p.wait(60) == 0  # before the stream is closed, which would cancel its execution
                one.stop()
            for session in (idle, busy, place, fork):
                (line,) = [line for line in one.stderr.splitlines() if session in line]
                assert ("a fork of a context" if session == fork else "Not a directory") in line, one.stderr
                if log:
                    event = json.loads(line)
                    assert (event["event"], event["session"], event["key"]) == ("session_lost", session, "admin"), event
                else:
                    assert "the session %s of the key 'admin' is not kept" % session in line


def test_killed_with_parked_sessions():
    with tempfile.TemporaryDirectory(prefix="cordon-serve-") as folder:
        state = os.path.join(folder, "state")
        with Server("--park", "1ms", state=state) as one:
            c = one.client()
            parked = c.open()
            c.call("PUT", "/v1/sessions/%s/files?path=f" % parked, b"kept")
            wait_parked(c, 1)
            one.p.kill()
            one.p.wait()
        # What a dead server has not finished is removed.
        open(os.path.join(state, "parked", "sess_half"), "w").write("half")
        with Server(state=state) as one:
            assert os.listdir(os.path.join(state, "parked")) == [parked]
            c = one.client()
            assert c.call("GET", "/v1/sessions/%s/files?path=f" % parked) == b"kept"
        # What is damaged is an error, and the server goes on.
        path = os.path.join(state, "parked", parked)
        data = bytearray(open(path, "rb").read())
        data[len(data) // 2] ^= 1
        open(path, "wb").write(data)
        with Server(state=state) as one:
            c = one.client()
            status, headers, body = c.raw("POST", "/v1/sessions/%s/executions" % parked, {"code": "1"})
            assert status >= 400, body
            assert c.execute(c.open(), "1")["result"] == 1
            c.call("DELETE", "/v1/sessions/" + parked)


def test_old_ones_go():
    with tempfile.TemporaryDirectory(prefix="cordon-serve-") as folder:
        state = os.path.join(folder, "state")
        with Server(state=state) as one:
            one.client().open()
        assert len(os.listdir(os.path.join(state, "parked"))) == 1
        db = sqlite3.connect(os.path.join(state, "serve.db"), isolation_level=None)
        db.execute("UPDATE parked SET parked = parked - 3600 * 169")
        db.close()
        with Server(state=state) as one:
            assert one.client().call("GET", "/v1/sessions") == {"sessions": []}
            assert os.listdir(os.path.join(state, "parked")) == []


def test_old_ones_go_while_the_server_runs():
    with state_folder() as state:
        parked = os.path.join(state, "parked")
        with Server(state=state) as one:
            keys = [one.client().call("POST", "/v1/keys", {"name": name, "max_sessions": 1})["key"] for name in "ab"]
            a, _ = (one.client(key).open() for key in keys)
        with Server("--keep", "1h", state=state) as one:
            c = one.client(keys[0])
            assert c.call("GET", "/v1/sessions") == {"sessions": [a]}
            assert told(c.execute(a, "1"))
            # One that came back is not parked any more, whatever time has passed; nobody has used the other key.
            sql(state, "UPDATE parked SET parked = parked - 3601")
            while os.listdir(parked):
                pass
            assert c.execute(a, "2")["result"] == 2
            assert one.client(keys[1]).call("GET", "/v1/sessions") == {"sessions": []}
        assert os.listdir(parked) == [a]
        with Server("--keep", "1h", state=state) as one:
            c = one.client(keys[0])
            assert c.call("GET", "/v1/sessions") == {"sessions": [a]}
            sql(state, "UPDATE parked SET parked = parked - 3601")
            while c.call("GET", "/v1/sessions") != {"sessions": []}:
                pass
            refused(404, c.execute, a, "1")
            c.execute(c.open(), "1")  # its place is free
            while os.listdir(parked):
                pass
