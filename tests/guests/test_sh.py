# test_sh.py - inside/guests/sh.
import base64
import json
import os
import re
import signal
import subprocess
import tempfile
import time

from driver import adder, BUILD, Gone, Guest, Stock, validate

PROGRAM = os.environ.get("CORDON_SH") or os.path.join(BUILD, "inside/guests/sh/cordon-sh")
ARGV = [PROGRAM]
ADD = adder()
stock = Stock(ARGV)
guest, shared, reset = stock.guest, stock.shared, stock.reset


def out(g, code, **k):
    r = g.run(code, **k)
    assert r["ok"], (code, r, r.stdout, r.stderr)
    return r.stdout


def test_hello():
    g = shared()
    assert g.hello["guest"] == "sh" and g.hello["language"].startswith("5."), g.hello


def test_status_and_output():
    g = shared()
    r = g.run("echo hi; echo err >&2")
    assert r["ok"] and r["exit_code"] == 0 and r.stdout == "hi\n" and r.stderr == "err\n", (r, r.stderr)
    r = g.run("false")
    assert not r["ok"] and r["exit_code"] == 1
    r = g.run("(exit 42)")
    assert r["exit_code"] == 42
    r = g.run("nosuchcmd || echo fallback")
    assert r.stdout == "fallback\n" and r["exit_code"] == 0
    assert g.run("nosuchcmd")["exit_code"] == 127
    assert g.run("")["ok"] and g.run("# nothing")["ok"]
    assert g.run("false; true")["ok"]


def test_last_status_is_seen():
    g = shared()
    g.run("(exit 7)")
    assert out(g, "echo $?") == "7\n"
    assert out(g, "true; echo $?") == "0\n"


def test_state_persists():
    with guest() as g:
        g.run("x='a b'; f() { echo \"f:$1\"; }; alias hey='echo alias'; shopt -s extglob; set -o noglob; "
              "arr=(1 'two words' 3); declare -A m=([k]=v); export E=exported")
        g.run("mkdir d; cd d; umask 027; set -- p1 'p 2'")
        assert out(g, 'f "$x"') == "f:a b\n"
        assert out(g, "hey you") == "alias you\n"
        assert out(g, "basename \"$PWD\"; umask; echo \"$2\" $#") == "d\n0027\np 2 2\n"
        assert out(g, "echo *; echo ${#arr[@]} \"${arr[1]}\" ${m[k]}") == "*\n3 two words v\n"
        assert out(g, "sh -c 'echo $E'") == "exported\n"
        assert out(g, "echo hello world | wc -w").strip() == "2"


def test_quoting_is_bash():
    g = shared()
    assert out(g, 'x="a b"; f() { echo $#; }; f "$x"; [ "$x" = "a b" ] && echo same; '
                  'y=""; [ "$y" = "" ] && echo empty; set -- "1 2" 3; f "$@"; echo done') == \
        "1\nsame\nempty\n2\ndone\n"


def test_syntax_errors_leave_it_alive():
    g = shared()
    for code in ("if true; then", "(", "for", "while true", "echo \"abc", "}", "echo )"):
        r = g.run(code)
        assert r["exit_code"] == 2 and not r["ok"] and r.error["kind"] == "syntax", (code, r, r.stderr)
        assert r.stderr
        assert out(g, "echo alive") == "alive\n"


def test_line_numbers_are_the_codes():
    r = shared().run("echo 1\necho 2\nnosuch_cmd")
    assert "line 3: nosuch_cmd" in r.stderr, r.stderr


def test_exit_keeps_the_state():
    with guest() as g:
        g.run("x='it''s'; y=$'a\\nb'; f() { echo f$1; }; arr=(a 'b c'); declare -A m=([k]='v w'); mkdir sub; "
              "cd sub; alias q='echo quick'; set -o pipefail; readonly ro=1; export E=e; umask 077")
        for n in (3, 0, 5):
            r = g.run("echo before; exit %d; echo after" % n)
            assert r["exit_code"] == n and r.stdout == "before\n" and r["ok"] == (n == 0), (r, r.stderr)
            assert r.stderr == "", r.stderr
        text = out(g, 'echo "$x $y"; f 1; echo "${arr[1]}" "${m[k]}"; basename "$PWD"; q; echo $ro; '
                      'sh -c "echo \\$E"; umask; set -o | grep pipefail')
        assert text == "its a\nb\nf1\nb c v w\nsub\nquick\n1\ne\n0077\npipefail       \ton\n", text
        r = g.run("function g { exit 9; }; g; echo no")
        assert r["exit_code"] == 9 and r.stdout == ""
        r = g.run("set -- one 'two three'; exit 1")
        assert out(g, 'echo "$2"') == "two three\n"


def test_set_e_and_set_u():
    with guest() as g:
        r = g.run("keep=1; set -e; echo a; false; echo b")
        assert r["exit_code"] == 1 and r.stdout == "a\n"
        r = g.run("echo $keep; false; echo c")  # set -e is still on
        assert r["exit_code"] == 1 and r.stdout == "1\n", (r, r.stdout, r.stderr)
        g.run("set +e")
        assert out(g, "false; echo c") == "c\n"
        r = g.run("set -u; echo $nope; echo no")
        assert r["exit_code"] != 0 and "unbound" in r.stderr
        assert out(g, "set +u; echo $keep") == "1\n"


def test_exec_and_kill():
    with guest() as g:
        g.run("mkdir here; cd here")
        r = g.run("exec echo replaced")
        assert r.stdout == "replaced\n" and r["exit_code"] == 0
        assert out(g, "basename \"$PWD\"") == "here\n"
        r = g.run("kill -9 $$")
        assert r["exit_code"] == 137 and not r["ok"]
        assert out(g, "echo again") == "again\n"
        r = g.run("kill $$; sleep 1")
        assert r["exit_code"] == 143
        assert out(g, "echo again") == "again\n"


def test_loops_and_returns_of_the_code():
    with guest() as g:
        g.run("x=1")
        for code in ("break", "continue", "return 3", "break 2", "continue 2"):
            g.run(code)
            assert out(g, "echo alive $x") == "alive 1\n", code
        assert out(g, "for i in 1 2 3; do [ $i = 2 ] && continue; echo $i; done") == "1\n3\n"


def test_exit_traps():
    with guest() as g:
        r = g.run("trap 'echo bye $?' EXIT; echo hi; exit 3")
        assert r.stdout == "hi\nbye 3\n" and r["exit_code"] == 3, (r, r.stdout, r.stderr)
        assert out(g, "echo ok") == "ok\n"
        assert out(g, "(trap 'echo inner' EXIT; echo sub)") == "sub\ninner\n"
        r = g.run("trap 'echo got' USR1; kill -USR1 $$; echo after")
        assert r.stdout == "got\nafter\n", r.stdout
        g.run("exit 1")
        assert out(g, "kill -USR1 $$") == "got\n"


def test_xtrace_does_not_show_the_loop():
    with guest() as g:
        g.run("set -x")
        r = g.run("echo hi")
        assert "__cordon_st" not in r.stderr and "read" not in r.stderr, r.stderr
        assert "echo hi" in r.stderr


def test_background_jobs():
    with guest() as g:
        g.run("sleep 60 & echo $! > pid")
        assert out(g, "kill -0 $(cat pid) && jobs | wc -l").strip() == "1"
        assert out(g, "kill $(cat pid); wait; echo waited") == "waited\n"
        start = time.monotonic()
        g.run("(sleep 50; echo late) &")
        assert time.monotonic() - start < 30
        assert out(g, "kill %1; echo $?") == "0\n"


def test_streams_are_whole_in_every_execution():
    for code in ("exec 1>&-", "exec 2>&- 1>&-", "exec 0<&-", "exec > /dev/null 2>&1 < /dev/zero", "exec 1>&- 2>&-; exit 3",
                 "exec 252>&- 253>&- 254>&-", "exec 249>&- 250>&- 251>&- 252>&- 253>&- 254>&- 1>&-", "exec 253>&-; kill -9 $$",
                 "exec() { :; }; exec 1>&-; builtin exec 1>&-", "exec 1>&-; for i in 1 2; do break; done; set -u"):
        with guest() as g:
            g.run("x=kept")
            g.feed(b"line\n")
            g.run(code)
            r = g.run("set +u; echo back; echo too >&2; echo $x")
            kept = "" if "kill" in code else "kept"
            assert r.stdout == "back\n%s\n" % kept and r.stderr == "too\n", (code, r, r.stdout, r.stderr)


def test_what_persists():
    with guest() as g:
        g.run("mkdir d; cd d; umask 027; trap '' USR1; ulimit -n 200; export LC_ALL=C; exec 7> f; echo x >&7")
        r = g.run("basename $PWD; umask; trap -p USR1; ulimit -n; echo $LC_ALL; echo y >&7; cat f")
        assert r.stdout == "d\n0027\ntrap -- '' SIGUSR1\n200\nC\nx\ny\n", r.stdout
        assert g.run("set -x; : a").stderr.endswith("+ : a\n")


def test_stdin():
    with guest() as g:
        g.feed(b"one\ntwo\n")
        assert out(g, "read a; echo got $a") == "got one\n"
        assert out(g, "read b; echo got $b") == "got two\n"
        assert out(g, "echo 5 | { read n; echo $((n * 2)); }") == "10\n"


def test_context_and_env():
    g = shared()
    ctx = {"s": "it's \"$x\" `y`\n", "n": 12345678901234567890, "f": 0.1, "b": True, "z": None,
           "l": ["a b", 2], "m": {"k 1": "v"}, "big": {"$": "int", "v": "9" * 30},
           "t": {"$": "tuple", "v": [1, 2]}}
    r = g.run('printf %s "$s"; echo "$n $f $b [$z] ${#l[@]} ${l[0]} ${m[k 1]} $big ${t[1]}"', ctx)
    assert r.stdout == "it's \"$x\" `y`\n12345678901234567890 0.1 true [] 2 a b v %s 2\n" % ("9" * 30), \
        (r.stdout, r.stderr)
    assert out(g, "sh -c 'echo $FOO'", env={"FOO": "b ar"}) == "b ar\n"
    assert out(g, "echo [$FOO]", env={"FOO": None}) == "[]\n"
    assert not g.run("true", {"no-name": 1})["ok"]
    assert not g.run("true", {"x;touch bad": 1})["ok"] and not os.path.exists(g.home + "/bad")
    assert out(g, "echo alive") == "alive\n"


def test_exported_variables_are_told():
    with guest(env={"BASE": "b", "LEFT": "l"}) as g:
        assert g.ask("environment") == {"environment": {}}
        g.run("export A='two words' B=$'x\\ny \"q\"' BASE=changed; unset LEFT; plain=1; declare -x EMPTY= UNSET; f() { :; }; export -f f; cd /")
        told = {"A": "two words", "B": "x\ny \"q\"", "BASE": "changed", "LEFT": None, "EMPTY": ""}
        assert g.ask("environment") == {"environment": told}
        # The host's changes are in it, and the shell keeps them.
        assert g.ask("environment", env={"H": "host", "A": None}) == {"environment": dict({k: v for k, v in told.items() if k != "A"}, H="host")}
        assert out(g, "echo $H ${A-gone} $plain $?") == "host gone 1 0\n"


def test_exported_variables_whatever_the_shell_is_like():
    with guest() as g:
        for before in ("set -eu", "set -f; IFS=x", "trap 'echo no' DEBUG ERR EXIT; set -T", "set -x", "printf() { :; }; compgen() { :; }; set() { :; }",
                       "exec 1>&- 2>&-", "set -o posix", "readonly A", "kill -9 $$"):
            g.run("export A=1")
            r = g.run(before)
            assert g.ask("environment")["environment"].get("A") == (None if "restarted" in r else "1"), before
        assert "__cordon" not in out(g, "set +exuf; trap - DEBUG ERR EXIT; declare -p")
        g.run("(exit 7)")
        g.ask("environment")
        assert out(g, "echo $?") == "7\n"


def test_large_and_odd_variables_are_told():
    with guest() as g:
        g.run("export BIG=$(head -c 100000 /dev/zero | tr '\\0' x) BYTES=$'a\\xffb'; for i in $(seq 300); do export V$i=$i; done")
        told = g.ask("environment")["environment"]
        assert len(told["BIG"]) == 100000 and told["BYTES"] == "a\ufffdb" and told["V300"] == "300" and len(told) == 302, len(told)


def test_history():
    with guest() as g:
        g.run("echo one", env={"E": "1"})
        g.run("echo two\necho three")
        assert out(g, "history list") == "    1  echo one\n    2  echo two\necho three\n    3  history list\n"
        assert out(g, "history; fc -l") == ""  # as in a script
        assert out(g, "history clear; history list; type -t history") == "builtin\n"
        assert g.run("history bogus")["exit_code"] == 1
        g.run("# " + "x" * 70000)
        assert "xxx" not in out(g, "history list")
        for i in range(1005):
            g.run(": %d" % i)
        lines = out(g, "history list").splitlines()
        assert len(lines) == 1000 and lines[-2].endswith(": 1004"), lines[-3:]


def test_token_is_nowhere():
    with guest() as g:
        text = out(g, "env; cat /proc/$$/environ /proc/$PPID/environ | tr '\\0' '\\n'")
        assert "CORDON_TOKEN=xxx" in text and g.token not in text, text


def test_interrupt():
    with guest() as g:
        g.run("x=kept")
        for code in ("sleep 30", "while :; do :; done", "sleep 30 | cat; echo no", "read -t 30 v"):
            r = g.interrupt("echo go; " + code)
            assert r.error["kind"] == "interrupted" and r["exit_code"] == 130, (code, r)
            assert "no" not in r.stdout
            assert out(g, "echo $x") == "kept\n", code
        assert g.interrupt("trap '' INT; echo go; sleep 30").error["kind"] == "interrupted"
        assert out(g, "echo alive") == "alive\n"
        g.signal()
        time.sleep(0.1)
        assert out(g, "echo alive") == "alive\n"
        # One of an execution that is over, or has yet to come, is nobody's.
        for other in (g.next_id, g.next_id + 7, 0):
            g.send({"type": "interrupt", "id": other})
            assert out(g, "echo alive") == "alive\n", other


def test_large_commands_and_output():
    g = shared()
    text = "echo 'x%s'" % ("y" * 60000)
    assert len(out(g, text)) == 60002
    assert out(g, ": ;" * 10000 + "echo end") == "end\n"
    assert len(out(g, "head -c 3000000 /dev/zero | tr '\\0' a")) == 3000000
    assert not g.run("echo a\0b")["ok"]


COMMANDS = [
    {"name": "greet", "description": "Says hello.", "command": True, "category": "talk"},
    {"name": "upper", "description": "Upper case.", "command": True, "category": "text"},
    {"name": "fail", "description": "Fails.", "command": True},
    {"name": "boom", "description": "Throws.", "command": True},
    {"name": "bytes", "description": "Bytes.", "command": True},
    {"name": "opt", "description": "Options.",
     "args": {"n": {"type": "integer", "required": True}, "s": {"type": "string", "required": False},
              "l": {"type": "array", "required": False}, "any": {"required": False}}},
    ADD]


def boom(args, stdin):
    raise RuntimeError("boom")


def to_bytes(v):
    return base64.b64decode(v["v"]) if isinstance(v, dict) else v.encode()


HANDLERS = {
    "greet": lambda args, stdin: "hello from extension\n" if not args else " ".join(args) + "\n",
    "upper": lambda args, stdin: {"stdout": stdin.upper(), "exit_code": 0},
    "fail": lambda args, stdin: {"stdout": "", "stderr": "oops\n", "exitCode": 1},
    "boom": boom,
    "bytes": lambda args, stdin: {"stdout": {"$": "bytes", "v": base64.b64encode(
        to_bytes(stdin)[::-1]).decode()}, "exit_code": 0},
    "add": lambda a, b: a + b,
    "opt": lambda **k: k,
}


def tools_guest(**k):
    return guest(tools=COMMANDS, handlers=HANDLERS, **k)


def test_tools_as_commands():
    with tools_guest() as g:
        assert out(g, "greet") == "hello from extension\n"
        assert out(g, "greet foo 'b ar' ''") == "foo b ar \n"
        assert out(g, "echo hello | upper") == "HELLO\n"
        assert out(g, "greet > out.txt; cat out.txt") == "hello from extension\n"
        r = g.run("fail && echo ok")
        assert r["exit_code"] == 1 and r.stderr == "oops\n" and r.stdout == "", (r, r.stderr)
        r = g.run("boom")
        assert r["exit_code"] == 1 and r.stderr == "boom: boom\n"
        assert out(g, "greet --help").startswith("Says hello.")
        assert out(g, "type -t greet") == "function\n"  # without the wall's links
        assert out(g, "command -v greet; x=$(greet a | upper); echo \"$x\"") == "greet\nA\n"
        assert out(g, "bash -c 'greet from a child'") == "from a child\n"
        assert out(g, "printf '\\377\\0\\376' | bytes | od -An -tx1").split() == ["fe", "00", "ff"]
        assert out(g, "for i in 1 2 3; do echo $i | upper; done | upper") == "1\n2\n3\n"
        assert out(g, "upper < /dev/null; echo end") == "end\n"
        g.feed(b"typed\n")
        time.sleep(0.1)
        assert out(g, "upper") == "TYPED\n"
        assert out(g, "upper; echo no hang") == "no hang\n"
        g.run("exit 3")
        assert out(g, "greet") == "hello from extension\n"


def test_typed_tools():
    with tools_guest() as g:
        assert out(g, "add 2 3") == "5\n" and out(g, "add --b=2 --a 1.5") == "3.5\n"
        for code, text in (("add hello 3", "Tool 'add': argument 'a' must be numeric, got character"),
                           ("add 1", "Tool 'add': argument 'b' is missing"),
                           ("add 1 2 3", "Unexpected arguments for tool 'add': '3'"),
                           ("add 1 2 --evil=9", "Unexpected arguments for tool 'add': 'evil'"),
                           ("opt 1.5", "Tool 'opt': argument 'n' must be integer")):
            r = g.run(code)
            assert text in r.stderr and r["exit_code"] == 1 and not r.calls, (code, r, r.stderr)
        assert json.loads(out(g, "opt 3 text '[1, 2]' word")) == \
            {"n": 3, "s": "text", "l": [1, 2], "any": "word"}
        assert json.loads(out(g, "opt 3 --any '{\"k\":1}'")) == {"n": 3, "any": {"k": 1}}
        assert "add a b" in out(g, "add --help")
        assert out(g, "for i in 1 2 3 4 5 6 7 8; do add $i 1 & done; wait").split().sort() == \
            [str(i) for i in range(2, 10)].sort()


def test_tool_sizes():
    with tools_guest() as g:
        r = g.run("head -c 2000000 /dev/zero | tr '\\0' a | upper")
        assert r["exit_code"] == 1 and "IPC message too large" in r.stderr, r.stderr
        assert out(g, "echo ok | upper") == "OK\n"
    with tools_guest(options={"tools": [dict(t, argument_bytes=8 << 20) for t in COMMANDS]}) as g:
        assert out(g, "head -c 5000000 /dev/zero | tr '\\0' a | upper | wc -c").strip() == "5000000"


def test_place_of_a_command():
    """A command that declares it is told where it was called and with which variables, without ours."""
    any_of = {"args": {}, "stdin": {}, "cwd": {"type": "string"}, "env": {"type": "object"}}
    with guest(tools=[*COMMANDS, {"name": "where", "command": True, "args": any_of}], handlers=dict(HANDLERS, where=lambda **k: "")) as g:
        r = g.run("mkdir in; cd in; export A=$'x \\ny'; E= where one; cd ..; unset A; where two")
        first, second = [c["args"] for c in r.calls]
        assert first["cwd"] == second["cwd"] + "/in", (first, second)
        assert first["env"]["A"] == "x \ny" and first["env"]["E"] == "" and first["env"]["PWD"].endswith("/in"), first
        assert "A" not in second["env"] and "E" not in second["env"], second
        assert not [k for k in first["env"] if k.startswith(("CORDON_", "BASH_FUNC_"))], first
        assert set(g.run("greet").calls[0]["args"]) == {"args", "stdin"} and set(g.run("add 1 2").calls[0]["args"]) == {"a", "b"}


def test_extensions():
    with tools_guest() as g:
        text = out(g, "extensions list")
        assert "greet" in text and "Says hello." in text and len(text.splitlines()) == len(COMMANDS) + 2
        head, line = text.splitlines()[:2]
        assert head.split() == ["NAME", "CATEGORY", "DESCRIPTION"] and line == "\u2500" * len(head), text
        assert len(out(g, "extensions list --category talk").splitlines()) == 3
        assert out(g, "extensions list --category none") == "(no extensions registered)\n"
        assert [t["name"] for t in json.loads(out(g, "extensions list --json"))] == \
            [t["name"] for t in COMMANDS]
        assert out(g, "extensions info greet").startswith("Name:        greet\nCategory:    talk\nDescription: Says hello.\n")
        r = g.run("extensions info nope")
        assert r["exit_code"] == 1 and "unknown extension" in r.stderr
        r = g.run("extensions bad")
        assert r["exit_code"] == 1 and r.stderr.startswith("extensions: unknown subcommand: bad\nUsage: extensions"), r.stderr
        r = g.run("extensions info")
        assert (r["exit_code"], r.stderr) == (1, "extensions info: missing extension name\n"), r.stderr
        assert "Subcommands:" in out(g, "extensions --help") and out(g, "extensions") == out(g, "extensions --help")


def test_tools_of_a_command_that_ended():
    with tools_guest() as g:
        g.run("(until [ -e go ]; do sleep 0.01; done; greet > late.out 2> late; mv late late.err) &")
        open(g.home + "/go", "w").close()
        end = time.monotonic() + 30
        while not os.path.exists(g.home + "/late.err") and time.monotonic() < end:
            time.sleep(0.01)
        assert "while a command runs" in open(g.home + "/late.err").read()
        assert out(g, "greet") == "hello from extension\n"


def test_started_by_a_tools_name():
    with tools_guest() as g:
        os.mkdir(g.home + "/bin")
        os.symlink(PROGRAM, g.home + "/bin/greet")
        assert out(g, "echo a b | xargs ./bin/greet") == "a b\n"
        assert out(g, "env -u CORDON_TOOLS_FD ./bin/greet 2>&1 || true") == \
            "greet: the session's tools cannot be reached from here\n"


def test_garbage_on_the_private_descriptors():
    with guest() as g:
        g.run("x=1")
        for fd in range(248, 252):
            g.run("echo garbage >&%d; echo S99 >&%d" % (fd, fd))
        for fd in range(248, 252):
            g.run("exec %d>&-" % fd)
            g.run("true")  # may find the shell without what it needs, and lose it
            assert out(g, "echo alive") == "alive\n", fd


def test_ends_with_the_wire():
    g = guest()
    g.run("true")
    g.send({"type": "exit"})
    try:
        g.recv()
        raise AssertionError("still there")
    except Gone:
        pass
    assert g.close() == 0


def check(code):
    return validate(ARGV + ["--validate"], code)


def test_validation():
    for code in ("", "  \n", "echo hi", "echo 'curl x' # eval", "x='a;curl b'", "cat <<E\ncurl x\nE\necho",
                 "echo curl", "curl=1", "grep -e eval file", "echo \"ssh\"", "echo $((1 + (2)))"):
        r = check(code)
        assert r["valid"] and r["error"] is None and r["warnings"] == [], (code, r)
    for code, line in (("if true; then", 2), ("echo ok\necho )", 2), ("(", 2)):
        r = check(code)
        assert not r["valid"] and r["line"] == line and "syntax error" in r["error"], (code, r)
    assert not check("a\0b")["valid"]
    for code, name in (("curl x", "curl"), ("echo a; wget b", "wget"), ("a && sudo b", "sudo"),
                       ("x=$(ssh h)", "ssh"), ("echo \"`nc a`\"", "nc"), ("if eval x; then :; fi", "eval"),
                       ("A=1 curl x", "curl"), ("cat <(curl x)", "curl"), ("f() { exec ls; }", "exec"),
                       ("ls | xargs kill", "kill"), ("echo \"$(curl x)\"", "curl"), ("{ mount; }", "mount")):
        r = check(code)
        assert r["valid"] and r["warnings"] == [
            "Code contains call to `%s()` which may be restricted by the sandbox" % name], (code, r)


def test_warnings_of_an_execution():
    with Guest(ARGV) as g:
        g.advised([("eval true", ["eval"]), ("echo a; x=$(kill -l)", ["kill"])],
                  ["echo hi", "echo 'curl x' # eval", "echo )"])


def test_broken_code_is_found_before_it_runs():
    with Guest(ARGV) as g:
        r = g.run("echo early\nif true; then", validate=True)
        assert r.stdout == "" and r.error["kind"] == "syntax" and r["exit_code"] == 2, r
        assert "syntax error" in r.error["message"] and "syntax error" in r.stderr, (r, r.stderr)
        assert g.run("echo early\nif true; then").stdout == "early\n"
        assert g.run("echo alive\necho too", validate=True).stdout == "alive\ntoo\n"


# What bash says to the same text in a file of that name: status, stdout, stderr.
def native(code, env=None):
    with tempfile.TemporaryDirectory(prefix="native-") as home:
        with open(home + "/bash", "w") as f:
            f.write(code)
        p = subprocess.run(["bash", "--norc", "--noprofile", "-O", "expand_aliases", "bash"], executable="/bin/bash", cwd=home, text=True,
                           stdin=subprocess.DEVNULL, capture_output=True, timeout=20, errors="replace",
                           env=dict({"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": home, "LANG": "C.UTF-8", "TMPDIR": home}))
        return p.returncode, p.stdout, p.stderr


# Each is one execution of a new session; what ends with exit ends the script there, too.
SCRIPTS = (
    # traps
    "trap 'echo D $BASH_COMMAND' DEBUG\necho a\ntrap - DEBUG\necho b\n",
    "trap 'echo D $LINENO' DEBUG; echo a; echo b; x=1; [[ a ]]; (( 1 )); for i in 1 2; do :; done; case a in a) ;; esac",
    "trap 'echo D' DEBUG\nf() { echo f; }\nf\nset -T\nf\n( echo sub )\necho $(echo c)\n",
    "trap 'echo D' DEBUG\nshopt -s extdebug\ntrap 'false' DEBUG\necho skipped\ntrap - DEBUG\necho not\n",
    "trap 'echo E $? $LINENO' ERR\nfalse\n(exit 3)\ntrue | false\ntrap - ERR\nfalse\necho done",
    "trap 'echo E' ERR; false || true; if false; then :; fi; ! true; while false; do :; done; false",
    "set -E; trap 'echo E $BASH_COMMAND' ERR; f() { false; true; }; f; (false); x=$(false); true",
    "trap 'echo E; trap - ERR' ERR; false; false",
    "trap 'echo D' DEBUG; trap '' DEBUG; echo a; trap -p; trap - DEBUG; trap -p",
    "trap 'echo R' RETURN; f() { :; }; f; set -T; f; trap -p; trap - RETURN; f",
    "trap 'echo bye $?' EXIT; trap -p; exit 3",
    "trap 'echo bye; exit 9' EXIT; exit 3",
    "trap 'echo bye $?' EXIT; trap - EXIT; exit 4",
    "trap 'echo bye' EXIT; f() { local v=1; exit 6; }; f; echo no",
    "trap 'echo bye' 0; eval 'exit 2'; echo no",
    "trap 'echo bye' EXIT; set -e; false; echo no",
    "trap 'echo bye $?' EXIT; set -u; echo $nope; echo no",
    "trap 'echo bye $?' EXIT; exec /nonexistent/program; echo no",
    "trap 'exit 5' ERR; false; echo no",
    "trap 'exit 5' DEBUG; echo no",
    "trap 'exit 5' USR1; kill -USR1 $$; echo no",
    "trap 'echo u' USR1; trap 'echo i' INT; kill -USR1 $$; kill -INT $$; trap; trap - INT USR1; trap; echo end",
    "trap; trap -p; trap -l | head -2; trap nonsense NOSUCH; echo $?",
    # loops, returns
    "break; echo a", "continue; echo a", "break 2\necho a", "break\nx=$?\necho $x", "return 3\necho a $?", "eval 'break; echo a'; echo b",
    "f() { break; echo in; }; f; echo out", "for i in 1 2; do continue 5; done; echo $?", "while :; do break 0; done; echo $?",
    "for i in 1 2 3; do f() { break; }; f; echo $i; done",
    # statuses
    "set -u; echo $x; echo no", "echo ${x:?}; echo no", "echo ${x:?word}\necho no", "set -u\n: ${x}\necho no", "x=1; echo ${x:?}; (exit 7)",
    "set -u; (echo $x); echo $?", "y=$(set -u; echo $x); echo $?", "f() { echo ${q?}; echo in; }; f; echo no", "${x:?} || echo no",
    "nosuch_command", "/dev/null", ". /nonexistent; echo $?", "./nonexistent", "exit", "false; exit", "exit 256", "exit -1", "exit 300", "exit abc; echo $?",
    "exit 1 2; echo $?", "(exit 200)", "! true", "true | false", "false | true", "set -o pipefail; false | true", "kill -9 $BASHPID & wait $!; echo $?",
    "(kill -TERM $BASHPID); echo $?", "set -e; (exit 9); echo no", "set -e; false || true; ! true; echo yes; x=$(exit 4); echo no", "set -e; f() { false; echo in; }; f || echo or; f; echo no",
    "command exit 3; echo no", "builtin exit 4; echo no", "f() { return 300; }; f; echo $?", "let 0; echo $?", "((0)); echo $?", "[[ a == b ]]", "[ 1 -eq x ]",
    "printf '%d\\n' x; echo $?", "cd /nonexistent; echo $?", "shift 9; echo $?", "unset -v 1x; echo $?", "declare 1x=2; echo $?", "exec 9< /nonexistent; echo no",
    "exec 9<&33; echo no $?", "echo a > /nonexistent/b; echo $?", "cat < /nonexistent; echo $?", "set -o nosuch; echo $?", "shopt -s nosuch; echo $?", "set -C; : > f; : > f; echo $?",
    "shopt -s failglob\necho *.nosuch\necho next", "shopt -s nullglob; echo *.nosuch; echo $?", "wait 99999; echo $?", "ulimit -q; echo $?", "read x; echo $?",
    # the file is read command by command
    "echo a\nexit 0\nif ( ; then fi )\n", "echo a; exit 3\n)))\n", "echo early\necho )\necho late", "echo early\nif true; then\necho late", "echo 'a\nb", "echo \"a\n$(echo b", "echo `echo a",
    "cat <<E\nbody $((1 + 1))\nE\ncat <<'E'\nbody $x\nE\n", "cat <<E\nno end", "cat <<E; echo after\nx", "echo a \\\n  b", "echo a\\", "echo a # c", "# only a comment", "\n\n", "   ",
    "alias begin='if true; then'\nbegin echo hi; fi\nalias", "alias x='echo '\nalias y=z\nx y", "alias e=echo; e hi\ne hi", "unalias nosuch; echo $?", "alias a='for i in 1 2; do'\na echo $i; done",
    "shopt -s extglob\ncase ab in +(a|b)) echo y;; esac", "echo +(a|b)", "readonly r=1\nr=2\necho rest", "readonly r=1; r=2; echo no\necho rest $r", "readonly r=1; f() { local r=2; echo in; }; f; echo $?",
    "readonly r; r=1 true; echo $?", "x=$((1/0)); echo no\necho rest", "echo $((1 +)); echo no\necho rest", "declare -i i=1/0; echo no\necho rest", "a[-1]=x; echo no\necho rest", "a=(1 2); a[1 2]=3\necho rest",
    "set -e; readonly r=1\nr=2\necho no", "set -o posix\nreadonly r=1\nr=2\necho no", "set -o posix; set -o nosuch; echo no", "export 1=2\necho rest", "f() { exit; }\nfalse\nf\necho no", "function f { echo f; }; f; declare -f f",
    "if\necho a", "done\necho a", "echo a; ;; echo b", "case x in", "f() {", "((1 +", "[[ a", "for ((;;", "echo $(if", "cat <<", "a=(1 2", "}\necho x", "echo ${", "echo ${x", "eval 'echo )'\necho rest", "eval 'if'; echo rest $?",
    ". /dev/stdin <<< 'echo sourced; return 4; echo no'; echo $?", "source <(echo 'echo p')", "eval echo $LINENO; echo $LINENO\necho $LINENO", "f() {\necho $LINENO; }\nf\necho ${BASH_LINENO[*]} $0 ${BASH_SOURCE[0]} ${FUNCNAME[0]}",
    "f() { caller; caller 0; echo ${FUNCNAME[*]} ${BASH_SOURCE[*]}; }\nf", "echo $#-$*-$0; set -- a b; echo $# $2", "echo $-; echo $SHLVL; echo $BASH_SUBSHELL; echo ${BASH_EXECUTION_STRING-none}", "echo $_; true a b; echo $_",
    "false | true | (exit 3); echo ${PIPESTATUS[*]}", "echo ${PIPESTATUS[*]} $?", "set -x; echo a; x=1; for i in 1; do :; done", "set -v\necho a\necho b", "set -n\necho a", "set -xe; f() { false; }; f", "PS4='$LINENO: '; set -x; echo a\necho b",
    "shopt -p; set +o", "shopt -s expand_aliases; shopt expand_aliases", "set -o | head -5", "umask; ulimit -n > /dev/null; times > /dev/null; hash; jobs; dirs > /dev/null; history; echo $?", "help -s break; type break trap exit eval",
    "exec 1>&2; echo to err", "exec 2>&1; nosuch_command", "exec 3> f; echo x >&3; exec 3>&-; cat f", "exec > f; echo hidden", "{ echo a; exit 2; } > f; echo no", "f() { exit 2; } 2> /dev/null; f > g; echo no", "x=1 y=2 exit 3",
    "echo a | while read v; do echo $v; exit 3; done; echo $?", "( exit 3 ); echo $?; { (exit 4) & wait $!; }; echo $?", "coproc cat; echo hi >&${COPROC[1]}; read r <&${COPROC[0]}; echo $r; kill $COPROC_PID", "sleep 0 & wait; echo $?; jobs",
    "printf 'echo %s\\n' inner > s; bash s; chmod +x s; ./s; . ./s", "printf '#!/bin/sh\\nexit 4\\n' > s; chmod +x s; ./s; echo $?", "printf 'echo plain $0' > s; chmod +x s; ./s; (./s)", "bash -c 'exit 5'; echo $?", "bash -c 'read x; echo [$x]'",
    "time true 2> /dev/null; TIMEFORMAT=%0R; time :", "select x in a b; do echo $x; break; done < /dev/null; echo $?", "mapfile -t a <<< $'1\\n2'; echo ${#a[@]}", "x=$(cat <<E\nin\nE\n); echo $x", "echo <(:) | grep -c fd", "declare -n r=t; r=5; echo $t",
    "f() { local -; set -f; echo *; }; touch z; f; echo z*", "set -k; env a=1 | grep -c ^a=", "echo {1..3} {a,b}c", "let x=5 y=x*2; echo $y", "getopts ab o -a; echo $o", "x=abc; echo ${x^^} ${x:1} ${#x} ${x/b/-} ${!x}", "local x=1; echo $?",
    "enable -n echo; type -t echo; enable echo; type -t echo", "trap 'echo got' CHLD; (exit 1); wait; echo end", "disown; suspend; echo $?", "logout; echo $?", "bind -l > /dev/null 2>&1; echo $?; fc -l; echo $?", "printf a; printf b >&2; exit 1",
    "exec 255>&-; echo alive", "exec 255< /dev/null; echo alive\necho too", "for fd in 10 11 12; do eval \"exec $fd>&-\"; done; echo alive", "ulimit -n 60; echo alive; (echo sub)", "echo $'a\\0b' | od -c | head -1", "x=$'\\xff'; printf %s \"$x\" | od -An -tx1",
)


def test_the_same_as_bash():
    bad = []
    for code in SCRIPTS:
        with guest() as g:
            os.close(g.pipes[0][1])  # no input, as there
            g.pipes[0] = (g.pipes[0][0], os.open("/dev/null", os.O_RDONLY))
            r = g.run(code)
            ours = r["exit_code"], r.stdout, r.stderr
            alive = g.run("set +evxnu; set +o posix; trap - DEBUG ERR; shopt -u failglob extdebug; set +v; echo alive")
        if not code.startswith("set -n") and "extdebug" not in code and "exit 5' DEBUG" not in code:  # which outlive it
            alive.stdout.endswith("alive\n") or bad.append((code, "not alive", alive, alive.stdout))
        theirs = native(code)
        varies = r" [0-9]+ Killed|[0-9]+m[0-9]+\.[0-9]+s"  # pids and times
        re.sub(varies, "", repr(ours)) == re.sub(varies, "", repr(theirs)) or bad.append((code, ours, theirs))
    assert not bad, "%d of %d:\n%s" % (len(bad), len(SCRIPTS), "\n".join(map(repr, bad)))


# Several executions are one script, where none ends it.
SEQUENCES = (
    ("trap 'echo D' DEBUG", "echo a", "trap - DEBUG", "echo b"),
    ("trap 'echo E' ERR", "false", "true", "trap - ERR", "false"),
    ("set -T; trap 'echo D $BASH_COMMAND' DEBUG", "f() { echo in; }", "f", "trap -p", "trap"),
    ("false", "echo $?", "(exit 4)", "echo $? ${PIPESTATUS[*]}"),
    ("true a b", "echo $_"),
    ("break", "echo a", "continue", "echo b"),
    ("alias begin='if true; then'", "begin echo hi; fi"),
    ("readonly r=1", "r=2", "echo $r"),
    ("x=1; f() { echo $x; }", "f", "declare -F", "compgen -A function", "alias", "trap"),
    ("sleep 0 & p=$!", "wait $p; echo $?"),
    ("set -x", "echo a", "set +x", "echo b"),
    ("exec 7> f", "echo x >&7", "exec 7>&-; cat f"),
    ("set -- 1 2", "shift", "echo $1 $#"),
    ("cd /usr", "pwd; cd -", "dirs"),
    ("coproc cat", "echo hi >&${COPROC[1]}; read r <&${COPROC[0]}; echo $r", "kill $COPROC_PID"),
)


def test_executions_are_one_script():
    bad = []
    for parts in SEQUENCES:
        with guest() as g:
            rs = [g.run(p) for p in parts]
        ours = rs[-1]["exit_code"], "".join(r.stdout for r in rs), re.sub("line [0-9]+", "line", "".join(r.stderr for r in rs))
        status, stdout, stderr = native("\n".join(parts) + "\n")
        theirs = status, stdout.replace("/tmp/native-", "/tmp/guest-"), re.sub("line [0-9]+", "line", stderr)
        re.sub("/guest-[^/\n]*", "", repr(ours)) == re.sub("/guest-[^/\n]*", "", repr(theirs)) or bad.append((parts, ours, theirs))
    assert not bad, "\n".join(map(repr, bad))


def test_exits_keep_everything():
    with guest() as g:
        g.run("exec 7> f; sleep 60 & p=$!; x=(1 2); declare -A m=([k]=v); trap 'echo U' USR1; shopt -s extglob; set -o pipefail")
        for n, code in enumerate(("exit 3", "f() { local x=no; exit 4; }; f", "set -u; echo $nope", "echo )", "echo 'open", "cat <<E",
                                  "exec /nonexistent", "trap 'exit 3' ERR; false", "trap 'exit 1' RETURN; f() { :; }; set -T; f",
                                  "eval 'eval \"exit 5\"'", ". /dev/stdin <<< 'exit 6'", "for i in 1 2; do { exit 7; } > /dev/null; done", "set -- a b; set -e; false",
                                  "trap 'exit 8' USR2; kill -USR2 $$; :", "${x?}; unset z; ${z?}", "x=$(exit 3); set -e; g() { false; }; g")):
            g.run(code)
            g.run("trap - ERR DEBUG RETURN USR2; set +euT")
            if code.startswith("exec"):  # which gives them up
                g.run("trap 'echo U' USR1")
            text = out(g, "echo $n >&7; kill -0 $p && jobs -p | wc -l; echo ${x[1]} ${m[k]} $BASH_SUBSHELL; h() { echo ${FUNCNAME[*]}; }; h; kill -USR1 $$; set -o | grep -c 'pipefail.*on'", context={"n": n})
            assert text == "1\n2 v 0\nh main\nU\n1\n", (code, text)
            assert g.run("f() { return 3; }; f; break")["exit_code"] == 0
            assert out(g, "trap 'echo E' ERR; false; trap 'echo bye' EXIT; trap - ERR EXIT") == "E\n", code
            assert g.run("trap 'echo bye' EXIT; exit 2").stdout == "bye\n", code
        assert out(g, "kill $p; wc -l < f").strip() == str(n + 1)


NAMES = "declare -p; declare -F; declare -f; trap; trap -p; set; compgen -v; compgen -A function; compgen -A variable; compgen -c; env; export -p; alias; readonly -p; enable; jobs; typeset -p; cat /proc/$$/cmdline"


def test_nothing_of_ours_is_seen():
    with guest() as g:
        for before in (":", "exit 3", "set -u; $nope", "echo )"):
            g.run(before)
            text = out(g, "set +u; " + NAMES, context={"given": 1}, env={"OUR": "2"})
            assert "__cordon" not in text and "LD_PRELOAD" not in text and "CORDON_PRELOAD" not in text, before
        names = set(out(g, "compgen -v").split())
    theirs = set(native(":\ncompgen -v")[1].split())
    assert names - theirs == {"CORDON_STDIN", "CORDON_TOLD_FD", "CORDON_TOOLS_FD", "given", "OUR"}, (names - theirs)
    assert theirs - names <= {"OLDPWD"}, theirs - names


def test_what_else_is_preloaded_stays():
    with guest(env={"LD_PRELOAD": "/nonexistent/x.so"}) as g:
        assert out(g, "echo $LD_PRELOAD") == "/nonexistent/x.so\n"


def test_given_names_fire_no_traps():
    with guest() as g:
        g.run("trap 'echo D' DEBUG; trap 'echo E' ERR; set -eux; x=0; false || true a b")
        r = g.run("echo $? $x", context={"x": 5, "l": [1]}, env={"E": "1", "GONE": None})
        assert r.stdout == "D\n0 5\n" and r.stderr == "++ echo D\n+ echo 0 5\n", (r.stdout, r.stderr)
        g.run("trap - DEBUG ERR; set +eux; true | false; true a b; true | false")
        assert out(g, "echo $? $_ ${PIPESTATUS[*]}", context={"x": 5}) == "1 b 0 1\n"


def test_interrupts_keep_everything():
    with guest() as g:
        g.run("x=kept")
        for code in ("y=$(sleep 30); echo no", "sleep 30; echo no"):  # before any trap on INT
            assert g.interrupt("echo go; " + code).stdout == "go\n" and out(g, "echo $x") == "kept\n", code
        # bash makes a background job ignore SIGINT only after the fork: the job must have come so far.
        g.run("x=kept; sleep 100 & p=$!; until [[ $(< /proc/$p/comm) == sleep ]]; do :; done; exec 7> f")
        for code in ("trap 'echo T' INT; while :; do sleep 30; done; echo no", "wait; echo no", "while :; do :; done", "f() { sleep 30; echo no; }; f",
                     "y=$(sleep 30); echo no", "( sleep 30; echo no ); echo no", "eval 'sleep 30'; echo no\necho no", "read v < <(sleep 30)",
                     "trap 'while :; do :; done' USR1; kill -USR1 $$", "set -e; sleep 30 | cat; echo no"):
            r = g.interrupt("echo go; " + code)
            assert r.error["kind"] == "interrupted" and "no" not in r.stdout, (code, r, r.stdout)
            assert out(g, "trap - INT; set +e; echo $x; kill -0 $p; echo y >&7") == "kept\n", code


def test_a_text_with_nul_is_refused():
    with guest() as g:
        for given in ({"context": {"x": "a\0b"}}, {"context": {"x": ["a", "\0"]}}, {"env": {"X": "\0"}}):
            r = g.run("echo no", **given)
            assert r.error["kind"] == "value" and "NUL" in r.error["message"] and r.stdout == "", r
        assert out(g, "echo ${#x}", context={"x": "ab"}) == "2\n"


def test_a_new_shell_is_told():
    with guest() as g:
        for code in ("kill -9 $$", "kill -TERM $$", "exec true"):
            assert "restarted" not in g.run("x=1"), code
            assert g.run(code)["restarted"] and out(g, "echo ${x-lost}") == "lost\n", code
        for code in ("exit 3", "set -e; false", "exec nosuchprogram"):
            g.run("x=1")
            assert "restarted" not in g.run(code) and out(g, "set +e; echo $x") == "1\n", code
        # Between executions it is told by the next.
        pid = int(out(g, "echo $$"))
        os.kill(pid, signal.SIGKILL)
        assert g.run("echo ${x-lost}")["restarted"] and "restarted" not in g.run("echo 1")


def test_set_n_ends_with_its_execution():
    with guest() as g:
        assert out(g, "set -n; echo no") == "" and out(g, "echo yes") == "yes\n"


def test_an_interrupted_builtin_leaves_no_text():
    """What printf has in its buffer is not written by the next execution."""
    with guest() as g:
        for _ in range(5):
            assert g.interrupt("printf '%s ' {1..200000}; echo no").error["kind"] == "interrupted"
            assert out(g, "echo 2") == "2\n"


def test_forks_that_fail_are_not_the_session():
    """What fails in a fork ends there. Forks that cannot fork are in tests/cases, ADV-08: bash waits 15 s before it gives up."""
    with guest() as g:
        pid = int(out(g, "echo $$"))
        for code in ("( ( nosuch=${x?} ) ); :", "{ echo ${x?}; } & wait", "y=$(echo ${x?}; echo no); :", "( readonly r=1; r=2; echo no ) | cat", "( break; exit 3 ) | cat",
                     "( set -o nosuch; exec /nonexistent ); :", "coproc { : ${x?}; }; wait"):
            g.run(code)
            assert out(g, "echo on $$") == "on %d\n" % pid, code
