# cordon_check.py - checks Python syntax, and finds calls that a sandbox may restrict. It parses, so strings
# and comments never count, and runs none of the code. Warnings are advice, not a security boundary.
import _ast as ast  # the module ast would load enum and more at every start

_WATCHED = frozenset("""
eval exec compile __import__ importlib.import_module
os.system os.popen os.fork os.forkpty os.kill os.killpg os.putenv os.setuid os.setgid
os.execl os.execle os.execlp os.execlpe os.execv os.execve os.execvp os.execvpe
os.spawnl os.spawnle os.spawnlp os.spawnlpe os.spawnv os.spawnve os.spawnvp os.spawnvpe
os.posix_spawn os.posix_spawnp pty.spawn
subprocess.run subprocess.call subprocess.Popen subprocess.check_call subprocess.check_output
subprocess.getoutput subprocess.getstatusoutput asyncio.create_subprocess_exec
asyncio.create_subprocess_shell multiprocessing.Process multiprocessing.Pool
ctypes.CDLL ctypes.PyDLL ctypes.cdll.LoadLibrary ctypes.pythonapi
socket.socket socket.create_connection socket.create_server
urllib.request.urlopen urllib.request.urlretrieve http.client.HTTPConnection
http.client.HTTPSConnection requests.get requests.post requests.put requests.delete
requests.request requests.Session pickle.load pickle.loads marshal.loads shutil.rmtree
""".split())


# Code whose text has none of these calls nothing of the above. That is enough for most code.
WORDS = frozenset(name.rpartition(".")[2] for name in _WATCHED)


def _walk(tree):
    """The tree's nodes, parents first."""
    nodes = [tree]
    for node in nodes:  # grows during the loop
        for field in node._fields:
            v = getattr(node, field, None)
            if isinstance(v, list):
                nodes += [n for n in v if isinstance(n, ast.AST)]
            elif isinstance(v, ast.AST):
                nodes.append(v)
    return nodes


def _aliases(tree):
    """Names bound by imports, and what they stand for."""
    names = {}
    for node in _walk(tree):
        if isinstance(node, ast.Import):
            for a in node.names:
                if a.asname:
                    names[a.asname] = a.name
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for a in node.names:
                names[a.asname or a.name] = node.module + "." + a.name
    return names


def _dotted(node, aliases):
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    parts.append(aliases.get(node.id, node.id))
    return ".".join(reversed(parts))


def advice(tree):
    aliases, found = _aliases(tree), []
    calls = [n for n in _walk(tree) if isinstance(n, ast.Call)]
    for call in sorted(calls, key=lambda n: (n.lineno, n.col_offset)):
        name = _dotted(call.func, aliases)
        if name == "__import__" and call.args and getattr(call.args[0], "value", None) == "cordon":
            continue  # what a !command or %magic became
        if name and name.startswith("builtins."):
            name = name[9:]
        if name in _WATCHED and name not in found:
            found.append(name)
    return ["Code contains call to `%s()` which may be restricted by the sandbox" % n
            for n in found]


def check(code, magics):
    r = {"valid": True, "error": None, "line": None, "column": None, "warnings": []}
    try:
        tree = compile(code, "<code>", "exec", 0x2400, True)  # an AST; top-level await is allowed
        compile(tree, "<code>", "exec", 0x2000, True)
        r["warnings"] = advice(tree)
    except SyntaxError as e:
        new = magics and magics().translate(code)
        if new:  # a notebook's !command and %magic
            return check(new[0], None)
        r.update(valid=False, error="%s: %s" % (type(e).__name__, e.msg), line=e.lineno,
                 column=e.offset)
    except (ValueError, RecursionError, MemoryError, OverflowError) as e:
        r.update(valid=False, error="%s: %s" % (type(e).__name__, e))
    return r


def main(load):
    import json
    import sys
    import warnings
    warnings.simplefilter("ignore")
    code = sys.stdin.buffer.read()
    try:
        text = code.decode("utf-8")
    except UnicodeDecodeError as e:
        r = {"valid": False, "error": "the code is not UTF-8: %s" % e.reason, "line": None,
             "column": None, "warnings": []}
    else:
        r = check(text, lambda: load("cordon_magics"))
    sys.stdout.write(json.dumps(r) + "\n")
    return 0
