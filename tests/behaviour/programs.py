#!/usr/bin/python3
"""Programs: `commands` and `workspace_exec` mean the same in Python, R, Node and the shell, at every level."""
import os
import shlex
import shutil
import tempfile

from oneshot import ORDINARY, case, has, main

GUESTS = ("python", "r", "node", "sh")
LEVELS = ("permissive", "standard", "strict")
STRICT = ["--level", "strict"]
ON = ["--set", "workspace_exec=true"]

# Runs a command line; the result is its output, and a failure is a failure of the code.
LINE = {"python": "import subprocess\nprint(subprocess.run({!r}, shell=True, check=True, capture_output=True, text=True).stdout, end='')",
        "r": "writeLines(system({!r}, intern = TRUE))",
        "node": "process.stdout.write(require('child_process').execSync({!r}, {{ stdio: 'pipe' }})); undefined",
        "sh": "eval {}"}
# Runs a program without a shell, where there is such a way.
PROGRAM = {"python": "import subprocess\nprint(subprocess.run([{!r}, {!r}], check=True, capture_output=True, text=True).stdout, end='')",
           "r": "writeLines(system2({!r}, {!r}, stdout = TRUE))",
           "node": "process.stdout.write(require('child_process').execFileSync({!r}, [{!r}])); undefined",
           "sh": "{} {}"}
# Writes an executable file and runs it.
SCRIPT = {"python": "import os, subprocess\nopen('s', 'w').write('#!/bin/sh\\necho ran')\nos.chmod('s', 0o755)\n"
                    "print(subprocess.run(['./s'], check=True, capture_output=True, text=True).stdout, end='')",
          "r": "writeLines(c('#!/bin/sh', 'echo ran'), 's'); Sys.chmod('s', '755'); x <- system('./s', intern = TRUE); writeLines(x)\n"
               "invisible(stopifnot(identical(x, 'ran')))",
          "node": "const fs = require('fs'); fs.writeFileSync('s', '#!/bin/sh\\necho ran', { mode: 0o755 });\n"
                  "process.stdout.write(require('child_process').execFileSync('./s')); undefined",
          "sh": "printf '#!/bin/sh\\necho ran' > s; chmod +x s; ./s"}
# Loads a library that the compiler made.
COMPILED = "printf 'int seven(void) { return 7; }' > a.c && gcc -shared -fPIC -o a.so a.c"
LIBRARY = {"python": "import ctypes, subprocess\nsubprocess.run(%r, shell=True, check=True)\nprint(ctypes.CDLL('./a.so').seven())" % COMPILED,
           "r": "system(%r); dyn.load('a.so'); cat(is.loaded('seven'))" % COMPILED,
           "node": "require('child_process').execSync(%r); try { process.dlopen({ exports: {} }, '/home/user/a.so') } catch (e) {\n"
                   "  if (!/self-register/.test(e.message)) throw e; console.log('mapped') }" % COMPILED,
           "sh": COMPILED + " && python3 -c \"import ctypes; print(ctypes.CDLL('./a.so').seven())\""}
LOADED = {"python": "7\n", "r": "TRUE", "node": "mapped\n", "sh": "7\n"}
HELLO = "printf '#include <stdio.h>\\nint main() { puts(\"hello\"); }' > a.c && gcc -O1 -o a a.c && ./a"


def fits(name, code, guest, options=(), **want):
    return case(f"{guest}: {name}", code, guest, options, success=True, denials=[], **want)


def fails(name, code, guest, options=(), **want):
    return case(f"{guest}: {name}", code, guest, options, status=None, **want)


def of(guest):
    """What is alike in every guest."""
    program = PROGRAM[guest]

    def line(text):
        return LINE[guest].format(shlex.quote(text) if guest == "sh" else text)
    cases = [
        fits("* is every program, with pipes", line("echo hi | tr h j"), guest, stdout="ji\n"),
        fits("and without a shell", program.format("printenv", "HOME"), guest, stdout="/home/user\n"),
        fits("a program that starts others", line("xargs -n1 echo </dev/null; git --version | cut -c1-3"), guest, stdout="\ngit\n"),
        fits("a list is these programs", program.format("printenv", "HOME"), guest, ["--set", "commands=printenv"],
             stdout="/home/user\n"),
        fits("a list with a shell", line("printenv HOME"), guest, ["--set", "commands=printenv,sh"], stdout="/home/user\n"),
        # Each of these is in the root for the guest's own use already.
        fits("what the guest itself needs may be named", line("echo hi"), guest,
             ["--set", "commands=sh,sleep,dash,bash,python3,node,which,awk"], stdout="hi\n"),
        fails("no program outside the list", program.format("ls", "/"), guest, ["--set", "commands=printenv"], stdout=""),
        fails("nor by its path", program.format("/usr/bin/ls", "/"), guest, ["--set", "commands=printenv"], stdout=""),
        fails("nor with the loader", line("/lib64/ld-linux-x86-64.so.2 /usr/bin/ls /"), guest,
              ["--set", "commands=printenv,sh"], stdout=""),
        fails("nor by a copy", line("cat /usr/bin/cat > c; chmod +x c; ./c /etc/hostname"), guest,
              ["--set", "commands=cat,chmod,sh"], stdout=""),
        fails("an empty list is no program", program.format("ls", "/"), guest, ["--set", "commands=[]"], stdout=""),
        fits("strict: a program that is named", program.format("printenv", "HOME"), guest, [*STRICT, "--set", "commands+=printenv"],
             stdout="/home/user\n"),
        fits("a file of the workspace, if it may be executed", SCRIPT[guest], guest, ON, stdout="ran\n"),
        fits("in permissive it may", SCRIPT[guest], guest, ["--level", "permissive"], stdout="ran\n"),
    ]
    # /bin is a link into /usr: these are names of files that the list has in the root already.
    cases += [fits(f"shell={shell} beside a list", line("echo hi"), guest, ["--set", "shell=" + shell, "--set", "commands=sh,bash"], stdout="hi\n")
              for shell in ("/bin/bash", "/usr/bin/bash")]
    for level in ("standard", "strict"):
        named = ["--level", level, *(["--set", "commands+=sh"] if level == "strict" else [])]
        cases += [fails(f"{level}: no file of the workspace", SCRIPT[guest], guest, named, stdout="", success=False),
                  fails(f"{level}: nor where the list is everything", SCRIPT[guest], guest, ["--level", level, "--set", "commands=*"],
                        stdout="", success=False)]
    if guest == "sh":
        cases.append(fits("strict: shells run every program", "ls -d /usr", guest, STRICT, stdout="/usr\n"))
    else:
        cases.append(fails("strict: no program", program.format("ls", "/"), guest, STRICT, stdout=""))
    if shutil.which("gcc"):
        room = ["--set", "memory_bytes=1G", *ON]
        cases += [fits("a compiler, and what it makes", line(HELLO), guest, room, stdout="hello\n"),
                  fits("a library that it made", LIBRARY[guest], guest, room, stdout=LOADED[guest]),
                  fails("a library, where it may not be executed", LIBRARY[guest], guest, ["--set", "memory_bytes=1G"], success=False, stdout="")]
    return cases


VENV = "python3 -m venv --without-pip v && printf '#!/home/user/v/bin/python\\nimport sys; print(sys.prefix)' > v/bin/tool && " \
       "chmod +x v/bin/tool && v/bin/tool"
# make starts its recipes with posix_spawn and POSIX_SPAWN_RESETIDS, which sets the ids to what they are.
MAKE = "printf 'all:\\n\\t@echo made\\n\\t@echo a | tr a b\\n' > Makefile; make"
SPAWN = "import os\npid = os.posix_spawn('/usr/bin/printenv', ['printenv', 'HOME'], os.environ, resetids=True)\nos.waitpid(pid, 0)[1]"
IDS = "import os\nu, g = os.getuid(), os.getgid()\nos.setuid(u); os.setgid(g); os.seteuid(u); os.setegid(g)\n" \
      "os.setreuid(-1, u); os.setregid(g, -1); os.setresuid(u, -1, u); os.setresgid(-1, -1, -1)\ndef may(f, *a):\n" \
      "  try: f(*a)\n  except OSError: return False\n  return True\n" \
      "[may(os.setuid, 0), may(os.setgid, g + 1), may(os.setreuid, -1, 0), may(os.setresgid, -1, -1, 0), may(os.setgroups, [g])]"
LDD = "import subprocess\nprint(subprocess.run(['ldd', '--version'], check=True, capture_output=True, text=True).stdout[:3])"
CASES = [c for g in GUESTS for c in of(g)] + [
    fits("the bin of a virtual environment", VENV, "sh", ON, stdout="/home/user/v\n"),
    fits("every place of the workspace", "for d in /tmp /workspace /home/user; do cp /usr/bin/printenv $d/p && $d/p HOME; done", "sh", ON,
         stdout="/home/user\n" * 3),
    fails("the loader and a program of the workspace", "cp /usr/bin/printenv p; /lib64/ld-linux-x86-64.so.2 ./p HOME", "sh", stdout=""),
    fits("the same, where it may be executed", "cp /usr/bin/printenv p; /lib64/ld-linux-x86-64.so.2 ./p HOME", "sh", ON, stdout="/home/user\n"),
    fails("a program in memory, also then", "import os\nfd = os.memfd_create('x', 0)", "python", ON, success=False, error=has("Errno")),
    fails("a script whose interpreter is not named", LDD, "python", ["--set", "commands=ldd"], stdout="", success=False),
    fits("a process may set its ids to what they are, and to no others", IDS, "python", result=[False] * 5),
    fits("a program that is started with its ids reset", SPAWN, "python", stdout="/home/user\n", result=0),
    *(fits(f"make, {level}", MAKE, "sh", ["--level", level], stdout="made\nb\n") for level in LEVELS if shutil.which("make")),
    fits("a script whose interpreter is named", LDD, "python", ["--set", "commands=ldd,bash"], stdout="ldd\n"),
]


# Programs that need their settings in /etc; R is not among the guest's languages here.
if shutil.which("Rscript") and os.path.isdir("/etc/R"):
    CASES.append(fits("Rscript has its settings", "Rscript -e 'cat(sd(1:3))'", "sh", stdout="1"))
if shutil.which("fc-list") and os.path.isdir("/etc/fonts"):
    CASES.append(fits("fontconfig has its settings", "fc-list >/dev/null", "sh", stderr=""))
if shutil.which("java") and any(n.startswith("java-") and n.endswith("-openjdk") for n in os.listdir("/etc")):
    CASES.append(fits("java has its settings", "java -Xmx64m -version 2>&1 | grep -c version; java -Xmx64m -XshowSettings:security -version 2>&1 | "
                      "grep -c InternalError; true", "sh", ["--set", "memory_bytes=2G"], stdout="1\n0\n"))
CASES.append(fits("nothing else of /etc is there", "ls /etc | grep -xE 'shadow|ssh|ssl|machine-id|resolv.conf|sudoers|gitconfig|netrc|apt' | wc -l", "sh", stdout="0\n"))


def mounted(tap, who, uid):
    """A mount that the code may write is not executable either, unless the policy says so."""
    from oneshot import run
    folder = tempfile.mkdtemp(prefix="programs-")
    try:
        os.chmod(folder, 0o777)
        shutil.copy("/usr/bin/printenv", folder + "/p")
        os.chmod(folder + "/p", 0o755)
        if uid or os.getuid() == 0:
            os.chown(folder, uid or ORDINARY, uid or ORDINARY)
        loader = "/lib64/ld-linux-x86-64.so.2 "
        for mode, options, prefix, runs in (("rw", [], "", False), ("rw", [], loader, False), ("rw", ON, "", True), ("rw", ON, loader, True),
                                            ("ro", [], "", False), ("ro", ON, "", True)):
            status, out, err, _ = run(["run", "-g", "sh", "--mount", f"{folder}:/data:{mode}", *options, "-e", prefix + "/data/p HOME"], uid)
            tap.check((status == 0, out) == (runs, b"/home/user\n" if runs else b""),
                      f"{who}: a {mode} mount, {prefix or 'by its path'}, {options or 'by default'}", status, out, err)
    finally:
        shutil.rmtree(folder)


main(CASES, mounted)
