"""The clients' protocol on a connection to cordon serve (GET /v1/rpc): who may do what, faults, and what is left of it."""
import io
import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import threading
import time

from driver import CORDON, ROOT, Need, is_alive
from holdings import Holdings, more_than, slack_kib, until
from serving import Server
from test_watching import figures

sys.path.insert(0, os.path.join(ROOT, "clients", "python"))
import cordon  # noqa: E402
from cordon._address import find_server  # noqa: E402
from cordon._remote import greeting  # noqa: E402


CUTS = int(os.environ.get("CORDON_CUTS", "120"))  # 2000 in `make soak`


def add_key(server, name, *options):
    out = subprocess.run([CORDON, "serve", "key", "add", name, "--state", server.state, *options], stdout=subprocess.PIPE, check=True, text=True)
    return re.search(r"cordon_[0-9a-f]+", out.stdout).group(0)


def connect(server, key=None):
    return cordon.connect(server=server.url, key=key or server.key)


def refused(kind, text, fn, *args, **kwargs):
    try:
        fn(*args, **kwargs)
    except kind as e:
        assert text in str(e), e
        return e
    raise AssertionError("it did not fail")


def status(server):
    """Descriptors, threads, and kilobytes of memory of the server."""
    text = open("/proc/%d/status" % server.p.pid).read()
    return (len(os.listdir("/proc/%d/fd" % server.p.pid)), int(re.search(r"Threads:\s+(\d+)", text).group(1)),
            int(re.search(r"VmRSS:\s+(\d+)", text).group(1)))


def greet(server, key=None):
    """A raw connection after the welcome."""
    s = socket.create_connection(("127.0.0.1", server.port), 30)
    s.sendall(greeting(find_server(server.url, key or server.key)))
    data = b""
    while b"\r\n\r\n" not in data:
        data += s.recv(1000)
    assert data.startswith(b"HTTP/1.1 101"), data
    return s


# Who may do what.

def test_every_method_is_decided():
    source = open(os.path.join(ROOT, "src/serve/remote/remote_methods.c")).read()
    decided = re.findall(r'\.method = "([a-z_.]+)"', source)
    decided += re.findall(r'"([a-z_.]+)"', source[source.index("harmless[] = {"):source.index("static const struct rule rules")])
    known = json.load(open(os.path.join(ROOT, "docs", "rpc.json")))["methods"]
    assert len(decided) == len(set(decided)), decided
    assert set(decided) == set(known), set(decided) ^ set(known)


# Each names something of the server's machine. "@" is a directory, "=" the session.
HOST = [
    ("session.open", {"host_tools": [{"name": "x", "command": ["/bin/true"]}]}),
    ("session.run", {"code": "1", "host_tools": []}),
    ("pool.open", {"host_tools": []}),
    ("create", {"host_tools": []}),
    ("sandbox.create", {"host_tools": []}),
    ("fetch", {"url": "http://127.0.0.1/", "ca_file": "/etc/passwd"}),
    ("files.put_tar", {"session": "=", "path": "/home/user", "from": "/etc/passwd"}),
    ("files.get_tar", {"session": "=", "path": "/home/user", "to": "@/out"}),
    ("files.import", {"session": "=", "from": "/etc/passwd"}),
    ("files.export", {"session": "=", "to": "@/out"}),
    ("persistence.import", {"session": "=", "from": "/etc/passwd"}),
    ("persistence.export", {"session": "=", "to": "@/out"}),
    ("files.upload", {"session": "=", "path": "x", "from": "/etc/passwd"}),
    ("files.download", {"session": "=", "path": "x", "to": "@/out"}),
    ("saved.import", {"name": "x", "from": "/etc/passwd"}),
    ("export.read", {"name": "x", "path": "/", "to": "@/out"}),
    ("project.open", {"session": "=", "directory": "/etc"}),
    ("project.diff", {"session": "="}),
    ("project.apply", {"session": "="}),
    ("project.close", {"session": "="}),
    ("session.expose", {"session": "=", "port": 80, "path": "@/out"}),
    ("session.unexpose", {"session": "=", "port": 80}),
    ("audit.verify", {"path": "/etc/passwd"}),
    ("pod.add", {"name": "x", "from": "/bin/true"}),
    ("pod.remove", {"name": "x"}),
]
SHARED = [  # of all clients: only an administrator's key may
    ("saved.list", {}), ("saved.read", {"name": "x"}), ("saved.remove", {"name": "x"}),
    ("export.list", {"name": "x"}), ("export.diff", {"old": "x", "new": "y"}), ("doctor.prove", {}),
]


def test_what_names_the_host_is_refused():
    with tempfile.TemporaryDirectory() as folder, Server() as server:
        for key, more in ((server.key, []), (add_key(server, "one"), SHARED)):
            with connect(server, key) as c, cordon.Session("sh", connection=c) as s:
                for method, params in HOST + more:
                    params = {k: s.id if v == "=" else v.replace("@", folder) if isinstance(v, str) else v for k, v in params.items()}
                    refused(cordon.Denied, "", c._request, method, params, None, None)
                assert os.listdir(folder) == []
    with cordon.Connection(CORDON) as c, cordon.Session("sh", connection=c) as s:  # the control: a client that is the user
        with tempfile.TemporaryDirectory() as folder:
            c.request("files.get_tar", {"session": s.id, "path": "/home/user", "to": folder + "/out"})
            c.request("files.put_tar", {"session": s.id, "path": "/home/user", "from": folder + "/out"})
            assert os.listdir(folder) == ["out"]


def test_a_key_narrows_every_session():
    with tempfile.TemporaryDirectory() as folder, Server() as server:
        path = os.path.join(folder, "policy.json")
        with open(path, "w") as f:
            json.dump({"timeout_ms": 5000}, f)
        with connect(server, add_key(server, "narrow", "--policy", path)) as c:
            with cordon.Session(connection=c) as s:
                assert s.run("1") == 1
            for options in ({"policy": {"timeout_ms": 60000}}, {"set": ["timeout_ms=60000"]},
                            {"policy": {"mounts": [{"host": "/etc", "guest": "/mnt/etc"}]}}):
                refused(cordon.Denied, "", cordon.Session, connection=c, **options)
                refused(cordon.Denied, "", c.request, "pool.open", dict(options, size=1))
                refused(cordon.Denied, "", c.request, "sandbox.create", options)


def test_workspaces_belong_to_their_key():
    with tempfile.TemporaryDirectory() as folder, Server(XDG_STATE_HOME=folder, XDG_DATA_HOME=folder, HOME=folder) as server:
        keys = [add_key(server, "one"), add_key(server, "two")]
        for key in keys:
            with connect(server, key) as c, cordon.Session(connection=c, workspace="mine") as s:
                assert s.files.list() == [] and s.files.write("mine", key) is None
        for key in keys:
            with connect(server, key) as c, cordon.Session(connection=c, workspace="mine") as s:
                assert s.files.read_text("mine") == key
        with connect(server, keys[0]) as c:
            for name in ("../x", "serve/two.mine", ""):
                refused(cordon.RpcError, "the name of a workspace", cordon.Session, connection=c, workspace=name)


def test_quotas_count_everything_of_a_key():
    with Server() as server:
        key = add_key(server, "few", "--max-sessions", "2", "--max-executions", "1")
        http = server.client(key)
        with connect(server, key) as a, connect(server, key) as b:
            first = http.call("POST", "/v1/sessions", {"guest": "python"})["session"]
            with cordon.Session(connection=a) as s:
                refused(cordon.LimitExceeded, "maximum of 2 sessions", cordon.Session, connection=b)
                refused(cordon.NotFound, "", b.request, "session.describe", {"session": s.id})
                started = threading.Event()
                t = threading.Thread(target=lambda: s.execute("print(1, flush=True)\nimport time; time.sleep(60)", on_stdout=lambda x: started.set()))
                t.start()
                assert started.wait(30)
                assert [e["state"] for e in http.call("GET", "/v1/executions")["executions"]] == ["running"]
                refused(cordon.LimitExceeded, "executions at once", b.request, "session.run", {"code": "1"})
                s.interrupt()
                t.join(30)
            with cordon.Session(connection=b) as s:
                refused(cordon.NotFound, "", b.request, "session.describe", {"session": first})
                assert s.run("1") == 1
        slow = add_key(server, "slow", "--rate", "5/s")
        with connect(server, slow) as c:
            e = refused(cordon.LimitExceeded, "too many requests a second", lambda: [c.request("version") for _ in range(50)])
            assert slow not in str(e)


def test_a_revoked_key_ends_its_connections():
    with Server() as server:
        key = add_key(server, "gone")
        with connect(server, key) as c, connect(server) as other:
            s = cordon.Session(connection=c)
            pid = s.describe()["pid"]
            subprocess.run([CORDON, "serve", "key", "revoke", "gone", "--state", server.state], check=True, stdout=subprocess.PIPE)
            assert until(lambda: not is_alive(pid))
            refused(cordon.CordonError, "", s.run, "1")
            assert other.request("version")["name"] == "cordon"
            refused(cordon.KeyRefused, "knows no such key", connect, server, key)


# Errors.

def test_errors_say_what_to_do():
    secret = "cordon_" + "5ec7e7" * 8
    with socket.socket() as nobody:  # bound, so that nobody else listens there meanwhile
        nobody.bind(("127.0.0.1", 0))
        refused(cordon.ServerUnreachable, "is `cordon serve` running there?", cordon.connect,
                server="http://127.0.0.1:%d" % nobody.getsockname()[1], key=secret)
    refused(cordon.ServerUnreachable, "is `cordon serve` running there?", cordon.connect, server="unix:/nonexistent/x", key=secret)
    refused(cordon.ConnectFailed, "use https://", cordon.connect, server="http://192.0.2.1", key=secret)
    for bad in ("", "ftp://x", "https://", "https://u:p@h", "https://h/path", "http://h:99999", "x"):
        e = refused(cordon.ConnectFailed, "", cordon.connect, server=bad or "nothing", key=secret)
        assert secret not in str(e) and "u:p" not in str(e)
    e = refused(cordon.ConnectFailed, "visible ASCII", cordon.connect, server="http://127.0.0.1:1", key="a b\r\nX: y")
    assert "a b" not in str(e)
    with Server() as server:
        for key in (secret, None):
            e = refused(cordon.KeyRefused, "no such key", cordon.connect, server=server.url, key=key or "x")
            assert e.status == 401 and secret not in str(e) and secret not in repr(e)
        lines = '{"jsonrpc":"2.0","id":1,"method":"version"}\n'
        said = subprocess.run([CORDON, "rpc", "--server", server.url], input=lines, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, env=dict(os.environ, CORDON_KEY=secret))
        answer = json.loads(said.stdout)
        assert answer["error"]["data"] == {"code": "key_refused", "status": 401, "line": 1} and secret not in said.stdout + said.stderr, said
    with socket.create_server(("127.0.0.1", 0)) as listener:  # another kind of server
        def answer_as_another():
            for reply in (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", b"SSH-2.0-x\r\n\r\n", b""):
                c = listener.accept()[0]
                c.recv(4096)
                c.sendall(reply)
                c.close()
        threading.Thread(target=answer_as_another, daemon=True).start()
        for _ in range(3):
            refused(cordon.ServerUnreachable, "", cordon.connect, server="http://127.0.0.1:%d" % listener.getsockname()[1])


def certificate(folder):
    made = os.path.join(folder, "cert.pem"), os.path.join(folder, "key.pem")
    try:
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", made[1],
                        "-out", made[0], "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"],
                       check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except FileNotFoundError:
        raise Need("openssl")
    return made


def test_tls():
    with tempfile.TemporaryDirectory() as folder:
        cert, private = certificate(folder)
        with Server("--tls-cert", cert, "--tls-key", private) as server:
            refused(cordon.ServerUnreachable, "certificate is not good", cordon.connect, server=server.url, key=server.key)
            e = refused(cordon.KeyRefused, "no such key", cordon.connect, server=server.url, key="wrong", ca_file=cert)
            assert e.status == 401
            with cordon.connect(server=server.url, key=server.key, ca_file=cert) as c:
                cordon.run("1", connection=c)
            before = status(server)
            with cordon.connect(server=server.url, key=server.key, ca_file=cert) as c, cordon.Session(connection=c) as s:
                data = os.urandom(30 << 20)
                s.files.write("big", data)
                assert s.files.read("big") == data
                assert [s.run("%d + 1" % i) for i in range(200)] == list(range(1, 201))
                got = []
                s.execute("for i in range(20000): print('x' * 9)", on_stdout=got.append)
                assert "".join(got).count("\n") == 20000
            assert until(lambda: status(server)[0] <= before[0])
            wrong = subprocess.run([CORDON, "rpc", "--server", server.url], input="{}\n", stdout=subprocess.PIPE, text=True)
            assert "certificate is not good" in wrong.stdout, wrong
            lines = '{"jsonrpc":"2.0","id":1,"method":"session.run","params":{"code":"6 * 7"}}\n'
            right = subprocess.run([CORDON, "rpc", "--server", server.url, "--ca", cert], input=lines, stdout=subprocess.PIPE, text=True,
                                   env=dict(os.environ, CORDON_KEY=server.key))
            assert json.loads(right.stdout)["result"]["result"] == 42, right
            with socket.create_connection(("127.0.0.1", server.port)) as plain:
                plain.sendall(greeting(find_server(server.url, server.key)))
                assert not plain.recv(100).startswith(b"HTTP/1.1 101")
        assert server.p.returncode == 0


def test_a_unix_socket():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "private", "serve.sock")
        with Server("--socket", path, listen=False) as server:
            with cordon.connect(server="unix:" + path, key=server.key) as c:
                assert cordon.run("6 * 7", connection=c).value == 42
            refused(cordon.KeyRefused, "", cordon.connect, server="unix:" + path, key="no")


def test_the_key_is_in_no_process_list():
    with Server() as server:
        p = subprocess.Popen([CORDON, "rpc", "--server", server.url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                             env=dict(os.environ, CORDON_KEY=server.key))
        p.stdin.write('{"jsonrpc":"2.0","id":1,"method":"version"}\n')
        p.stdin.flush()
        assert json.loads(p.stdout.readline())["result"]["name"] == "cordon"
        for pid in (p.pid, server.p.pid):
            assert server.key not in open("/proc/%d/cmdline" % pid).read()
        p.stdin.close()
        assert p.wait(30) == 0
        p.stdout.close()


# Faults.

def test_cut_at_every_byte_of_the_greeting():
    with Server() as server:
        hello = greeting(find_server(server.url, server.key))
        connect(server).close()
        before = status(server)
        for n in range(len(hello) + 1):
            s = socket.create_connection(("127.0.0.1", server.port))
            s.sendall(hello[:n])
            s.close()
        s = socket.create_connection(("127.0.0.1", server.port), 30)  # a slow one
        for byte in hello:
            s.sendall(bytes([byte]))
        assert s.recv(1000).startswith(b"HTTP/1.1 101")
        s.close()
        early = socket.create_connection(("127.0.0.1", server.port), 30)  # one that does not wait
        early.sendall(hello + b'{"jsonrpc":"2.0","id":1,"method":"version"}\n')
        data = b""
        while b'"name"' not in data:
            more = early.recv(1000)
            assert more, data
            data += more
        early.close()
        assert until(lambda: status(server)[0] <= before[0]), (status(server), before)
        with connect(server) as c:
            assert c.request("version")["name"] == "cordon"


def test_bad_lines_end_with_an_answer():
    with Server() as server:
        s = greet(server)
        f = s.makefile("rb")
        for line, code in ((b"{", -32700), (b"[]", -32600), (b'"x"', -32600), (b'{"jsonrpc":"2.0","id":1,"method":"nothing"}', -32601),
                           (b"x" * (9 << 20), -32700), (b'{"jsonrpc":"2.0","id":2,"method":"files.read","params":{"session":"sess_x","path":"x"}}', None),
                           (b'{"jsonrpc":"2.0","id":3,"method":"files.put_tar","attachment":-1,"params":{"session":"x","path":"/","attached":true}}', None)):
            s.sendall(line + b"\n")
            error = json.loads(f.readline())["error"]
            assert code is None or error["code"] == code, (line[:80], error)
        s.sendall(b'{"jsonrpc":"2.0","id":4,"method":"files.put_tar","attachment":3000000000,"params":{"session":"x","path":"/","attached":true}}\n')
        s.close()  # in the middle of an attachment that is too large
        f.close()
        with connect(server) as c:
            assert c.request("version")["name"] == "cordon"


def test_slow_peers_wait_for_themselves_only():
    with Server() as server:
        slow = greet(server)
        slow.sendall(b'{"jsonrpc":"2.0","id":1,"method":"session.run","params":{"stream":true,"policy":{"stdout_bytes":40000000},'
                     b'"code":"for i in range(20000): print(\'x\' * 999)"}}\n')
        half = greet(server)
        half.sendall(b'{"jsonrpc":"2.0","id":1,"meth')
        with connect(server) as c, cordon.Session(connection=c) as s:
            for i in range(100):
                assert s.run("%d" % i) == i
        half.sendall(b'od":"version"}\n')
        assert b'"name"' in half.recv(1000)
        seen, f = 0, slow.makefile("rb")
        for line in f:
            m = json.loads(line)
            if m.get("id") == 1:
                assert m.get("result", {}).get("success"), str(m)[:300]
                break
            seen += m["params"]["data"].count("\n") if m["method"] == "output" else 0
        assert seen == 20000, seen
        half.close()
        f.close()
        slow.close()


def test_death_of_the_server_is_told():
    with Server() as server:
        c = connect(server)
        s = cordon.Session(connection=c)
        pid = s.describe()["pid"]
        refused(cordon.ConnectionLost, "the server is gone", s.execute, "print(1, flush=True)\nimport time; time.sleep(60)",
                on_stdout=lambda text: os.kill(server.p.pid, signal.SIGKILL))
        assert until(lambda: not is_alive(pid)), "the guest lives on"
        refused(cordon.CordonError, "", s.run, "1")
        refused(cordon.ServerUnreachable, "", connect, server)


def test_death_of_the_client_ends_what_it_opened():
    with Server() as server:
        connect(server).close()
        code = ("import cordon, sys\nc = cordon.connect()\ns = cordon.Session(connection=c)\nprint(s.describe()['pid'], flush=True)\n"
                "s.run('while True: pass')")
        p = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True,
                             env=dict(os.environ, CORDON_SERVER=server.url, CORDON_KEY=server.key, PYTHONPATH=os.path.join(ROOT, "clients/python")))
        pid = int(p.stdout.readline())
        assert is_alive(pid)
        p.kill()
        p.wait()
        p.stdout.close()
        assert until(lambda: not is_alive(pid)), "the guest lives on"


def test_stopping():
    server = Server("--grace", "20s")
    c, idle = connect(server), connect(server)
    s = cordon.Session(connection=c)
    s.run("1")
    started, got = threading.Event(), []
    t = threading.Thread(target=lambda: got.append(s.execute("print(1, flush=True)\nimport time; time.sleep(2)\n7", on_stdout=lambda x: started.set())))
    t.start()
    assert started.wait(30)
    server.p.terminate()
    seen = []

    def is_stopping():
        try:
            idle.request("session.run", {"code": "1"})
        except cordon.StateError as e:
            seen.append(str(e))
        return bool(seen)

    assert until(is_stopping) and "stopping" in seen[0], seen
    t.join(30)
    assert got and got[0].value == 7, got  # what ran may end
    assert server.stop() == 0
    refused(cordon.ConnectionLost, "", idle.request, "version")


def test_cuts_in_the_middle_of_everything():
    """A connection that ends while it opens, executes, calls a tool, sends or receives: nothing stays behind."""
    with Server() as server:
        lines = [b'{"jsonrpc":"2.0","id":1,"method":"session.open","params":{"guest":"python","tools":[{"name":"t"}]}}\n',
                 b'{"jsonrpc":"2.0","id":1,"method":"session.run","params":{"code":"import time; time.sleep(60)"}}\n',
                 b'{"jsonrpc":"2.0","id":1,"method":"session.run","params":{"code":"t()","tools":[{"name":"t"}]}}\n',
                 b'{"jsonrpc":"2.0","id":1,"method":"session.run","params":{"stream":true,"code":"while True: print(1)"}}\n',
                 b'{"jsonrpc":"2.0","id":1,"method":"pool.open","params":{"size":2}}\n']

        http, start = server.client(), Holdings(server.p.pid)

        def cut(times):
            for i in range(times):
                s = greet(server)
                s.sendall(lines[i % len(lines)])
                time.sleep(i % 8 * 0.02)
                s.close()

        def is_quiet():
            """There is this connection only, no session, and no thread that the server did not begin with."""
            return (figures(http)["cordon_http_connections"] == 1 and not http.call("GET", "/v1/sessions")["sessions"] and
                    Holdings(server.p.pid).threads <= start.threads)

        cut(10)  # the template of the interpreter stays, with what watches it
        assert until(is_quiet), Holdings(server.p.pid)
        before = Holdings(server.p.pid)
        cut(CUTS)
        assert until(is_quiet), Holdings(server.p.pid)
        more = more_than(server.p.pid, before)
        assert not more, (more, str(before), str(Holdings(server.p.pid)))
        assert Holdings(server.p.pid).kib < before.kib + slack_kib(4096), (str(before), str(Holdings(server.p.pid)))
        with connect(server) as c:
            assert cordon.run("6 * 7", connection=c).value == 42


test_cuts_in_the_middle_of_everything.seconds = 300 + CUTS


def test_connections_of_both_kinds_end_at_once():
    """An upgraded connection that ended while a client left its stream stopped the server for ever: each waited for the other's lock."""
    with Server() as server:
        sessions = [server.client().open(guest="sh", policy={"timeout_ms": 600000}) for _ in range(8)]
        wrong = []

        def come_and_go():
            while any(t.is_alive() for t in leavers):
                greet(server).close()

        def leave_streams(session):
            head = "POST /v1/sessions/%s/executions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nAccept: text/event-stream\r\n" \
                   "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n"
            body = b'{"code":"sleep 600"}'
            for _ in range(100):  # one that comes before the last has ended is refused
                s = socket.create_connection(("127.0.0.1", server.port), 60)
                s.sendall((head % (session, server.key, len(body))).encode() + body)
                s.recv(100)
                s.close()

        def run(fn):
            try:
                fn()
            except Exception as e:
                wrong.append(e)
        leavers = [threading.Thread(target=run, args=(lambda s=s: leave_streams(s),), daemon=True) for s in sessions]
        others = [threading.Thread(target=run, args=(come_and_go,), daemon=True) for _ in range(6)]
        for t in leavers + others:
            t.start()
        for t in leavers + others:
            t.join(250)
        assert not wrong and not any(t.is_alive() for t in leavers + others), wrong
        # Who leaves before the execution has begun in its session cancels it, too: it would go on for long.
        http = server.client()
        assert until(lambda: figures(http)["cordon_executions_running"] == 0, 60), http.call("GET", "/v1/executions")
        assert len(http.call("GET", "/v1/sessions")["sessions"]) == len(sessions)


# What is left.

def test_ten_thousand_executions():
    with Server() as server:
        with connect(server) as c:
            with cordon.Session(connection=c) as s:
                for i in range(200):
                    s.run("1")
                before = status(server)
                for i in range(10000):
                    assert s.run("i + 1", {"i": i}) == i + 1
                after = status(server)
                assert after[0] <= before[0] and after[1] <= before[1] + 4 and after[2] < before[2] + slack_kib(4096), (before, after)


def test_eight_threads():
    with Server() as server:
        with connect(server) as c:
            def work(n, times):
                with cordon.Session(connection=c) as s:
                    together.wait(600)  # the server keeps groups for as many sessions as there were at a time
                    for i in range(times):
                        assert s.run("i * %d" % n, {"i": i}) == i * n

            together = threading.Barrier(8)

            def round(times):
                wrong = []

                def one(n):
                    try:
                        work(n, times)
                    except BaseException as e:
                        wrong.append(e)
                threads = [threading.Thread(target=one, args=(n,)) for n in range(8)]
                for t in threads:
                    t.start()
                for t in threads:
                    t.join()
                assert not wrong, wrong

            round(20)
            before = status(server)
            round(300)
            assert until(lambda: status(server)[0] <= before[0] and status(server)[2] < before[2] + slack_kib(8192)), (before, status(server))


def test_thousand_idle_connections():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard[1] != resource.RLIM_INFINITY and hard[1] < 4096:
        raise Need("4096 descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, hard[1]))
    try:
        with Server() as server:
            with connect(server) as c:
                cordon.run("1", connection=c)
            before = Holdings(server.p.pid)
            idle = [greet(server) for _ in range(1000)]
            for s in idle[::10]:  # they have also been used
                s.sendall(b'{"jsonrpc":"2.0","id":1,"method":"version"}\n')
            for s in idle[::10]:
                assert b"cordon" in s.recv(1000)
            assert until(lambda: Holdings(server.p.pid).threads <= before.threads), Holdings(server.p.pid)
            assert status(server)[2] < slack_kib(60 << 10), status(server)
            with connect(server) as c:
                assert cordon.run("6 * 7", connection=c).value == 42
            for s in idle:
                s.close()
            more = more_than(server.p.pid, before)
            assert not more, (more, str(before), str(Holdings(server.p.pid)))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, hard)


def test_large_archives_go_by_value():
    with tempfile.TemporaryDirectory() as folder, Server() as server:
        name, data = os.path.join(folder, "a.tar"), os.urandom(20 << 20)
        with tarfile.open(name, "w") as tar:
            info = tarfile.TarInfo("big")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
        with connect(server) as c, cordon.Session("sh", connection=c, policy={"fs_bytes": 256 << 20}) as s:
            assert s.files.put_tar("/home/user", name)["skipped_count"] == 0
            assert s.files.read("big") == data
            s.run("mkfifo pipe")
            told = s.files.get_tar("/home/user", os.path.join(folder, "b.tar"))
            assert told == {"skipped_count": 1, "skipped": [{"path": "pipe", "reason": "FIFO"}]}, told
            with tarfile.open(os.path.join(folder, "b.tar")) as tar:
                member = next(m for m in tar if m.name.endswith("big"))
                assert tar.extractfile(member).read() == data
            blob = s.export()
            with cordon.Session("sh", connection=c, policy={"fs_bytes": 256 << 20}) as other:
                other.import_(blob)
                assert other.files.read("big") == data
            s.files.mkdir("empty")
            s.files.get_tar("empty", os.path.join(folder, "c.tar"))
            assert os.path.exists(os.path.join(folder, "c.tar"))
            refused(cordon.RpcError, "", s.files.get_tar, "/home/user", os.path.join(folder, "b.tar"))
