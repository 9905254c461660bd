# cordon_magics.py - habits from notebooks: !command, %magic, %%cell magic. They are not Python, so this is loaded
# only for code that Python cannot parse. A command is started as subprocess starts it: the sandbox decides.
import os
import re
import sys

_ASSIGNED = re.compile(r"(\s*)([A-Za-z_][\w.]*)\s*=\s*([!%])(?!=)(.*)", re.S)
_QUOTES = ('"""', "'''", '"', "'")
IGNORED = frozenset(("matplotlib", "config", "load_ext", "autoreload"))  # about a front end that is not here


class UsageError(Exception):
    """A magic that does not exist or cannot do what it is asked."""
    __module__ = "cordon"


# ---- translation

class _Scanner:
    """Follows strings, brackets and continued lines from line to line."""

    def __init__(self):
        self.quote, self.depth, self.continued = None, 0, False

    def is_open(self):
        return bool(self.quote or self.depth > 0 or self.continued)

    def take(self, line):
        i = 0
        self.continued = False
        while i < len(line):
            c = line[i]
            if self.quote:
                if c == "\\":
                    i += 1
                elif line.startswith(self.quote, i):
                    i += len(self.quote) - 1
                    self.quote = None
            elif c == "#":
                break
            elif c in "\"'":
                self.quote = next(q for q in _QUOTES if line.startswith(q, i))
                i += len(self.quote) - 1
            elif c in "([{":
                self.depth += 1
            elif c in ")]}":
                self.depth -= 1
            elif c == "\\" and not line[i + 1:].strip("\r\n"):
                self.continued = True
            i += 1
        if self.quote and len(self.quote) == 1 and not line.rstrip("\r\n").endswith("\\"):
            self.quote = None  # an error, which the parser reports


def _call(kind, text):
    return '__import__("cordon")._magic(%r, %r)' % (kind, text)


def _replaced(line):
    """A line that Python does not know, as Python; None: it is none of ours."""
    text = line.lstrip(" \t")
    indent = line[:len(line) - len(text)]
    if text[:1] in "!%" and text[1:2] not in ("=", "") and text[:2] != "%%":
        return indent + _call(text[0], text[1:].strip())
    m = _ASSIGNED.match(line)
    if m:
        return "%s%s = %s" % (m.group(1), m.group(2), _call("=" + m.group(3), m.group(4).strip()))
    return None


def _cell(code):
    """(name, arguments, body) of a cell magic; None: none."""
    head, _, body = code.lstrip("\n").partition("\n")
    if not head.startswith("%%") or not head[2:3].isalpha():
        return None
    name, _, rest = head[2:].partition(" ")
    return name.strip(), rest.strip(), body


def translate(code):
    """(the code as Python, line for line; whether its time is wanted); None: there is nothing of ours in it."""
    cell = _cell(code)
    if cell and cell[0] == "time":
        return "\n" + (translate(cell[2]) or (cell[2],))[0], True  # the first line stays a line
    if cell:
        return '__import__("cordon")._magic("%%%%", %r)' % (cell,), False
    lines, out, scanner, found, i = code.split("\n"), [], _Scanner(), False, 0
    while i < len(lines):
        line, start = lines[i], i
        new = None if scanner.is_open() else _replaced(line)
        if line.startswith("%%") and line[2:3].isalpha() and not scanner.is_open():
            raise SyntaxError("%s must be the first line of its cell" % line.split()[0], ("<cell>", i + 1, 1, line))
        if new is None:
            scanner.take(line + "\n")
            out.append(line)
        else:
            while line.endswith("\\") and i + 1 < len(lines):
                i += 1
                line = line[:-1] + lines[i]
            out += [_replaced(line)] + [""] * (i - start)
            found = True
        i += 1
    return ("\n".join(out), False) if found else None


def is_complete(code):
    """For a prompt: a cell magic ends with an empty line. None: no cell magic."""
    if not _cell(code):
        return None
    return "complete" if "\n" in code and not code.rpartition("\n")[2].strip() else "incomplete"


# ---- what they do

def _expand(text, g):
    """$name and {expression} of the session, as in IPython; what is none of the session's stays for the shell."""
    def name(m):
        return str(g[m.group(1)]) if m.group(1) in g else m.group(0)

    def expression(m):
        try:
            return str(eval(m.group(1), g))
        except Exception:
            return m.group(0)
    return re.sub(r"(?<![\\$])\$([A-Za-z_]\w*)", name, re.sub(r"(?<![$\\])\{([^{}]+)\}", expression, text))


def _command(session, text, captures):
    """A plain command needs no shell, so a policy that allows the command is enough."""
    import shlex
    import subprocess
    text = _expand(text, session.globals)
    plain = not re.search(r"[|&;<>()$`\\*?\[\]{}~#\n]|^\w+=", text)
    session.streams.flush()
    done = subprocess.run(shlex.split(text) if plain else ["/bin/sh", "-c", text],
                          stdout=subprocess.PIPE if captures else None, text=True, errors="replace")
    session.globals["_exit_code"] = done.returncode
    return done.stdout.splitlines() if captures else None


def _cd(session, text):
    os.chdir(os.path.expanduser(text.strip("'\"") or "~"))
    print(os.getcwd())


def _pwd(session, text):
    return os.getcwd()


def _env(session, text):
    name, is_set, value = text.partition("=")
    if is_set:
        os.environ[name.strip()] = value.strip()
        return None
    return os.environ.get(name.strip(), "") if name else dict(os.environ)


def _do(session, text):
    """Runs a statement; the value of an expression."""
    g = session.globals
    try:
        code = compile(text, "<magic>", "eval", 0x2000)
    except SyntaxError:
        code = compile(text, "<magic>", "exec", 0x2000)
    return session.go(code, g)


def clock():
    import time
    t = os.times()
    return t.user, t.system, time.perf_counter()


def tell_times(before):
    user, system, wall = (b - a for a, b in zip(before, clock()))
    print("CPU times: user %.3g s, sys: %.3g s, total: %.3g s" % (user, system, user + system))
    print("Wall time: %.3g s" % wall)


def _time(session, text):
    before = clock()
    value = _do(session, text)
    tell_times(before)
    return value


def _timeit(session, text):
    import timeit
    given = {}
    while True:
        m = re.match(r"-([nr])\s*(\d+)\s+", text)
        if not m:
            break
        given[m.group(1)], text = max(1, int(m.group(2))), text[m.end():]
    if text.startswith("-"):
        raise UsageError("%timeit has the options -n N and -r N here")
    t = timeit.Timer(text, globals=session.globals)
    n, times = given.get("n") or t.autorange()[0], given.get("r", 3)
    best = min(t.repeat(times, n)) / n
    print("%.3g s per loop (best of %d, %d loops each)" % (best, times, n))


def _run(session, text):
    import shlex
    words = shlex.split(text)
    with open(words[0], encoding="utf-8") as f:
        code = compile(f.read(), words[0], "exec")
    sys.argv[:] = words
    exec(code, session.globals)


LINES = {"cd": _cd, "pwd": _pwd, "env": _env, "time": _time, "timeit": _timeit, "run": _run}


def _shell(program):
    def run(session, args, body):
        import subprocess
        session.streams.flush()
        done = subprocess.run([program, "-s", *args.split()], input=body, text=True)
        session.globals["_exit_code"] = done.returncode
        if done.returncode:
            raise subprocess.CalledProcessError(done.returncode, program)
    return run


def _writefile(session, args, body):
    append = args.startswith("-a ")
    path = args[3:].strip() if append else args
    if not path:
        raise UsageError("%%writefile needs a file's name")
    with open(path, "a" if append else "w", encoding="utf-8") as f:
        f.write(body if body.endswith("\n") else body + "\n")
    print(("Appending to " if append else "Writing ") + path)


def _html(session, args, body):
    session.emit("text/html", body, None)


CELLS = {"bash": _shell("/bin/bash"), "sh": _shell("/bin/sh"), "writefile": _writefile, "html": _html}


def _unknown(sign, name, known, extra=()):
    raise UsageError("there is no magic %s%s here; there are %s"
                     % (sign, name, ", ".join(sign + n for n in sorted((*known, *extra)))))


def run(session, kind, text):
    """What a translated line calls."""
    if kind == "%%":
        name, args, body = text
        return CELLS[name](session, args, body) if name in CELLS else _unknown("%%", name, CELLS, ("time",))
    if kind[-1] == "!":
        if text.startswith("!"):  # !!command: its output is the value
            kind, text = "=!", text[1:]
        return _command(session, text, kind == "=!")
    name, _, rest = text.partition(" ")
    if name in IGNORED:
        return None
    return LINES[name](session, rest.strip()) if name in LINES else _unknown("%", name, LINES)
