# cordon_tools.py - host tools as Python functions, the packages that come with them, and the policy's
# list of modules. All of it is only convenience: the host checks every call again, and the sandbox,
# not the import hook, is the security boundary.
import builtins
import os
import sys

# Type names in a tool's schema, of JSON Schema and of R, and their names in messages.
_WORDS = {"number": "numeric", "double": "numeric", "string": "character", "boolean": "logical",
          "array": "list", "object": "list"}


class ToolError(RuntimeError):
    """A tool failed, or the host refused the call."""


class ToolArgumentError(ToolError, TypeError):
    """A tool was called with arguments that it does not take."""


class ModuleNotAllowedError(ImportError):
    """The policy's list of modules does not contain this one."""


for _c in (ToolError, ToolArgumentError, ModuleNotAllowedError):
    _c.__module__ = "cordon"


# ---- argument types

def _is_numeric(v):
    if isinstance(v, bool):
        return False
    if isinstance(v, (int, float)):
        return True
    np = sys.modules.get("numpy")
    return np is not None and (isinstance(v, np.number) or
                               isinstance(v, np.ndarray) and v.dtype.kind in "iuf")


def _is_integer(v):
    if isinstance(v, int):
        return not isinstance(v, bool)
    np = sys.modules.get("numpy")
    return np is not None and isinstance(v, np.integer)


def _is_logical(v):
    np = sys.modules.get("numpy")
    return isinstance(v, bool) or np is not None and isinstance(v, np.bool_)


def _is_frame(v):
    pd = sys.modules.get("pandas")
    return isinstance(v, dict) or pd is not None and isinstance(v, pd.DataFrame)


_CHECKS = {
    "number": _is_numeric, "numeric": _is_numeric, "double": _is_numeric,
    "integer": _is_integer, "string": lambda v: isinstance(v, str),
    "character": lambda v: isinstance(v, str), "boolean": _is_logical, "logical": _is_logical,
    "array": lambda v: isinstance(v, (list, tuple, set, frozenset)) or hasattr(v, "tolist"),
    "list": lambda v: isinstance(v, (list, tuple, dict, set, frozenset)) or hasattr(v, "tolist"),
    "object": lambda v: isinstance(v, dict), "data.frame": _is_frame,
    "null": lambda v: v is None, "bytes": lambda v: isinstance(v, (bytes, bytearray, memoryview)),
}

# The quick check, enough for most arguments.
_EXACT = {
    "number": (int, float), "numeric": (int, float), "double": (int, float), "integer": (int,),
    "string": (str,), "character": (str,), "boolean": (bool,), "logical": (bool,),
}


def _exact_of(declared):
    names = [declared] if isinstance(declared, str) else declared if isinstance(declared, list) else []
    return {t for n in names if isinstance(n, str) for t in _EXACT.get(n, ())}


def _checks_of(declared):
    """(check functions, word for the message) of a declared type; empty if it is not checked."""
    names = [declared] if isinstance(declared, str) else \
        [n for n in declared if isinstance(n, str)] if isinstance(declared, list) else []
    fns = [_CHECKS[n] for n in names if n in _CHECKS]
    if len(fns) != len(names):
        fns = []
    return fns, " or ".join(_WORDS.get(n, n) for n in names)


# ---- the functions

def _where():
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return ""


def make_function(spec, call):
    """The Python function of one tool; call(name, args) makes the round trip."""
    name = spec["name"]
    declared = spec.get("args") or {}
    command = bool(spec.get("command"))
    order = list(declared)
    checks, exact = {}, {}
    required = []
    for arg, d in declared.items():
        d = d if isinstance(d, dict) else {"type": d}
        checks[arg] = _checks_of(d.get("type"))
        exact[arg] = _exact_of(d.get("type"))
        if d.get("required", True):
            required.append(arg)
    needed, known = set(required), checks.keys()

    def tool(*args, **kwargs):
        if len(args) > len(order):
            raise ToolArgumentError("Unexpected arguments for tool '%s': it takes %d, got %d"
                                    % (name, len(order), len(args)))
        for arg, v in zip(order, args):
            if arg in kwargs:
                raise ToolArgumentError("Tool '%s': argument '%s' is given twice" % (name, arg))
            kwargs[arg] = v
        given = kwargs.keys()
        if not given <= known:
            raise ToolArgumentError("Unexpected arguments for tool '%s': %s"
                                    % (name, ", ".join("'%s'" % a for a in kwargs if a not in checks)))
        if not needed <= given:
            raise ToolArgumentError("Tool '%s': argument '%s' is missing"
                                    % (name, [a for a in required if a not in kwargs][0]))
        absent = False
        for arg, v in kwargs.items():
            if type(v) in exact[arg]:
                continue
            if v is None and arg not in needed:
                absent = True
                continue
            fns, word = checks[arg]
            if fns and not any(f(v) for f in fns):
                raise ToolArgumentError("Tool '%s': argument '%s' must be %s, got %s"
                                        % (name, arg, word, type(v).__name__))
        if absent:
            kwargs = {a: v for a, v in kwargs.items() if v is not None or a in needed}
        return call(name, kwargs)

    def run(*args, stdin=""):
        if isinstance(stdin, str) and "\0" in stdin:
            stdin = stdin.encode("utf-8", "surrogatepass")
        given = {"args": [a if isinstance(a, str) else str(a) for a in args], "stdin": stdin}
        if "cwd" in declared:
            given["cwd"] = _where()
        if "env" in declared:
            given["env"] = {k: v for k, v in os.environ.items() if not k.startswith("CORDON_")}
        return call(name, given)

    fn = run if command and set(order) <= {"args", "stdin", "cwd", "env"} else tool
    fn.__name__ = fn.__qualname__ = name.replace(".", "_").lstrip("_") or "tool"
    fn.__module__ = "cordon"
    fn.__doc__ = _doc(spec, order, declared)
    shape = _signature(order, required) if fn is tool else None
    if shape is not None:
        fn.__wrapped__ = shape
    return fn


def _doc(spec, order, declared):
    lines = [str(spec.get("description") or "A tool of the host.")]
    for key in ("usage", "category"):
        if spec.get(key):
            lines += ["", "%s: %s" % (key.capitalize(), spec[key])]
    if isinstance(spec.get("examples"), list):
        lines += [""] + ["Example: %s" % e for e in spec["examples"]]
    if order:
        lines += ["", "Arguments:"]
        for arg in order:
            d = declared[arg] if isinstance(declared[arg], dict) else {"type": declared[arg]}
            words = _checks_of(d.get("type"))[1] or "any"
            lines.append("    %s: %s%s%s" % (arg, words,
                                             "" if d.get("required", True) else ", optional",
                                             ". " + d["description"] if d.get("description") else ""))
    return "\n".join(lines)


def _signature(order, required):
    """A function with the same parameters, for inspect to find, because importing inspect here costs 10 ms."""
    import keyword
    if any(not a.isidentifier() or keyword.iskeyword(a) for a in order):
        return None
    text, optional, only = [], False, False
    for a in order:
        if a in required and optional and not only:
            text.append("*")
            only = True
        optional = optional or a not in required
        text.append(a if a in required else a + "=None")
    return eval("lambda %s: None" % ", ".join(text), {})


def locked_module(name, doc):
    """A module whose attributes cannot be set by accident; the runtime uses put()."""
    module_type = type(sys)

    class LockedModule(module_type):
        def __setattr__(self, key, value):
            raise AttributeError("'%s' is locked: its names cannot be changed" % name)

        def __delattr__(self, key):
            raise AttributeError("'%s' is locked: its names cannot be changed" % name)

    LockedModule.__name__ = LockedModule.__qualname__ = "module"
    m = LockedModule(name, doc)
    return m, m.__dict__.__setitem__


def install(specs, call, put, user_globals):
    """Makes every tool a builtin (a plain global where the name is a builtin's already), and an
    attribute of the module `cordon`. A name with dots becomes attributes of its first part."""
    tools = {}
    for spec in specs or ():
        name = spec["name"]
        fn = tools[name] = make_function(spec, call)
        put(name, fn)
        if "." in name.strip("."):
            _dotted(name, fn, user_globals)
        elif hasattr(builtins, name):
            user_globals[name] = fn
        else:
            setattr(builtins, name, fn)
        if isinstance(spec.get("python_package"), dict):
            memory.add(name, _package_files(spec))
    return tools


class _Group:
    """The object that has the attributes, for tools with dots in their names."""


def _dotted(name, fn, user_globals):
    first, *rest = name.strip(".").split(".")
    here = getattr(builtins, first, None) if hasattr(builtins, first) else None
    if not isinstance(here, _Group):
        if here is not None and not callable(here):
            return
        group = _Group()
        if here is not None:  # the prefix is itself a tool or builtin: do not change it
            user_globals.setdefault(first, group)
            here = user_globals[first]
            if not isinstance(here, _Group):
                return
        else:
            setattr(builtins, first, group)
            here = group
    for part in rest[:-1]:
        nxt = here.__dict__.get(part)
        if not isinstance(nxt, _Group):
            nxt = here.__dict__[part] = _Group()
        here = nxt
    here.__dict__[rest[-1]] = fn


def _package_files(spec):
    files = {str(k): str(v) for k, v in spec["python_package"].items()
             if str(k).endswith(".py")}
    files.setdefault("__init__.py", "")
    if spec.get("command"):
        files.setdefault("_shim.py", "from cordon import call as _call\n\n\n"
                         "def run(*args, stdin=''):\n"
                         "    return _call(%r, args=[str(a) for a in args], stdin=stdin)\n"
                         % spec["name"])
    return files


# ---- packages sent with the tools

class _Memory:
    """A finder and loader of modules whose source came with the session."""

    def __init__(self):
        self.sources = {}

    def add(self, package, files):
        for path, text in files.items():
            parts = path[:-3].split("/")
            is_pkg = parts[-1] == "__init__"
            if is_pkg:
                parts.pop()
            self.sources[".".join([package] + parts)] = (text, is_pkg, package + "/" + path)
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def add_module(self, name, text, filename):
        self.sources[name] = (text, False, filename)
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def find_spec(self, name, path=None, target=None):
        entry = self.sources.get(name)
        if entry is None:
            return None
        from importlib.machinery import ModuleSpec
        return ModuleSpec(name, self, origin=entry[2], is_package=entry[1])

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        text, _, filename = self.sources[module.__name__]
        exec(compile(text, filename, "exec", dont_inherit=True), module.__dict__)

    def get_source(self, name):
        return self.sources[name][0]


memory = _Memory()


class _Lines:
    """The text of each execution for linecache, and so for every traceback. linecache itself loads
    the tokenizer and regular expressions, which few runs need: until somebody imports it, the text
    waits here."""

    def __init__(self):
        self.waiting = {}
        self.real = None  # linecache's own loader while it is being imported

    def add(self, name, code):
        cache = sys.modules.get("linecache")
        if cache is not None:
            cache.cache[name] = _line_entry(name, code)
            return
        self.waiting[name] = code
        if self not in sys.meta_path:
            rules = [i for i, f in enumerate(sys.meta_path) if isinstance(f, ImportRule)]
            sys.meta_path.insert(rules[-1] + 1 if rules else 0, self)

    def drop(self, name):
        self.waiting.pop(name, None)
        cache = sys.modules.get("linecache")
        if cache is not None:
            cache.cache.pop(name, None)

    def find_spec(self, name, path=None, target=None):
        if name != "linecache":
            return None
        for finder in sys.meta_path[sys.meta_path.index(self) + 1:]:
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                self.real, spec.loader = spec.loader, self
                return spec
        return None

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        module.__loader__ = module.__spec__.loader = self.real
        self.real.exec_module(module)
        for name, code in self.waiting.items():
            module.cache[name] = _line_entry(name, code)
        self.waiting.clear()
        sys.meta_path.remove(self)


def _line_entry(name, code):
    return (len(code), None, (code + "\n").splitlines(True), name)


lines = _Lines()


# ---- the policy's list of modules

_ALWAYS = frozenset(("cordon", "__future__", "__main__"))


class ImportRule:
    """Checks imports made by the code itself, never those that a package makes for its own needs.
    Who asks is told by the asking frame's file: what lies in the interpreter's own directories, or
    is the runtime's, is a package; all else is the code's."""

    def __init__(self, modules, runtime_files):
        self.names = frozenset(modules)
        self.shown = ", ".join(modules) if modules else "none"
        self.runtime = runtime_files
        roots = {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}
        roots.update(p for p in sys.path if p)
        self.roots = tuple(r.rstrip("/") + "/" for r in roots)
        self.real_import = builtins.__import__

    def allowed(self, name):
        parts = name.split(".")
        if parts[0] in _ALWAYS or parts[0] in memory.sources:
            return True
        return any(".".join(parts[:i]) in self.names for i in range(1, len(parts) + 1))

    def is_code(self, frame):
        """Whether the first frame with a known file belongs to the code."""
        while frame is not None:
            file = frame.f_code.co_filename
            if file.startswith("<execution"):
                return True
            if file.startswith("<"):  # <string>, <frozen importlib…>: look at its caller
                frame = frame.f_back
                continue
            return not (file.startswith(self.roots) or file in self.runtime)
        return False

    def refuse(self, name):
        raise ModuleNotAllowedError(
            "Import of '%s' is not allowed: it is not in the policy's \"modules\" (%s)"
            % (name, self.shown), name=name)

    def check(self, frame, name, fromlist=(), level=0):
        if level or not isinstance(name, str) or self.allowed(name) or not self.is_code(frame):
            return
        if fromlist and all(self.allowed("%s.%s" % (name, f)) for f in fromlist):
            return
        self.refuse(name)

    # The three ways to import: the statement and __import__, importlib.import_module, and the finders
    # (for other callers; a module that is already loaded is not checked there).
    def install(self):
        import importlib
        rule, real_import, real_module = self, self.real_import, importlib.import_module

        def __import__(name, globals=None, locals=None, fromlist=(), level=0):
            rule.check(sys._getframe(1), name, fromlist, level)
            return real_import(name, globals, locals, fromlist or (), level)

        def import_module(name, package=None):
            rule.check(sys._getframe(1), name, (), 1 if str(name).startswith(".") else 0)
            return real_module(name, package)

        builtins.__import__ = __import__
        importlib.import_module = import_module
        sys.meta_path.insert(0, self)

    def find_spec(self, name, path=None, target=None):
        frame = sys._getframe(1)
        while frame is not None:
            file = frame.f_code.co_filename
            if file in self.runtime and frame.f_code.co_name in ("__import__", "import_module"):
                return None  # checked there, where the whole name is known
            if not file.startswith("<frozen importlib") and "/importlib/" not in file:
                break
            frame = frame.f_back
        self.check(frame, name)
        return None
