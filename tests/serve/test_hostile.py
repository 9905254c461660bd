# test_hostile.py - code that writes the wire by hand, in live sessions: no handler is called that should not be, the
# server's memory does not grow, and the session continues (or is replaced and continues).
import time

from driver import Client
from holdings import slack_kib

TOOL = {"name": "add", "args": {"a": "number", "b": "number"}, "max_calls": 50}
# The execution's id is the runtime's own knowledge; code that tries finds it.
SAY = """
import cordon, json, os
ID = cordon.call.__closure__[0].cell_contents.ident
def say(text):
    data = text.encode() if isinstance(text, str) else text
    while data: data = data[os.write(3, data):]
def call(n, tool="add", args={"a": 1, "b": 2}, **more):
    say(json.dumps(dict({"type": "tool_call", "id": ID, "call": n, "tool": tool, "args": args}, **more), separators=(",", ":")) + "\\n")
"""
# What is sent (ID is the execution's), and how often a handler may have run for it.
ATTACKS = {
    "wrong types of arguments": ("call(900, args={'a': 'x', 'b': 1})", 0),
    "an extra argument": ("call(901, args={'a': 1, 'b': 1, 'evil': 1})", 0),
    "a missing argument": ("call(902, args={'a': 1})", 0),
    "a tag that lies": ("call(903, args={'a': {'$': 'float', 'v': [1]}, 'b': 1})", 0),
    "arguments that are a list": ("call(904, args=[1, 2])", 0),
    "another tool": ("call(905, tool='../../bin/sh')", 0),
    "a tool that is a number": ("call(906, tool=7)", 0),
    "another execution's id": ("say('{\"type\":\"tool_call\",\"id\":%d,\"call\":1,\"tool\":\"add\",\"args\":{\"a\":1,\"b\":2}}\\n' % (ID + 1))", 0),
    "a replay": ("for i in range(20): call(907)", 1),
    "extra fields": ("call(908, session='sess_x', approved=True, value=5)", 1),
    "answers to nobody": ("for i in range(20): say('{\"type\":\"tool_result\",\"id\":%d,\"call\":1,\"value\":9}\\n' % ID)", 0),
    "a welcome of its own": ("say('{\"type\":\"welcome\",\"version\":1}\\n')", 0),
    "a second hello": ("say('{\"type\":\"hello\",\"version\":1,\"token\":\"x\"}\\n')", 0),
    "half a message": ("say('{\"type\":\"tool_call\",\"id\"'); os._exit(0)", 0),
    "no JSON": ("say('hello\\n')", 0),
    "no UTF-8": ("say(b'{\"type\":\"\\xff\"}\\n')", 0),
    "deep nesting": ("say('{\"type\":\"tool_call\",\"id\":%d,\"call\":909,\"tool\":\"add\",\"args\":{\"a\":' % ID + '[' * 5000 + ']' * 5000 + '}}\\n')", 0),
    "a key twice": ("say('{\"type\":\"tool_call\",\"type\":\"result\",\"id\":%d}\\n' % ID)", 0),
    "a hundred thousand junk messages": ("for i in range(100000): say('{\"type\":\"junk\"}\\n')", 0),
    "a gigabyte without an end": ("say('{\"type\":\"tool_call\",\"x\":\"')\nfor i in range(16384): say('x' * 65536)", 0),
    "a gigabyte of nothing": ("for i in range(16384): say(' ' * 65536)", 0),
    "closing early": ("os.close(3)", 0),
    "closing after a question": ("call(910); os.close(3)", 1),
    "more calls than it may make": ("for i in range(1000, 1500): call(i)", 50),
    "never listening": ("for i in range(2000, 22000): call(i, tool='nope')", 0),
}


def memory_kib(pid):
    with open("/proc/%d/status" % pid) as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))


def test_a_guest_that_speaks_the_wire_by_hand():
    ran = []
    with Client() as c:
        c.tools["add"] = lambda a, b: ran.append((a, b)) or a + b
        s = c.open(guest="python", tools=[TOOL])
        assert c.execute(s, "add(2, 3)")["result"] == 5
        del ran[:]
        c.execute(s, SAY + "call(899)")  # by hand, and good: it does get through
        end = time.monotonic() + 10
        while not ran and time.monotonic() < end:
            time.sleep(0.01)
        assert ran == [(1, 2)], ran
        before = memory_kib(c.process.pid)
        for name, (code, most) in ATTACKS.items():
            del ran[:]
            r = c.execute(s, SAY + code, timeout_ms=2000 if name == "never listening" else 25000)
            assert r["success"] or r["error_kind"] in ("protocol", "crashed", "exception", "tool", "timeout"), (name, r)
            assert len(ran) <= most, (name, ran)
            assert all(call == (1, 2) for call in ran), (name, ran)
            after = c.execute(s, "add(20, 22)")
            assert after["result"] == 42, (name, after)
        grown = memory_kib(c.process.pid) - before
        assert grown < 96 * 1024, grown


# Everything an earlier execution can know of the next one, which is nothing.
AHEAD = """
def answer(number): say('{"type":"result","id":%d,"ok":true,"value":"forged"}\\n' % number)
for i in list(range(1, 100)) + list(range(ID + 1, ID + 100)): answer(i)
"""
BEHIND = """
import os, signal, time
if os.fork() == 0:
    while True:
        for i in list(range(1, 100)) + list(range(ID + 1, ID + 100)):
            say('{"type":"output","id":%d,"mime":"text/plain","encoding":"text","data":"forged"}\\n' % i)
        time.sleep(0.2)
"""


def test_no_execution_speaks_for_the_next():
    with Client() as c:
        s = c.open(guest="python")
        # Of its own value the code says what it likes: that is the control.
        assert c.execute(s, SAY + AHEAD + "answer(ID); 1")["result"] == "forged"
        for i in range(5):
            r = c.execute(s, "print('ran'); 40 + %d" % i)
            assert (r["result"], r["stdout"]) == (40 + i, "ran\n"), r
        assert c.execute(s, SAY + BEHIND + "1")["result"] == 1
        for i in range(5):
            r = c.execute(s, "import time; time.sleep(0.3); 50 + %d" % i)
            assert (r["result"], r["outputs"], r["restarted"]) == (50 + i, [], False), r


def test_outputs_have_a_limit_together():
    code = SAY + """
data = "x" * (4 << 20)
for i in range(%d): say('{"type":"output","id":%%d,"mime":"text/plain","encoding":"text","data":"%%s"}\\n' %% (ID, data))
"""
    with Client() as c:
        s = c.open(guest="python")
        before = memory_kib(c.process.pid)
        r = c.execute(s, code % 3)
        assert len(r["outputs"]) == 3 and not any("outputs" in w for w in r["warnings"]), r["warnings"]
        r = c.execute(s, code % 100, timeout_ms=60000)
        assert r["success"] and len(r["outputs"]) == 4, (r["error"], len(r["outputs"]))
        assert any(w.startswith("96 rich outputs were not kept") for w in r["warnings"]), r["warnings"]
        r = c.execute(s, SAY + """for i in range(80):
    say('{"type":"output","id":%d,"mime":"text/plain","encoding":"text","data":"x"}\\n' % ID)""")
        assert len(r["outputs"]) == 64 and any(w.startswith("16 rich outputs") for w in r["warnings"]), r["warnings"]
        assert memory_kib(c.process.pid) - before < slack_kib(160 * 1024)


def test_cpu_time_of_processes_that_the_code_starts():
    """Also of those made by another thread, of orphans, and of those that would not hear of the limit."""
    burn = """
import os, resource, signal, threading, time
def burn():
    signal.signal(signal.SIGXCPU, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CPU, (1000, resource.getrlimit(resource.RLIMIT_CPU)[1]))
    while time.process_time() < %s: pass
    os._exit(0)
def child():
    pid = os.fork()
    if pid == 0: burn()
    os.waitpid(pid, 0)
def orphan():
    if os.fork() == 0:
        if os.fork() == 0: burn()
        os._exit(0)
    os.wait()
    time.sleep(50)
def thread():
    t = threading.Thread(target=child)
    t.start()
    t.join()
"""
    with Client() as c:
        s = c.open(guest="python", policy={"cpu_seconds": 1, "timeout_ms": 55000})
        r = c.execute(s, burn % 0.3 + "child()")
        assert r["success"] and 250 < r["cpu_time_ms"] < 1000, r
        for how in ("orphan", "thread"):
            r = c.execute(s, burn % 50 + how + "()")
            assert r["error_kind"] == "cpu" and r["cpu_time_ms"] > 900, (how, r)
            assert c.execute(s, "6 * 7")["result"] == 42


def test_a_guest_that_ends_with_files_that_cannot_be_copied():
    """Its result is told all the same, and there is a new guest."""
    end = "open('/home/user/kept', 'w').close(); os.kill(os.getpid(), 9)"
    deep = "os.chdir('/workspace')\nfor _ in range(200): os.mkdir('d' * 50); os.chdir('d' * 50)\n"
    with Client() as c:
        s = c.open(guest="python")
        r = c.execute(s, "import os\n" + end)
        assert (r["error_kind"], r["restarted"], r["warnings"]) == ("crashed", True, []), r
        assert c.execute(s, "import os; os.listdir()")["result"] == ["kept"]
        r = c.execute(s, "import os\n" + deep + end)
        assert (r["error_kind"], r["restarted"]) == ("crashed", True), r
        assert any(w.startswith("not all files could be kept: ") for w in r["warnings"]), r
        assert c.execute(s, "6 * 7")["result"] == 42
