"""FS, SNP: files, snapshots, forks, exports."""
import os
import tempfile
import time

from book import NATIVE, SHELLS, case, cordon, has, refused, same, session, value

ALL = NATIVE + ("pod",)


@case("FS-01 FS-02 FS-03", ALL)
def files(guest):
    with session(guest) as s:
        every = bytes(range(256))
        s.files.write("/tmp/test.txt", every)
        same(s.files.read("/tmp/test.txt"), every)
        s.files.write("/tmp/three", "abc")
        info = s.files.stat("/tmp/three")
        same((info.type, info.size), ("file", 3))
        assert "three" in [e.name for e in s.files.list("/tmp")]
        s.files.mkdir("/tmp/d")
        s.files.remove("/tmp/three")
        error = refused(lambda: s.files.stat("/tmp/three"))
        same(error.errno, "ENOENT")
        refused(lambda: s.files.read("/nonexistent"))


@case("FS-04 FS-05 FS-06 FS-07 FS-08 FS-09 FS-10", SHELLS)
def read_only(guest):
    with session(guest) as s:
        for bad in ("echo evil > /etc/x", "mkdir /newtop", "rm /usr/bin/ls", "echo evil > /tmp/../../../etc/passwd",
                    "ln -s /bin /tmp/escape && echo evil > /tmp/escape/backdoor", "chmod 777 /etc/passwd",
                    "ln -s /bin /tmp/sysdir && echo x > /tmp/src && mv /tmp/src /tmp/sysdir/x",
                    "ln -s b /tmp/a && ln -s a /tmp/b && cat /tmp/a",
                    "echo old > /tmp/ro && chmod 444 /tmp/ro && echo new > /tmp/ro"):
            assert not s.execute(bad).success, bad
        same(s.execute("cat /tmp/src /tmp/ro; ls /usr/bin/ls").stdout, "x\nold\n/usr/bin/ls\n")


@case("FS-12 FS-13", SHELLS)
def devices(guest):
    with session(guest) as s:
        same(s.execute("cat /dev/null; echo x > /dev/null; echo $?").stdout, "0\n")
        assert s.execute("head -c 16 /dev/urandom | od -An -tx1").stdout != s.execute("head -c 16 /dev/urandom | od -An -tx1").stdout
        same(s.execute("head -c 100000 /dev/zero | wc -c").stdout.strip(), "100000")


CLOCK = {"python": "import time; time.clock_gettime(time.CLOCK_BOOTTIME)", "r": "proc.time()[['elapsed']]",
         "node": "process.hrtime.bigint().toString()", "sh": "echo $EPOCHREALTIME"}
READ = {"python": "open('/proc/meminfo').readline().strip()", "r": "readLines('/proc/meminfo', 1)",
        "node": "require('fs').readFileSync('/proc/meminfo', 'utf8').split('\\n')[0]", "sh": "head -1 /proc/meminfo"}
ABSENT = {"python": "open('/proc/kallsyms').read()", "r": "suppressWarnings(readLines('/proc/kallsyms'))",
          "node": "require('fs').readFileSync('/proc/kallsyms', 'utf8')", "sh": "read -r line < /proc/kallsyms"}
WRITE = {"python": "open('/proc/uptime', 'w')", "r": "suppressWarnings(writeLines('x', '/proc/uptime'))",
         "node": "require('fs').writeFileSync('/proc/uptime', 'x')", "sh": "echo x > /proc/uptime"}


@case("FS-14", NATIVE)
def proc_is_of_the_processes_only(guest):
    """What /proc says of a machine is of the sandbox's limits, or not there; clocks go on. (A pod has a word of its own: pods.py.)"""
    with session(guest, {"memory_bytes": 300 << 20}) as s:
        first = float(value(s.execute(CLOCK[guest])))
        time.sleep(0.05)
        assert float(value(s.execute(CLOCK[guest]))) > first, guest
        same(str(value(s.execute(READ[guest]))).split(), ["MemTotal:", str(300 << 10), "kB"])
        for code in (ABSENT[guest], WRITE[guest]):
            r = s.execute(code)
            assert not r.success, r
        same(value(s.execute({"python": "import os; os.path.exists('/proc/self/status')", "r": "file.exists('/proc/self/status')",
                              "node": "require('fs').existsSync('/proc/self/status')",
                              "sh": "test -e /proc/self/status && echo true"}[guest])), "true" if guest == "sh" else True)


@case("FS-15 FS-16", SHELLS)
def mounts_by_value(guest):
    with cordon.Sandbox(guest=guest, mounts=[("/mnt/x", {"tools/run.sh": b"echo run\n", "lib/a.py": b"a = 1\n"})]) as box:
        run = box.commands.run
        has(run("ls /mnt").stdout, "x")
        same(run("ls /mnt/x").stdout.split(), ["lib", "tools"])
        same(run("cat /mnt/x/lib/a.py").stdout, "a = 1\n")
        r = run("echo x > /mnt/x/new")
        assert r.exit_code != 0
        has(r.stderr, "Read-only")
    with cordon.Sandbox(guest=guest, mounts=[("/workspace/w", cordon.MemoryFS({"a": b"1"}, writable=True))]) as box:
        same(box.commands.run("mkdir -p /workspace/w/x/y && echo 2 > /workspace/w/x/y/b && cat /workspace/w/x/y/b").stdout, "2\n")


@case("FS-17", ("sh", "python", "pod"))
def host_mounts(guest):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        with open(os.path.join(folder, "f"), "w", encoding="ascii") as f:
            f.write("inside\n")
        os.symlink("/etc/shadow", os.path.join(folder, "out"))
        mount = {"host": folder, "guest": "/mnt/h"}
        with session(guest, {"mounts": [mount]}) as s:
            if guest == "python":
                same(value(s.execute("open('/mnt/h/f').read()")), "inside\n")
                assert not s.execute("open('/mnt/h/out').read()").success
                assert not s.execute("open('/mnt/h/../../etc/shadow').read()").success
            else:
                same(s.execute("cat /mnt/h/f").stdout, "inside\n")
                assert not s.execute("cat /mnt/h/out").success
                assert not s.execute("cat /mnt/h/../../etc/shadow").success


@case("FS-18", ALL)
def apart(guest):
    with session(guest) as a, session(guest) as b:
        a.files.write("/tmp/secret", "x")
        refused(lambda: b.files.read("/tmp/secret"))


@case("FS-19 FS-20", SHELLS)
def links_and_appends(guest):
    with session(guest) as s:
        same(s.execute("cd /tmp; echo 1 > t; ln -s t l; echo 2 > l; cat t; readlink l").stdout, "2\nt\n")
        same(s.execute("cd /tmp; (for i in $(seq 200); do echo a >> both; done) & (for i in $(seq 200); do echo b >> both; done) & "
                       "wait; wc -l < both", timeout=60).stdout.strip(), "400")


@case("SNP-01 SNP-02", ALL)
def snapshots(guest):
    with session(guest) as s:
        s.files.write("/home/user/f", "v1")
        s.setenv("E", "original")
        name = s.snapshot()
        s.files.write("/home/user/f", "v2")
        s.files.write("/home/user/new", "x")
        s.setenv("E", "changed")
        for _ in range(2):
            s.restore(name)
            same(s.files.read("/home/user/f"), b"v1")
            assert not s.files.exists("/home/user/new")
        refused(lambda: s.restore("unknown"))
        code = {"python": "import os; os.environ['E']", "r": "Sys.getenv('E')", "node": "process.env.E"}.get(guest, "echo $E")
        same(value(s.execute(code)), "original")


@case("SNP-03", ALL)
def forks(guest):
    with session(guest) as s:
        s.files.write("/home/user/f", "parent")
        s.setenv("E", "e")
        with s.fork() as child:
            same(child.files.read("/home/user/f"), b"parent")
            child.files.write("/home/user/f", "child")
            s.files.write("/home/user/g", "only parent")
            same(s.files.read("/home/user/f"), b"parent")
            assert not child.files.exists("/home/user/g")
            code = {"python": "import os; os.environ['E']", "r": "Sys.getenv('E')", "node": "process.env.E"}.get(guest, "echo $E")
            same(value(child.execute(code)), "e")


@case("SNP-01 SNP-03 SNP-05 SNP-12 ENV-04", SHELLS)
def what_commands_export(guest):
    with session(guest, env={"HOST": "h"}) as s, session(guest) as t:
        s.execute("export A='a b' B=1; unset TERM; plain=p; cd /tmp")
        look = 'echo "$A,$B,$HOST,${TERM-none},${plain-none},$PWD"'
        name = s.snapshot()
        s.execute("export A=changed NEW=1; unset HOST")
        s.restore(name)
        same(s.execute(look + "; echo ${NEW-none}").stdout, "a b,1,h,none,p,/tmp\nnone\n")
        with s.fork() as child:
            same(child.execute(look).stdout, "a b,1,h,none,none,/tmp\n")
            child.execute("export A=child")
        same(s.execute("echo $A").stdout, "a b\n")
        s.setenv("B", "host")  # a change of the host, then one of the code
        same(s.execute("echo $B; export B=code").stdout, "host\n")
        same(s.execute("echo $B").stdout, "code\n")
        t.import_(s.export())
        same(t.execute(look).stdout, "a b,code,h,none,none,/tmp\n")
        for method, params in (("offload", {}), ("rehydrate", {}), ("mount", {"path": "/mnt/m", "files": {"f": "eA=="}})):
            s._c.request(method, dict(params, session=s.id))
        same(s.execute(look + "; cat /mnt/m/f").stdout, "a b,code,h,none,none,/tmp\nx")
        s.execute("kill -9 $$")  # the next shell gets them again
        same(s.execute("echo $A,$B").stdout, "a b,code\n")


@case("SNP-04", SHELLS)
def a_fork_keeps_the_policy(guest):
    with session(guest, {"commands": ["echo"]}) as s, s.fork() as child:
        same(child.execute("cat /etc/passwd").exit_code, 126)


@case("SNP-05 SNP-06 SNP-10", ALL)
def exports(guest):
    with session(guest) as s, session(guest) as t:
        s.files.mkdir("/home/user/d")
        s.files.write("/home/user/d/f", "content")
        s.setenv("E", "kept")
        if guest in SHELLS:
            s.execute("ln -s d/f link; chmod 755 d/f")
        blob = s.export()
        t.import_(blob)
        same(t.files.read("/home/user/d/f"), b"content")
        if guest in SHELLS:
            same(t.execute("readlink link; stat -c %a d/f; echo $E").stdout, "d/f\n755\nkept\n")
        for bad in (blob[:-10], blob[:10], b"XXXX" + blob[4:], blob[:len(blob) // 2] + bytes([blob[len(blob) // 2] ^ 1]) +
                    blob[len(blob) // 2 + 1:]):
            refused(lambda bad=bad: t.import_(bad))
        same(t.files.read("/home/user/d/f"), b"content")


@case("SNP-11", ("sh", "python"))
def persistent(guest):
    name = "case-%d" % os.getpid()
    with session(guest, workspace=name) as s:
        s.files.write("/home/user/f", "kept")
    with session(guest, workspace=name) as s:
        same(s.files.read("/home/user/f"), b"kept")
    with session(guest, workspace=name + "-other") as s:
        assert not s.files.exists("/home/user/f")


@case("SNP-12", SHELLS)
def offload(guest):
    kept = {}
    with cordon.Sandbox(guest=guest, storage={"save": kept.__setitem__, "load": kept.get}) as box:
        box.files.write("/home/user/f", b"x")
        box.set_env("E", "e")
        box.offload()
        box.offload()
        refused(lambda: box.files.read("/home/user/f"), "offloaded")
        box.rehydrate()
        box.rehydrate()
        same(box.files.read("/home/user/f"), b"x")
        same(box.commands.run("echo $E").stdout, "e\n")


PLANT = {"python": "import os, subprocess\nopen('s', 'w').write('#!/bin/sh\\necho ran')\nos.chmod('s', 0o755)\nsubprocess.check_output('./s', text=True)",
         "r": "writeLines(c('#!/bin/sh', 'echo ran'), 's'); Sys.chmod('s', '755'); paste0(system('./s', intern = TRUE), '\\n')",
         "node": "require('fs').writeFileSync('s', '#!/bin/sh\\necho ran', { mode: 0o755 }); require('child_process').execFileSync('./s').toString()",
         "sh": "printf '#!/bin/sh\\necho ran' > s; chmod +x s; ./s"}


@case("WS-EXEC", NATIVE)
def files_are_executed_where_the_policy_says_so(guest):
    """Also in sessions of a template, whose own workspace lies below."""
    for _ in range(2):
        with session(guest, {"workspace_exec": True}) as s:
            r = s.execute(PLANT[guest])
            same((r.stdout if guest == "sh" else value(r), r.denials), ("ran\n", []))
        with session(guest) as s:
            r = s.execute(PLANT[guest])
            same([(d.operation, d.target) for d in r.denials], [("execute", "/home/user/s")])
            has(r.denials[0].remedy, "(workspace_exec=true)")
            assert "ran" not in r.stdout, r.stdout
