#!/usr/bin/python3
"""Each profile of the program runs what it is for and stops what it is not for. Own profiles are taken only from files that nobody else
can write to."""
import json
import os
import shutil
import socketserver
import tempfile
import threading

from oneshot import ORDINARY, Tap, case, has, run, run_case, users

PROFILES = ("build", "data-science", "grader", "shell-agent", "web-reader")
STANDARD_MEMORY = "x = bytearray(700 << 20)\nfor i in range(0, len(x), 4096): x[i] = 1\n"
CONNECT = "import socket\nsocket.create_connection(('192.0.2.1', 80), 3)"
LOOP = "while True: pass"
PROJECT = """printf 'int main(void) { return 0; }' > a.c
printf 'all: a b\\n%%: a.c\\n\\tgcc -o $@ a.c\\n' > Makefile
make -s -j2 && ./a && ./b && echo built"""
AGENT = """printf '#!/bin/sh\\necho "$1" | tr a-z A-Z' > tool; chmod +x tool
git init -q repo && ./tool agent | awk '{ print $1 "!" }'"""


def reads(url, method="GET"):
    return f"""import urllib.request
with urllib.request.urlopen(urllib.request.Request({url!r}, method={method!r}, data={b'x' if method == 'POST' else None!r})) as r:
    print(r.read().decode())"""


class Upstream(socketserver.StreamRequestHandler):
    """A proxy that is every host: it answers each request in its tunnels with the same page."""

    def head(self):
        lines = []
        while (line := self.rfile.readline().strip()):
            lines.append(line)
        return lines

    def handle(self):
        if not self.head():
            return
        self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
        if self.head():
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\npage")


def denied(*words):
    return {"success": False, "status": None, "denials": has(*words)}


def cases(proxy):
    def of(profile, name, code, guest="python", options=(), **want):
        return case(f"{profile}: {name}", code, guest, ["--profile", profile, *options], **want)

    way = ["--set", f"network.upstream_proxy=http://127.0.0.1:{proxy}"]
    return [
        of("data-science", "more memory than the levels give", STANDARD_MEMORY + "print(len(x) >> 20)", stdout="700\n"),
        of("data-science", "a model in R", "x <- 1:50000; cat(round(coef(lm(2 * x + 1 ~ x))[[2]]))", "r", stdout="2"),
        of("data-science", "no network", CONNECT, **denied("socket", "network.allow")),
        of("data-science", "no programs", "import subprocess; subprocess.run(['git', '--version'])", **denied("execute", "commands+=git")),
        of("grader", "an answer", "print(sum(int(x) for x in '1 2 3'.split()))", stdout="6\n"),
        of("grader", "a script", "seq 3 | sort -r | head -n 1", "sh", stdout="3\n"),
        of("grader", "no endless loop", LOOP, options=["-t", "600"],  # time enough to use up the CPU's on a busy machine
           success=False, status=None, error_kind="cpu", denials=has("cpu_seconds")),
        of("grader", "no flood of output", "print('x' * 1000000)", truncated__stdout=True, status=None),
        of("grader", "no large files", "open('f', 'wb').write(b'x' * (8 << 20))", **denied("file_bytes")),
        of("grader", "no network", CONNECT, **denied("socket", "network.allow")),
        of("shell-agent", "its own tools", AGENT, "sh", stdout="AGENT!\n"),
        of("shell-agent", "no network", "curl -sS --max-time 5 http://192.0.2.1/", "sh", **denied("network.allow")),
        of("shell-agent", "no files of the host", "cat /etc/shadow", "sh", success=False, status=None),
        of("web-reader", "a page", reads("http://news.test/"), options=way, stdout="page\n"),
        of("web-reader", "no sending", reads("http://news.test/", "POST"), options=way, **denied("widen the methods", "news.test")),
        of("web-reader", "no other ports", reads("http://news.test:8080/"), options=way, **denied("news.test", "8080")),
        of("web-reader", "no private network", reads("http://169.254.169.254/"), **denied("169.254.169.254")),
        of("web-reader", "no programs", "import subprocess; subprocess.run(['curl', '-V'])", **denied("execute", "commands+=curl")),
        of("build", "a project", PROJECT, "sh", stdout="built\n"),
        of("build", "no network", "curl -sS --max-time 5 http://192.0.2.1/", "sh", **denied("network.allow")),
        of("build", "nothing outside the workspace", "echo x > /usr/bin/x", "sh", **denied("read-only")),
    ]


def own(tap, who, uid):
    """Own profiles: where they are looked for, and which are refused."""
    home = tempfile.mkdtemp(prefix="profiles-")
    folder = home + "/.config/cordon/profiles"
    me = uid or os.getuid()

    def write(name, text, mode=0o644, owner=me):
        path = f"{folder}/{name}.json"
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path, mode)
        if os.getuid() == 0:
            os.chown(path, owner, owner)

    def says(name, words, *texts, status=0, env=None):
        got, out, err, _ = run(["policy", *words], uid, env=env or {"HOME": home})
        said = (out + err).decode()
        tap.check(got == status and all(t in said for t in texts), f"{who}: own profiles: {name}", got, said)

    try:
        os.makedirs(folder)
        os.chmod(home, 0o755)
        if os.getuid() == 0:
            os.chown(folder, me, me)
        write("mine", '{"level": "strict", "timeout_ms": 1234}')
        write("grader", '{"level": "strict", "timeout_ms": 4321}')
        write("open", "{}", 0o666)
        write("group", "{}", 0o664)
        write("wrong", '{"timout_ms": 1}')
        os.mkfifo(folder + "/pipe.json")
        says("a file", ["show", "--profile", "mine"], '"timeout_ms": 1234')
        says("XDG_CONFIG_HOME", ["show", "--profile", "mine"], '"timeout_ms": 1234',
             env={"HOME": "/", "XDG_CONFIG_HOME": home + "/.config"})
        says("before the program's", ["show", "--profile", "grader"], '"timeout_ms": 4321')
        says("are listed", ["profiles"], "(own) Level strict, changed in timeout_ms.", "open           (own) refused: others may write",
             "build  ", "Did you mean 'timeout_ms'?")
        says("anybody may write", ["show", "--profile", "open"], "others may write to", "chmod go-w", status=2)
        says("a group may write", ["show", "--profile", "group"], "others may write to", status=2)
        says("a bad field", ["show", "--profile", "wrong"], "profile 'wrong'", "Did you mean 'timeout_ms'?", status=2)
        says("no file", ["show", "--profile", "pipe"], "not a regular file", status=2)
        says("unknown", ["show", "--profile", "nope"], "no profile 'nope'", "Profiles: build, data-science, grader, ", "mine", status=2)
        says("no way out", ["show", "--profile", "../profiles/mine"], "no profile", status=2)
        if os.getuid() == 0:
            write("theirs", "{}", owner=ORDINARY + 1)
            says("of somebody else", ["show", "--profile", "theirs"], f"belongs to user {ORDINARY + 1}", status=2)
        os.chmod(folder, 0o777)
        says("a folder that anybody may write to", ["show", "--profile", "mine"], "others may write to", status=2)
        says("does not spoil the program's", ["show", "--profile", "build"], '"workspace_exec": true')
    finally:
        shutil.rmtree(home)


def command_line(tap, who, uid):
    for p in PROFILES:
        for guest, code in (("python", "1"), ("r", "1"), ("node", "1"), ("sh", ":")):
            got, _, err, _ = run(["run", "--profile", p, "-g", guest, "-e", code], uid)
            tap.check(got == 0, f"{who}: {p}: {guest} starts", got, err)
    for name, words, texts, status in (
            ("not with a level", ["run", "--profile", "build", "--level", "strict", "-e", "1"], ["--profile replaces --level"], 2),
            ("not with another policy", ["policy", "show", "strict", "--profile", "build"], ["replaces the policy strict"], 2),
            ("options change it", ["policy", "show", "--profile", "build", "-t", "7"], ['"timeout_ms": 7000'], 0),
            ("explained", ["policy", "explain", "--profile", "web-reader"], ["GET", "Level strict, changed in timeout_ms"], 0),
            ("output of a run is cut, too", ["run", "--profile", "grader", "-e", "print('x' * 70000)"], ["standard output was cut"], 125)):
        got, out, err, _ = run(words, uid)
        tap.check(got == status and all(t in (out + err).decode() for t in texts), f"{who}: --profile: {name}", got, out[:500], err)
    _, out, _, _ = run(["policy", "profiles", "--json"], uid)
    tap.check(tuple(p["name"] for p in json.loads(out)) == PROFILES, f"{who}: all are listed", out)
    for p in json.loads(out):
        tap.check(run(["policy", "check", "--profile", p["name"]], uid)[0] == 0 and p["summary"], f"{who}: {p['name']} is valid")


def main():
    tap = Tap()
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Upstream) as proxy:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        for who, uid in users():
            for c in cases(proxy.server_address[1]):
                run_case(tap, who, uid, c)
            own(tap, who, uid)
            command_line(tap, who, uid)
        proxy.shutdown()
    tap.done()


main()
