# test_sh.py - guests/sh.
import base64
import json
import os
import time

from driver import adder, BUILD, Gone, Guest, Stock, validate

PROGRAM = os.environ.get("CORDON_SH") or os.path.join(BUILD, "guests/sh/cordon-sh")
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
        g.run("sleep 0.3 & echo $! > pid")
        assert out(g, "kill -0 $(cat pid) && jobs | wc -l").strip() == "1"
        assert out(g, "wait; echo waited") == "waited\n"
        start = time.monotonic()
        g.run("(sleep 5; echo late) &")
        assert time.monotonic() - start < 2
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
            kept = "" if "kill" in code or "249" in code else "kept"
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


def test_extensions():
    with tools_guest() as g:
        text = out(g, "extensions list")
        assert "greet" in text and "Says hello." in text and len(text.splitlines()) == len(COMMANDS)
        assert len(out(g, "extensions list --category talk").splitlines()) == 1
        assert [t["name"] for t in json.loads(out(g, "extensions list --json"))] == \
            [t["name"] for t in COMMANDS]
        assert "Says hello." in out(g, "extensions info greet")
        r = g.run("extensions info nope")
        assert r["exit_code"] == 1 and "unknown extension" in r.stderr
        r = g.run("extensions bad")
        assert r["exit_code"] == 1 and "Usage" in r.stderr
        assert "Usage" in out(g, "extensions --help")


def test_tools_of_a_command_that_ended():
    with tools_guest() as g:
        g.run("(sleep 0.3; greet > late.out 2> late.err) &")
        time.sleep(0.8)
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
