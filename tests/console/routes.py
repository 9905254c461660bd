"""The console over plain HTTP: each file of web/ with its headers, and the endpoints that only the console uses."""
import http.client
import json
import os
import re
import threading
import time

from driver import ROOT, Need
from serving import Server

WEB = os.path.join(ROOT, "web")
TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
         ".svg": "image/svg+xml"}
POLICY = ["default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' blob:", "connect-src 'self'", "frame-ancestors 'none'",
          "base-uri 'none'", "form-action 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'"]
_server = None


def server():
    global _server
    _server = _server or Server()
    return _server


def stop():
    global _server
    if _server:
        _server.stop()
        _server = None


def fetch(path, method="GET", headers=None, key=None):
    c = http.client.HTTPConnection("127.0.0.1", server().port, timeout=60)
    all_headers = dict(headers or {})
    if key:
        all_headers["Authorization"] = "Bearer " + key
    c.request(method, path, headers=all_headers)
    r = c.getresponse()
    body = r.read()
    c.close()
    return r.status, {k.lower(): v for k, v in r.getheaders()}, body


def names():
    return sorted(n for n in os.listdir(WEB) if n != "meson.build")


def case_each_file_is_served_with_strict_headers():
    for name in names():
        status, headers, body = fetch("/" if name == "index.html" else "/console/" + name)
        with open(os.path.join(WEB, name), "rb") as f:
            assert status == 200 and body == f.read(), (name, status)
        assert headers["content-type"] == TYPES[os.path.splitext(name)[1]], (name, headers)
        assert headers["content-security-policy"].split("; ") == POLICY, headers
        assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "no-referrer", headers
        assert headers["cross-origin-opener-policy"] == "same-origin" and headers["cross-origin-resource-policy"] == "same-origin", headers
        assert headers["cache-control"] == "no-cache", headers


def case_a_known_file_is_not_sent_again():
    _, headers, body = fetch("/console/main.js")
    assert re.fullmatch(r'"[0-9a-f]{32}"', headers["etag"]) and body, headers
    status, again, body = fetch("/console/main.js", headers={"If-None-Match": headers["etag"]})
    assert status == 304 and body == b"" and again["etag"] == headers["etag"], (status, again)
    assert fetch("/console/main.js", headers={"If-None-Match": '"0"'})[0] == 200
    assert fetch("/console/api.js")[1]["etag"] != headers["etag"]


def case_head_has_no_body():
    status, headers, body = fetch("/", "HEAD")
    assert status == 200 and body == b"" and int(headers["content-length"]) > 100, headers


def case_unknown_files_are_problems():
    for path in ("/console/none.js", "/console/", "/console/..%2fmeson.build", "/console/a/b", "/console/%00"):
        status, headers, body = fetch(path)
        assert status in (400, 404) and headers["content-type"].startswith("application/problem+json"), (path, status, headers)
        assert "detail" in json.loads(body), body


def case_only_get():
    for method in ("POST", "PUT", "DELETE"):
        assert fetch("/", method)[0] == 405, method


def case_the_page_uses_only_its_own_files():
    _, _, body = fetch("/")
    used = re.findall(r'(?:href|src)="([^"]+)"', body.decode())
    assert used and all(u.startswith("/console/") for u in used), used
    for name in names():
        if not name.endswith(".js"):
            continue
        with open(os.path.join(WEB, name), encoding="utf-8") as f:
            text = f.read()
        for imported in re.findall(r'from "([^"]+)"', text):
            assert imported[:2] == "./" and imported[2:] in names(), (name, imported)
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|createContextualFragment|DOMParser", text), name


def case_before_a_key_it_tells_only_whether_one_is_needed():
    status, _, body = fetch("/console/about")
    assert status == 200 and json.loads(body) == {"keys": True}, body
    for path in ("/console/me", "/console/sessions", "/console/executions"):
        assert fetch(path)[0] == 401, path


def case_sessions_with_what_they_use():
    s = server()
    c = s.client()
    session = c.call("POST", "/v1/sessions", {"guest": "sh"})["session"]
    c.call("POST", "/v1/sessions/%s/executions" % session, {"code": "echo text > file.txt"})
    rows = json.loads(fetch("/console/sessions", key=s.key)[2])["sessions"]
    row = next(r for r in rows if r["session"] == session)
    assert row["guest"] == "sh" and row["running"] is False and row["executions"] == 1 and row["tenant"] == "admin", row
    assert row["age_ms"] >= row["idle_ms"] >= 0 and row["processes"] >= 1 and row["disk_bytes"] > 0 and row["files"] > 0, row
    assert row["memory_max_bytes"] == 536870912 and row["level"] == "standard", row
    before = row["idle_ms"]
    again = next(r for r in json.loads(fetch("/console/sessions", key=s.key)[2])["sessions"] if r["session"] == session)
    assert again["idle_ms"] >= before, "to be listed is a use"
    c.call("DELETE", "/v1/sessions/" + session)
    assert session not in fetch("/console/sessions", key=s.key)[2].decode()


def case_to_be_watched_is_no_use():
    with Server("--park", "500ms") as s:
        c = s.client()
        session = c.open(guest="sh")
        c.execute(session, "echo kept > file.txt")
        deadline = time.monotonic() + 60
        while True:
            c.c.request("GET", "/console/sessions", headers={"Authorization": "Bearer " + s.key})
            row = json.loads(c.c.getresponse().read())["sessions"][0]
            if row["parked"]:
                break
            assert time.monotonic() < deadline, "watching keeps it awake: %r" % row
            time.sleep(0.05)
        assert row["session"] == session and row["guest"] == "sh" and "memory_peak_bytes" not in row, row
        assert c.execute(session, "cat file.txt")["stdout"] == "kept\n"


def case_sessions_come_and_go_while_they_are_listed():
    s = server()
    faults = []

    def look():
        c = http.client.HTTPConnection("127.0.0.1", s.port, timeout=60)
        for _ in range(40):
            for path in ("/console/sessions", "/console/executions"):
                c.request("GET", path, headers={"Authorization": "Bearer " + s.key})
                r = c.getresponse()
                r.read()
                if r.status != 200:
                    faults.append((path, r.status))
        c.close()

    threads = [threading.Thread(target=look) for _ in range(4)]
    for t in threads:
        t.start()
    c = s.client()
    for _ in range(6):
        session = c.open(guest="sh")
        c.execute(session, "echo text")
        c.call("DELETE", "/v1/sessions/" + session)
    for t in threads:
        t.join()
    assert not faults, faults


def case_a_key_sees_its_own_and_an_administrator_all():
    s = server()
    admin = s.client()
    key = admin.call("POST", "/v1/keys", {"name": "alice"})["key"]
    alice = s.client(key)
    mine = admin.call("POST", "/v1/sessions", {"guest": "sh"})["session"]
    hers = alice.call("POST", "/v1/sessions", {"guest": "sh"})["session"]
    alice.call("POST", "/v1/sessions/%s/executions" % hers, {"code": "true"})
    assert json.loads(fetch("/console/me", key=key)[2]) == {"name": "alice", "admin": False}
    assert [r["session"] for r in json.loads(fetch("/console/sessions", key=key)[2])["sessions"]] == [hers]
    both = {r["session"]: r["tenant"] for r in json.loads(fetch("/console/sessions", key=s.key)[2])["sessions"]}
    assert both[mine] == "admin" and both[hers] == "alice", both
    ran = json.loads(fetch("/console/executions", key=s.key)[2])["executions"]
    assert [e["tenant"] for e in ran if e["session"] == hers] == ["alice"], ran
    assert {e["tenant"] for e in json.loads(fetch("/console/executions", key=key)[2])["executions"]} == {"alice"}
    place = "/console/tenants/%s/sessions/%s"
    assert fetch(place % ("admin", mine), "DELETE", key=key)[0] == 403
    assert fetch(place % ("nobody", hers), "DELETE", key=s.key)[0] == 404
    assert fetch(place % ("alice", mine), "DELETE", key=s.key)[0] == 404
    assert fetch(place % ("alice", hers), "DELETE", key=s.key)[0] == 200
    assert json.loads(fetch("/console/sessions", key=key)[2])["sessions"] == []
    admin.call("DELETE", "/v1/sessions/" + mine)
    admin.call("DELETE", "/v1/keys/alice")


def cases():
    return [(k[5:], v) for k, v in globals().items() if k.startswith("case_")]


__all__ = ["Need", "cases", "stop"]
