"""TOOL, EXT, AUD, SAN, VAL, LOG: what crosses the wall on purpose, and what is written down about it."""
import json
import os
import stat
import subprocess
import tempfile

from book import CORDON, LANGUAGES, NATIVE, SAY, SHELLS, case, cordon, has, refused, same, session, value

ALL = NATIVE + ("pod",)


@cordon.tool
def add(a: float, b: float) -> float:
    "Adds."
    return a + b


@cordon.tool
def ping() -> str:
    return "pong"


@cordon.tool
def explode() -> str:
    raise RuntimeError("tool failed")


@cordon.tool(name="get")
def get(key: str) -> float:
    return {"a": 10, "b": 20}.get(key, 0)


def raw(guest, name, **args):
    """A call past the wrapper."""
    listed = ", ".join("%s=%s" % (k, json.dumps(v)) for k, v in args.items())
    return {"python": "cordon.call(%r%s)" % (name, ", " + listed if listed else ""),
            "r": "cordon_call(%s%s)" % (json.dumps(name), ", " + listed if listed else ""),
            "node": "await cordon.call(%s, %s)" % (json.dumps(name), json.dumps(args))}[guest]


def awaited(guest, code):
    return code if guest != "node" else "await " + code


@case("TOOL-01 TOOL-02 TOOL-03", LANGUAGES)
def calls(guest):
    with session(guest, tools=[add, get]) as s:
        same(value(s.execute(awaited(guest, "add(2, 3)"))), 5)
        chain = {"python": "x = add(1, 2)\nadd(x, 10)", "r": "x <- add(1, 2)\nadd(x, 10)",
                 "node": "const x = await add(1, 2)\nawait add(x, 10)"}[guest]
        same(value(s.execute(chain)), 13)
        total = {"python": "sum(get(k) for k in 'abc')", "r": "sum(sapply(c('a', 'b', 'c'), get))",
                 "node": "let t = 0; for (const k of 'abc') t += await get(k); t"}[guest]
        if guest != "r":  # get() is R's own name there
            same(value(s.execute(total)), 30)


@case("TOOL-05", LANGUAGES)
def a_tool_that_fails(guest):
    with session(guest, tools=[explode, ping]) as s:
        has(s.execute(awaited(guest, "explode()")).error, "tool failed")
        same(value(s.execute(awaited(guest, "ping()"))), "pong")


@case("TOOL-06", LANGUAGES)
def types(guest):
    with session(guest, tools=[add]) as s:
        has(s.execute(awaited(guest, 'add("hello", 3)')).error, "Tool 'add': argument 'a' must be numeric")


@case("TOOL-09 TOOL-10", LANGUAGES)
def arguments(guest):
    echo = cordon.tool(lambda x: x, name="echo_it", args={"x": {}})
    with session(guest, tools=[ping, echo]) as s:
        same(value(s.execute(awaited(guest, "ping()"))), "pong")
        assert not s.execute(awaited(guest, "ping(1)")).success
        same(value(s.execute(awaited(guest, "echo_it(7)"))), 7)


@case("TOOL-11 TOOL-12 TOOL-13")
def names(guest):
    def named(name, **more):
        return cordon.tool(lambda **_: 1, name=name, args=more or {})
    for bad in ('x; system("id")', "my tool", "1tool", "tool$name", ""):
        refused(lambda bad=bad: cordon.Session(guest, tools=[named(bad)]))
    for good in ("my_tool", "tool.name", ".hidden"):
        with session(guest, tools=[named(good)]):
            pass
    refused(lambda: cordon.Session(guest, tools=[cordon.tool(lambda **_: 1, name="f", args={"my arg": "number"})]))
    refused(lambda: cordon.Session(guest, tools=[add, add]), "Duplicate tool names")


@case("TOOL-15 TOOL-16", LANGUAGES)
def call_limit(guest):
    three = {"python": "ping(); ping(); ping()", "r": "ping(); ping(); ping()", "node": "await ping(); await ping(); await ping()"}[guest]
    two = {"python": "ping(); ping()", "r": "ping(); ping()", "node": "await ping(); await ping()"}[guest]
    with session(guest, {"tool_calls": 2}, tools=[ping]) as s:
        has(s.execute(three).error, "Maximum tool calls (2) exceeded")
        assert s.execute(two).success
        same(value(s.execute(SAY["two"][guest])), 2)


@case("TOOL-17", LANGUAGES)
def no_limit(guest):
    many = {"python": "n = 0\nfor _ in range(5000): n += len(ping())\nn",
            "r": "n <- 0\nfor (i in 1:5000) n <- n + nchar(ping())\nn",
            "node": "let n = 0\nfor (let i = 0; i < 5000; i++) n += (await ping()).length\nn"}[guest]
    with session(guest, {"timeout_ms": 600000}, tools=[ping]) as s:  # a busy machine is no limit either
        same(value(s.execute(many)), 20000)


@case("TOOL-18 TOOL-19", LANGUAGES)
def exact(guest):
    kinds = {"pi": 3.141592653589793, "tiny": 1e-300, "big": "9007199254740993", "nothing": None, "list": [1, 2, 3]}
    give = cordon.tool(lambda kind: kinds[kind], name="give", args={"kind": "string"})
    with session(guest, tools=[give]) as s:
        same(value(s.execute(awaited(guest, "give('pi') == 3.141592653589793" if guest == "python" else
                                     "give('pi')"))) in (True, 3.141592653589793), True)
        same(value(s.execute(awaited(guest, "give('tiny')"))), 1e-300)
        same(value(s.execute(awaited(guest, "give('big')"))), "9007199254740993")
        is_none = {"python": "give('nothing') is None", "r": "is.null(give('nothing'))", "node": "(await give('nothing')) === null"}[guest]
        same(value(s.execute(is_none)), True)
        size = {"python": "len(give('list'))", "r": "length(give('list'))", "node": "(await give('list')).length"}[guest]
        same(value(s.execute(size)), 3)


@case("TOOL-20", LANGUAGES)
def message_size(guest):
    say = cordon.tool(lambda text: "ok", name="say", args={"text": "string"})
    long = {"python": "say('x' * 100000)", "r": "say(strrep('x', 100000))", "node": "await say('x'.repeat(100000))"}[guest]
    with session(guest, {"message_bytes": 4096}, tools=[say]) as s:
        r = s.execute(long)
        assert not r.success, r
        same(value(s.execute(SAY["two"][guest])), 2)


@case("TOOL-29", ALL)
def listed(guest):
    with session(guest, tools=[add, ping]) as s:
        tools = {t["name"]: t for t in s.describe()["tools"]}
        same(sorted(tools), ["add", "ping"])
        same({name: arg["type"] for name, arg in tools["add"]["args"].items()}, {"a": "number", "b": "number"})


def extensions():
    return [cordon.Extension("greet", "Says hello.", lambda: "hello from extension\n", category="talk", usage="greet",
                             examples=["greet"]),
            cordon.Extension("show", "Shows its words.", lambda args: json.dumps(args) + "\n", category="search"),
            cordon.Extension("upper", "In capitals.", lambda stdin: stdin.upper()),
            cordon.Extension("oops", "Fails.", lambda: {"stderr": "oops\n", "exitCode": 1}),
            cordon.Extension("boom", "Throws.", lambda: 1 / 0)]


@case("EXT-01 EXT-02 EXT-03 EXT-05 EXT-06 EXT-07 EXT-08 EXT-09 EXT-10", SHELLS)
def commands(guest):
    with cordon.Sandbox(guest=guest, extensions=extensions()) as box:
        run = box.commands.run
        r = run("greet")
        same((r.stdout, r.exit_code), ("hello from extension\n", 0))
        same(json.loads(run("show foo bar").stdout), ["foo", "bar"])
        same(run("echo hello | upper").stdout, "HELLO\n")
        same(run("greet > /tmp/out.txt; cat /tmp/out.txt").stdout, "hello from extension\n")
        r = run("oops && echo ran")
        same((r.stdout, r.exit_code), ("", 1))
        has(r.stderr, "oops")
        r = run("boom")
        same(r.exit_code, 1)
        has(r.stderr, "boom: ")
        has(run("greet --help").stdout, "Says hello.")
        r = run("which greet")
        same(r.exit_code, 0)
        has(r.stdout, "bin/greet")
        has(run("extensions list").stdout, "greet", "show", "upper")
        only = run("extensions list --category search").stdout
        assert "show" in only and "greet" not in only, only
        assert {"greet", "show"} <= {e["name"] for e in json.loads(run("extensions list --json").stdout)}
        has(run("extensions info greet").stdout, "Says hello.")
        r = run("extensions info nope")
        same(r.exit_code, 1)
        has(r.stderr + r.stdout, "unknown extension")
        same(run("extensions bad").exit_code, 1)


@case("EXT-04", SHELLS)
def five_megabytes(guest):
    with cordon.Sandbox(guest=guest, extensions=extensions()) as box:
        same(box.commands.run("head -c 5000000 /dev/zero | tr '\\0' a | upper | tr -d '\\n' | wc -c").stdout.strip(), "5000000")


@case("EXT-11", SHELLS)
def not_on_the_list(guest):
    with session(guest, {"tools": ["show"]}, tools=[e.to_tool() for e in extensions()]) as s:
        r = s.execute("greet")
        assert r.exit_code in (126, 127) and "hello" not in r.stdout, r
        assert "hello" not in s.execute("echo x | greet | cat").stdout
        has(s.execute("show x").stdout, "x")


@case("EXT-12", SHELLS)
def in_a_fork(guest):
    with cordon.Sandbox(guest=guest, extensions=extensions()) as box, box.fork() as child:
        same(child.commands.run("greet").stdout, "hello from extension\n")


def logged(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


@case("AUD-01 AUD-02 AUD-03 AUD-06", ALL)
def audit(guest):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "log")
        with session(guest, {"audit": path}, tools=[ping]) as s:
            s.execute(awaited(guest, "ping()") if guest not in SHELLS else "ping")
            s.execute(SAY["fail"][guest])
            s.execute(SAY["loop"][guest], timeout=0.3)
        events = logged(path)
        names = [e["event"] for e in events]
        order = ["session_start", "execute_start", "tool_call", "tool_result", "execute_complete", "execute_start", "execute_error",
                 "execute_start", "execute_timeout", "session_close"]
        left = iter(names)
        assert all(any(n == want for n in left) for want in order), names
        same(len({e.get("session") or e.get("session_id") for e in events}), 1)
        same(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        same(cordon.verify_audit(path)["ok"] if "ok" in cordon.verify_audit(path) else True, True)


@case("AUD-04")
def paths(guest):
    with tempfile.TemporaryDirectory() as folder:
        link = os.path.join(folder, "link")
        os.symlink(os.path.join(folder, "real"), link)
        for bad in (link, "/dev/null", ""):
            refused(lambda bad=bad: cordon.Session(guest, policy={"audit": bad}))


@case("AUD-05")
def long_code(guest):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "log")
        with session(guest, {"audit": path}) as s:
            s.execute("x = 1\n" * 15000)
        code = [e for e in logged(path) if e["event"] == "execute_start"][0]["code"]
        assert len(code) <= 10100 and "[truncated]" in code, len(code)


@case("AUD-07 AUD-08 AUD-09", SHELLS)
def denials(guest):
    with session(guest, {"commands": ["echo"]}) as s:
        same(len(s.execute("echo 'x: tool not allowed by security policy' >&2; echo 'cat: not among the commands of the policy' >&2").denials), 0)
        same(len(s.execute("echo 'cordon: cat: not among the commands of the policy' >&2; (exit 126)").denials), 0)
        assert s.execute("cat f").denials
        hidden = s.execute("cat f 2>/dev/null; echo on")
        same(hidden.stdout, "on\n")
        assert hidden.denials, "the denial was hidden"


@case("SAN-01 SAN-02 SAN-03 SAN-04 SAN-05")
def sanitising(guest):
    clean = cordon.sanitize
    same(clean("cannot open file '/Users/john/d/s.csv': No such file"), "cannot open file '[path]': No such file")
    text = clean("process '12345' and PID 67890; 192.168.1.42:5432 refused")
    assert text.count("[pid]") == 2 and "[host]" in text, text
    same(clean("it failed\nCall stack:\n 1. bar()").strip(), "it failed")
    long = clean("y" * 1200, 100)
    assert len(long) <= 100 and long.endswith("..."), long
    same(clean("object 'x' not found"), "object 'x' not found")
    masked = clean("in /root/x and /srv/y from fe80::1ff:fe23:4567:890a and C:\\Users\\j\\x.txt")
    for word in ("/root", "/srv", "fe80", "Users"):
        assert word not in masked, masked


@case("VAL-01", LANGUAGES)
def syntax(guest):
    with session(guest) as s:
        r = s.execute(SAY["broken"][guest])
        same(r.error_kind, "syntax")
        same(value(s.execute(SAY["two"][guest])), 2)


@case("VAL-02", SHELLS)
def shell_syntax(guest):
    with session(guest) as s:
        for bad in ("if true; then", "(", "for"):
            r = s.execute(bad)
            assert not r.success and r.exit_code == 2, (bad, r.exit_code)
        same(s.execute("echo alive").stdout, "alive\n")


@case("VAL-03", ALL)
def empty(guest):
    with session(guest) as s:
        assert s.execute("").success and s.execute("  \n\t ").success
    assert cordon.validate("", guest)["valid"]


@case("VAL-04 VAL-05", LANGUAGES)
def warnings(guest):
    rows = {"r": (["system('ls')", "x <- .Call('a')", "y <- url('http://x')", "z <- 1; do.call('f', list())"], "mean(c(1, 2, 3))"),
            "python": (["import os; os.system('ls')", "x = eval('1')", "y = 1; exec('2')"], "sum([1, 2, 3])"),
            "node": (["require('child_process').exec('ls')", "const x = eval('1')", "let y = 1; new Function('x')"], "Math.max(1, 2)")}[guest]
    for code in rows[0]:
        found = cordon.validate(code, guest)
        assert found["valid"] and found["warnings"], (code, found)
    same(cordon.validate(rows[1], guest)["warnings"], [])


@case("VAL-06", LANGUAGES)
def validation_off(guest):
    with session(guest, {"validate": False}) as s:
        assert not s.execute(SAY["broken"][guest]).success
        same(value(s.execute(SAY["two"][guest])), 2)


@case("LOG-01", ("python", "sh"))
def verbose(guest):
    def stderr(*words):
        return subprocess.run([CORDON, "run", *words, "-g", guest, "-e", SAY["hi"][guest]], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=True).stderr.decode()
    same(stderr(), "")
    lines = stderr("--verbose").splitlines()
    assert len(lines) >= 3 and all(line.startswith("[cordon] ") for line in lines), lines
