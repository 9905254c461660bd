"""A collector of traces on the loopback that takes OTLP/HTTP in JSON and accepts nothing else: every field is checked."""
import http.server
import json
import re
import threading

HEX32, HEX16, NANOS, DECIMAL = r"[0-9a-f]{32}", r"[0-9a-f]{16}", r"[1-9][0-9]{18}", r"-?(0|[1-9][0-9]*)"
KINDS = {1, 2}
# What may be said about work. Every text is from a list, or the pattern of a route.
LANGUAGES = {"other", "python", "r", "node", "sh", "pod"}
ATTRIBUTES = {
    "http.request.method": str, "url.scheme": str, "http.route": str, "http.response.status_code": int, "error.type": str,
    "cordon.language": str, "cordon.outcome": str, "cordon.limit": str, "cordon.wall_ms": float, "cordon.cpu_ms": float,
    "mcp.method.name": str, "gen_ai.tool.name": str,
}


def only(value, required, optional=()):
    assert isinstance(value, dict) and set(required) <= set(value) <= set(required) | set(optional), value


def matches(pattern, text):
    assert isinstance(text, str) and re.fullmatch(pattern, text), (pattern, text)


def read_attributes(items):
    found = {}
    for item in items:
        only(item, {"key", "value"})
        ((kind, value),) = item["value"].items()
        if kind == "intValue":
            matches(DECIMAL, value)
            value = int(value)
        elif kind == "doubleValue":
            assert isinstance(value, (int, float)) and not isinstance(value, bool), item
            value = float(value)
        else:
            assert kind == "stringValue" and isinstance(value, str), item
        assert item["key"] not in found, items
        found[item["key"]] = value
    return found


def check_ids(value):
    matches(HEX32, value["traceId"])
    matches(HEX16, value["spanId"])
    assert set(value["traceId"]) != {"0"} and set(value["spanId"]) != {"0"}, value


def check_span(span):
    only(span, {"traceId", "spanId", "flags", "name", "kind", "startTimeUnixNano", "endTimeUnixNano", "attributes"},
         {"parentSpanId", "links", "status"})
    check_ids(span)
    if "parentSpanId" in span:
        matches(HEX16, span["parentSpanId"])
    assert type(span["flags"]) is int and span["flags"] & ~0x300 == 1 and span["flags"] & 0x100, span
    assert type(span["kind"]) is int and span["kind"] in KINDS, span
    matches(NANOS, span["startTimeUnixNano"])
    matches(NANOS, span["endTimeUnixNano"])
    assert int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"])
    matches(r"[A-Za-z0-9_./{}* -]+", span["name"])
    span["attributes"] = read_attributes(span["attributes"])
    for key, value in span["attributes"].items():
        assert type(value) is ATTRIBUTES[key], (key, value)
    assert span["attributes"].get("cordon.language", "other") in LANGUAGES, span
    for link in span.get("links", []):
        only(link, {"traceId", "spanId"})
        check_ids(link)
    if "status" in span:
        assert span["status"] == {"code": 2} and "error.type" in span["attributes"], span


def read_request(body):
    """The spans of one request, with their attributes as a dictionary; and the resource's."""
    def no_doubles(pairs):
        assert len({k for k, _ in pairs}) == len(pairs), pairs
        return dict(pairs)
    j = json.loads(body, object_pairs_hook=no_doubles)
    only(j, {"resourceSpans"})
    (one,) = j["resourceSpans"]
    only(one, {"resource", "scopeSpans"})
    only(one["resource"], {"attributes"})
    (scope,) = one["scopeSpans"]
    only(scope, {"scope", "spans"})
    only(scope["scope"], {"name", "version"})
    assert scope["scope"]["name"] == "cordon" and scope["spans"]
    for span in scope["spans"]:
        check_span(span)
    return scope["spans"], read_attributes(one["resource"]["attributes"])


class Collector:
    """answers: what to answer, in turn, and then 200: a status, (status, headers, body), or bytes to send instead of HTTP.
    hold: an event; until it is set no request is answered."""

    def __init__(self, answers=(), hold=None, tls=None, path="/v1/traces"):
        self.spans, self.requests, self.problems, self.resource = [], [], [], None
        self.changed = threading.Condition()
        self.answers, self.hold, self.path = list(answers), hold, path
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                outer.take(self)

            def log_message(self, *args):
                pass

        class Listener(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 64

            def handle_error(self, request, client_address):
                pass  # a client that left

        self.server = Listener(("127.0.0.1", 0), Handler)
        if tls:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_port
        self.url = "http%s://127.0.0.1:%d" % ("s" if tls else "", self.port)
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def take(self, h):
        body = h.rfile.read(int(h.headers["Content-Length"]))
        with self.changed:
            answer = self.answers.pop(0) if self.answers else 200
            self.requests.append((dict(h.headers), answer))
            self.changed.notify_all()
        if self.hold:
            self.hold.wait()
        if isinstance(answer, bytes):
            h.wfile.write(answer)
            h.close_connection = True
            return
        status, headers, text = answer if isinstance(answer, tuple) else (answer, {}, b"{}")
        try:
            assert h.path == self.path, h.path
            assert h.headers["Content-Type"] == "application/json", h.headers
            spans, resource = read_request(body)
            with self.changed:
                if status == 200:
                    self.spans += spans
                self.resource = resource
                self.changed.notify_all()
        except Exception as e:  # whatever it is, the test must see it
            with self.changed:
                self.problems.append("%r: %s" % (e, body[:2000]))
                self.changed.notify_all()
        h.send_response(status)
        for key, value in headers.items():
            h.send_header(key, value)
        h.send_header("Content-Length", str(len(text)))
        h.end_headers()
        h.wfile.write(text)

    def wait(self, fn, seconds=120):
        """Waits until fn(self) is true, and answers with that."""
        with self.changed:
            assert self.changed.wait_for(lambda: self.problems or fn(self), seconds), ("nothing came", self.requests, self.spans)
            assert not self.problems, self.problems
            return fn(self)

    def named(self, name):
        with self.changed:
            assert not self.problems, self.problems
            return [s for s in self.spans if s["name"] == name]

    def one(self, name):
        """The only span of this name, waited for."""
        (span,) = self.wait(lambda _: [s for s in self.spans if s["name"] == name])
        return span

    def close(self):
        if self.hold:
            self.hold.set()
        self.server.shutdown()
        self.server.server_close()
        assert not self.problems, self.problems

    def __enter__(self):
        return self

    def __exit__(self, kind, *error):
        if kind:
            self.problems = []
        self.close()
