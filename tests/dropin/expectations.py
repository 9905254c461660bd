"""Runs the expectations of one system: the functions test_* of a module and of its classes Test*, in order. Prints TAP and figures."""
import os
import signal
import sys
import traceback

ROOT = os.environ.get("SRC") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
os.environ.setdefault("CORDON", os.path.join(os.environ.get("BUILD") or os.path.join(ROOT, "build"), "cordon"))
sys.path.insert(0, os.path.join(ROOT, "clients", "python"))
SECONDS = 200  # of one check
TABLES = os.path.join(ROOT, "clients", "python", "README.md")


class Late(Exception):
    pass


def on_alarm(signum, frame):
    raise Late("it took longer than %d s" % SECONDS)


def differs(row):
    """In the system it is otherwise. The README's row that begins with these words says so and why; the function checks what is here."""
    def mark(fn):
        fn.row = row
        return fn
    return mark


def fails(kind, text, fn, *args, **kwargs):
    """The exception, which is of this kind and has this text."""
    try:
        fn(*args, **kwargs)
    except kind as e:
        assert text in str(e), "another text: %s" % e
        return e
    raise AssertionError("it did not fail")


def same(have, want):
    assert have == want, "%r, not %r" % (have, want)


def rows_of(system):
    """What the README's table of differences from this system has in its first column."""
    with open(TABLES, encoding="utf-8") as f:
        lines = f.read().splitlines()
    at = lines.index("| %s | here |" % system) + 2
    rows = []
    while at < len(lines) and lines[at].startswith("|"):
        rows.append(lines[at][2:].split(" | ")[0])
        at += 1
    return rows


def found(module):
    for name, value in list(module.items()):
        if name.startswith("test_") and callable(value):
            yield name[5:], value
        elif name.startswith("Test") and isinstance(value, type):
            for method in list(vars(value)):
                if method.startswith("test_"):
                    yield "%s/%s" % (name[4:], method[5:]), getattr(value(), method)


class Report:
    def __init__(self, system):
        self.system, self.count, self.same, self.different, self.failed = system, 0, 0, 0, 0
        self.rows, self.used = rows_of(system), set()

    def check(self, name, fn):
        row, why = getattr(fn, "row", None), None
        signal.alarm(SECONDS)
        try:
            if row is not None:
                matches = [r for r in self.rows if r.startswith(row)]
                assert len(matches) == 1, "the README has %d rows that begin with '%s'" % (len(matches), row)
                self.used.update(matches)
            fn()
        except Exception:  # pylint: disable=broad-except
            why = traceback.format_exc()
        finally:
            signal.alarm(0)
        self.say(name, row, why)

    def say(self, name, row, why):
        self.count += 1
        self.failed += why is not None
        self.different += why is None and row is not None
        self.same += why is None and row is None
        print("%sok %d - %s/%s%s" % ("" if why is None else "not ", self.count, self.system, name, " (different: %s)" % row if row else ""))
        for line in (why or "").splitlines()[-12:]:
            print("# " + line)
        sys.stdout.flush()

    def end(self):
        for row in self.rows:
            self.say("readme/is tested: " + row[:60], None, None if row in self.used else "no check is about it")
        print("1..%d" % self.count)
        print("# %s in Python: %d expectations: %d as in %s, %d different on purpose (clients/python/README.md), %d fail" % (
            self.system, self.count - len(self.rows), self.same - sum(r in self.used for r in self.rows), self.system, self.different,
            self.failed))
        return 1 if self.failed else 0


def main(system, module):
    signal.signal(signal.SIGALRM, on_alarm)
    report = Report(system)
    for name, fn in found(module):
        report.check(name, fn)
    sys.exit(report.end())
