# test_interrupts.py - an interrupt ends the execution that it names, and no other, whenever it comes: in every guest.
import random
import subprocess
import sys
import time

from driver import Gone
import test_node
import test_python
import test_r
import test_sh

ROUNDS = 250  # of each kind and guest
GUESTS = {
    "python": (test_python, "while True: pass", "while True:\n    try: add(1, 1)\n    except NameError: pass", "1 + 1", 2),
    "r": (test_r, "repeat {}", "repeat add(1, 1)", "1 + 1", 2),
    "node": (test_node, "while (true) {}", "while (true) add(1, 1)", "1 + 1", 2),
    "sh": (test_sh, "while :; do :; done", "while :; do add 1 1; done", "echo 2", None),
}
KEEP = {"python": "kept = 7", "r": "kept <- 7", "node": "let kept = 7", "sh": "kept=7"}
KEPT = {"python": "kept", "r": "kept", "node": "kept", "sh": "echo $kept"}
# What an interrupt finds the guest at, beyond a loop.
MORE = {
    "python": ["import time\ntime.sleep(30)", "while True: display('x')"],
    "r": ["Sys.sleep(30)", "while (TRUE) tryCatch(stop('x'), error = function(e) 0)"],
    "node": ["await new Promise(r => setTimeout(r, 30000))", "await 1; while (true) {}", "setInterval(() => {}, 1); 1", "await new Promise(() => setInterval(() => {}, 1000))",
             "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 30000)"],
    "sh": ["sleep 30", "x=$(sleep 30)", "sleep 30 | cat"],
}


def pause(rng):
    """Anywhere from before the guest has read the message to long after it runs the code."""
    kind = rng.randrange(4)
    if kind == 1:
        for _ in range(rng.randrange(3000)):
            pass
    elif kind > 1:
        time.sleep(rng.random() * (0.0005 if kind == 2 else 0.006))


class Load:
    """Both processors are busy meanwhile."""

    def __enter__(self):
        self.burners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]

    def __exit__(self, *exc):
        for p in self.burners:
            p.kill()
            p.wait()


def plain(g, name, after=None):
    _, _, _, code, value = GUESTS[name]
    r = g.run(code)
    assert r["ok"] and (r.get("value") == value if value else r.stdout == "2\n"), (after, r, r.stdout, r.stderr)


def none_lost(name):
    module, loop, tool, _, _ = GUESTS[name]
    rng = random.Random(name)
    with module.guest(tools=[module.ADD], handlers={"add": lambda a, b: a + b}) as g, Load():
        g.run(KEEP[name])
        for i in range(ROUNDS):
            code = rng.choice([loop, loop, tool] + MORE[name])
            g.start(code)
            pause(rng)
            g.interrupt_now()
            r = g.finish()
            assert not r["ok"] and r.error["kind"] == "interrupted", (i, code, r)
            plain(g, name, (i, code))
        r = g.run(KEPT[name])
        assert r.get("value") == 7 or r.stdout == "7\n", r


def none_misdirected(name):
    rng = random.Random(name)
    with GUESTS[name][0].guest() as g, Load():
        for i in range(ROUNDS):
            g.start(GUESTS[name][3])
            pause(rng)
            g.interrupt_now()
            r = g.finish()
            assert r["ok"] or r.error["kind"] == "interrupted", (i, r)
            plain(g, name)
            plain(g, name)


def test_none_is_lost_in_python():
    none_lost("python")


def test_none_is_lost_in_r():
    none_lost("r")


def test_none_is_lost_in_node():
    none_lost("node")


def test_none_is_lost_in_sh():
    none_lost("sh")


def test_a_callback_of_node_that_never_ends():
    """It cannot be ended alone; Node goes with it."""
    forever = "() => { console.log('go'); while (true) {} }"
    for code in (f"setTimeout({forever}, 0); 1", f"setImmediate({forever}); 1"):
        with test_node.guest() as g:
            r = g.interrupt(code)
            assert r.error["kind"] == "interrupted", r
            try:
                g.run("1")
                assert False, "Node lives"
            except (Gone, OSError):
                pass


def test_none_hits_a_later_execution_in_python():
    none_misdirected("python")


def test_none_hits_a_later_execution_in_r():
    none_misdirected("r")


def test_none_hits_a_later_execution_in_node():
    none_misdirected("node")


def test_none_hits_a_later_execution_in_sh():
    none_misdirected("sh")
