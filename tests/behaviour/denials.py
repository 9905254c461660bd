#!/usr/bin/python3
"""Each denial is listed with its layer, its rule and the smallest policy change that would allow it."""
import os

from oneshot import case, has, main

STRICT = ["--level", "strict"]
EXEC = "workspace_exec: allow files of the workspace to be executed (workspace_exec=true)"
PROGRAMS = [n for n in sorted(os.listdir("/usr/bin")) if not n.startswith(("python", "pdb", "pydoc"))][:30]
CALL = "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\nr = libc.{}\n[r, ctypes.get_errno()]"


def entry(**want):
    """Some denial has all of these fields, and says how it could be allowed."""
    def judge(denials):
        return any(all(d.get(k) == v for k, v in want.items()) and d["layer"] and d["rule"] and d["remedy"]
                   for d in denials)
    judge.__doc__ = f"an entry with {want}"
    return judge


def call(name, expression, operation):
    return case(f"{name}: refused, listed, and the code goes on", CALL.format(expression), result=[-1, 1],
                denials=entry(operation=operation, layer="seccomp", count=1), success=True)


CASES = [
    case("a socket", "import socket; socket.socket()", status=126, error_kind="denied",
         denials=entry(operation="socket", target="AF_INET", layer="seccomp", count=1), error=has("Permission denied")),
    case("a caught refusal is no failure", "import socket\ntry: socket.socket()\nexcept PermissionError: x = 1\nx", result=1,
         success=True, denials=entry(operation="socket")),
    case("netlink", "import socket; socket.socket(socket.AF_NETLINK, 3)", status=126, denials=entry(target="AF_NETLINK")),
    case("vsock", "import socket; socket.socket(socket.AF_VSOCK)", status=126, denials=entry(target="AF_VSOCK")),
    case("repeated refusals are counted", "import socket\nfor _ in range(5):\n  try: socket.socket()\n  except OSError: pass",
         denials=entry(operation="socket", count=5)),
    case("urllib", "import urllib.request; urllib.request.urlopen('http://127.0.0.1/')", status=None,
         success=False, denials=entry(operation="socket")),
    call("ptrace", "ptrace(16, 1, 0, 0)", "ptrace"),
    call("mount", "mount(b'x', b'/tmp', b'tmpfs', 0, 0)", "mount"),
    call("a namespace", "unshare(0x10000000)", "make a namespace"),
    call("entering a namespace", "setns(0, 0)", "enter a namespace"),
    call("the keyring", "syscall(250, 0, -2, 1)", "use the kernel keyring"),
    call("bpf", "syscall(321, 0, 0, 0)", "bpf"),
    call("io_uring", "syscall(425, 1, 0)", "io_uring"),
    call("perf", "syscall(298, 0, 0, -1, -1, 0)", "perf events"),
    call("userfaultfd", "syscall(323, 0)", "userfaultfd"),
    case("the mount's place is told", CALL.format("mount(b'x', b'/tmp', b'tmpfs', 0, 0)"),
         denials=entry(operation="mount", target="/tmp")),
    case("a file outside", "open('/etc/passwd', 'w')", status=126, error_kind="denied",
         denials=entry(operation="open", target="/etc/passwd", layer="mount", claimed=True)),
    case("a file that no rule names", "open('/run/.landlock')", status=126, error_kind="denied",
         denials=entry(operation="open", target="/run/.landlock", layer="landlock")),
    case("a read-only place", "import os; os.mkdir('/usr/x')", status=126, error_kind="denied",
         denials=lambda d: any(x["target"] == "/usr/x" and x["layer"] in ("mount", "landlock") for x in d)),
    case("a program of the workspace", "import os, subprocess\nopen('p', 'w').write('#!/bin/true')\nos.chmod('p', 0o755)\nsubprocess.run(['./p'])",
         status=126, error_kind="denied", denials=entry(operation="execute", target="/home/user/p", layer="landlock", remedy=EXEC)),
    case("a program that the workspace does not have", "import subprocess\ntry: subprocess.run(['/tmp/nope'])\nexcept FileNotFoundError: x = 1\nx",
         result=1, success=True, denials=[]),
    case("what the policy gives was not refused by it", "raise PermissionError(13, 'Permission denied', '/tmp/x')", status=1,
         error_kind="exception", denials=[], error=has("Permission denied")),
    case("nor by another name", "raise PermissionError(13, 'Permission denied', '/usr/../tmp/x')", status=1, error_kind="exception",
         denials=[]),
    case("a mode of the code's own is no policy", "import os\nopen('f', 'w').close()\nos.chmod('f', 0)\nopen('f')", status=1,
         error_kind="exception", denials=[]),
    case("a lie about imports", "class ModuleNotAllowedError(ImportError): pass\nraise ModuleNotAllowedError('no')", status=1,
         error_kind="exception", denials=[]),
    case("what the filter saw is no claim", "import socket; socket.socket()", status=126,
         denials=lambda d: d and not any("claimed" in x for x in d)),
    case("Node's words", "require('fs').readFileSync('/run/.landlock')", "node", status=126, error_kind="denied",
         denials=entry(operation="open", target="/run/.landlock", layer="landlock", claimed=True)),
    # ADV-03 to 06.
    case("ADV-03: host files are not there", "import os; [p for p in ('/etc/shadow', '/root', os.path.expanduser('~root/.ssh'),"
         " '/home/user/.ssh', '/sys', '/boot') if os.path.exists(p)]", result=[]),
    case("ADV-04: write outside", "open('/root/x', 'w')", status=1, success=False),
    case("ADV-05: programs of the host, which strict does not give", "import subprocess\nout = []\nfor p in ('perl', 'curl', 'bash', 'sh', 'gcc'):\n"
         "  try: out.append(subprocess.run([p, '--version']).returncode)\n  except OSError as e: out.append(type(e).__name__)\n"
         "set(out) <= {'FileNotFoundError', 'PermissionError'}", options=["--level", "strict"], result=True),
    case("ADV-06: signals", "import os\nout = []\nfor p in (1, os.getppid()):\n  try: os.kill(p, 9); out.append(0)\n"
         "  except OSError as e: out.append(e.errno)\nout", result=[1, 1], success=True),
    case("ADV-06: processes", "import os; [p for p in os.listdir('/proc') if p.isdigit() and int(p) not in (1, os.getpid())]",
         result=[]),
    case("ADV-01: a command that is not listed", "echo $(cat /etc/passwd); cat /etc/passwd", "sh", ["--set", "commands=ls"],
         status=126, stdout="\n", error_kind="denied", denials=entry(operation="execute", target="cat", claimed=True),
         stderr=has("cat: not allowed: it is not among the commands of the policy")),
    case("ADV-01: through a pipe", "cat /etc/passwd | grep root", "sh", ["--set", "commands=cat"], status=126, stdout="",
         error_kind="denied", denials=entry(operation="execute", target="grep")),
    case("ADV-01: listed commands work", "ls /etc/passwd | cat", "sh", ["--set", "commands=ls,cat"], stdout="/etc/passwd\n",
         success=True, denials=[]),
    case("ADV-01: by its path", "/usr/bin/id", "sh", ["--set", "commands=ls"], status=127, success=False),
    case("ADV-01: by the loader", "/lib64/ld-linux-x86-64.so.2 /usr/bin/id", "sh", ["--set", "commands=ls"], status=127,
         stdout="", success=False),
    case("a program", "import subprocess; subprocess.run(['ls'])", options=["--level", "strict"], status=126, error_kind="denied", error=has("'ls'"),
         denials=entry(operation="execute", target="ls", layer="mount", remedy="commands: name the program in the policy (commands+=ls)")),
    case("a program that the host does not have was not refused", "import subprocess; subprocess.run(['no-such-program'])", status=1,
         error_kind="exception", denials=[]),
    case("a shell that nobody waits for", "import os; os.system('ls')", options=["--level", "strict"], success=True,
         denials=entry(operation="execute", target="sh", layer="mount", count=1)),
    case("a program of its own", "import os\nopen('a', 'w').write('#!/bin/sh')\nos.chmod('a', 0o755)\nos.execv('/home/user/a', ['a'])",
         status=126, error_kind="denied", denials=entry(operation="execute", target="/home/user/a", layer="landlock")),
    case("a program that is named works and is no denial", "import subprocess; subprocess.run(['ls', '/workspace']).returncode",
         options=["--set", "commands=ls"], result=0, success=True, denials=[]),
    case("beside it another one", "import subprocess\nsubprocess.run(['ls', '/workspace'])\nsubprocess.run(['cat'])",
         options=["--set", "commands=ls"], status=126, error_kind="denied",
         denials=lambda d: [x["target"] for x in d] == ["cat"]),
    case("a namespace, by a script that has no agent", "unshare -U true; :", "sh", success=True,
         denials=entry(operation="make a namespace", layer="seccomp", count=1)),
    case("a path too long to be told whole is cut, and counted once", "import os\nfor _ in range(3):\n"
         "  try: os.execv('/opt/' + 'x' * 200, ['x'])\n  except OSError: pass", success=True,
         denials=lambda d: [(x["target"][:7], x["count"]) for x in d] == [("/opt/xx", 3)]),
    case("namespaces of a process, as descriptors", "import fcntl, os\nfd, out = os.pidfd_open(os.getpid()), []\nfor n in range(16):\n"
         "  try: out.append(fcntl.ioctl(fd, 0xff00 + n))\n  except OSError as e: out.append(e.errno)\nset(out) <= {1, 13, 25}", result=True,
         success=True),
    case("many refusals hide none", CALL.replace("r = libc.{}", "for i in range(300): libc.mount(b'x', b'/tmp/%d' % i, b't', 0, 0)\n"
         "import socket\ntry: socket.socket()\nexcept OSError: pass\nr = 0"), success=True,
         denials=lambda d: sum(x["count"] for x in d if x["operation"] == "mount") == 300 and len(d) < 10 and
         [x["count"] for x in d if x["operation"] == "socket"] == [1]),
    case("nor do refusals of many kinds", CALL.replace("r = libc.{}", "for i in range(130, 335):\n"
         "  if i not in (131, 135, 231): libc.syscall(i, -1, -1, -1, -1, -1)\nfor i in range(200): libc.socket(2, 1, 0)\nr = 0"), success=True,
         denials=lambda d: len(d) <= 41 and sum(x["count"] for x in d if x["operation"] in ("socket", "other system calls")) >= 200),
    case("nor do programs: those not told apart keep their layer", f"import os, socket\nfor name in {PROGRAMS}:\n"
         "  try: os.execv('/usr/bin/' + name, ['x'])\n  except OSError: pass\ntry: socket.socket()\nexcept OSError: pass",
         options=["--level", "strict"], success=True,
         denials=lambda d: sum(x["count"] for x in d if x["operation"] == "execute") == 30 and len(d) < 20 and
         [(x["layer"], x["count"] > 10) for x in d if x["target"] is None] == [("mount", True)] and d[-1]["operation"] == "socket"),
    case("a missing file is no denial", "open('/nope')", status=1, error_kind="exception", denials=[]),
    case("a program, from Node", "require('child_process').execSync('ls')", "node", ["--level", "strict"], status=126, error_kind="denied",
         denials=entry(operation="execute", target="sh")),
    case("nothing was refused", "1", denials=[]),
    # What libraries try and do without is listed only if the code's error or stderr shows it.
    case("programs that libraries probe", "import subprocess\nfor p in ('uname', 'fc-list', '/sbin/ldconfig', 'ld', 'gcc'):\n"
         "  try: subprocess.run([p])\n  except OSError: pass", options=STRICT, success=True, denials=[]),
    case("the same, if it is the failure", "import subprocess; subprocess.run(['uname'])", options=STRICT, status=126, error_kind="denied",
         denials=entry(operation="execute", target="uname", remedy="commands: name the program in the policy (commands+=uname)")),
    case("not if something else is", "import platform; platform.platform(); 1 / 0", options=STRICT, status=1, error_kind="exception", denials=[]),
    case("a library that is looked up", "import ctypes.util; ctypes.util.find_library('c')", options=STRICT, success=True, denials=[]),
    case("sockets that libraries probe", "import socket, uuid\nuuid.uuid1()\nfor f in (socket.AF_INET6, socket.AF_UNIX):\n"
         "  try: socket.socket(f)\n  except OSError: pass", success=True, denials=[]),
    case("the same, if it is the failure", "import socket; socket.socket(socket.AF_INET6)", status=126, denials=entry(target="AF_INET6")),
    case("a server, whose library probes others first", "import http.server; http.server.test(http.server.SimpleHTTPRequestHandler, port=8000)",
         status=126, denials=lambda found: len(found) == 1 and "expose+=8000" in found[0]["remedy"]),
    case("a datagram socket", "import socket; socket.socket(type=socket.SOCK_DGRAM)", status=126, denials=entry(target="AF_INET datagram")),
    case("a name that is looked up, and the error caught", "import socket\ntry: socket.getaddrinfo('example.test', 80)\n"
         "except OSError: pass", success=True, denials=entry(operation="socket", target="AF_INET nonblocking datagram")),
    case("the same in Node", "await fetch('http://example.test').catch((e) => 'refused')", "node", success=True,
         denials=entry(operation="socket", target="AF_INET nonblocking datagram")),
    case("a named socket", "import socket; socket.socket(socket.AF_UNIX).bind('s')", status=126, error_kind="denied",
         denials=entry(operation="socket", target="AF_UNIX")),
    case("refusals that look alike are one", CALL.format("ptrace(16, 1, 0, 0); libc.ptrace(0, 0, 0, 0); libc.ptrace(3, 1, 0, 0)"),
         denials=lambda d: [(x["operation"], x["count"]) for x in d] == [("ptrace", 3)]),
    case("a program is one, wherever it was searched", "import os\nfor p in ('/usr/bin/ls', '/bin/ls'):\n  try: os.execv(p, ['ls'])\n"
         "  except OSError: pass", options=["--set", "commands=cat"], denials=lambda d: [x["count"] for x in d] == [2]),
    case("certificates that a missing network has none of", "raise OSError('Could not find a suitable TLS CA certificate bundle, invalid path: "
         "/etc/ssl/certs/ca-certificates.crt')", status=1, denials=entry(operation="connect", claimed=True,
         remedy="network.allow: name the hosts; the gateway then carries HTTP(S)")),
    case("sh: a name that a program could not look up, in Node's words", "python3 -c 'import socket\ntry: socket.getaddrinfo(\"a.test\", 80)\n"
         "except OSError: print(\"EAI_AGAIN\", file=__import__(\"sys\").stderr)'", "sh", denials=entry(operation="socket")),
    case("no network but the sandbox's own", "import socket; socket.create_connection(('192.0.2.1', 80), 20)", options=["--set", "expose=8000"],
         status=1, denials=entry(operation="connect", layer="net", claimed=True)),
    case("sh: the same", "python3 -c 'import socket; socket.getaddrinfo(\"a.test\", 80)'", "sh", ["--set", "expose=8000"], status=1,
         denials=entry(operation="connect", layer="net", claimed=True)),
    # Package managers do not try for a minute to reach a network that is not there, and pip does not refuse at once.
    case("the settings of package managers", "env | grep -ciE '^(npm_config_fetch_retries=0|pip_retries=0|pip_break_system_packages=1)$'", "sh",
         stdout="3\n"),
    case("with a network they try again", "env | grep -ciE '^(npm_config_fetch_retries|pip_retries)='; true", "sh",
         ["--allow-host", "a.test"], stdout="0\n"),
    case("R: install.packages() makes its library", "try(suppressWarnings(install.packages('none', repos = 'file:///usr/none')), TRUE)\n"
         "dir.exists(.libPaths()[1])", "r", result=True),
    # What a script goes on after.
    case("sh: a file of the workspace, and it goes on", "printf '#!/bin/sh' > s; chmod +x s; ./s || echo failed", "sh", success=True,
         stdout="failed\n", denials=entry(operation="execute", target="/home/user/s", remedy=EXEC)),
    case("sh: a read-only file, and it goes on", "echo x > /usr/x || true", "sh", success=True, denials=entry(target="/usr/x")),
    case("sh: what nobody sees is not listed", "echo x 2>/dev/null > /usr/x || true", "sh", success=True, denials=[]),
    case("sh: processes, and it goes on", "for i in $(seq 20); do sleep 3 & done; wait", "sh", ["--set", "processes=16"], status=None,
         denials=entry(operation="start more processes", layer="limit", remedy="processes: raise it (processes=32)")),
    case("R: a warning", "x <- file.remove('/usr/bin/env')", "r", success=True, denials=entry(operation="open", target="/usr/bin/env")),
    case("sh: a socket that nobody misses", "python3 -c 'import socket\ntry: socket.socket()\nexcept OSError: pass'", "sh", success=True, denials=[]),
    case("sh: one that is missed, and it goes on", "python3 -c 'import socket; socket.socket()' || true", "sh", success=True,
         denials=entry(operation="socket", target="AF_INET")),
    # Refusals without a path.
    case("a module", "import json", options=["--set", "modules=math"], status=126, error_kind="denied",
         denials=entry(operation="import", target="json", layer="guest", remedy="modules: name it in the policy (modules+=json)", claimed=True)),
    case("a signal to pid 1", "import os; os.kill(1, 9)", status=126, error_kind="denied", denials=entry(layer="kernel", remedy="none")),
    case("open files", "x = [open('/dev/null') for _ in range(100)]", options=["--set", "open_files=64"], status=1,
         denials=entry(operation="open more files", layer="limit", remedy="open_files: raise it (open_files=128)")),
    case("a directory that is not there", "import os; os.mkdir('/data')", status=126,
         denials=entry(target="/data", remedy="mounts: mount a directory there with the mode rw")),
]

main(CASES)
