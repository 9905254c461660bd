"""cordon mcp over stdio and HTTP with real peers: both SDKs, the Inspector, the conformance suites. All from npm, pinned."""
import json
import os
import subprocess
import tempfile

import peers
from driver import CORDON, ROOT, Need
from test_http import Http, BUILD

PEERS = os.path.join(ROOT, "tests", "serve", "peers")
TOKEN = "0123456789abcdef0123"


def run(*command, seconds=100, **env):
    with tempfile.TemporaryDirectory() as home:  # the Inspector writes into it
        return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=seconds, env=dict(os.environ, HOME=home, **env), cwd=home)


def slow(fn):
    fn.seconds = 900  # the first one installs
    return fn


def sdk(generation, *transport):
    r = run(peers.node(), os.path.join(PEERS, "sdk.mjs"), peers.find(), generation, *transport)
    assert r.returncode == 0, r.stderr[-2000:]
    seen = json.loads(r.stdout)
    assert seen["server"] == "cordon" and {"run_code", "run_command", "manage_sandbox"} < set(seen["tools"]), seen
    assert seen["policy"] == 30000 and "cordon://policy" in seen["resources"], seen
    assert seen["value"] == "42" and seen["after"] == "42" and seen["waited"], seen
    assert seen["progress"] == ["step 0", "step 1", "step 2"] and seen["rises"], seen
    assert seen["error"] == [True, True] and seen["cancelled"] == "yes" and seen["gone"] is False, seen
    assert seen["image"] == [["image/png", "PNG"]] and seen["errors"] == [], seen


def over_stdio(generation):
    sdk(generation, "stdio", CORDON, "mcp")


def over_http(generation):
    with Http("--token-file", "-", token=TOKEN) as h:
        sdk(generation, "http", h.url, TOKEN)


@slow
def test_first_sdk_over_stdio():
    over_stdio("v1")


@slow
def test_second_sdk_over_stdio_with_the_handshake():
    over_stdio("v2:legacy")


@slow
def test_second_sdk_over_stdio_finds_out():
    over_stdio("v2:auto")


@slow
def test_second_sdk_over_stdio_stateless():
    over_stdio("v2:2026-07-28")


@slow
def test_first_sdk_over_http():
    over_http("v1")


@slow
def test_second_sdk_over_http_with_the_handshake():
    over_http("v2:legacy")


@slow
def test_second_sdk_over_http_finds_out():
    over_http("v2:auto")


@slow
def test_second_sdk_over_http_stateless():
    over_http("v2:2026-07-28")


def inspector(*args):
    launcher = peers.module("@modelcontextprotocol/inspector/clients/launcher/build/index.js")
    return run(peers.node(), launcher, "--cli", *args)


@slow
def test_inspector_over_stdio():
    r = inspector(CORDON, "mcp", "--method", "tools/list", "--strict")
    assert r.returncode == 0, r.stdout + r.stderr
    assert "run_code" in [t["name"] for t in json.loads(r.stdout)["tools"]]
    r = inspector(CORDON, "mcp", "--method", "tools/call", "--tool-name", "run_command", "--tool-arg", "command=echo hi")
    assert r.returncode == 0 and json.loads(r.stdout)["structuredContent"]["stdout"] == "hi\n", r.stdout + r.stderr


@slow
def test_inspector_over_http():
    with Http("--no-token") as h:
        r = inspector(h.url, "--transport", "http", "--method", "tools/list", "--strict")
        assert r.returncode == 0 and "run_code" in r.stdout, r.stdout + r.stderr
        r = inspector(h.url, "--transport", "http", "--method", "tools/call", "--tool-name", "run_code", "--tool-arg", "code=6 * 7")
        assert r.returncode == 0 and json.loads(r.stdout)["structuredContent"]["result"] == "42", r.stdout + r.stderr


def conformance(module, expected, *options):
    """What fails must be listed, and what is listed must fail: the list can only shrink."""
    fixtures = os.path.join(BUILD, "tests", "serve", "mcp_fixtures")
    if not os.path.exists(fixtures):
        raise Need("a build with libmicrohttpd")
    with Http(command=[fixtures]) as h:
        r = run(peers.node(), peers.module(module + "/dist/index.js"), "server", "--url", h.url, "--expected-failures",
                os.path.join(PEERS, expected), *options, seconds=200)
    assert r.returncode == 0, r.stdout[-3000:] + r.stderr[-1000:]
    assert "passed" in r.stdout, r.stdout


@slow
def test_conformance():
    conformance("@modelcontextprotocol/conformance", "expected-2025-11-25.yml")


@slow
def test_conformance_of_the_next_suite_with_sessions():
    conformance("conformance-next", "expected-2025-11-25-next.yml", "--spec-version", "2025-11-25")


@slow
def test_conformance_stateless():
    conformance("conformance-next", "expected-2026-07-28.yml", "--requirements", "2026-07-28")
