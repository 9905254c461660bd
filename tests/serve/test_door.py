"""cordon serve: who reaches it, TLS, limits, malformed requests, systemd, the end."""
import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

import serving
from driver import CORDON, HELD, Need, is_alive
from serving import KEY, Server, refused
from test_v1 import Stream

server = None


def reset():
    global server
    if server:
        server.stop()
    server = None


def shared():
    global server
    server = server or Server()
    return server


def fails(*args, status, text):
    with tempfile.TemporaryDirectory(prefix="cordon-serve-") as state:
        p = subprocess.run([CORDON, "serve", "--state", state, *args], capture_output=True, text=True, timeout=60)
        assert p.returncode == status and text in p.stderr, (args, p)


def certificate(folder):
    if not shutil.which("openssl"):
        raise Need("openssl")
    cert, key = os.path.join(folder, "c.pem"), os.path.join(folder, "k.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", cert],
                   check=True, capture_output=True)
    return cert, key


def test_beyond_the_loopback():
    fails("--listen", "0.0.0.0:0", status=126, text="--tls-cert")
    fails("--listen", "0.0.0.0:0", "--allow-plaintext", "--no-keys", status=126, text="--allow-no-keys")
    fails("--listen", "[::]:0", status=126, text="--tls-cert")
    fails("--listen", "nowhere", status=2, text="address")
    fails("--listen", "127.0.0.1:0", "--socket", "/tmp/x/s", status=2, text="exclude")
    fails("--tls-cert", "/nowhere", status=2, text="--tls-key")
    with Server("--listen", "0.0.0.0:0", "--allow-plaintext", "--host", "box.example", listen=False) as one:
        c = one.client()
        assert c.raw("GET", "/v1/sessions", headers={"Host": "box.example"})[0] == 200
        assert c.raw("GET", "/v1/sessions", headers={"Host": "evil.example"})[0] == 403


def test_host_and_origin():
    c = shared().client()
    port = server.port
    for host, status in (("localhost:%d" % port, 200), ("127.0.0.1", 200), ("[::1]:80", 200), ("evil.example", 403),
                         ("localhost.evil.example", 403), ("", 403), ("127.0.0.1:80:80", 403)):
        assert c.raw("GET", "/v1/sessions", headers={"Host": host})[0] == status, host
    for origin, status in (("http://localhost:%d" % port, 200), ("https://127.0.0.1", 200), ("http://evil.example", 403),
                           ("null", 403), ("http://localhost.evil.example", 403), ("file://", 403)):
        got = c.raw("GET", "/v1/sessions", headers={"Origin": origin})
        assert got[0] == status, (origin, got)
        assert not any(h.lower().startswith("access-control") for h in got[1]), "CORS was never named"
    assert c.raw("OPTIONS", "/v1/sessions", headers={"Origin": "http://localhost"})[0] == 405


def test_pages_of_other_ports():
    """A page of localhost:9000 has the same name, and without keys nothing else would stop it. It can send what needs no CORS."""
    with Server("--no-keys", key=None) as one:
        c = one.client()
        page = {"Origin": "http://localhost:9000", "Host": "localhost:%d" % one.port}
        for site, mode, status in (("same-site", "no-cors", 403), ("cross-site", "no-cors", 403), ("same-site", "cors", 403),
                                   ("same-site", "navigate", 403), ("same-origin", "cors", 200), ("none", "navigate", 200)):
            fetch = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode}
            got = c.raw("POST", "/v1/policies/show", headers={**page, **fetch})
            assert got[0] == status, (site, mode, got)
            assert c.raw("POST", "/sandboxes", b'{"templateID": "none"}', {**page, **fetch, "Content-Type": "text/plain"})[0] == (status if status == 403 else 404)
        assert c.raw("GET", "/", headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"})[0] == 200  # a link to the console


def test_tls():
    with tempfile.TemporaryDirectory() as folder:
        cert, key = certificate(folder)
        fails("--tls-cert", key, "--tls-key", cert, "--listen", "127.0.0.1:0", status=125, text="certificate")
        with Server("--tls-cert", cert, "--tls-key", key) as one:
            assert one.url.startswith("https://")
            trust = ssl.create_default_context(cafile=cert)
            one.connect = lambda: http.client.HTTPSConnection("127.0.0.1", one.port, context=trust, timeout=60)
            c = one.client()
            s = c.open()
            assert c.execute(s, "6 * 7")["result"] == 42
            assert c.events(s, "print('x' * 300000)")[-1][1]["success"]
            data = os.urandom(1 << 20)
            c.call("PUT", "/v1/sessions/%s/files?path=f" % s, data)
            assert c.call("GET", "/v1/sessions/%s/files?path=f" % s) == data
            plain = socket.create_connection(("127.0.0.1", one.port), 30)
            plain.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert b"200" not in plain.recv(4096)
            plain.close()
            old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
            try:
                old.maximum_version = ssl.TLSVersion.TLSv1_1
                with old.wrap_socket(socket.create_connection(("127.0.0.1", one.port), 30)):
                    raise AssertionError("TLS 1.1 is accepted")
            except (ssl.SSLError, OSError, ValueError):
                pass


def speak(data, wait=30):
    """What the server says to raw bytes, until it closes or has answered."""
    with socket.create_connection(("127.0.0.1", shared().port), wait) as s:
        s.sendall(data)
        s.settimeout(wait)
        got = b""
        while True:
            try:
                more = s.recv(65536)
            except ConnectionResetError:
                more = b""
            got += more
            if not more or b"\r\n\r\n" in got:
                return got


AUTH = b"Host: localhost\r\nAuthorization: Bearer " + KEY.encode() + b"\r\n"


def test_malformed_requests():
    c = shared().client()
    for data in (b"\r\n\r\n\r\n\r\nnonsense\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\x00\x01" + b"x" * 300 + b"\r\n\r\n",
                 b"GET /v1/sessions HTTP/1.1\r\n" + AUTH + b"Host: localhost\r\n\r\n",
                 b"GET /v1/sessions HTTP/1.1\r\n" + AUTH + b"Authorization: Bearer x\r\n\r\n",
                 b"POST /v1/sessions HTTP/1.1\r\n" + AUTH + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n{}",
                 b"POST /v1/sessions HTTP/1.1\r\n" + AUTH + b"Content-Length: x\r\n\r\n{}",
                 b"POST /v1/sessions HTTP/1.1\r\n" + AUTH + b"Content-Length: -1\r\n\r\n{}",
                 b"POST /v1/sessions HTTP/1.1\r\n" + AUTH + b"Content-Length: 99999999999999\r\n\r\n",
                 b"POST /v1/sessions HTTP/1.1\r\n" + AUTH + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
                 b"GET /" + b"a" * 70000 + b" HTTP/1.1\r\n\r\n",
                 b"GET /v1/sessions HTTP/1.1\r\n" + AUTH + b"X: " + b"y" * 70000 + b"\r\n\r\n",
                 b"GET /v1/sessions HTTP/1.1\r\n" + b"".join(b"X%d: y\r\n" % i for i in range(5000)) + b"\r\n",
                 b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"):
        got = speak(data)
        assert not got or got.split(b" ")[1][:1] in (b"4", b"5"), (data[:80], got[:200])
    # A websocket or HTTP/2 is asked for, and not had.
    got = speak(b"GET /v1/sessions HTTP/1.1\r\n" + AUTH + b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: eA==\r\n\r\n")
    assert got.startswith(b"HTTP/1.1 200"), got
    assert c.call("GET", "/v1/sessions") is not None


def test_refusals_say_what_helps():
    c = shared().client()
    s = c.open()
    for method, path, body, headers, status, detail, remedy in (
            ("GET", "/v1/nothing", None, {}, 404, "no such path", "openapi.json"), ("PATCH", "/v1/sessions", None, {}, 405, "does not have this method", "Allow"),
            ("GET", "/v1/sessions", None, {"Authorization": "Bearer x"}, 401, "key is needed", "Bearer KEY"),
            ("GET", "/v1/sessions", None, {"Host": "evil.example"}, 403, "Host or Origin", "--host"),
            ("GET", "/v1/sessions/%zz", None, {}, 400, "not well-formed", "escapes"),
            ("GET", "/v1/sessions/sess_x/files?path=a", None, {}, 404, "no session", "another key"),
            ("GET", "/v1/sessions/%s/files" % s, None, {}, 400, "?path=/home/user/NAME", "openapi.json"),
            ("GET", "/v1/sessions/%s/files?path=/home/user" % s, None, {}, 400, "tar", "openapi.json"),
            ("PUT", "/v1/sessions/%s/tar?path=a" % s, b"", {}, 400, "is empty: send a tar", "openapi.json"),
            ("POST", "/v1/sessions", b"{}", {"Content-Type": "text/plain"}, 400, "application/json", "openapi.json")):
        got, answered, data = c.raw(method, path, body, headers)
        document = json.loads(data)
        assert got == status and detail in document["detail"] and remedy in document["remedy"], (path, got, document)
    c.call("DELETE", "/v1/sessions/" + s)


def test_an_address_that_is_taken():
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as taken:
        p = subprocess.run([CORDON, "serve", "--listen", "127.0.0.1:%d" % taken.getsockname()[1], "--state", os.path.join(folder, "s")],
                           capture_output=True, text=True, timeout=60)
        assert p.returncode != 0 and "choose another port" in p.stderr, p


def test_requests_that_two_servers_read_differently():
    """A proxy before us may see one request where we would see two. The connection ends with the refusal."""
    second = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    post = b"POST /v1/executions HTTP/1.1\r\n" + AUTH + b"Content-Type: application/json\r\n"
    for data in (post + b"Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" % (5 + len(second)) + second,
                 post + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + second,
                 post + b"Content-Length : %d\r\n\r\n" % len(second) + second,
                 b"GET /v1/sessions HTTP/1.1\r\n" + AUTH + b"Host : evil.example\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", shared().port), 60) as s:
            s.sendall(data)
            got = b""
            while more := receive(s):
                got += more
        assert got.startswith(b"HTTP/1.1 400 ") and got.count(b"HTTP/1.1 ") == 1, (data[:120], got)


def receive(s):
    try:
        return s.recv(65536)
    except ConnectionResetError:
        return b""


def test_bodies():
    c = shared().client()
    large = b'{"guest":"' + b"x" * (9 << 20) + b'"}'
    got = speak(b"POST /v1/sessions HTTP/1.1\r\n" + AUTH + b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(large))
    assert b" 413 " in got.split(b"\r\n")[0], got[:200]
    # The same without a length in advance.
    with socket.create_connection(("127.0.0.1", server.port), 60) as s:
        s.sendall(b"POST /v1/sessions HTTP/1.1\r\n" + AUTH + b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        try:
            for _ in range(9):
                s.sendall(b"100000\r\n" + b"x" * (1 << 20) + b"\r\n")
            s.sendall(b"0\r\n\r\n")
        except OSError:
            pass
        assert b" 413 " in s.recv(4096).split(b"\r\n")[0]
    # Half of a body, then nothing more: the connection ends, nobody else is held up.
    with socket.create_connection(("127.0.0.1", server.port), 60) as s:
        s.sendall(b"POST /v1/sessions HTTP/1.1\r\n" + AUTH + b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
        assert c.call("GET", "/v1/version")
    with socket.create_connection(("127.0.0.1", server.port), 60) as s:
        s.sendall(b"POST /v1/sessions HTTP/1.1\r\n" + AUTH + b"Content-Length: 100\r\n\r\n{")
        s.shutdown(socket.SHUT_WR)
        assert c.call("GET", "/v1/version")


def test_strangers_who_send_nothing():
    """Half requests are closed after some seconds, and many of them keep nobody out."""
    c = shared().client()
    half = [socket.create_connection(("127.0.0.1", server.port), 60) for _ in range(300)]
    for s in half:
        s.sendall(b"GET /v1/sessions HTTP/1.1\r\nHost: loc")
    assert c.call("GET", "/v1/version")
    for s in half:
        s.settimeout(60)
        assert s.recv(100) == b""
        s.close()


def test_idle_connections_cost_no_thread():
    one = shared()
    c = one.client()
    c.call("GET", "/v1/version")
    threads = len(os.listdir("/proc/%d/task" % one.p.pid))
    idle = []
    for _ in range(200):
        k = one.connect()
        k.request("GET", "/healthz")
        assert k.getresponse().read() == b"ok\n"
        idle.append(k)
    assert len(os.listdir("/proc/%d/task" % one.p.pid)) <= threads + 2
    for k in idle:
        k.close()


def test_a_slow_reader_slows_its_code():
    one = shared()
    c = one.client()
    s = c.open(policy={"stdout_bytes": None, "timeout_ms": None, "cpu_seconds": None})
    path = "/v1/sessions/%s/executions" % s
    stream = Stream(one, path, {"code": "import sys\nfor i in range(200): sys.stdout.write('y' * 1000000)\nopen('/tmp/end', 'w')",
                                "keep_output": False})
    stream.until("stdout")
    assert c.raw("GET", "/v1/sessions/%s/files/stat?path=/tmp/end" % s)[0] == 404
    with open("/proc/%d/status" % one.p.pid) as f:
        resident = next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))
    assert resident < 150000, "%d kB: the output is piled up" % resident
    total = 0
    while True:
        event = stream.next()
        if event[0] == "result":
            break
        total += len(event[1].get("data", ""))
    assert event[1]["success"], event
    c.call("DELETE", "/v1/sessions/" + s)


def test_one_key_cannot_take_all_places():
    one = shared()
    admin = one.client()
    c = one.client(admin.call("POST", "/v1/keys", {"name": "greedy", "max_executions": 1})["key"])
    s = c.open(languages=["python", "sh"])
    process = c.call("POST", "/v1/sessions/%s/commands" % s, {"command": "sleep 1000", "background": True})["process"]
    path = "/v1/sessions/%s/processes/%d?wait_ms=600000" % (s, process)
    waiting = []
    for _ in range(64):
        k = one.connect()
        k.request("GET", path, headers={"Authorization": "Bearer " + c.key})
        waiting.append(k)
    statuses = set()
    while 429 not in statuses:
        k = one.connect()
        k.request("GET", path, headers={"Authorization": "Bearer " + c.key})
        k.sock.settimeout(0.2)
        try:
            statuses.add(k.getresponse().status)
        except TimeoutError:
            waiting.append(k)
        assert len(waiting) < 100
    assert admin.call("GET", "/v1/version")
    for k in waiting:
        k.close()
    while c.raw("DELETE", "/v1/sessions/" + s)[0] == 429:
        pass


def test_systemd():
    """Socket activation and Type=notify."""
    with tempfile.TemporaryDirectory(prefix="cordon-serve-") as folder:
        notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        notices.bind(os.path.join(folder, "notify"))
        notices.settimeout(60)
        listener = socket.create_server(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        os.set_inheritable(listener.fileno(), True)
        script = 'exec 3<&%d; export LISTEN_PID=$$ LISTEN_FDS=1; exec "$0" serve --state "$1"' % listener.fileno()
        p = subprocess.Popen(["bash", "-c", script, CORDON, os.path.join(folder, "state")], pass_fds=[listener.fileno()],
                             stdout=subprocess.PIPE, text=True,
                             env=dict(os.environ, NOTIFY_SOCKET=os.path.join(folder, "notify"), CORDON_SERVE_KEY=KEY))
        listener.close()
        assert notices.recv(100) == b"READY=1"
        assert p.stdout.readline() == "listening at http://127.0.0.1:%d\n" % port
        c = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        c.request("POST", "/v1/executions", json.dumps({"guest": "python", "code": "import os; sorted(k for k in os.environ if 'LISTEN' in k or 'NOTIFY' in k)"}),
                  {"Authorization": "Bearer " + KEY, "Content-Type": "application/json"})
        assert json.loads(c.getresponse().read())["result"] == []
        p.terminate()
        assert notices.recv(100) == b"STOPPING=1"
        assert p.wait(60) == 0
        c.close()
        p.stdout.close()
        notices.close()


def test_socket_activation():
    """The real tool of systemd listens, and starts the server with the first connection."""
    if not shutil.which("systemd-socket-activate"):
        raise Need("systemd-socket-activate")
    with tempfile.TemporaryDirectory() as folder, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        p = subprocess.Popen(["systemd-socket-activate", "-l", "127.0.0.1:%d" % port, "-E", "CORDON_SERVE_KEY=" + KEY, CORDON, "serve",
                              "--state", os.path.join(folder, "state")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while "Listening on" not in (line := p.stderr.readline()):
            assert line, "it ended"
        c = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        c.request("GET", "/readyz")
        assert c.getresponse().read() == b"ready\n"
        assert p.stdout.readline() == "listening at http://127.0.0.1:%d\n" % port
        p.terminate()
        assert p.wait(60) == 0
        c.close()
        p.stdout.close()
        p.stderr.close()


def unit_in(folder):
    """The units as they are installed."""
    for name in ("cordon-serve.service", "cordon-serve.socket"):
        text = open(os.path.join(serving.ROOT, "systemd", name)).read()
        open(os.path.join(folder, name), "w").write(text.replace("@bindir@", os.path.dirname(CORDON)))
    return os.path.join(folder, "cordon-serve.service")


def test_the_unit_lets_sandboxes_run():
    """The walls of the unit, as far as they can be had without systemd, and inside of them a session and its files."""
    if not shutil.which("systemd-analyze"):
        raise Need("systemd-analyze")
    if os.getuid() != 0:
        raise Need("root")
    with tempfile.TemporaryDirectory(dir="/run", prefix="cordon-unit-") as folder:
        os.chmod(folder, 0o755)
        state = os.path.join(folder, "state")
        os.mkdir(state, 0o700)
        os.chown(state, 65534, 65534)
        build = os.path.join(folder, "build")  # the unit hides /tmp and /home, where the tree may be
        os.mkdir(build)
        p = subprocess.Popen([sys.executable, os.path.join(serving.ROOT, "tests", "serve", "unit_walls.py"), unit_in(folder), state,
                              os.path.join(build, os.path.basename(CORDON)), "serve", "--listen", "127.0.0.1:0"],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             env=dict(os.environ, CORDON_SERVE_KEY=KEY, CORDON_TEST_BIN=os.path.dirname(CORDON), CORDON_TEST_AT=build))
        line = p.stdout.readline()
        assert line.startswith("listening at "), line + p.stderr.read()
        c = http.client.HTTPConnection("127.0.0.1", int(line.rsplit(":", 1)[1]), timeout=120)

        def call(method, path, body):
            c.request(method, path, body, {"Authorization": "Bearer " + KEY, "Content-Type": "application/json"})
            r = c.getresponse()
            return r.status, r.read()
        for guest, code in (("python", "open('a', 'w').write('x' * 9)"), ("sh", "echo hello > a; umask"), ("node", "6 * 7"), ("r", "6 * 7")):
            status, data = call("POST", "/v1/sessions", json.dumps({"guest": guest}))
            assert status == 201, data
            where = "/v1/sessions/" + json.loads(data)["session"]
            status, data = call("POST", where + "/executions", json.dumps({"code": code}))
            assert status == 200 and json.loads(data)["success"], data
            assert call("PUT", where + "/files?path=b/c", "content")[0] == 204
            assert call("GET", where + "/files?path=b/c", None) == (200, b"content")
        p.terminate()
        assert p.wait(60) == 0, p.stderr.read()
        c.close()
        p.stdout.close()
        p.stderr.close()


def test_the_unit():
    if not shutil.which("systemd-analyze"):
        raise Need("systemd-analyze")
    with tempfile.TemporaryDirectory() as folder:
        path = unit_in(folder)
        p = subprocess.run(["systemd-analyze", "verify", "--man=no", path, os.path.join(folder, "cordon-serve.socket")], capture_output=True, text=True)
        assert p.returncode == 0 and p.stdout + p.stderr == "", p
        p = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager", "--threshold=50", path],
                           capture_output=True, text=True)
        if "Unknown option" in p.stderr or "unrecognized" in p.stderr:
            raise Need("systemd-analyze security --offline")
        assert p.returncode == 0, p.stdout[-500:] + p.stderr


def test_the_end():
    with Server("--grace", "60") as one:
        c = one.client()
        s, other = c.open(tools=[{"name": "ask", "args": {}}]), c.open()
        pids = [c.call("GET", "/v1/sessions/" + i)["pid"] for i in (s, other)]
        stream = Stream(one, "/v1/sessions/%s/executions" % s, {"code": "ask() + ' and done'"})
        call = stream.until("tool_call")
        assert c.call("GET", "/readyz") == b"ready\n"
        one.p.terminate()
        while c.raw("GET", "/readyz")[0] == 200:
            pass
        # No new work, but what runs goes on, and its questions are answered.
        refused(503, c.call, "POST", "/v1/sessions", {})
        refused(503, c.execute, other, "1")
        c.call("POST", "/v1/sessions/%s/tool_calls/%s" % (s, call["id"]), {"value": "answered"})
        assert stream.until("result")["result"] == "answered and done"
        assert one.p.wait(60) == 0
        assert not any(is_alive(pid) for pid in pids)


def test_the_end_has_a_deadline():
    for second in (False, True):
        with Server("--grace", "100000" if second else "1") as one:
            c = one.client()
            s = c.open()
            stream = Stream(one, "/v1/sessions/%s/executions" % s, {"code": HELD["python"], "timeout_ms": None})
            stream.until("started")
            while not c.call("GET", "/v1/executions")["executions"]:
                pass
            one.p.terminate()
            while c.raw("GET", "/readyz")[0] == 200:
                pass
            if second:
                one.p.send_signal(signal.SIGTERM)
            assert one.p.wait(60) == 0


def test_the_end_does_not_wait_for_a_reader():
    with Server("--grace", "1") as one:
        c = one.client()
        s = c.open(policy={"stdout_bytes": None, "timeout_ms": None, "cpu_seconds": None})
        stream = Stream(one, "/v1/sessions/%s/executions" % s, {"code": "while True: print('x' * 100000)", "keep_output": False})
        stream.until("stdout")
        one.p.terminate()
        assert one.p.wait(60) == 0
    for how in ("cancel", "delete"):
        with Server() as one:
            c = one.client()
            s = c.open(policy={"stdout_bytes": None, "timeout_ms": None, "cpu_seconds": None})
            stream = Stream(one, "/v1/sessions/%s/executions" % s, {"code": "while True: print('x' * 100000)", "keep_output": False})
            execution = stream.until("started")["execution"]
            stream.until("stdout")
            path = "/v1/sessions/" + s
            start = time.monotonic()
            c.call("DELETE", path + "/executions/" + execution if how == "cancel" else path)
            assert time.monotonic() - start < 45, "a reader that does not read was waited for"


def test_killed():
    """After kill -9 nothing runs on, and the next start has the keys."""
    with tempfile.TemporaryDirectory(prefix="cordon-serve-") as folder:
        state = os.path.join(folder, "state")
        with Server(state=state) as one:
            key = one.client().call("POST", "/v1/keys", {"name": "kept"})["key"]
            c = one.client(key)
            s = c.open(languages=["python", "sh"])
            c.call("POST", "/v1/sessions/%s/commands" % s, {"command": "sleep 1000", "background": True})
            named = c.open(workspace="kept")
            c.call("PUT", "/v1/sessions/%s/files?path=f" % named, b"saved")
            c.call("DELETE", "/v1/sessions/" + named)
            pid = c.call("GET", "/v1/sessions/" + s)["pid"]
            one.p.kill()
            one.p.wait()
            deadline = time.monotonic() + 30
            while is_alive(pid):
                assert time.monotonic() < deadline, "the sandbox outlives its server"
                time.sleep(0.01)
        with Server(state=state) as one:
            c = one.client(key)
            assert c.call("GET", "/v1/sessions") == {"sessions": []}
            named = c.open(workspace="kept")
            assert c.call("GET", "/v1/sessions/%s/files?path=f" % named) == b"saved"
            assert c.call("GET", "/v1/audit/verification")["whole"] is True
