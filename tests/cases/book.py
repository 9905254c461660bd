"""The book of cases: each has a name such as SES-01, the guests it fits, and a function that fails by an exception."""
import contextlib
import os
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "clients", "python"))
CORDON = os.environ.setdefault("CORDON", os.path.join(ROOT, "build", "cordon"))

import cordon  # noqa: E402

CASES = []
NATIVE = ("python", "r", "node", "sh")
LANGUAGES = ("python", "r", "node")
SHELLS = ("sh", "pod")

# The same thing said in each language.
SAY = {
    "two": {"python": "1 + 1", "r": "1 + 1", "node": "1 + 1", "sh": "echo 2", "pod": "echo 2"},
    "lines": {"python": "x = 10\ny = 20\nx + y", "r": "x <- 10\ny <- 20\nx + y", "node": "let x = 10\nlet y = 20\nx + y",
              "sh": "x=10\ny=20\necho $((x + y))", "pod": "x=10\ny=20\necho $((x + y))"},
    "set": {"python": "x = 10", "r": "x <- 10", "node": "var x = 10", "sh": "x=10", "pod": "x=10"},
    "get": {"python": "x * 2", "r": "x * 2", "node": "x * 2", "sh": "echo $((x * 2))", "pod": "echo $((x * 2))"},
    "fail": {"python": "raise ValueError('user error')", "r": "stop('user error')", "node": "throw new Error('user error')",
             "sh": "echo 'user error' >&2; false", "pod": "echo 'user error' >&2; false"},
    "loop": {"python": "while True: pass", "r": "while (TRUE) {}", "node": "for (;;) {}", "sh": "while true; do :; done",
             "pod": "while true; do :; done"},
    "sleep": {"python": "import time; time.sleep(60)", "r": "Sys.sleep(60)",
              "node": "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 60000)", "sh": "sleep 60", "pod": "sleep 60"},
    "up": {"python": "import time; print('up', flush=True); time.sleep(60)", "r": "cat('up\\n'); flush(stdout()); Sys.sleep(60)",
           "node": "console.log('up'); Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 60000)", "sh": "echo up; sleep 60",
           "pod": "echo up; sleep 60"},
    "hi": {"python": "print('hi'); None", "r": "cat('hi\\n')", "node": "console.log('hi'); null", "sh": "echo hi", "pod": "echo hi"},
    "broken": {"python": "if (True {", "r": "if (TRUE {", "node": "if (true {", "sh": "if true; then", "pod": "if true; then"},
    "streams": {"python": "import sys; print('out'); print('err', file=sys.stderr)", "r": "cat('out\\n'); message('err')",
                "node": "console.log('out'); console.error('err')", "sh": "echo out; echo err >&2", "pod": "echo out; echo err >&2"},
    "pause": {"python": "import time; print('a', flush=True); time.sleep(1); print('b')",
              "r": "cat('a\\n'); flush(stdout()); Sys.sleep(1); cat('b\\n')",
              "node": "console.log('a'); Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1000); console.log('b')",
              "sh": "echo a; sleep 1; echo b", "pod": "echo a; sleep 1; echo b"},
}


def case(ids, guests=("python",)):
    """@case("SES-01", NATIVE): the function gets the guest's name."""
    def note(function):
        CASES.append((ids, guests, function))
        return function
    return note


@contextlib.contextmanager
def session(guest, policy=None, **more):
    with cordon.Session(guest, policy=policy, **more) as s:
        yield s


def wait_until(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "in vain"
        time.sleep(0.01)


def value(result):
    """What the code gave: its value, or for shells what it printed."""
    assert result.success, (result.error_kind, result.error, result.stderr)
    if result.value is None:
        return result.stdout.strip()
    # R's numbers are doubles.
    return int(result.value) if isinstance(result.value, float) and result.value.is_integer() else result.value


def same(got, want):
    assert got == want, "got %r, want %r" % (got, want)


def has(text, *parts):
    for part in parts:
        assert part in (text or ""), "%r is not in %r" % (part, text)


def refused(function, *parts):
    """The call fails, in these words."""
    try:
        got = function()
    except Exception as error:
        has(str(error), *parts)
        return error
    raise AssertionError("it was not refused: %r" % (got,))
