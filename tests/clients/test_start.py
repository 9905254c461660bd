"""What `import cordon` and a first execution load: a name brings its own module with it, and none that only others need."""
import ast
import os
import pickle
import subprocess
import sys

import cordon
from test_python import local

CLIENT = os.path.dirname(os.path.dirname(os.path.abspath(cordon.__file__)))
# Those that only some need: events, servers, TLS, archives, logs, binary columns, codepod's and SandboxedRunner's names.
RARE = {"asyncio", "concurrent.futures", "datetime", "hashlib", "logging", "mmap", "shutil", "ssl", "tarfile", "tempfile", "cordon._columns",
        "cordon._extension", "cordon._remote", "cordon._runner", "cordon._sandbox", "cordon._tables", "cordon._vfs", "cordon.aio",
        "cordon.e2b"}
FIRST = RARE | {"base64", "dataclasses", "inspect", "json", "re", "socket", "subprocess", "threading", "typing"}


def fresh(code):
    """What a new interpreter prints: without `site`, which may have loaded anything."""
    head = "import sys\nsys.path.insert(0, %r)\n" % CLIENT
    r = subprocess.run([sys.executable, "-I", "-S", "-c", head + code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
    assert r.returncode == 0, r.stderr
    return r.stdout.splitlines()


def loaded(code):
    """Which modules it loads; it prints nothing."""
    have = fresh("before = set(sys.modules)\n%s\nprint(*sorted(set(sys.modules) - before), sep='\\n')" % code)
    assert "cordon" in have, have
    return set(have)


def test_import_loads_nothing_else():
    have = loaded("import cordon")
    assert not have & FIRST and [m for m in have if m.startswith("cordon")] == ["cordon"], sorted(have)


def test_import_of_a_name_loads_its_module():
    assert {"cordon._session", "json"} <= loaded("from cordon import Session")
    assert not loaded("from cordon import Session") & RARE
    assert loaded("from cordon import ExecutionError") & FIRST <= {"re", "typing"}
    assert "cordon._runner" in loaded("import cordon; cordon.create_runner")
    assert not loaded("import cordon; cordon.Sandbox, cordon.Extension, cordon.create_runner") & {"asyncio", "datetime", "ssl", "cordon._remote"}


@local
def test_first_execution_loads_no_rare_modules():
    have = loaded("import cordon\nwith cordon.Session('python') as s:\n    assert s.run('1 + 1') == 2")
    assert not have & RARE, sorted(have & RARE)
    have = loaded("import cordon\nwith cordon.Session('python') as s:\n    assert s.run('x + 1', {'x': 1}) == 2")
    assert have & RARE == {"cordon._columns"}, sorted(have & RARE)


def test_names_and_their_modules_agree():
    with open(cordon.__file__) as f:
        tree = ast.parse(f.read())
    typed = {name.name: node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level for name in node.names}
    assert typed == cordon._HOMES and set(cordon.__all__) == set(typed), set(cordon.__all__) ^ set(typed)
    everything = {}
    exec("from cordon import *", everything)
    for name, module in typed.items():
        assert everything[name] is getattr(cordon, name) is getattr(sys.modules["cordon." + module], name), name
    public = {name for name in fresh("import cordon\nprint(*dir(cordon), sep='\\n')") if not name.startswith("_")}
    assert public == set(cordon.__all__), public ^ set(cordon.__all__)
    assert fresh("import cordon\nprint(cordon._rpc.hub is not None, hasattr(cordon, 'Sesion'))") == ["True False"]
    try:
        exec("from cordon import Sesion", {})
    except ImportError as e:
        assert "Sesion" in str(e)
    else:
        raise AssertionError("there is no such name")


def test_pickles_load_their_module():
    made = cordon.SandboxConfig.for_level("strict"), cordon.Denial("open"), cordon.FileStat("file", 3)
    for one in made:
        assert pickle.loads(pickle.dumps(one)) == one
    text = pickle.dumps(made).hex()
    assert fresh("import pickle\nprint(pickle.loads(bytes.fromhex(%r)))" % text) == [repr(made)]


def test_shared_server_outlives_what_was_registered_after_the_import():
    """Also if its module was loaded only later: functions are called in the opposite order of their registration."""
    said = fresh("import atexit, cordon\natexit.register(lambda: print(cordon.sanitize('still here', connection=c)))\nc = cordon._rpc.hub.get()")
    assert said == ["still here"], said
