# test_token.py - code in a session cannot read the token of its hello anywhere; and sessions of one template do not share
# random numbers or temporary names.
import test_node
import test_python
import test_r
import test_sh
from driver import forklib, Template

ALONE = (test_python, test_r, test_node, test_sh)
FORKED = ((test_python, ["--template"], "__import__('os').getpid()"), (test_r, ["--args", "--template"], "Sys.getpid()"))


def template(module, args):
    return Template(module.ARGV + args, env=dict(getattr(module, "ENV", {}), CORDON_LIBGUEST=forklib()))


def places(pid, token):
    """Where the process has these bytes in memory."""
    found, read = [], 0
    with open("/proc/%d/maps" % pid) as maps, open("/proc/%d/mem" % pid, "rb", 0) as mem:
        for line in maps:
            start, end = (int(x, 16) for x in line.split()[0].split("-"))
            if "r" not in line.split()[1] or "[v" in line:
                continue
            mem.seek(start)
            try:
                data = mem.read(end - start)
            except OSError:
                continue
            read += len(data)
            if token.encode() in data:
                found.append(line)
    assert read > 100000, "its memory cannot be read"
    return found


def test_the_environment_has_no_token():
    for module in ALONE:
        with module.guest() as g:
            g.run("1")
            with open("/proc/%d/environ" % g.pid, "rb") as f:
                assert g.token.encode() not in f.read(), module.__name__


def test_the_shell_keeps_no_token():
    with test_sh.guest() as g:
        g.run("true")
        assert not places(g.pid, g.token)


def test_a_forked_session_has_neither_its_token_nor_another_s():
    for module, args, getpid in FORKED:
        with template(module, args) as t:
            sessions = [t.spawn() for _ in range(3)]
            pids = [s.value(getpid) for s in sessions]
            for s in sessions:
                for pid in pids + [t.pid]:
                    found = places(pid, s.token)
                    assert not found, (module.__name__, sessions.index(s), (pids + [t.pid]).index(pid), found)
            for s in sessions:
                s.close()


def test_r_draws_and_names_its_own():
    module, args, _ = FORKED[1]
    code = ("RNGkind('%s'); c(runif(1), rnorm(1), sample.int(1e9, 1))", "basename(tempfile())")
    with template(module, args) as t:
        sessions = [t.spawn() for _ in range(3)]
        for kind in ("default", "Wichmann-Hill", "L'Ecuyer-CMRG".replace("'", "\\'")):
            drawn = [repr(s.value(code[0] % kind)) for s in sessions]
            assert len(set(drawn)) == 3, drawn
        for c in code[1:]:
            named = [s.value(c) for s in sessions]
            assert len(set(named)) == 3, named
        for s in sessions:
            s.close()
