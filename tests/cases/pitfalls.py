"""PIT: where the systems that Cordon unifies break, each with the input that broke them (S: securer, C: codepod).

An item has a case here under its number, or stands in ELSEWHERE with the place of the test that names its input; PIT-00 sees to it that
none of them is without."""
import json
import math
import os
import subprocess

import book
from book import CORDON, LANGUAGES, NATIVE, ROOT, SHELLS, case, cordon, has, refused, same, session, value

ITEMS = ["PIT-S%02d" % i for i in range(1, 13)] + ["PIT-C%02d" % i for i in range(1, 15)]
# Item, file, words of the test.
ELSEWHERE = [
    ("PIT-S05", "clients/r/tests/testthat/test-session.R", 'data.frame(a = c(1, NA), b = c("x", NA)'),
    ("PIT-S06", "tests/behaviour/sessions.c", "TEST(a_broken_protocol_ends_that_execution_only)"),
    ("PIT-S08", "tests/behaviour/run.py", "another execution is ignored"),
    ("PIT-C01", "tests/pod/scripts/expand.list", 'f() { echo $#; }; f "$x"'),
    ("PIT-C02", "tests/pod/guest_test.py", '"VAL-02: " + bad'),
    ("PIT-C03", "tests/pod/scripts/control.list", "nosuchcmd 2>/dev/null || echo fallback"),
    ("PIT-C08", "tests/escape/run", "every other attack was carried out"),
    ("PIT-C09", "tests/cases/pods.py", '@case("PKG-04", POD)'),
    ("PIT-C13", "tests/pod/scripts/text.list", "cp -n a b"),
    ("PIT-C14", "tests/pod/image_test", "zcat iconv cal hexdump"),
]


@case("PIT-00")
def every_pitfall_has_a_test(guest):
    del guest
    named = {word for ids, _, _ in book.CASES for word in ids.split() if word.startswith("PIT-")}
    for item, path, words in ELSEWHERE:
        with open(os.path.join(ROOT, path), encoding="utf-8") as f:
            assert words in f.read(), (item, path, words)
        named.add(item)
    same(sorted(set(ITEMS) - named), [])
    same(sorted(named - set(ITEMS)), ["PIT-00"])


def run(*words, env=None):
    """One run of the program, its result."""
    done = subprocess.run([CORDON, "run", "--json", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env=dict(os.environ, **(env or {})), check=False, timeout=100)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


@cordon.tool
def getpi() -> float:
    return math.pi


@cordon.tool
def echo(v):
    "Gives back what it gets."
    return v


@cordon.tool
def add(a: float, b: float) -> float:
    assert isinstance(a, (int, float)) and isinstance(b, (int, float))
    return a + b


@case("PIT-S01", NATIVE)
def the_wall_starts_on_this_machine_and_is_one(guest):
    look = {"python": "open('/etc/passwd').read()", "r": "paste(readLines('/etc/passwd'), collapse = '\\n')",
            "node": "require('fs').readFileSync('/etc/passwd', 'utf8')", "sh": "while read -r line; do echo \"$line\"; done < /etc/passwd"}[guest]
    with open("/etc/passwd", encoding="utf-8") as f:
        theirs = f.read()
    with session(guest) as s:  # there is one, and it is not the host's
        seen = value(s.execute(look))
        assert "user" in seen and not set(seen.split()) & set(theirs.split()) - {"/bin/sh"}, seen


@case("PIT-S02", ("python", "sh"))
def a_limit_is_applied_whatever_the_shell(guest):
    r = run("-g", guest, "--set", "cpu_seconds=1", "--timeout", "60s", "-e", book.SAY["loop"][guest])
    same((r["error_kind"], r["assurance"]["limits"]["cpu_seconds"]), ("cpu", 1))


@case("PIT-S03")
def a_container_is_not_taken_for_a_wall(guest):
    """Nothing is inferred from marker files or variables: they are not even looked for, and change nothing."""
    plain, marked = run("-g", guest, "-e", "1"), run("-g", guest, "-e", "1", env={"container": "docker", "KUBERNETES_SERVICE_HOST": "x"})
    same(marked["assurance"], plain["assurance"])
    done = subprocess.run(["strace", "-f", "-qq", "-e", "trace=%file", CORDON, "run", "-e", "1"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False, timeout=100)
    assert b"/proc/self/" in done.stderr, done.stderr[-500:]
    for marker in (b"dockerenv", b"containerenv", b"/proc/1/cgroup", b"/proc/1/environ"):
        assert marker not in done.stderr, marker


@case("PIT-S04", NATIVE)
def code_that_prints_and_gives_nothing(guest):
    with session(guest) as s:
        r = s.execute(book.SAY["hi"][guest])
        same((r.success, r.value, r.stdout), (True, None, "hi\n"))


@case("PIT-S05", ("r",))
def numbers_keep_their_digits(guest):
    with session(guest, tools=[getpi, echo, add]) as s:
        assert value(s.execute("identical(getpi(), pi)")) is True
        assert value(s.execute("add(0.123456789, 0) == 0.123456789")) is True
        assert value(s.execute("identical(echo(NA), 'NA')")) is False
        assert value(s.execute("is.null(echo(NULL))")) is True


@case("PIT-S06", LANGUAGES)
def too_many_calls_do_not_wedge_the_session(guest):
    call = {"python": "add(1, 2)", "r": "add(1, 2)", "node": "await add(1, 2)"}[guest]
    with session(guest, policy={"tool_calls": 2}, tools=[add]) as s:
        r = s.execute("\n".join([call] * 4))
        has(r.error, "tool")
        same(value(s.execute(call)), 3)


@case("PIT-S07")
def unlimited_calls_are_unlimited(guest):
    with session(guest, policy={"tool_calls": "none"}, tools=[add]) as s:
        same(value(s.execute("n = 0\nfor i in range(1200): n = add(n, 1)\nn")), 1200)


@case("PIT-S08 PIT-S09")
def what_the_guest_says_is_checked_in_the_host(guest):
    """Past the wrapper, and past the runtime: a line of its own on the wire."""
    line = {"type": "call", "id": 1, "tool": "add", "args": {"a": "x", "b": 2}}
    with session(guest, tools=[add]) as s:
        has(s.execute("import cordon\ncordon.call('add', a='x', b=2)").error, "argument 'a' must be number")
        s.execute("import os; os.write(3, %r)" % (json.dumps(line).encode() + b"\n"))
        same(value(s.execute("add(1, 2)")), 3)


@case("PIT-S09", LANGUAGES)
def types_are_checked(guest):
    call = {"python": "add('x', 2)", "r": "add('x', 2)", "node": "await add('x', 2)"}
    with session(guest, tools=[add]) as s:
        has(s.execute(call[guest]).error, "argument 'a' must be numeric")


@case("PIT-S10")
def a_late_answer_is_nobody_elses(guest):
    slow = cordon.Tool(lambda: __import__("time").sleep(1.5) or "late", "slow", "", timeout_ms=300)
    with session(guest, tools=[slow, add]) as s:
        same(value(s.execute("try: slow(); out = 'no'\nexcept Exception: out = 'gave up'\nout")), "gave up")
        same(value(s.execute("import time; time.sleep(1.8); add(1, 2)")), 3)


@case("PIT-S11", ("python", "r"))
def large_sizes_and_variables_arrive(guest):
    r = run("-g", guest, "--memory", "3G", "--env", "A=b", "-e", {"python": "import os; os.environ['A']", "r": "Sys.getenv('A')"}[guest])
    same((r["result"], r["assurance"]["limits"]["memory_bytes"]), ("b", 3 << 30))


@case("PIT-S12", ("r",))
def a_dangerous_call_is_seen_anywhere(guest):
    for code in ('x <- tryCatch(.Call("a"), error = function(e) 1)', 'f <- function() { 1; .Internal(g()) }'):
        assert run("-g", guest, "-e", code)["warnings"], code


@case("PIT-C01", ("sh",))
def quotes_hold_words_together(guest):
    with session(guest) as s:
        same(value(s.execute('x="a b"; f() { echo $#; }; f "$x"')), "1")
        same(value(s.execute('[ "$x" = "a b" ] && echo same; y=""; [ "$y" = "" ] && echo empty')), "same\nempty")
        same(value(s.execute('set -- "1 2" 3; f "$@"; a=("p q" r); f "${a[@]}"; echo "${a[0]}"')), "2\n2\np q")


@case("PIT-C02", SHELLS)
def a_syntax_error_is_one_and_no_more(guest):
    with session(guest) as s:
        for bad in ("if true; then", "(", "for", "while true"):
            same(s.execute(bad).error_kind, "syntax")
        same(value(s.execute("echo done; for i in a; do echo do; done")), "done\ndo")


@case("PIT-C03", SHELLS)
def an_unknown_command_is_127(guest):
    with session(guest) as s:
        same(s.execute("nosuchcmd || echo fallback").stdout, "fallback\n")
        same(s.execute("nosuchcmd; echo $?").stdout, "127\n")
        same(s.execute("cat < missing; echo on; echo x > /nodir/f; echo on").stdout, "on\non\n")


@case("PIT-C04", SHELLS)
def a_large_environment_runs_a_command_once(guest):
    with session(guest) as s:
        s.execute("export BIG=$(printf 'x%.0s' {1..9000})")
        same(s.execute("echo once >> log; cat log").stdout, "once\n")


@case("PIT-C05")
def the_default_works_from_python_and_has_no_network(guest):
    with cordon.Session() as s:
        same(value(s.execute("1 + 1")), 2)
    with session(guest) as s:
        same(s.execute("import socket; socket.create_connection(('127.0.0.1', 1))").error_kind, "denied")


@case("PIT-C05", SHELLS)
def what_a_child_writes_is_kept(guest):
    with session(guest) as s:
        same(s.execute("bash -c 'echo child > f'; (cd /tmp; echo sub > g); cat f /tmp/g").stdout, "child\nsub\n")
        same(s.execute("cat f").stdout, "child\n")


@case("PIT-C06", SHELLS)
def a_limit_of_memory_refuses_no_command(guest):
    with session(guest, policy={"memory_bytes": 128 << 20}) as s:
        same(value(s.execute("echo one | cat")), "one")


@case("PIT-C07", ("python", "sh"))
def limits_hold_without_being_asked_for(guest):
    flood = {"python": "print('x' * (64 << 20))", "sh": "head -c 67108864 /dev/zero | tr '\\0' x"}[guest]
    r = run("-g", guest, "--set", "commands=*", "-e", flood)
    assert r["truncated"]["stdout"] and len(r["stdout"]) < 16 << 20, len(r["stdout"])
    full = {"python": "open('f', 'wb').write(b'x' * (4 << 20))", "sh": "head -c 4194304 /dev/zero > f"}[guest]
    same(run("-g", guest, "--set", "commands=*", "--set", "fs_bytes=1M", "-e", full)["error_kind"], "disk")


@case("PIT-C10", ("python", "sh"))
def no_way_around_the_list_of_commands(guest):
    tries = {"python": "import subprocess; subprocess.run(['cat', '/dev/null'])", "sh": "command cat /dev/null"}
    assert not run("-g", guest, "--set", "commands=ls", "-e", tries[guest])["success"]
    late = {"python": "import os\nos.fork() or os.setsid()\nwhile True: pass", "sh": "bash -c 'sleep 50'"}
    r = run("-g", guest, "--set", "commands=*", "--timeout", "1500ms", "-e", late[guest])
    same(r["error_kind"], "timeout")


@case("PIT-C11 PIT-C12", NATIVE + ("pod",))
def a_loop_without_calls_is_ended(guest):
    with session(guest) as s:
        same(s.execute(book.SAY["loop"][guest], timeout=1).error_kind, "timeout")
        same(value(s.execute(book.SAY["two"][guest])), 2 if guest in LANGUAGES else "2")


@case("PIT-C12", SHELLS)
def programs_have_a_directory_and_take_words_for_words(guest):
    with session(guest) as s:
        same(s.execute("touch 3; seq 3").stdout, "1\n2\n3\n")
        same(s.execute('mkdir p; touch p/a.py; (cd p; find . -name "*.py"); find p | sort').stdout, "./a.py\np\np/a.py\n")
        same(s.execute("touch z1 z2; ls z*").stdout, "z1\nz2\n")
        same(s.execute("(exit 3); echo after $?; x=$(exit 5); echo $?").stdout, "after 3\n5\n")
        same(s.execute("seq 4 > four; split -l 2 four part; ls part*").stdout, "partaa\npartab\n")
        same(s.execute("mkdir -p d/e; touch d/e/f; (cd d/e; tar cf ../o.tar .); tar tf d/o.tar | sort; ls d").stdout, "./\n./f\ne\no.tar\n")


@case("PIT-C13", SHELLS)
def small_words_mean_what_they_mean(guest):
    with session(guest) as s:
        same(s.execute('printf "%05d\\n" 42; echo hello world | wc -w').stdout.split(), ["00042", "2"])
        same(s.execute("echo 1 > a; echo 2 > b; cp -n a b 2>/dev/null; cat b").stdout, "2\n")
        same(s.execute("sleep 0.1 & wait; echo $?").stdout, "0\n")
        same(s.execute("echo 1 > r; chmod 444 r; test -w r; echo $?; test -w a; echo $?").stdout, "1\n0\n")
        refused_by_u = s.execute("set -u; echo $undefined")
        assert not refused_by_u.success and not refused_by_u.stdout
    if guest == "sh":
        refused(lambda: cordon.Session("nosuchguest"), "nosuchguest")
