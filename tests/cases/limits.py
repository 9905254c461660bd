"""LIM, ENV, ADV, LVL, PY: limits, the environment, attacks, levels, Python."""
import json
import os
import subprocess
import tempfile

from book import CORDON, LANGUAGES, NATIVE, SHELLS, case, cordon, has, refused, same, session, value

ALL = NATIVE + ("pod",)


def run(*words, **more):
    done = subprocess.run([CORDON, "run", "--json", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, **more)
    return json.loads(done.stdout) if done.stdout.strip() else {"error": done.stderr.decode(), "success": False}


@case("LIM-01")
def unknown_limits(guest):
    refused(lambda: cordon.Session(guest, policy={"bogus": 10}), "bogus", "timeout_ms")


@case("LIM-02")
def bad_values(guest):
    for bad in (-1, 0, "ten", [10, 20]):
        refused(lambda bad=bad: cordon.Session(guest, policy={"cpu_seconds": bad}), "cpu_seconds")


@case("LIM-03")
def defaults(guest):
    p = cordon.policy()
    same([p[k] for k in ("cpu_seconds", "memory_bytes", "file_bytes", "processes", "open_files")],
         [60, 512 << 20, 50 << 20, 50, 256])


@case("LIM-04")
def read_back(guest):
    code = ("import resource as r; [r.getrlimit(x) for x in (r.RLIMIT_CPU, r.RLIMIT_FSIZE, r.RLIMIT_NOFILE)]")
    with session(guest, {"cpu_seconds": 7, "file_bytes": 3 << 20, "open_files": 99}) as s:
        cpu, size, files = [list(x) for x in value(s.execute(code))]
        same((cpu[0], size, files), (7, [3 << 20] * 2, [99, 99]))
        limits = s.execute("1").assurance["limits"]
        same((limits["cpu_seconds"], limits["file_bytes"], limits["open_files"]), (7, 3 << 20, 99))


@case("LIM-05", ("python", "sh", "pod"))
def cpu(guest):
    code = "while True: pass" if guest == "python" else "while true; do :; done"
    r = run("-g", guest, "--set", "cpu_seconds=1", "--timeout", "60s", "-e", code)
    same(r["error_kind"], "cpu")


@case("LIM-06", ("python", "r", "node"))
def memory(guest):
    code = {"python": "x = 'x' * (400 << 20); len(x)", "r": "x <- numeric(50e6); x[] <- 1; length(x)",
            "node": "const a = []; for (let i = 0; i < 400; i++) a.push(Buffer.alloc(1 << 20, 1)); a.length"}[guest]
    with session(guest, {"memory_bytes": 300 << 20}) as s:
        r = s.execute(code)
        assert not r.success
        assert r.error_kind == "memory" or (guest != "node" and r.error_kind == "exception"), (r.error_kind, r.error)
        if r.error_kind == "exception":
            has((r.error + r.stderr).lower(), "memory" if guest != "r" else "cannot allocate")
        assert s.execute("1").success


@case("LIM-07", ("python", "sh", "pod"))
def file_size(guest):
    code = {"python": "with open('/tmp/f', 'wb') as f: f.write(bytes(5 << 20))"}.get(guest, "head -c 5242880 /dev/zero > /tmp/f")
    with session(guest, {"file_bytes": 1 << 20}) as s:
        assert not s.execute(code).success
        assert s.files.stat("/tmp/f").size <= 1 << 20


@case("LIM-08", ("python", "sh", "pod"))
def processes(guest):
    code = {"python": "import os, time\nfor _ in range(200):\n  if os.fork() == 0: time.sleep(5); os._exit(0)\n"}.get(
        guest, "for i in $(seq 200); do sleep 5 & done; wait")
    with session(guest, {"processes": 20}) as s:
        r = s.execute(code, timeout=20)
        assert not r.success or "fork" in r.stderr, r
        assert s.execute("1" if guest == "python" else ":").success


@case("LIM-09", ("python",))
def descriptors(guest):
    with session(guest) as s:
        r = s.execute("fs = []\nfor i in range(1000): fs.append(open('/dev/null'))")
        same(r.error_kind, "exception")
        has(r.error, "Too many open files")
        assert s.run("len(fs)") < 257


@case("LIM-10", LANGUAGES)
def code_length(guest):
    with session(guest, {"code_bytes": 3}) as s:
        refused(lambda: s.execute("1 + 1").check(), "Code too long (5", "max 3)")
    with session(guest, {"code_bytes": 5}) as s:
        same(value(s.execute("1 + 1")), 2)


@case("LIM-11", SHELLS)
def command_length(guest):
    with session(guest, {"command_bytes": 50}) as s:
        refused(lambda: s.execute("echo " + "x" * 100).check(), "ommand too large")


@case("LIM-12", ALL)
def output_lines(guest):
    code = {"python": "for i in range(100): print(i)", "r": "for (i in 0:99) cat(i, '\\n', sep='')",
            "node": "for (let i = 0; i < 100; i++) console.log(i)"}.get(guest, "seq 0 99")
    with session(guest, {"output_lines": 3}) as s:
        r = s.execute(code)
        assert r.success
        same(r.stdout.split()[:3], ["0", "1", "2"])
        assert r.stdout.count("\n") <= 4 and "3" not in r.stdout.split()[3:4], r.stdout


@case("LIM-13 LIM-14 LIM-15", SHELLS)
def output_bytes(guest):
    with session(guest, {"stdout_bytes": 20, "stderr_bytes": 20}) as s:
        r = s.execute("yes hello | head -100")
        assert r.truncated["stdout"] and r.stdout.startswith("hello\nhello\n") and len(r.stdout) < 100
        r = s.execute("cat /missing1; cat /missing2; cat /missing3; true")
        assert r.truncated["stderr"]
        assert not any(s.execute("echo hello").truncated.values())


@case("LIM-16", ALL)
def default_cap(guest):
    code = {"python": "import sys; sys.stdout.write('x' * (50 << 20)); None", "r": "cat(strrep('x', 50 * 2^20))",
            "node": "process.stdout.write('x'.repeat(50 << 20)); null"}.get(guest, "head -c 52428800 /dev/zero | tr '\\0' x")
    with session(guest) as s:
        r = s.execute(code)
        assert r.truncated["stdout"] and len(r.stdout) < (1 << 20) + 100, (r.error, len(r.stdout))


@case("LIM-17 LIM-18", ("python", "sh", "pod"))
def quota(guest):
    write = {"python": "with open('/tmp/%s', 'wb') as f: f.write(bytes(%d))"}.get(guest, "head -c %.0s%d /dev/zero > /tmp/%s")
    def put(s, name, size):
        return s.execute(write % (name, size) if guest == "python" else "head -c %d /dev/zero > /tmp/%s" % (size, name))
    with session(guest, {"fs_bytes": 1 << 20}) as s:
        assert put(s, "a", 40000).success
        r = put(s, "b", 4 << 20)
        assert not r.success
        has((r.error or "") + r.stderr, "No space left")
        assert s.execute("import os; os.unlink('/tmp/b')" if guest == "python" else "rm /tmp/b").success
        assert put(s, "a", 500000).success and put(s, "c", 300000).success


@case("LIM-20", ("pod", "sh"))
def small_memory(guest):
    with session(guest, {"memory_bytes": 64 << 20}) as s:
        s.files.write("/tmp/f", "small\n")
        same(s.execute("cat /tmp/f").stdout, "small\n")


@case("LIM-21 LIM-22", SHELLS)
def depth(guest):
    with session(guest) as s:
        r = s.execute("f() { f; }; f", timeout=60)
        assert not r.success
        same(s.execute("echo usable").stdout, "usable\n")
    # Each level is a process.
    with session(guest, {"processes": 60}) as s:
        nested = "w"
        for _ in range(49):
            nested = "$(echo %s)" % nested
        same(s.execute("echo " + nested, timeout=60).stdout, "w\n")


@case("ENV-01 ENV-02 ENV-03", ALL)
def environment(guest):
    code = {"python": "import os; print(repr([os.environ.get(x) for x in ('MY_SECRET', 'R_LIBS', 'LD_PRELOAD')]), len(os.environ['PATH']) > 0)",
            "r": "cat(Sys.getenv(c('MY_SECRET', 'R_LIBS', 'LD_PRELOAD')), nchar(Sys.getenv('PATH')) > 0)",
            "node": "console.log([process.env.MY_SECRET, process.env.R_LIBS, process.env.LD_PRELOAD], process.env.PATH.length > 0)",
            }.get(guest, 'echo "[$MY_SECRET$R_LIBS$LD_PRELOAD]" ${#PATH}')
    r = run("-g", guest, "-e", code, env=dict(os.environ, MY_SECRET="leaked", R_LIBS="/leak"))
    assert r["success"], r["error"]
    assert "leak" not in r["stdout"] and "0" != r["stdout"].split()[-1]


@case("ENV-04 ENV-05", SHELLS)
def own_variables(guest):
    with session(guest) as s:
        s.setenv("MY_VAR", "hello")
        same(s.execute("printenv MY_VAR").stdout, "hello\n")
        refused(lambda: s.setenv("1x", "y"))
        s.execute("export BIG=$(head -c 9000 /dev/zero | tr '\\0' x); echo once >> log")
        same(s.execute("cat log").stdout, "once\n")


@case("ADV-01 ADV-02", SHELLS)
def command_allowlist(guest):
    with session(guest, {"commands": ["echo"]}) as s:
        s.files.write("/home/user/f", "secret x\n")
        s.files.write("/home/user/script", "grep x f\n")
        for code in ("echo $(grep x f)", "source ./script", "cat f | grep x", "curl http://x", "pip list", "/bin/cat f", "command cat f",
                     "PATH=/bin:/usr/bin cat f", "exec cat f", "env cat f", "eval cat f", "\\cat f", "c''at f"):
            r = s.execute(code)
            assert "secret" not in r.stdout, (code, r.stdout)
        r = s.execute("cat f")
        same(r.exit_code, 126)
        has(r.stderr, "not allowed")
        same(s.execute("echo fine").stdout, "fine\n")
    with tempfile.NamedTemporaryFile("w", suffix=".sh") as script:
        script.write('echo "$1-$#"')
        script.flush()
        same(run("-g", guest, "--set", 'commands=["echo"]', script.name, "a b", "c")["stdout"], "a b-2\n")


@case("ADV-03 ADV-04 ADV-05 ADV-06", ("python", "sh", "pod"))
def the_host(guest):
    code = {"python": """
import os, subprocess
bad = []
for path in ('/root/.ssh', '/etc/shadow', '/home/nobody'):
    try: open(path).read(); bad.append(path)
    except OSError: pass
try: open('/root/x', 'w'); bad.append('write')
except OSError: pass
for p in ('perl', 'curl', 'gcc'):
    try: subprocess.run([p, '--version']); bad.append(p)
    except OSError: pass
if any(int(p) > 200 for p in os.listdir('/proc') if p.isdigit()): bad.append('pids')
bad"""}.get(guest, "cat /etc/shadow; cat /root/.ssh/id_rsa; echo x > /root/x; ls -d /proc/[0-9]*; kill -9 1; true")
    with session(guest, {"commands": ["sh:*"]}) as s:
        r = s.execute(code)
        if guest == "python":
            same(value(r), [])
        else:
            assert r.success and "root:" not in r.stdout, r.stdout
        assert not os.path.exists("/root/x") or os.getuid()


@case("ADV-08", ("python", "sh", "pod"))
def bombs(guest):
    codes = {"python": ["import os\nwhile True: os.fork()", "x = bytearray(10 << 30)",
                        "with open('/tmp/f', 'wb') as f:\n  while True: f.write(bytes(1 << 20))",
                        "for i in range(200000): open('/tmp/n%d' % i, 'w').close()"]}.get(
        guest, ["f() { f | f & }; f; sleep 3", "head -c 10000000000 /dev/zero | tail -c 10000000000 | wc -c",
                "head -c 1000000000 /dev/zero > /tmp/f"])
    with session(guest, {"file_count": 1000}) as s:
        for code in codes:
            s.execute(code, timeout=5)
            s.execute("rm -rf /tmp/*" if guest != "python" else "import shutil, os; [os.unlink('/tmp/' + f) for f in os.listdir('/tmp')]")
            r = s.execute("print('on')" if guest == "python" else "echo on")
            same(r.stdout, "on\n")


@case("LVL-01 LVL-02")
def levels(guest):
    rows = {n: cordon.SandboxConfig.for_level(n) for n in ("strict", "standard", "permissive")}
    same([cordon.policy(n)["timeout_ms"] for n in rows], [10000, 30000, 60000])
    same([cordon.policy(n)["memory_bytes"] >> 20 for n in rows], [256, 512, 1024])


@case("PY-01 PY-02 PY-03 PY-04", ("pod",))
def python_in_a_pod(guest):
    with session(guest) as s:
        same(s.execute('python3 -c "print(1+1)"').stdout, "2\n")
        r = s.execute('python3 -c "1/0"')
        same(r.exit_code, 1)
        has(r.stderr, "Traceback", "ZeroDivisionError")
        assert s.execute('python3 -c "def f(:"').exit_code != 0
        same(s.execute('echo 5 | python3 -c "print(int(input())*2)"').stdout, "10\n")
        same(s.execute('python3 -c "print(1)" | wc -l').stdout.strip(), "1")
        same(s.execute("echo shell > a; python3 -c \"print(open('a').read(), end=''); open('b', 'w').write('python')\"; cat b").stdout,
             "shell\npython")
        s.files.write("/home/user/p.py", "import subprocess as s\nprint(s.run(['echo', 'hi'], capture_output=True, text=True).stdout, end='')\n"
                      "print(s.run('echo a b | wc -w', shell=True, capture_output=True, text=True).stdout.strip())\n"
                      "print(s.check_output(['echo', 'x']))\nprint(s.run(['sh', '-c', 'exit 3']).returncode)\n"
                      "print(s.run(['cat'], input='in', capture_output=True, text=True).stdout)\n")
        same(s.execute("python3 p.py").stdout, "hi\n2\nb'x\\n'\n3\nin\n")


@case("PY-05", ("python", "pod"))
def no_network(guest):
    code = "import urllib.request; urllib.request.urlopen('http://127.0.0.1:9/')"
    with session(guest) as s:
        assert not s.execute(code if guest == "python" else 'python3 -c "%s"' % code).success


@case("PY-06 PY-08 PY-09")
def python_details(guest):
    with session(guest, {"stdout_bytes": 20}) as s:
        same(value(s.execute("a = 1\na + 1")), 2)
        r = s.execute("print('x' * 50)")
        assert r.truncated["stdout"] and r.stdout.startswith("x" * 20)
        same(value(s.execute("result = x + y", {"x": 10, "y": 20})), 30)


@case("PY-07")
def imports(guest):
    with session(guest, {"modules": ["math"]}) as s:
        same(value(s.execute("import math; math.sqrt(4)")), 2)
        for code in ("import os", "import os.path", "__import__('os')", "import importlib; importlib.import_module('os')"):
            r = s.execute(code)
            assert not r.success, code
            has(r.error, "not allowed")
