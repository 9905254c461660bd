"""cordon serve: ways around the limits of a key, and around having one at all, that were open once."""
import base64
import gzip
import hashlib
import json
import os
import socket
import threading
import time
from urllib.parse import quote

from driver import HELD, needs_no_tsan
from serving import Server, refused

MEMORY = 64 << 20
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


def make(name, **options):
    """A new key, and a client that uses it."""
    return shared().client(shared().client().call("POST", "/v1/keys", {"name": name, **options})["key"])


def create(c):
    """An E2B sandbox: the answer, and the headers of its own address."""
    status, _, body = c.raw("POST", "/v2/sandboxes", {"templateID": "base", "timeout": 600})
    b = json.loads(body)
    assert status == 201, b
    return b, {"E2b-Sandbox-Id": b["sandboxID"], "X-Access-Token": b["envdAccessToken"]}


def stranger():
    c = shared().client()
    c.key = None
    return c


def begin(method, path, headers, length=1000):
    """Announces a body and waits for the first word about it."""
    s = socket.create_connection(("127.0.0.1", shared().port), timeout=60)
    head = {"Host": "127.0.0.1", "Content-Type": "application/octet-stream", "Content-Length": length, "Expect": "100-continue", **headers}
    s.sendall(("%s %s HTTP/1.1\r\n%s\r\n" % (method, path, "".join("%s: %s\r\n" % h for h in head.items()))).encode())
    return s, int(s.recv(1000).split()[1])


def test_the_body_of_a_stranger_is_not_awaited():
    """Whoever has no key must not hold a place of the server until a body has come."""
    for method, path in (("POST", "/sandboxes"), ("POST", "/v2/sandboxes"), ("POST", "/sandboxes/i0/connect"), ("POST", "/sandboxes/i0/fork"),
                         ("POST", "/files?path=x"), ("POST", "/files?path=x&signature=v1_x"), ("POST", "/execute"), ("POST", "/process.Process/Start"),
                         ("POST", "/v1/sessions"), ("PUT", "/v1/sessions/s/files?path=x"), ("POST", "/v1/sessions/s/ports/8000/"),
                         ("POST", "/mcp"), ("POST", "/templates"), ("POST", "/console/sessions")):
        s, status = begin(method, path, {"X-API-Key": "cordon_0"})
        s.close()
        assert status in (401, 404, 405), (method, path, status)


def test_refusals_of_the_control_plane_are_its_own():
    status, _, body = stranger().raw("POST", "/sandboxes", {"templateID": "base"})
    assert status == 401 and json.loads(body) == {"code": 401, "message": "there is no such key, or it has ended"}


def test_tokens_of_sandboxes_take_places_of_their_key():
    c = make("tokens", max_executions=1)
    b, headers = create(c)
    held = [begin("POST", "/files?path=x", headers) for _ in range(65)]
    assert {status for _, status in held} == {100}
    assert begin("POST", "/files?path=x", headers)[1] == 429
    assert c.raw("GET", "/v1/version")[0] == 429
    assert shared().client().call("GET", "/v1/version")
    for s, _ in held:
        s.close()
    while c.raw("GET", "/v1/version")[0] == 429:
        pass
    assert c.raw("DELETE", "/sandboxes/" + b["sandboxID"])[0] == 204
    # The token stays right. It is nobody's any more, so there is no place for it.
    assert begin("POST", "/files?path=x", headers)[1] == 502
    assert begin("POST", "/", {**headers, "E2b-Sandbox-Port": "8000"})[1] == 502


def test_tokens_of_sandboxes_count_for_the_rate():
    c = make("paced", rate=2)
    b, headers = create(c)
    statuses = [stranger().raw("GET", "/health", headers=headers)[0] for _ in range(40)]
    assert 204 in statuses and 429 in statuses, statuses
    while c.raw("DELETE", "/sandboxes/" + b["sandboxID"])[0] == 429:
        pass


def test_a_signed_address_ends():
    c = make("signed")
    b, headers = create(c)
    path, nobody = "/home/user/a.txt", stranger()
    assert nobody.raw("POST", "/files?path=" + path, b"text", {**headers, "Content-Type": "application/octet-stream"})[0] == 200

    def address(expiration):
        text = "%s:read::%s:%d" % (path, b["envdAccessToken"], expiration)
        signature = "v1_" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
        return "/files?path=%s&signature=%s&signature_expiration=%d" % (path, quote(signature), expiration)

    now = int(time.time())
    assert nobody.raw("GET", address(now + 1000))[0::2] == (200, b"text")
    late = address(now - 1000)
    for extra in ({}, {"X-Access-Token": "x"}, {"X-Access-Token": "0" * 64}, {"E2B-Traffic-Access-Token": "x"}, {"E2b-Sandbox-Id": b["sandboxID"]}):
        assert nobody.raw("GET", late, headers=extra)[0] == 401, extra
    assert nobody.raw("GET", late, headers=headers)[0] == 200  # the token opens it, not the signature
    c.raw("DELETE", "/sandboxes/" + b["sandboxID"])


def test_copies_of_sandboxes_count_for_memory():
    c = make("copies", max_memory_bytes=2 * MEMORY, policy={"memory_bytes": MEMORY})
    b, _ = create(c)
    status, _, body = c.raw("POST", "/sandboxes/%s/fork" % b["sandboxID"], {"count": 3, "timeout": 600})
    one, two, three = json.loads(body)
    assert status == 201 and "sandbox" in one and two["error"]["code"] == three["error"]["code"] == 429, body
    assert "memory" in two["error"]["message"]
    c.raw("DELETE", "/sandboxes/" + one["sandbox"]["sandboxID"])
    last = c.open()
    refused(429, c.call, "POST", "/v1/sessions", {})
    c.call("DELETE", "/v1/sessions/" + last)
    c.raw("DELETE", "/sandboxes/" + b["sandboxID"])


def test_copies_of_contexts_count_for_memory():
    c = make("contexts", max_memory_bytes=2 * MEMORY, policy={"memory_bytes": MEMORY})
    s = c.open(languages=["python", "sh"])
    context = c.call("POST", "/v1/sessions/%s/contexts" % s, {"language": "python", "context": "b"})["session"]
    copy = c.call("POST", "/v1/sessions/%s/fork" % context)["session"]
    assert "memory" in refused(429, c.call, "POST", "/v1/sessions/%s/fork" % context).body["detail"]
    for one in (copy, s):
        c.call("DELETE", "/v1/sessions/" + one)


def test_copies_of_lent_sessions_count_for_memory():
    c = make("lent", max_memory_bytes=2 * MEMORY, policy={"memory_bytes": MEMORY})
    pool = c.call("POST", "/v1/pools", {"size": 1})["pool"]
    s = c.call("POST", "/v1/pools/%s/sessions" % pool, {"wait_ms": 60000})["session"]
    copy = c.call("POST", "/v1/sessions/%s/fork" % s)["session"]
    assert "memory" in refused(429, c.call, "POST", "/v1/sessions/%s/fork" % s).body["detail"]
    for one in (copy, s):
        c.call("DELETE", "/v1/sessions/" + one)
    c.call("DELETE", "/v1/pools/" + pool)


def test_what_never_fits_is_not_worth_another_try():
    """429 and Retry-After say that it may succeed later. A client that believes it would ask forever."""
    c = make("never", max_sessions=2, max_memory_bytes=2 * MEMORY, policy={"memory_bytes": 1 << 40})
    for memory in (2 * MEMORY + 1, 1 << 40):
        wish = {"policy": {"memory_bytes": memory}}
        for path, body in (("/v1/sessions", wish), ("/v1/executions", {**wish, "code": "1"}), ("/v1/pools", {**wish, "size": 1}),
                           ("/v1/pools", {"size": 2, "policy": {"memory_bytes": MEMORY + 1}}),
                           ("/v1/pools", {"size": 2, "policy": {"memory_bytes": 1 << 40}}), ("/v1/pools", {"size": 3})):
            status, headers, text = c.raw("POST", path, body)
            problem = json.loads(text)
            assert (status, problem["code"]) == (403, "denied") and "Retry-After" not in headers, (path, body, text)
            assert problem["detail"] and problem["remedy"], problem
    status, headers, text = c.raw("POST", "/sandboxes", {"templateID": "base"})
    assert status == 403 and "Retry-After" not in headers, text
    # What fits, but not now.
    s = c.open(policy={"memory_bytes": MEMORY + 1})
    status, headers, _ = c.raw("POST", "/v1/sessions", {"policy": {"memory_bytes": MEMORY}})
    assert status == 429 and headers["Retry-After"] == "1"
    c.call("DELETE", "/v1/sessions/" + s)
    s = c.open(policy={"memory_bytes": 2 * MEMORY})
    c.call("DELETE", "/v1/sessions/" + s)


def test_limits_of_a_session_are_not_worth_another_try():
    c = make("lasting")
    for path, wish, text, detail in (("executions", {"code_bytes": 10}, {"code": "x" * 11}, "Code too long"),
                                     ("commands", {"command_bytes": 10}, {"command": ":" * 11}, "Command too large")):
        s = c.open(languages=["python", "sh"], policy=wish)
        status, headers, body = c.raw("POST", "/v1/sessions/%s/%s" % (s, path), text)
        problem = json.loads(body)
        assert (status, problem["code"]) == (413, "limit") and "Retry-After" not in headers, (path, body)
        assert detail in problem["detail"] and "send less" in problem["remedy"], problem
        c.call("DELETE", "/v1/sessions/" + s)
    s = c.open(guest="python", policy={"max_executions": 1})
    assert c.execute(s, "7")["result"] == 7
    status, headers, body = c.raw("POST", "/v1/sessions/%s/executions" % s, {"code": "7"})
    problem = json.loads(body)
    assert (status, problem["code"]) == (403, "limit") and "Retry-After" not in headers, body
    assert "Maximum executions (1)" in problem["detail"] and "another session" in problem["remedy"], problem
    c.call("DELETE", "/v1/sessions/" + s)
    s = c.open(guest="python", policy={"max_executions": 1})
    assert c.execute(s, "7")["result"] == 7
    c.call("DELETE", "/v1/sessions/" + s)


def test_a_pool_counts_as_its_sessions():
    c = make("pools", max_sessions=3)
    for too_many in ({"size": 4}, {"size": 1, "max_size": 4}):
        assert "3 sessions" in refused(403, c.call, "POST", "/v1/pools", too_many).body["detail"]
    pool = c.call("POST", "/v1/pools", {"size": 2})["pool"]
    refused(429, c.call, "POST", "/v1/pools", {"size": 2})
    s = c.open()
    refused(429, c.call, "POST", "/v1/sessions", {})
    c.call("DELETE", "/v1/pools/" + pool)
    others = [c.open(), c.open()]
    refused(429, c.call, "POST", "/v1/sessions", {})
    for one in (s, *others):
        c.call("DELETE", "/v1/sessions/" + one)


def download(path, headers):
    """A client that reads the head of an answer, and nothing more."""
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.settimeout(60)
    s.connect(("127.0.0.1", shared().port))
    head = {"Host": "127.0.0.1", **headers}
    s.sendall(("GET %s HTTP/1.1\r\n%s\r\n" % (path, "".join("%s: %s\r\n" % h for h in head.items()))).encode())
    assert s.recv(20).startswith(b"HTTP/1.1 200"), path
    return s


def sip(s, most):
    """Reads a little, if there is something."""
    s.setblocking(False)
    try:
        return len(s.recv(most))
    except (BlockingIOError, ConnectionResetError):
        return 0


def files_in_memory():
    """How many bytes of files in memory the server has, other than for what it has anyway."""
    folder, sizes = "/proc/%d/fd" % shared().p.pid, []
    for fd in os.listdir(folder):
        try:
            if "/memfd:" in os.readlink(os.path.join(folder, fd)):
                sizes.append(os.stat(os.path.join(folder, fd)).st_size)
        except OSError:
            pass  # closed meanwhile
    return sum(sizes)


def test_downloads_are_not_in_memory():
    c = make("downloads")
    s = c.open()
    at = "/v1/sessions/" + s
    bytes_ = os.urandom(1 << 20) * 30
    c.call("PUT", at + "/files?path=big", bytes_)
    for path in ("/files?path=big", "/tar?path=.", "/export"):
        before = files_in_memory()
        slow = download(at + path, {"Authorization": "Bearer " + c.key})
        assert files_in_memory() - before < 1 << 20, path
        slow.close()
    assert c.raw("GET", at + "/files?path=big")[2] == bytes_
    assert c.raw("GET", at + "/files?path=big", headers={"Range": "bytes=1000-5000000"})[2] == bytes_[1000:5000001]
    c.execute(s, "import os; os.symlink('big', 'link'); os.truncate('big', 20 << 20)")
    assert c.raw("GET", at + "/files?path=link")[2] == bytes_[:20 << 20]
    c.call("DELETE", at)


def test_slow_downloads_delay_no_end():
    """The end of a sandbox does not wait for whoever reads its files, nor does the end of others."""
    c = make("slow")
    slow, size = [], 30 << 20
    for _ in range(5):
        b, headers = create(c)
        assert stranger().raw("POST", "/files?path=/home/user/big", b"x" * size, {**headers, "Content-Type": "application/octet-stream"})[0] == 200
        slow.append(download("/files?path=/home/user/big", headers))
        assert c.raw("POST", "/sandboxes/%s/timeout" % b["sandboxID"], {"timeout": 0})[0] == 204
    got = 0
    while json.loads(c.raw("GET", "/v2/sandboxes")[2]):
        for s in slow:  # they are slow, not idle
            got += sip(s, 1024)
    assert got < 2 * size, "they have ended after their readers"
    s = c.open()
    c.call("PUT", "/v1/sessions/%s/files?path=big" % s, b"x" * size)
    slow.append(download("/v1/sessions/%s/files?path=big" % s, {"Authorization": "Bearer " + c.key}))
    c.call("DELETE", "/v1/sessions/" + s)
    for one in slow:
        one.close()


def attach(key, message, sent):
    """A connection of the rpc protocol on which a message and this much of its attachment was sent."""
    s = socket.create_connection(("127.0.0.1", shared().port), timeout=60)
    s.sendall(("GET /v1/rpc HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: cordon-rpc/1\r\n"
               "Authorization: Bearer %s\r\n\r\n" % key).encode())
    assert s.recv(1000).startswith(b"HTTP/1.1 101")
    s.sendall(json.dumps({"jsonrpc": "2.0", "id": 1, **message}).encode() + b"\n" + b"x" * sent)
    return s


def test_attachments_have_a_limit_together():
    key = make("attached").key
    part = {"method": "files.put_tar", "params": {"session": "x", "path": ".", "attached": True}}
    # These would be 16 GiB of memory: without a session, the policy of the key decides.
    value = {"method": "session.run", "params": {"code": "1", "buffer": {}}, "attachment": 16 << 30}
    held = [attach(key, value, 1000), *(attach(key, {**part, "attachment": 1 << 30}, 1000) for _ in range(2))]
    small = {"method": "session.run", "params": {"code": "1", "buffer": {"x": 1}}, "attachment": 1000}
    deadline = time.monotonic() + 120  # the server may not have read all of them yet
    while True:
        s = attach(key, small, 1000)
        answer = json.loads(s.makefile().readline())
        s.close()
        if "no memory for an attachment" in answer["error"]["message"]:
            break
        assert time.monotonic() < deadline, answer
    assert files_in_memory() <= 2 << 30
    for s in held:
        s.close()
    while "no memory" in answer["error"]["message"]:
        s = attach(key, small, 1000)
        answer = json.loads(s.makefile().readline())
        s.close()


def memory():
    with open("/proc/%d/status" % shared().p.pid) as f:
        return next(int(line.split()[1]) << 10 for line in f if line.startswith("RssAnon:"))


def test_packed_uploads_are_not_unpacked_in_memory():
    needs_no_tsan("memory has shadows, so its bound says nothing")
    c = make("packed", policy={"fs_bytes": 250 << 20, "file_bytes": None})
    b, headers = create(c)
    headers = {**headers, "Content-Type": "application/octet-stream", "Content-Encoding": "gzip"}
    bomb, before, most, statuses = gzip.compress(bytes(200 << 20)), memory(), 0, []
    clients = [stranger() for _ in range(4)]
    threads = [threading.Thread(target=lambda x=x: statuses.append(x.raw("POST", "/files?path=/home/user/x", bomb, headers)[0]))
               for x in clients]
    for t in threads:
        t.start()
    while any(t.is_alive() for t in threads):
        most = max(most, memory() - before)
    assert most < 400 << 20, "%d MiB" % (most >> 20)
    assert set(statuses) <= {200, 507}, statuses
    small = os.urandom(6 << 20)
    assert stranger().raw("POST", "/files?path=/home/user/x", gzip.compress(small), headers)[0] == 200
    assert stranger().raw("GET", "/files?path=/home/user/x", headers={**headers, "Accept-Encoding": "gzip"})[2] == small
    c.raw("DELETE", "/sandboxes/" + b["sandboxID"])


def call_tool(c, session, code):
    headers = {"Accept": "application/json, text/event-stream", "Mcp-Session-Id": session, "MCP-Protocol-Version": "2025-06-18"}
    message = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "run_code", "arguments": {"code": code}}}
    status, _, body = c.raw("POST", "/mcp", message, headers)
    assert status == 200, body
    return body.decode()


def test_calls_of_tools_are_executions():
    c = make("tools", max_executions=1)
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}
    status, headers, body = c.raw("POST", "/mcp", hello, {"Accept": "application/json, text/event-stream"})
    assert status == 200, body
    session = headers["Mcp-Session-Id"]
    assert "42" in call_tool(c, session, "6 * 7")
    s, other = c.open(), shared().client(c.key)
    held = threading.Thread(target=lambda: other.execute(s, HELD["python"]))
    held.start()
    while not any(e["state"] == "running" for e in c.call("GET", "/v1/executions")["executions"]):
        pass
    assert "maximum of 1 executions" in call_tool(c, session, "6 * 7")
    c.call("PUT", "/v1/sessions/%s/files?path=/tmp/go" % s, b"")
    held.join()
    assert "42" in call_tool(c, session, "6 * 7")
    c.call("DELETE", "/v1/sessions/" + s)


def test_the_end_of_a_key_does_not_wait_for_readers():
    """Nor does that of others, which is the work of the same threads. What the key has parked is removed at the very end."""
    with Server("--park", "1s") as one:
        admin = one.client()
        c = one.client(admin.call("POST", "/v1/keys", {"name": "gone", "policy": {"stdout_bytes": None}})["key"])
        c.open()
        parked = os.path.join(one.state, "parked")
        while not os.listdir(parked):
            admin.call("GET", "/v1/version")
        body = json.dumps({"code": "while True: print('x' * 1000)"}).encode()
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.settimeout(60)
        s.connect(("127.0.0.1", one.port))
        s.sendall(b"POST /v1/sessions/%s/executions HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\nAccept: text/event-stream\r\n"
                  b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (c.open().encode(), c.key.encode(), len(body), body))
        assert s.recv(20).startswith(b"HTTP/1.1 200")
        got = 0
        while got < 200000:  # meanwhile there is more than it takes
            got += sip(s, 4096)
            admin.call("GET", "/v1/version")
        admin.call("DELETE", "/v1/keys/gone")
        got = 0
        while os.listdir(parked):
            got += sip(s, 64)
            admin.call("GET", "/v1/version")
        assert got < 300000, "it has ended after its reader"
        s.close()
