"""POD and what other parts leave open for a pod: FS, SNP, LIM, TMO, ADV, PKG, and cases of its own."""
import hashlib
import io
import json
import os
import struct
import subprocess
import tarfile
import tempfile
import threading
import time
import zipfile

from book import SHELLS, case, cordon, has, refused, same, session

POD = ("pod",)


def out(s, code, **more):
    r = s.execute(code, **more)
    assert r.success, (code, r.error_kind, r.error, r.stdout[-300:], r.stderr[-300:])
    return r.stdout


def fails(s, code, *parts, **more):
    """It does not succeed, says so in these words, and the session goes on."""
    r = s.execute(code, **more)
    assert not r.success, (code, r.stdout)
    has(r.stderr + (r.error or ""), *parts)
    same(s.execute("echo on").stdout, "on\n")
    return r


def forged(blob, change):
    """The same blob with another archive inside and a checksum that is right."""
    archive = subprocess.run(["zstd", "-dqc"], input=blob[64:], stdout=subprocess.PIPE, check=True).stdout
    made = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(archive)) as old, tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as new:
        for entry in old:
            new.addfile(entry, old.extractfile(entry) if entry.isreg() else None)
        change(new)
    payload = subprocess.run(["zstd", "-qc"], input=made.getvalue(), stdout=subprocess.PIPE, check=True).stdout
    head = blob[:16] + struct.pack("<QQ", len(payload), len(made.getvalue()))
    return head + hashlib.sha256(head + hashlib.sha256(payload).digest()).digest() + payload


def plain(archive, name, data=b"evil", kind=tarfile.REGTYPE, link=""):
    entry = tarfile.TarInfo(name)
    entry.size, entry.type, entry.linkname, entry.mode = len(data) if kind == tarfile.REGTYPE else 0, kind, link, 0o777
    archive.addfile(entry, io.BytesIO(data) if kind == tarfile.REGTYPE else None)


@case("FS-16", SHELLS)
def writable_mounts(guest):
    files = cordon.MemoryFS({"deep/a": b"1"}, writable=True)
    with cordon.Sandbox(guest=guest, mounts=[("/workspace/w", files)]) as box:
        run = box.commands.run
        same(run("cat /workspace/w/deep/a; mkdir -p /workspace/w/n/m; echo new > /workspace/w/n/m/f; cat /workspace/w/n/m/f").stdout, "1new\n")
        same(run("echo 2 > /workspace/w/deep/a; cat /workspace/w/deep/a; rm -r /workspace/w/n; ls /workspace/w").stdout, "2\ndeep\n")
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        with session(guest, {"mounts": [{"host": folder, "guest": "/mnt/h", "mode": "rw"}]}) as s:
            same(out(s, "mkdir -p /mnt/h/x/y; echo out > /mnt/h/x/y/f; cat /mnt/h/x/y/f"), "out\n")
        with open(os.path.join(folder, "x/y/f"), encoding="ascii") as f:
            same(f.read(), "out\n")
        subprocess.run(["rm", "-rf", os.path.join(folder, "x")], check=False)


@case("FS-17", SHELLS)
def no_way_out_of_a_mount(guest):
    with tempfile.TemporaryDirectory() as top:
        os.chmod(top, 0o755)
        folder = os.path.join(top, "in")
        os.mkdir(folder)
        for path, text in ((os.path.join(top, "secret"), "secret\n"), (os.path.join(folder, "f"), "inside\n")):
            with open(path, "w", encoding="ascii") as f:
                f.write(text)
        for name, target in (("up", "../secret"), ("abs", os.path.join(top, "secret")), ("dir", ".."), ("hop", "dir/secret"), ("root", "/")):
            os.symlink(target, os.path.join(folder, name))
        with session(guest, {"mounts": [{"host": folder, "guest": "/mnt/h"}]}) as s:
            same(out(s, "cat /mnt/h/f"), "inside\n")
            for path in ("up", "abs", "dir/secret", "hop", "../secret", "root" + top + "/secret", "./../../mnt/h/../secret"):
                r = s.execute("cat /mnt/h/" + path)
                assert not r.success and "secret\n" not in r.stdout, (path, r.stdout)
            for code in ("echo x > /mnt/h/f", "rm /mnt/h/f", "mkdir /mnt/h/d", "chmod 777 /mnt/h/f", "mv /mnt/h/f /tmp/f", "ln /mnt/h/f /tmp/hard"):
                assert not s.execute(code).success, code
            same(out(s, "cat /mnt/h/f"), "inside\n")


@case("FS-14", POD)
def facts_of_a_machine(guest):
    with session(guest) as s:
        first, second = (float(out(s, "cat /proc/uptime").split()[0]) for _ in range(2) if not time.sleep(0.05))
        assert second > first, (first, second)
        fails(s, "echo x > /proc/uptime", "Read-only file system")
        has(out(s, "free; cat /proc/meminfo /proc/cpuinfo /proc/loadavg"), "Mem:", "MemTotal:", "processor", "0.00")


@case("SNP-06", SHELLS)
def damaged_blobs(guest):
    with session(guest) as s:
        s.files.write("/home/user/f", "kept")
        blob = s.export()
        refused(lambda: s.import_(blob[:100] + bytes([blob[100] ^ 1]) + blob[101:]), "checksum mismatch")
        refused(lambda: s.import_(blob[:20]), "too short")
        refused(lambda: s.import_(b"XXXXXXXX" + blob[8:]), "bad magic bytes")
        refused(lambda: s.import_(blob[:8] + struct.pack("<I", 99) + blob[12:]), "Unsupported state version: 99")
        same(s.files.read("/home/user/f"), b"kept")
        s.import_(blob)


@case("SNP-07 SNP-08", SHELLS)
def hostile_entries(guest):
    bad = ("etc/passwd", "usr/bin/ls", "tmp/../etc/x", "../tmp/out", "/etc/cordon/policy", "dev/null", "proc/1/mem", "home/user/../../etc/y", "")

    def change(archive):
        plain(archive, "home/user/good", b"good")
        for name in bad:
            plain(archive, name)
        plain(archive, "home/user/node", kind=tarfile.CHRTYPE)
        plain(archive, "home/user/hard", kind=tarfile.LNKTYPE, link="etc/passwd")
        plain(archive, "home/user/esc", kind=tarfile.SYMTYPE, link="/etc")
        plain(archive, "home/user/esc/through")
    with session(guest) as s:
        s.files.write("/home/user/old", "old")
        report = s.import_(forged(s.export(), change))
        same(out(s, "cat good; cat old; ls -d /etc/x /etc/y /tmp/out /etc/through /etc/cordon 2>/dev/null | wc -l").split(), ["goodold0"])
        assert not s.execute("cat node || cat hard").success
        assert len(report["skipped"]) >= 8, report
        assert s.execute("ls /usr/bin/ls; grep -c evil /etc/passwd").stdout.split() == ["/usr/bin/ls", "0"]


@case("SNP-09", SHELLS)
def what_is_not_exported(guest):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        with open(os.path.join(folder, "mounted"), "w", encoding="ascii") as f:
            f.write("of the host\n")
        with session(guest, {"mounts": [{"host": folder, "guest": "/mnt/h"}, {"host": folder, "guest": "/workspace/m"}]}) as s:
            out(s, "echo mine > mine; cat /mnt/h/mounted /workspace/m/mounted; cat /dev/null /proc/self/stat > /dev/null")
            archive = subprocess.run(["zstd", "-dqc"], input=s.export()[64:], stdout=subprocess.PIPE, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as t:
        names = t.getnames()
    assert any(n.endswith("mine") for n in names), names
    assert not [n for n in names if "mounted" in n or n.lstrip("./").startswith(("dev", "proc", "mnt", "usr", "etc"))], names


@case("SNP-11", ("pod",))
def autosave(guest):
    name = "case-pod-%d" % os.getpid()
    with session(guest, workspace=name) as s:
        out(s, "echo kept > f; mkdir d; ln -s ../f d/l; chmod 751 d")
    with session(guest, workspace=name) as s:
        same(out(s, "cat f d/l; stat -c %a d"), "kept\nkept\n751\n")
    with session(guest, workspace=name + "-other") as s:
        assert not s.files.exists("/home/user/f")


@case("SNP-12", SHELLS)
def a_failing_save(guest):
    def save(_id, _blob):
        raise RuntimeError("no room")
    with cordon.Sandbox(guest=guest, storage={"save": save, "load": lambda _id: b""}) as box:
        box.files.write("/home/user/f", b"x")
        refused(box.offload, "no room")
        same(box.commands.run("cat f").stdout, "x")


@case("LIM-04", POD)
def limits_from_inside(guest):
    with session(guest, {"cpu_seconds": 7, "file_bytes": 3 << 20, "open_files": 99, "processes": 33}) as s:
        same(out(s, "ulimit -S -t; ulimit -f; ulimit -u").split(), ["7", "3072", "33"])
        has(out(s, "python3 -c 'import resource as r; print(r.getrlimit(r.RLIMIT_FSIZE))'"), "(3145728, 3145728)")


@case("LIM-06", POD)
def memory(guest):
    with session(guest, {"memory_bytes": 128 << 20}) as s:
        fails(s, "python3 -c 'x = \"x\" * (400 << 20)'", "MemoryError")
        fails(s, "x=$(head -c 400000000 /dev/zero | tr '\\0' x); echo ${#x}", timeout=60)
        fails(s, "awk 'BEGIN { s = \"x\"; while (1) s = s s }'", timeout=60)


@case("LIM-09", POD)
def descriptors(guest):
    with session(guest, {"open_files": 64}) as s:
        n = int(out(s, "python3 -c '\nl = []\ntry:\n  while True: l.append(open(\"/dev/null\"))\nexcept OSError: print(len(l))'"))
        assert 20 < n < 64, n
        n = int(out(s, "n=0; while { exec {fd}< /dev/null; } 2> /dev/null; do n=$((n+1)); [ $n -lt 500 ] || break; done; echo $n"))
        assert 20 < n < 64, n


@case("LIM-18", SHELLS)
def number_of_files(guest):
    with session(guest, {"file_count": 50}) as s:
        r = s.execute("for i in $(seq 100); do : > /tmp/n$i || exit 1; done")
        assert not r.success
        has(r.stderr, "No space left")
        same(out(s, "rm /tmp/n1; : > /tmp/again; echo over > /tmp/n2; cat /tmp/n2"), "over\n")


@case("LIM-19", SHELLS)
def quota_after_a_restore(guest):
    with session(guest, {"fs_bytes": 4 << 20}) as s:
        out(s, "head -c 3000000 /dev/zero > /tmp/full")
        name = s.snapshot()
        out(s, "rm /tmp/full; head -c 3000000 /dev/zero > /tmp/other; rm /tmp/other")
        s.restore(name)
        r = s.execute("head -c 3000000 /dev/zero > /tmp/more")
        assert not r.success, "the restored file takes its room"
        out(s, "rm -f /tmp/full /tmp/more; head -c 3000000 /dev/zero > /tmp/more")


@case("TMO-07 TMO-08 TMO-12", POD)
def loops(guest):
    with session(guest) as s:
        for code in ("python3 -c 'while True: pass'", "python3 -c 'import time\nwhile True: time.time()'", "while true; do :; done",
                     "awk 'BEGIN { while (1); }'", "sed ':a;ba' <<< x", "jq -n 'def f: f; f'", "bc <<< 'while (1) { }'", "perl=1; until false; do :; done",
                     "sqlite3 :memory: 'with recursive c(x) as (select 1 union all select x+1 from c) select max(x) from c'", "yes > /dev/null",
                     "cat /dev/zero | cat > /dev/null", "read x < <(sleep 100)", "grep -E '(a*)*b' < /dev/zero"):
            start = time.monotonic()
            r = s.execute(code, timeout=0.4)
            same((code, r.error_kind, r.exit_code), (code, "timeout", 124))
            assert time.monotonic() - start < 40, code
        same(out(s, "echo $((40 + 2))"), "42\n")


@case("TMO-13", POD)
def quick(guest):
    with session(guest) as s:
        times = []
        for _ in range(100):
            start = time.monotonic()
            s.execute(":")
            times.append(time.monotonic() - start)
        assert sorted(times)[50] < 0.05, sorted(times)[50]


@case("ADV-07", POD)
def the_channel(guest):
    with session(guest, tools=[cordon.Tool(lambda a: a, "twice", args={"a": "number"})]) as s:
        for code in ("for i in $(seq 3 300); do { echo '{\"type\":\"result\",\"id\":1,\"value\":666}' >&$i; } 2>/dev/null; done; echo end",
                     "python3 -c '\nimport os\nfor i in range(3, 1100):\n  try: os.write(i, b\"{}\\n\"); print(i)\n  except OSError: pass\nprint(\"end\")'"):
            same(out(s, code), "end\n")
        has(s.execute("twice x").stderr, "must be")


@case("PKG-01", POD)
def no_packages(guest):
    with session(guest) as s:
        for code in ("pkg install x", "pkg list", "pkg search x", "pkg info x", "pkg remove x"):
            r = s.execute(code)
            same((r.exit_code, r.stderr), (1, "pkg: package manager is disabled\n"))


def wheel(name, version, files, requires=(), scripts=""):
    made, info = io.BytesIO(), "%s-%s.dist-info/" % (name, version)
    with zipfile.ZipFile(made, "w") as z:
        for path, text in files.items():
            z.writestr(path, text)
        needs = "".join("Requires-Dist: %s\n" % r for r in requires)
        z.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: %s\nVersion: %s\nSummary: A test.\n%s" % (name, version, needs))
        z.writestr(info + "WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        z.writestr(info + "entry_points.txt", "[console_scripts]\n" + scripts)
        z.writestr(info + "RECORD", "")
    return made.getvalue()


@case("PKG-04", POD)
def pip(guest):
    with session(guest) as s:
        has(out(s, "pip list"), "Package", "Version", "pip")
        has(out(s, "pip show pip"), "Name: pip\n", "Version: ", "Location: ")
        same(fails(s, "pip show nosuch", "Package(s) not found: nosuch").exit_code, 1)
        fails(s, "pip install nosuch", "Could not find a version that satisfies the requirement nosuch", "No matching distribution found")
        fails(s, "pip bogus", "unknown command")
        s.files.write("/tmp/w/alpha-1.0-py3-none-any.whl", wheel("alpha", "1.0", {"alpha/__init__.py": "def main():\n    print('main')\n"},
                                                               ["beta>=1.5"], "alpha-cmd = alpha:main\n"))
        for version in ("1.6", "1.10"):
            s.files.write("/tmp/w/beta-%s-py3-none-any.whl" % version, wheel("beta", version, {"beta.py": "V = '%s'\n" % version}))
        s.files.write("/tmp/w/evil-1.0-py3-none-any.whl", wheel("evil", "1.0", {"../../../../tmp/evil": "x"}))
        has(out(s, "pip install -f /tmp/w alpha"), "Successfully installed alpha-1.0 beta-1.10")
        same(out(s, "python3 -c 'import alpha, beta; print(beta.V); alpha.main()'; ~/.local/bin/alpha-cmd; python3 -m pip freeze"),
             "1.10\nmain\nmain\nalpha==1.0\nbeta==1.10\n")
        has(out(s, "pip show alpha"), "Requires: beta")
        has(out(s, "pip uninstall -y alpha"), "Successfully uninstalled alpha-1.0")
        fails(s, "python3 -c 'import alpha'", "No module named")
        fails(s, "pip install /tmp/w/evil-1.0-py3-none-any.whl", "outside of its place")
        fails(s, "ls /tmp/evil")
        fails(s, "pip install x-1-cp311-cp311-linux_x86_64.whl", "not a supported wheel")


@case("PKG-04", POD)
def pip_from_the_registry(guest):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        data = wheel("gamma", "2.0", {"gamma.py": "V = 2\n"})
        listed = [{"name": n, "version": "2.0", "summary": "", "file": "%s-2.0-py3-none-any.whl" % n, "sha256": h}
                  for n, h in (("gamma", hashlib.sha256(data).hexdigest()), ("delta", "0" * 64))]
        for entry in listed:
            with open(os.path.join(folder, entry["file"]), "wb") as f:
                f.write(data)
        with open(os.path.join(folder, "packages.json"), "w", encoding="ascii") as f:
            json.dump({"packages": listed}, f)
        run = lambda code, *more: subprocess.run(  # noqa: E731
            [os.environ["CORDON"], "run", "-g", guest, *more, "-e", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
            env=dict(os.environ, CORDON_REGISTRY=folder, XDG_DATA_HOME=os.path.join(folder, "data"), CORDON_CACHE=os.path.join(folder, "cache")))
        if os.getuid() == 0:  # root's packages are kept for all, in a place of their own
            same(run("pip install gamma").returncode, 1)
        r = run("pip install gamma && python3 -c 'import gamma; print(gamma.V)'; pip install delta; pkg install gamma", "--set", "packages=gamma,delta")
        has(r.stdout, "Successfully installed gamma-2.0\n2\n")
        has(r.stderr, "Could not find a version that satisfies the requirement delta", "gamma is a Python package: pip install gamma")
        r = run("pip install gamma; ls /run/pod/packages/wheels", "--set", "packages=delta")
        has(r.stderr, "Could not find a version")
        assert "gamma" not in r.stdout, r.stdout


@case("POD-01", POD)
def shell_state(guest):
    with session(guest) as s:
        out(s, "a=(1 'two words' 3); declare -A m=([k]=v); f() { local x=$1; echo \"f:$x\"; }; shopt -s extglob; set -o pipefail; alias q='echo quick'")
        same(out(s, 'echo "${a[1]}" ${#a[@]} ${m[k]}; f y; q; case ab in @(ab|c)) echo ext;; esac; (exit 3) | true; echo $?'),
             "two words 3 v\nf:y\nquick\next\n3\n")
        out(s, "cd /tmp; pushd /workspace > /dev/null; umask 027; trap 'echo usr' USR1; exec 7> /tmp/seven; readonly R=1; export -f f")
        same(out(s, "dirs; umask; kill -USR1 $$; echo x >&7; cat /tmp/seven; (R=2) 2>/dev/null || echo ro; bash -c 'f z'"),
             "/workspace /tmp\n0027\nusr\nx\nro\nf:z\n")
        out(s, "exec 7>&-; set -- p 'q r'; IFS=:; OPTIND=3; RANDOM=5; HISTFILE=/tmp/h")
        same(out(s, 'echo $# "$2" "$IFS" $OPTIND'), "2 q r : 3\n")


@case("POD-02", POD)
def nothing_ends_a_session(guest):
    with session(guest) as s:
        out(s, "keep=1")
        for code in ("exit 3", "return 3", "exec false", "set -e; false", "set -u; $nope", "${x?gone}", "(", "if", "case x in", "break 9; exit 1", "kill -INT $$",
                     "kill -TERM $$", "kill -HUP $$", "kill -ABRT $$", "kill -SEGV $$", "trap 'exit 9' EXIT; exit 1", "f() { f; }; f", "exec 0<&- 1>&- 2>&-; false",
                     "exec > /nonexistent/x", "cd /nonexistent", "readonly PATH; PATH=; false", "unset PATH HOME PWD; false", "exec -a x false",
                     "builtin exit 5", "command exit 6", "eval 'exit 7'", "source /dev/stdin <<< 'exit 8'", "logout; false", "suspend; false", "ulimit -c 0; false",
                     "shopt -s expand_aliases; alias echo=false; false", "enable -n echo printf test; false", "exit() { false; }; exit", "set -n; false", "set -o noexec\nfalse", "set -t; false", "set -o posix; false", "set -m; sleep 9 & kill -STOP $!; kill -9 $!; false",
                     "exec 3>&1 4<&0; exec 1>&3; false", "wait -n; jobs; fg; false", "printf '\\e[2J\\0'; false", "kill -STOP $$ & sleep 0.1; kill -CONT $$; wait; false",
                     "disown -a; false", "hash -p /nonexistent ls; ls", "set -k -f -v -x; false", "BASH_ENV=/nonexistent; ENV=x; false", "trap '' TERM; trap 'exit 2' DEBUG; :; false"):
            s.execute(code, timeout=5)
            r = s.execute("/usr/bin/echo on", timeout=10)
            assert r.stdout == "on\n", (code, r.error_kind, r.exit_code, r.stdout, r.stderr)


@case("POD-03", POD)
def exit_codes(guest):
    with session(guest) as s:
        for code, want in (("nosuch", 127), ("/etc/passwd", 126), ("/tmp", 126), ("./nofile", 127), ("bash -c 'kill -9 $$'", 137), ("bash -c 'kill -TERM $$'", 143),
                           ("exit 256", 0), ("exit -1", 255), ("true | (exit 4)", 4), ("! true", 1), ("timeout 0.1 sleep 9", 124), ("timeout -s KILL 0.1 sleep 9", 137),
                           ("env nosuch", 127), ("env /etc/passwd", 126), ("xargs nosuch <<< x", 127), ("find / -maxdepth 0 -exec false {} +", 1), ("bash -c 'exit 9' && true", 9),
                           ("yes | head -1 > /dev/null", 0), ("set -o pipefail; yes | head -1 > /dev/null", 141), ("set +o pipefail; ((0))", 1), ("let 0", 1), ("[ a = ", 2), ("test -z x", 1),
                           ("(exit 3) & wait $!", 3), ("python3 -c 'import sys; sys.exit(300)'", 44), ("python3 -c 'import os; os.abort()'", 134), ("sh -c 'nosuch'", 127),
                           ("python3 nofile.py", 2), ("cat nofile", 1), ("grep x nofile", 2), ("ls nofile", 2), ("diff a b", 2), ("awk 'BEGIN{exit 5}'", 5), ("jq . nofile", 2)):
            same((code, s.execute(code, timeout=20).exit_code), (code, want))


@case("POD-04", POD)
def pipes_and_processes(guest):
    with session(guest) as s:
        same(out(s, "seq 100000 | sort -R | sort -n | tail -1; yes | head -100000 | wc -l; cat /dev/zero | head -c 10M | wc -c"), "100000\n100000\n10485760\n")
        same(out(s, "for i in 1 2 3 4 5 6 7 8; do (sleep 0.0$i; echo $i) & done | sort | paste -sd, ; wait"), "1,2,3,4,5,6,7,8\n")
        same(out(s, "mkfifo /tmp/p; (for i in 1 2 3; do echo $i; done > /tmp/p) & cat /tmp/p | tac; wait; rm /tmp/p"), "3\n2\n1\n")
        same(out(s, "coproc bc; echo '6*7' >&${COPROC[1]}; read -t 5 x <&${COPROC[0]}; echo $x; kill $COPROC_PID; wait 2>/dev/null; :"), "42\n")
        same(out(s, "diff <(sort <<< $'b\\na') <(printf 'a\\nb\\n') && echo same; echo hi | tee >(tr a-z A-Z > /tmp/t; echo > /tmp/done) > /dev/null; until [ -e /tmp/done ]; do sleep 0.01; done; cat /tmp/t"), "same\nHI\n")
        same(out(s, "trap 'echo got' TERM; (sleep 0.1; kill -TERM $$) & wait; wait; echo end; trap - TERM"), "got\nend\n")
        same(out(s, "sleep 30 & a=$!; sleep 30 & b=$!; kill $a $b; wait $a; echo $?; wait $b; echo $?"), "143\n143\n")
        same(out(s, "seq 20 | xargs -P4 -I{} sh -c 'echo $(({} * 2))' | sort -n | tail -1; find /etc -maxdepth 1 -name 'host*' -exec basename {} \\; | sort"), "40\nhostname\nhosts\n")


@case("POD-05", POD)
def text_and_time(guest):
    with session(guest) as s:
        same(out(s, "x='naïve ☕ 日本'; echo ${#x}; echo \"$x\" | wc -m; echo \"$x\" | rev; awk -v x=\"$x\" 'BEGIN{print length(x)}'; echo ${x:6:1}"), "10\n11\n本日 ☕ evïan\n10\n☕\n")
        same(out(s, "TZ=America/New_York date -d @1700000000 '+%F %T %Z'; TZ=Asia/Kolkata date -d @0 +%R; date -u -d '2024-02-29 + 1 year' +%F"), "2023-11-14 17:13:20 EST\n05:30\n2025-03-01\n")
        same(out(s, "python3 -c 'from zoneinfo import ZoneInfo; from datetime import datetime as d; print(d(2024, 7, 1, tzinfo=ZoneInfo(\"Europe/Berlin\")).isoformat())'"), "2024-07-01T00:00:00+02:00\n")
        same(out(s, "locale -a | head -3; echo $LANG; printf '\\u20ac\\n'; printf 'Ä\\nz\\n' | sort | head -1"), "C\nC.UTF-8\nPOSIX\nC.UTF-8\n€\nz\n")


@case("POD-06", POD)
def archives(guest):
    with session(guest) as s:
        out(s, "mkdir -p d/e; seq 1000 > d/a; echo é > d/e/ü; ln -s a d/l")
        for pack, unpack in (("tar cf x d", "tar xf x"), ("tar czf x d", "tar xzf x"), ("tar cjf x d", "tar xjf x"), ("tar cJf x d", "tar xJf x"),
                             ("tar --zstd -cf x d", "tar --zstd -xf x"), ("zip -qry x d", "unzip -q x.zip"), ("find d | cpio -o -H newc > x 2>/dev/null", "cpio -id < x 2>/dev/null")):
            out(s, "rm -rf x x.zip o; %s; mkdir o; cd o; p=$(ls ../x ../x.zip 2>/dev/null); cp $p .; %s; cd ..; diff -r d o/d" % (pack, unpack))
            same(out(s, "readlink o/d/l; cat o/d/e/ü"), "a\né\n")
        for tool in ("gzip", "bzip2", "xz", "zstd -q --rm"):
            same(out(s, "seq 5000 > f; %s f; %s -dc f.* | tail -1; rm -f f f.*" % (tool, tool.split()[0])), "5000\n")


@case("POD-07", POD)
def data(guest):
    with session(guest) as s:
        s.files.write("/workspace/t.csv", "name,n\nann,3\nbob,5\nann,4\n")
        same(out(s, "cd /workspace; awk -F, 'NR>1{s[$1]+=$2} END{for(k in s) print k, s[k]}' t.csv | sort"), "ann 7\nbob 5\n")
        same(out(s, "sqlite3 :memory: -cmd '.mode csv' '.import t.csv t' 'select name, sum(n) from t group by 1'"), "ann,7\nbob,5\n")
        same(out(s, "python3 -c 'import csv, json; print(json.dumps(list(csv.DictReader(open(\"t.csv\")))))' | jq -r 'group_by(.name)[] | \"\\(.[0].name) \\(map(.n|tonumber)|add)\"'"), "ann 7\nbob 5\n")
        same(out(s, "sort -t, -k2,2nr t.csv | head -1; cut -d, -f1 t.csv | sort | uniq -c | sort -rn | head -1 | awk '{print $2}'; join -t, <(sort t.csv) <(echo ann,x) | wc -l"), "bob,5\nann\n2\n")
        same(out(s, "python3 -c 'import sqlite3; c = sqlite3.connect(\"x.db\"); c.execute(\"create table t(a)\"); c.execute(\"insert into t values (7)\"); c.commit()'; sqlite3 x.db 'select a*6 from t'"), "42\n")


@case("POD-08", POD)
def python(guest):
    with session(guest) as s:
        same(out(s, "python3 -c 'import asyncio\nasync def f():\n  p = await asyncio.create_subprocess_exec(\"echo\", \"hi\", stdout=-1)\n  print((await p.communicate())[0])\nasyncio.run(f())'"), "b'hi\\n'\n")
        same(out(s, "python3 -c 'import multiprocessing as m\nr, w = m.Pipe(False)\np = m.Process(target=w.send, args=(42,)); p.start(); print(r.recv()); p.join(); print(p.exitcode)'"), "42\n0\n")
        same(out(s, "python3 -c 'import subprocess\ntry: subprocess.run([\"sleep\", \"9\"], timeout=0.2)\nexcept subprocess.TimeoutExpired: print(\"late\")'"), "late\n")
        same(out(s, "python3 -m venv /tmp/v; . /tmp/v/bin/activate; python -c 'import sys; print(sys.prefix)'; pip --version | cut -c1-4; deactivate"), "/tmp/v\npip \n")
        same(out(s, "cat > m.py <<'E'\nimport sys\nprint(__name__, sys.argv[1:])\nE\npython3 m.py a; python3 -m m b; python3 - c < m.py"),
             "__main__ ['a']\n__main__ ['b']\n__main__ ['c']\n")
        fails(s, "python3 -c 'import threading; threading.Thread(target=print).start()'", "can't start new thread")
        same(out(s, "python3 -c 'import unittest, doctest, pdb, typing, dataclasses, enum, http.client, xml.etree.ElementTree as e, html, secrets, statistics, tomllib, graphlib, lib2to3; print(e.fromstring(\"<a>1</a>\").text)'"), "1\n")
        same(out(s, "printf 'import time\\nprint(1, flush=True)\\ntime.sleep(30)' > l.py; timeout 0.5 python3 l.py; echo $?"), "1\n124\n")


@case("POD-09", POD)
def isolation(guest):
    with session(guest) as a, session(guest) as b:
        out(a, "echo x > /tmp/a; export SECRET=1; sleep 100 & echo $! > /tmp/pid")
        same(out(b, "ls /tmp; echo ${SECRET-none}; ps | grep -c '[s]leep' || :"), "none\n0\n")
        same(out(b, "cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n' | grep -c SECRET || :; ls /dev | sort | paste -sd' '").splitlines()[0], "0")
        for code in ("cat /proc/kmsg", "cat /proc/kcore", "echo b > /proc/sysrq-trigger", "cat /proc/self/mem", "mknod /tmp/n c 1 3", "chroot / true", "mount -t proc x /mnt",
                     "python3 -c 'import os; os.setuid(0)'", "chown root /tmp/a", "ls /sys/kernel", "cat /proc/1/maps", "echo x > /proc/sys/kernel/hostname", "renice -5 $$",
                     "python3 -c 'import ctypes; ctypes.CDLL(None)'", "python3 -c 'import mmap; mmap.mmap(-1, 4096, prot=7)'", "python3 -c 'import os; os.mknod(\"/tmp/d\", 0o60666, 1)'",
                     "python3 -c 'import socket; socket.socket(socket.AF_UNIX)'", "python3 -c 'import fcntl; fcntl.ioctl(0, 0x5412, b\"x\")'"):
            r = a.execute(code)
            assert not r.success and not r.restarted, (code, r.stdout)


@case("POD-10", POD)
def allowlist(guest):
    with session(guest, {"commands": ["bash", "cat", "ls", "env", "find", "xargs", "python3", "awk", "sh"]}) as s:
        s.files.write("/tmp/script", "#!/bin/grep x\n")
        s.files.write("/tmp/sh", "#!/bin/sh\nid\n")
        for code in ("grep x /etc/passwd", "/usr/bin/grep x /etc/passwd", "bash -c 'grep x /etc/passwd'", "env grep x /etc/passwd", "find /etc/passwd -exec grep root {} \\;",
                     "echo x | xargs grep root /etc/passwd", "python3 -c 'import os; os.execvp(\"grep\", [\"cat\", \"root\", \"/etc/passwd\"])'", "awk 'BEGIN{system(\"grep root /etc/passwd\")}'",
                     "awk 'BEGIN{\"grep root /etc/passwd\" | getline x; print x}'", "(exec -a cat grep root /etc/passwd)", "ln -s /usr/bin/grep /tmp/cat; /tmp/cat root /etc/passwd",
                     "hash -p /usr/bin/grep cat; cat root /etc/passwd", "PATH=/tmp:/usr/bin grep root /etc/passwd", "chmod +x /tmp/script; /tmp/script /etc/passwd", "command -p grep root /etc/passwd",
                     "python3 -c 'import subprocess; print(subprocess.run([\"grep\", \"root\", \"/etc/passwd\"]))'", "python3 -c 'import os; print(os.posix_spawn(\"/usr/bin/grep\", [\"grep\", \"root\", \"/etc/passwd\"], {}))'",
                     "ls | busybox grep root /etc/passwd", "coproc grep root /etc/passwd; cat <&${COPROC[0]}", "cat <(grep root /etc/passwd)", "trap 'grep root /etc/passwd' EXIT; exit",
                     "chmod +x /tmp/sh; /tmp/sh", "/usr/bin/../bin/grep root /etc/passwd", "/proc/self/exe root /etc/passwd", "exec grep root /etc/passwd", "$(echo gr)ep root /etc/passwd"):
            r = s.execute(code)
            assert "root:" not in r.stdout and "uid=" not in r.stdout, (code, r.stdout)
        same(out(s, "cat /etc/hostname | awk '{print (length($0) > 0)}'"), "1\n")


@case("POD-11", POD)
def at_once(guest):
    with session(guest) as s:
        r, up = [], threading.Event()
        code = "echo up; until [ -e /tmp/go ]; do sleep 0.01; done; echo first"
        thread = threading.Thread(target=lambda: r.append(s.execute(code, on_stdout=lambda _: up.set())))
        thread.start()
        assert up.wait(30)
        refused(lambda: s.execute("echo second").check(), "oncurrent")
        s.files.write("/tmp/go", "")
        thread.join()
        same(r[0].stdout, "up\nfirst\n")
        same(out(s, "echo third"), "third\n")


@case("POD-12", POD)
def files_of_every_kind(guest):
    with session(guest) as s:
        odd = "/tmp/a b\"c'd$e\nf\té*?[x]"
        s.files.write(odd, b"\0\xff")
        same(out(s, "cd /tmp; for f in a*; do wc -c < \"$f\"; rm -- \"$f\"; done; ls | wc -l"), "2\n0\n")
        out(s, "cd /tmp; touch -- -rf --help; mkdir -p $(printf 'd/%.0s' {1..100}); : > $(printf 'n%.0s' {1..255})")
        fails(s, ": > /tmp/$(printf 'n%.0s' {1..256})", "too long")
        same(out(s, "cd /tmp; ls | wc -l; rm -- -rf --help; truncate -s 1M sparse; stat -c %s sparse; cp --sparse=always sparse s2; cmp sparse s2; touch -d 1970-01-01 old; stat -c %Y old"),
             "4\n1048576\n0\n")
        same(out(s, "cd /tmp; chmod 000 old; (cat old) 2>/dev/null || echo no; chmod 4755 old; stat -c %a old; ln old hard; stat -c %h old; mv old new; cat hard; readlink -f new"),
             "no\n4755\n2\n/tmp/new\n")
        same(out(s, "exec 5<> /tmp/rw; echo abcdef >&5; exec 5>&-; dd if=/tmp/rw bs=1 skip=2 count=2 status=none; echo; flock -n /tmp/rw true 2>/dev/null; echo hi > /tmp/rw; cat /tmp/rw").splitlines()[:1], ["cd"])
