"""cordon serve and cordon mcp: traces for a collector of OpenTelemetry, and what a bad collector does to them: nothing."""
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import tempfile
import threading

from collector import Collector
from driver import CORDON, ROOT, Need
from serving import KEY, Server
from test_watching import Mcp, figures

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PARENT = "00-%s-%s-01" % (TRACE, SPAN)
EXECUTE = "POST /v1/sessions/{session}/executions"
FAST = {"OTEL_BSP_SCHEDULE_DELAY": "10"}
SPANS = 'cordon_trace_spans_total{result="%s"}'


def dead_port():
    """A port that nobody listens at, and nobody else gets."""
    s = socket.socket()
    s.bind(("127.0.0.1", 0))
    return s, s.getsockname()[1]


def spans_of(client):
    n = figures(client)
    return tuple(int(n[SPANS % kind]) for kind in ("exported", "dropped", "failed"))


def wait_spans(client, fn):
    """Until the counters are as fn wants them; each look is a request of its own, so it ends by itself."""
    while not fn(*(counts := spans_of(client))):
        pass
    return counts


def execute(client, session, code, **headers):
    status, answered, body = client.raw("POST", "/v1/sessions/%s/executions" % session, {"code": code}, headers)
    return status, answered, json.loads(body)


def check_family(child, parent):
    assert child["traceId"] == parent["traceId"] and child["parentSpanId"] == parent["spanId"], (child, parent)
    assert not child["flags"] & 0x200
    assert int(parent["startTimeUnixNano"]) <= int(child["startTimeUnixNano"])


def test_requests_executions_and_sessions_are_spans():
    with Collector() as to:
        with Server("--otlp", to.url, "--log", OTEL_SERVICE_NAME='my "own" name', **FAST) as one:
            c = one.client()
            s = c.open()
            status, answered, _ = execute(c, s, "print('secret'); 6 * 7")
            assert status == 200 and not any("trace" in h.lower() for h in answered), answered
            request = to.one(EXECUTE)
            run = to.one("execute python")
            check_family(run, request)
            assert request["kind"] == 2 and run["kind"] == 1 and "parentSpanId" not in request and "status" not in run
            assert request["attributes"] == {"http.request.method": "POST", "url.scheme": "http", "http.response.status_code": 200,
                                             "http.route": "/v1/sessions/{session}/executions"}
            a = run["attributes"]
            assert (a["cordon.language"], a["cordon.outcome"]) == ("python", "success")
            assert a["cordon.wall_ms"] > 0 and a["cordon.cpu_ms"] >= 0 and "cordon.limit" not in a
            check_family(to.one("session.open python"), to.one("POST /v1/sessions"))
            assert to.resource["service.name"] == 'my "own" name' and to.resource["service.version"]
            c.execute(s, "while True: pass", timeout_ms=100)
            c.execute(s, "{'cpu_time_ms': 1e9}['x']")
            to.wait(lambda _: len([x for x in to.spans if x["name"] == "execute python"]) == 3)
            late, failed = [x for x in to.spans if x["name"] == "execute python"][1:]
            assert (late["attributes"]["cordon.limit"], late["attributes"]["error.type"]) == ("timeout", "timeout")
            assert late["status"] == failed["status"] == {"code": 2} and failed["attributes"]["cordon.outcome"] == "exception"
            c.raw("GET", "/nowhere/secret")
            c.raw("GET", "/v1/sessions/secret")
            to.wait(lambda _: [x for x in to.spans if x["name"] == "GET"] and [x for x in to.spans if x["name"] == "GET /v1/sessions/{session}"])
        text = json.dumps(to.spans)
        assert "secret" not in text and "sess_" not in text and "exec_" not in text and s not in text
        ids = {json.loads(line)["trace_id"] for line in one.stderr.splitlines()}
        assert ids == {x["traceId"] for x in to.spans if x["kind"] == 2}, one.stderr


def test_the_client_says_which_trace():
    with Collector() as to:
        with Server("--otlp", to.url, "--log", **FAST) as one:
            c = one.client()
            s = c.open()
            execute(c, s, "1", traceparent=PARENT, tracestate="a=b")
            request = to.one(EXECUTE)
            assert (request["traceId"], request["parentSpanId"], request["flags"]) == (TRACE, SPAN, 0x301)
            check_family(to.one("execute python"), request)
            # A later version of the header, with more than we know.
            c.raw("GET", "/v1/keys", headers={"Traceparent": "cc-%s-%s-01-more" % (TRACE, SPAN)})
            assert to.one("GET /v1/keys")["parentSpanId"] == SPAN
            # Not sampled: no span, but the log has the trace.
            execute(c, s, "1", traceparent=PARENT[:-2] + "00")
            c.raw("GET", "/v1/pools")
            to.one("GET /v1/pools")
        assert len(to.named(EXECUTE)) == len(to.named("execute python")) == 1
        assert [json.loads(line)["trace_id"] == TRACE for line in one.stderr.splitlines()] == [False, True, True, True, False]
    # Without a collector the log has what the client sent.
    one = Server("--log")
    one.client().raw("GET", "/v1/keys", headers={"traceparent": PARENT})
    one.client().raw("GET", "/v1/keys")
    one.stop()
    assert [json.loads(line).get("trace_id") for line in one.stderr.splitlines()] == [TRACE, None]


def test_invalid_traceparents_begin_a_new_trace():
    bad = ["", "00", PARENT[:-1], PARENT + "0", PARENT + "-00", PARENT.upper(), "ff" + PARENT[2:], "0g" + PARENT[2:], "01" + PARENT[2:] + "x",
           PARENT.replace(TRACE, "0" * 32), PARENT.replace(SPAN, "0" * 16), PARENT.replace("-", "_"), PARENT.replace(TRACE, TRACE[:-1] + "G"),
           PARENT[:-2] + "0x", "%s, %s" % (PARENT, PARENT), "x" * 8000, PARENT[:36] + "\xe4" + PARENT[37:]]
    with Collector() as to:
        with Server("--otlp", to.url, **FAST) as one:
            c = one.client()
            for value in bad:
                assert c.raw("GET", "/v1/keys", headers={"traceparent": value})[0] == 200
            c.c.putrequest("GET", "/v1/keys")  # twice: which one is meant?
            for name, value in (("Authorization", "Bearer " + KEY), ("traceparent", PARENT), ("traceparent", PARENT)):
                c.c.putheader(name, value)
            c.c.endheaders()
            assert c.c.getresponse().read()
            to.wait(lambda _: len(to.spans) > len(bad))
        assert all("parentSpanId" not in x and x["traceId"] != TRACE for x in to.spans), to.spans
        assert len({x["traceId"] for x in to.spans}) == len(bad) + 1


def test_tool_calls_and_approvals_are_spans():
    with Collector() as to:
        with Server("--otlp", to.url, **FAST) as one:
            c, other = one.client(), one.client()
            s = c.open(tools=[{"name": "secret_tool", "args": {}}])
            done = []
            t = threading.Thread(target=lambda: done.append(c.execute(s, "secret_tool()")))
            t.start()
            while not (calls := other.call("GET", "/v1/questions")["tool_calls"]):
                pass
            other.call("POST", "/v1/sessions/%s/tool_calls/%s" % (s, calls[0]["id"]), {"value": 1})
            t.join()
            call = to.one("tool_call")
            check_family(call, to.one("execute python"))
            assert call["attributes"] == {"cordon.outcome": "answered"} and done[0]["result"] == 1
        assert "secret" not in json.dumps(to.spans)


def check_mcp(to, parent, is_linked, **error):
    call, run = to.one("tools/call run_code"), to.one("execute python")
    assert (call["traceId"], call["parentSpanId"], call["kind"]) == (*parent, 2)
    assert call["attributes"] == {"mcp.method.name": "tools/call", "gen_ai.tool.name": "run_code", **error}
    check_family(run, call)
    check_family(to.wait(lambda _: [x for x in to.spans if x["name"].startswith("session.open")])[0], call)
    assert ("links" in call) == is_linked


def test_mcp_over_http():
    with Collector() as to:
        with Server("--otlp", to.url, **FAST) as one:
            m = Mcp(one.client())
            check_family(to.one("initialize"), to.one("POST /mcp"))
            m.post("tools/call", {"name": "run_code", "arguments": {"code": "1 / 0"}, "_meta": {"traceparent": PARENT}})
            check_mcp(to, (TRACE, SPAN), True, **{"error.type": "tool_error"})
            for meta in ({"traceparent": "junk"}, {"traceparent": 5}, {"traceparent": PARENT + "\0"}, {}):
                m.post("tools/list", {"_meta": meta})
            to.wait(lambda _: len([x for x in to.spans if x["name"] == "tools/list"]) == 4)
            http = {x["spanId"] for x in to.wait(lambda _: len([x for x in to.spans if x["name"] == "POST /mcp"]) == 6 and to.spans)
                    if x["name"] == "POST /mcp"}
            assert all(x["parentSpanId"] in http and x["traceId"] != TRACE and "links" not in x for x in to.named("tools/list"))
            m.post("secret/method", {"_meta": {"traceparent": PARENT}})
            assert to.one("_OTHER")["attributes"]["error.type"] == "-32601"
            m.post("tools/call", {"name": "secret_tool"})
            assert to.one("tools/call")["attributes"]["error.type"] == "-32602"
        assert "secret" not in json.dumps(to.spans)


def lines(messages):
    return "".join(json.dumps(dict(m, jsonrpc="2.0")) + "\n" for m in messages)


def test_mcp_over_stdio():
    call = {"id": 2, "method": "tools/call", "params": {"name": "run_code", "arguments": {"language": "python", "code": "6 * 7"},
                                                        "_meta": {"traceparent": PARENT}}}
    hello = {"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}
    with Collector() as to:
        p = subprocess.run([CORDON, "mcp", "--otlp", to.url], input=lines([hello, call]), capture_output=True, text=True, timeout=250)
        assert p.returncode == 0 and '"42"' in p.stdout, p
        check_mcp(to, (TRACE, SPAN), False)
        assert "parentSpanId" not in to.one("initialize")
    p = subprocess.run([CORDON, "mcp", "--otlp", "collector:4318"], input="", capture_output=True, text=True, timeout=250)
    assert p.returncode != 0 and "does not begin with http" in p.stderr, p


def test_mcp_server_over_http():
    with Collector() as to:
        p = subprocess.Popen([CORDON, "mcp", "--http", "127.0.0.1:0", "--no-token", "--otlp", to.url], stdout=subprocess.PIPE, text=True)
        try:
            port = int(p.stdout.readline().split(":")[-1].split("/")[0])
            with socket.create_connection(("127.0.0.1", port)) as s:
                body = lines([{"id": 1, "method": "tools/list", "params": {"_meta": {"traceparent": PARENT}}}])
                s.sendall(("POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\nContent-Type: application/json\r\n"
                           "Accept: application/json, text/event-stream\r\nContent-Length: %d\r\n\r\n%s" % (port, len(body), body)).encode())
                assert s.recv(64).startswith(b"HTTP/1.1 400")  # there is no session
            p.terminate()
            assert p.wait(60) == 0
            assert to.one("POST /mcp")["attributes"]["http.response.status_code"] == 400  # sent at the end
        finally:
            p.kill()
            p.stdout.close()


def test_the_end_sends_what_is_left():
    with Collector() as to:
        with Server("--otlp", to.url, OTEL_BSP_SCHEDULE_DELAY="600000") as one:
            c = one.client()
            s = c.open()
            for i in range(700):  # more than one batch
                c.raw("GET", "/v1/keys")
            c.execute(s, "1")
        to.one("execute python")
        assert len(to.named("GET /v1/keys")) == 700


def check_server(one, c):
    """It works as if there were no collector."""
    s = c.open()
    assert c.execute(s, "6 * 7")["result"] == 42
    c.call("DELETE", "/v1/sessions/" + s)


def test_a_dead_collector():
    holder, port = dead_port()
    with Server("--otlp", "http://127.0.0.1:%d" % port, **FAST) as one:
        c = one.client()
        check_server(one, c)
        wait_spans(c, lambda exported, dropped, failed: failed > 0)
        check_server(one, c)
        assert one.stop() == 0
        assert one.stderr.count("traces: spans are lost") == 1, one.stderr
    holder.close()


def test_a_slow_collector():
    with Collector(hold=threading.Event()) as to:
        one = Server("--otlp", to.url, OTEL_BSP_MAX_QUEUE_SIZE="4", **FAST)
        c = one.client()
        check_server(one, c)
        to.wait(lambda _: to.requests)  # it has one, and does not answer
        for i in range(100):
            assert c.raw("GET", "/v1/keys")[0] == 200
        exported, dropped, failed = spans_of(c)
        assert exported == 0 and dropped >= 90, (exported, dropped, failed)
        check_server(one, c)
        assert one.stop() == 0  # within the time that it has at its end


def test_a_collector_that_never_answers_in_time():
    with Collector(hold=threading.Event()) as to:
        with Server("--otlp", to.url, OTEL_EXPORTER_OTLP_TIMEOUT="50", **FAST) as one:
            c = one.client()
            check_server(one, c)
            wait_spans(c, lambda exported, dropped, failed: failed > 0)


def count(to, answer):
    return sum(a == answer for _, a in to.requests)


def test_refusals_are_final_and_busy_ones_are_asked_again():
    for status in (400, 401, 404, 500, 501, 301):
        with Collector([status]) as to, Server("--otlp", to.url, **FAST) as one:
            c = one.client()
            c.raw("GET", "/v1/keys")
            _, _, failed = wait_spans(c, lambda exported, dropped, failed: exported > 0)
            assert failed > 0 and count(to, status) == 1, (status, to.requests)
            one.stop()
            assert "spans are lost: the collector answered with status %d" % status in one.stderr and "takes spans again" in one.stderr
    for status in (429, 502, 503, 504):
        with Collector([(status, {"Retry-After": "0"}, b""), status]) as to, Server("--otlp", to.url, **FAST) as one:
            c = one.client()
            c.raw("GET", "/v1/pools")
            to.one("GET /v1/pools")  # nothing was lost
            assert wait_spans(c, lambda exported, dropped, failed: exported > 0)[2] == 0 and len(to.requests) >= 3
            one.stop()
            assert "lost" not in one.stderr


def test_garbage_from_a_collector():
    answers = [b"\0\1\2garbage\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", b"HTTP/1.1 200 OK\r\n" + b"a" * 100000,
               b"", (200, {}, b"not JSON"), (200, {}, b'{"partialSuccess":{"rejectedSpans":"1","errorMessage":"\\u001b[31m"}}'),
               (200, {}, b'{"partialSuccess":{"rejectedSpans":"999999999999"}}'), (200, {}, b'{"partialSuccess":{"rejectedSpans":-5}}'),
               (200, {}, b"[" * 100000), (503, {"Retry-After": "-1"}, b""), (503, {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, b"")]
    with Collector(answers) as to, Server("--otlp", to.url, **FAST) as one:
        c = one.client()
        while to.answers:  # every look at the counters is a span, too
            spans_of(c)
        exported, _, failed = wait_spans(c, lambda exported, dropped, failed: exported > 0 and failed > 0)
        check_server(one, c)


def test_headers_and_addresses():
    with Collector() as to, Server("--otlp", to.url + "/", OTEL_EXPORTER_OTLP_HEADERS="api-key=a%20b%2Cc, x=1 ,", **FAST) as one:
        one.client().raw("GET", "/v1/keys")
        to.one("GET /v1/keys")
        headers = {k.lower(): v for k, v in to.requests[0][0].items()}
        assert (headers["api-key"], headers["x"]) == ("a b,c", "1"), headers
        with open("/proc/%d/cmdline" % one.p.pid) as f:
            assert "a%20b" not in f.read()
    for env in ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:%d/"}, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:%d/v1/traces"},
                {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:%d/v1/traces", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}):
        with Collector() as to, Server(**FAST, **{k: v % to.port if "%d" in v else v for k, v in env.items()}) as one:
            one.client().raw("GET", "/v1/keys")
            to.one("GET /v1/keys")
    with Collector(path="/mine") as to, Server(OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=to.url + "/mine", **FAST) as one:
        one.client().raw("GET", "/v1/keys")
        to.one("GET /v1/keys")
    # Off, whatever the address is.
    for env in ({"OTEL_SDK_DISABLED": "true"}, {"OTEL_TRACES_EXPORTER": "none"}):
        with Server(OTEL_EXPORTER_OTLP_ENDPOINT="nonsense", **env) as one:
            assert spans_of(one.client()) == (0, 0, 0)


def test_what_cannot_work_is_said_at_the_start():
    cases = [("127.0.0.1:4318", {}, "does not begin with"), ("ftp://x", {}, "does not begin with"), ("http://", {}, "no valid host"),
             ("http://a b", {}, "not allowed"), ("http://u:p@x:1", {}, "user name"), ("http://x:0", {}, "no valid port"),
             ("http://x:65536", {}, "no valid port"), ("http://x:1y", {}, "no valid port"), ("http://x/?q", {}, "a query"),
             ("http://[::1", {}, "no valid host"), ("http://[1]:5", {}, "no valid host"), ("http://" + "x" * 3000, {}, "too long"),
             ("http://collector.example", {"OTEL_EXPORTER_OTLP_HEADERS": "a=b"}, "use https://"),
             ("http://127.0.0.1:1", {"OTEL_EXPORTER_OTLP_HEADERS": "a"}, "NAME=VALUE"),
             ("http://127.0.0.1:1", {"OTEL_EXPORTER_OTLP_HEADERS": "a=b%0d%0ac"}, "NAME=VALUE"),
             ("http://127.0.0.1:1", {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "http/json"),
             ("http://127.0.0.1:1", {"OTEL_BSP_MAX_QUEUE_SIZE": "-1"}, "OTEL_BSP_MAX_QUEUE_SIZE"),
             ("http://127.0.0.1:1", {"OTEL_EXPORTER_OTLP_CERTIFICATE": "/nowhere"}, "/nowhere")]
    for url, env, why in cases:
        one = Server("--otlp", url, wait=False, **env)
        one.p.wait(60)
        assert one.stop() != 0 and why in one.stderr, (url, one.stderr)


def make_certificate(folder):
    if not shutil.which("openssl"):
        raise Need("openssl is missing (package openssl)")
    key, cert = os.path.join(folder, "key.pem"), os.path.join(folder, "cert.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out", cert,
                    "-days", "2", "-subj", "/CN=collector", "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    return context, cert


def test_https():
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        context, cert = make_certificate(folder)
        os.chmod(cert, 0o644)
        with Collector(tls=context) as to:
            with Server("--otlp", to.url, OTEL_EXPORTER_OTLP_CERTIFICATE=cert, **FAST) as one:
                one.client().raw("GET", "/v1/keys")
                to.one("GET /v1/keys")
            # Nobody vouches for it.
            with Server("--otlp", to.url, **FAST) as one:
                c = one.client()
                before = len(to.requests)
                wait_spans(c, lambda exported, dropped, failed: failed > 0)
                assert len(to.requests) == before
                one.stop()
                assert "certificate" in one.stderr, one.stderr


def state_of(pid):
    """Descriptors, threads and children of a process."""
    folder = "/proc/%d" % pid
    with open(folder + "/statm") as f:
        pages = int(f.read().split()[1])
    return len(os.listdir(folder + "/fd")), len(os.listdir(folder + "/task")), pages * os.sysconf("SC_PAGE_SIZE")


def load(one, requests, connections=8):
    def work():
        c = one.client()
        s = c.open()
        for i in range(requests // connections):
            if i % 50 == 0:
                assert c.execute(s, "1")["result"] == 1
            else:
                assert c.raw("GET", "/v1/keys", headers={"traceparent": PARENT} if i % 2 else {})[0] == 200
        c.call("DELETE", "/v1/sessions/" + s)
        c.c.close()
        done.append(1)
    done = []
    threads = [threading.Thread(target=work) for _ in range(connections)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(done) == connections


REQUESTS = int(os.environ.get("CORDON_TRACED", "2000"))  # 10000 in `make soak`


def test_many_requests_leave_nothing():
    with Collector() as to, Server("--otlp", to.url, OTEL_BSP_MAX_QUEUE_SIZE="4096", **FAST) as one:
        load(one, 1000)
        c = one.client()
        before = state_of(one.p.pid)
        load(one, REQUESTS)
        wait_spans(c, lambda exported, dropped, failed: exported + dropped + failed >= REQUESTS + 1000)
        after = state_of(one.p.pid)
        while state_of(one.p.pid)[0] > before[0] + 4:  # the gateway of the last batch ends, and closed connections go
            spans_of(c)
        assert after[1] <= before[1] + 20, (before, after)  # workers end when they were idle
        is_checked = "asan" in os.environ.get("BUILD", "") or "tsan" in os.environ.get("BUILD", "")
        assert is_checked or after[2] < before[2] + (24 << 20), (before, after)
        exported, dropped, failed = spans_of(c)
        assert failed == 0 and exported > 0, (exported, dropped, failed)


def test_the_dashboard_shows_only_what_there_is():
    with open(os.path.join(ROOT, "docs", "grafana-cordon.json")) as f:
        board = json.load(f)
    assert board["schemaVersion"] >= 36 and board["title"] and board["uid"] and board["panels"]
    (source,) = [v for v in board["templating"]["list"] if v["type"] == "datasource"]
    assert source["query"] == "prometheus"
    with Server() as one:
        c = one.client()
        c.execute(c.open(), "1")
        there = {name.split("{")[0] for name in figures(c)}
        labels = {name.split("{")[0]: {pair.split("=")[0] for pair in name.split("{")[1][:-1].split(",")} for name in figures(c) if "{" in name}
    shown, ids = set(), []
    for panel in board["panels"]:
        ids.append(panel["id"])
        assert panel["type"] in {"timeseries", "stat", "row"} and set(panel["gridPos"]) == {"h", "w", "x", "y"}
        assert panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24
        for target in panel.get("targets", []):
            assert panel["datasource"] == {"type": "prometheus", "uid": "${%s}" % source["name"]} == target["datasource"], panel
            names = set(re.findall(r"\bcordon_\w+", target["expr"]))
            assert names and names <= there, (names - there, target)
            shown |= names
            for by in re.findall(r"\bby \(([^)]*)\)", target["expr"]):
                assert set(by.replace(" ", "").split(",")) <= set().union(*(labels.get(n, set()) for n in names)), target
    assert len(set(ids)) == len(ids)
    # And all that there is, except for what a histogram counts beside its buckets.
    hidden = {n for n in there - shown if not n.endswith(("_sum", "_count"))}
    assert not hidden, hidden
