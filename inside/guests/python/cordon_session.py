# cordon_session.py - one session: runs the code in its own module __main__ and answers on the wire.
import _ast
import builtins
import os
import sys
from _signal import SIG_UNBLOCK, SIGINT, pthread_sigmask, signal  # `signal` would load enum
from _thread import get_ident

import cordon_rich as rich
import cordon_site as site
import cordon_streams as streams
import cordon_tools as tools
import cordon_values as values
from cordon_wire import WIRE, Wire, dumps, to_bytes

TEXT_BYTES = 65536
# Kept for the answer after a MemoryError: Python takes memory for small objects 1 MiB at a time.
RESERVE_BYTES = 4 << 20
_MISSING = object()
_load = None  # loads modules of the runtime by name
_check = _asked = _magics = _columns = None  # cordon_check, cordon_inspect, cordon_magics, cordon_columns, loaded on first use


def magics():
    global _magics
    if _magics is None:
        _magics = _load("cordon_magics")
    return _magics


def _watch_charts():
    if os.environ.get("CORDON_CHARTS") and rich.charts is None:
        rich.charts = _load("cordon_charts")
        rich.charts.watch()


class _Notebooks:
    """Loads what stands for IPython when code first asks for it."""

    def find_spec(self, name, path=None, target=None):
        if name != "IPython" and name[:8] != "IPython.":
            return None
        site.complete()
        return _load("cordon_ipython").Finder().find_spec(name, path, target)


def columns():
    global _columns
    if _columns is None:
        _columns = _load("cordon_columns")
    return _columns


class _Columns:
    """What the encoder gives large parts of a value to: loads the writer with the first."""
    __slots__ = ("limit", "floor", "writer")

    def __init__(self, limit):
        self.limit, self.floor, self.writer = limit, 65536, None

    def __getattr__(self, name):
        if self.writer is None:
            self.writer = columns().Writer(self.limit, values.ValueFormError)
        return getattr(self.writer, name)


# ---- one session

class Session:
    def __init__(self, wire, token, template=False):
        self.wire = wire
        self.token = token
        self.options = {}
        self.ident = None  # of the running execution
        self.calls = 0
        self.count = 0
        self.result_name = "result"
        self.cwd = "/home/user"  # as last reported to the host
        self.message_bytes, self.rpc_bytes, self.value_bytes = 1 << 20, 8 << 20, 0
        self.buffers = False  # whether the value of this execution may have binary columns
        self.flags = 0  # __future__ features that earlier code enabled
        self.reserve = bytes(RESERVE_BYTES)  # zeros that are never read take no pages
        self.loop = None
        self.module = type(sys)("__main__")
        self.globals = self.module.__dict__
        self.globals["__builtins__"] = builtins
        self.streams = streams.Streams()
        self.runtime_files = _FILES
        self.tools, self.tool_bytes = {}, {}
        self.validating, self.warnings = False, []
        self.put = None  # into the module `cordon`

    # -- setting up

    def hello_line(self, token, template=False):
        m = {"type": "hello", "version": 1, "token": token, "guest": "python",
             "language": "%d.%d.%d" % sys.version_info[:3]}
        if template:
            m["template"] = True
        return to_bytes(dumps(m)) + b"\n"

    def hello(self, template=False):
        self.wire.send_bytes(self.hello_line(self.token, template))

    def welcome(self, answer):
        if answer is None or answer.get("type") != "welcome":
            os._exit(0)
        self.options = answer.get("guest_options") or {}

    def prepare(self):
        """Sets up what does not depend on the host's options: a template does it once for all sessions."""
        sys.modules["__main__"] = self.module
        builtins.display = self.display
        module, put = tools.locked_module("cordon", "The host's tools, and display().")
        put("ToolError", tools.ToolError)
        put("display", self.display)
        put("call", lambda name, **args: self.call_tool(name, args))
        put("_magic", lambda kind, text: magics().run(self, kind, text))
        put("_show_figures", lambda: rich.figures(self.emit))
        put("_charts", _watch_charts)
        self.put = put
        put("is_tool", lambda name: name in self.tools)
        builtins.ToolError = tools.ToolError
        os.system = lambda command: self.wire.system(command, self.ident)
        sys.modules["cordon"] = module
        sys.meta_path.append(_Notebooks())
        tools.memory.add_module("cordon_figures", rich.BACKEND, "cordon_figures.py")
        if os.environ.get("MPLBACKEND", "agg").lower() == "agg":
            os.environ["MPLBACKEND"] = "module://cordon_figures"

    def adapt(self):
        """Sets up what depends on the host's options."""
        o = self.options
        self.result_name = o.get("result_name") or "result"
        self.message_bytes = o.get("message_bytes") or self.message_bytes
        self.rpc_bytes = o.get("rpc_bytes") or self.rpc_bytes
        self.value_bytes = o.get("value_bytes") or 0
        _change_env(o.get("env"))
        if o.get("tools"):
            self.tools = tools.install(o["tools"], self.call_tool, self.put, self.globals)
            self.tool_bytes = {t["name"]: t.get("argument_bytes") for t in o["tools"]}
        modules = o.get("modules", "*")
        if modules != "*" and modules != ["*"]:
            site.complete()  # the rule recognises packages by their directory
            tools.ImportRule(list(modules), self.runtime_files).install()

    def run(self):
        """Serves executions until the host sends exit or is gone."""
        wire = self.wire
        while True:
            with wire.lock:
                m = wire.next()
            if m is None:
                os._exit(0)
            kind = m.get("type")
            if kind in ("execute", "inspect"):
                self.execute(m)
            elif kind == "exit":
                self.leave()

    def leave(self):
        import atexit
        try:
            atexit._run_exitfuncs()
        except BaseException:
            pass
        self.streams.flush()
        os._exit(0)

    # -- one execution

    def execute(self, m):
        wire = self.wire
        self.ident, self.calls = m.get("id"), 0
        runs = m["type"] == "execute"
        self.count += runs
        self.warnings = []
        result = None
        if self.reserve is None:
            self.refill()
        try:
            try:
                signal(SIGINT, wire.on_sigint)
                pthread_sigmask(SIG_UNBLOCK, (SIGINT,))
                wire.begin(self.ident)
                if "stdin" in m:
                    self.streams.take_input(m["stdin"])
                if not self.streams.mend():
                    os._exit(0)  # the host has another in its place
                site.add_user()
                wire.arm()
                result = self.evaluate(m) if runs else self.inspect(m)
            except BaseException as e:
                if isinstance(e, MemoryError):
                    self.reserve = None
                wire.armed = False
                result = self.failure(e)
            wire.armed = False
        except KeyboardInterrupt:  # between the two statements above
            wire.armed = False
            result = result or self.interrupted()
        if not result["ok"] and result["error"]["kind"] == "interrupted":
            _drop_halves()
        wire.active = False
        if os.getpid() != wire.pid:  # the code forked, and its child returned here
            self.streams.flush()
            os._exit(int(result.get("exit_code") or 0) & 255 if result["ok"] else 1)
        if not self.streams.flush():
            os._exit(0)  # the host has another in its place
        self.reply(result)

    def refill(self):
        try:
            self.reserve = bytes(RESERVE_BYTES)
        except MemoryError:
            pass

    def reply(self, result):
        message = {"type": "result", "id": self.ident}
        message.update(result)
        if self.warnings:
            message["warnings"] = self.warnings
        cwd = _where()
        if cwd and cwd != self.cwd:
            self.cwd = message["cwd"] = cwd
        data = to_bytes(dumps(message)) + b"\n"
        if len(data) > self.rpc_bytes and message.pop("value", None) is not None:
            message.pop("buffer", None)
            message["warnings"] = self.lacks_value("the value is too large (%d bytes, max %d)"
                                                   % (len(data), self.rpc_bytes))
            data = to_bytes(dumps(message)) + b"\n"
        if len(data) > self.rpc_bytes:
            message = {"type": "result", "id": self.ident, "ok": False, "error": {
                "kind": "value", "name": "ValueError",
                "message": "The result is too large (%d bytes, max %d)" % (len(data),
                                                                          self.rpc_bytes)}}
            data = to_bytes(dumps(message)) + b"\n"
        self.ident = None
        self.wire.send_bytes(data)

    def inspect(self, m):
        """Answers a prompt's question about code, which does not run."""
        global _asked
        if _asked is None:
            _asked = _load("cordon_inspect")
        return {"ok": True, "value": _asked.answer(m, self.globals, self.flags | 0x2000, magics)}

    def evaluate(self, m):
        """Runs the code; returns the fields of the result message. Raises what the code raises."""
        code, g = m.get("code") or "", self.globals
        if code[:1] == "\ufeff":  # as in a file
            code = code[1:]
        _change_env(m.get("env"))
        if m.get("directory"):
            self.cwd = _go_to(m["directory"])
        if "args" in m:
            sys.argv[1:] = m["args"]
        context = m.get("context")
        self.buffers = bool(m.get("buffers"))
        if context and "buffer" in m:
            context = self.with_columns(context, m["buffer"])
        if context:
            for k, v in context.items():
                g[k] = values.decode(v)
        name = "<execution %d>" % self.count
        self.validating = bool(m.get("validate"))
        try:
            body, last, stores, timed = self.compile_any(code, name)
        except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError) as e:
            return self.syntax_error(e, name)
        before = g.get(self.result_name, _MISSING)
        value, has = None, False
        try:
            if body is not None:
                self.go(body, g)
            if last is not None:
                value, has = self.go(last, g), True
            if timed:
                _magics.tell_times(timed)
        except SystemExit as e:
            return self.exited(e, before, stores)
        after = g.get(self.result_name, _MISSING)
        if after is not _MISSING and (stores or after is not before):
            value, has = after, True
        shows = m.get("show")
        if shows and has and value is not None:
            builtins._ = value
        if shows and has and _ends_with_semicolon(code):  # a notebook's way to see no value
            self.show(None)
            fields = self.value_fields(value)
            fields.pop("text", None)
            return fields
        self.show(value)
        return self.value_fields(value) if has else {"ok": True}

    def show(self, value):
        """Rich forms of the value first: a figure that is the value is still open then, and is sent
        once, with the others."""
        self.safely(rich.value, value, lambda *form: self.emit(*form, value=True))
        if "matplotlib.pyplot" in sys.modules:
            self.safely(rich.figures, self.emit)

    def compile_any(self, code, name):
        """compile() of the code, or of what a notebook's !command, %magic and %%magic stand for; and when
        it began, if it wants to know."""
        try:
            return (*self.compile(code, name), None)
        except SyntaxError:
            new, timed = magics().translate(code) or (None, None)
            if new is None:
                raise
        parts = self.compile(new, name)
        self.remember(code, name)
        return (*parts, timed and _magics.clock())

    def compile(self, code, name):
        """(code of all but a last expression, that expression's code, whether the result's name is
        assigned). Either code may be None."""
        flags = self.flags | 0x2000  # PyCF_ALLOW_TOP_LEVEL_AWAIT
        last = self.compile_expression(code, name, flags)
        if last is not None:
            return None, last, False
        tree = compile(code, name, "exec", flags | 0x400, True)  # PyCF_ONLY_AST
        if self.validating:
            self.warnings = self.advice(code, tree)
        self.remember(code, name)
        stores = self.result_name in code and _stores(tree, self.result_name)
        last = None
        if tree.body and type(tree.body[-1]).__name__ == "Expr":
            last = tree.body.pop()
        body = None
        if tree.body:
            body = compile(tree, name, "exec", flags, True)
            self.flags |= body.co_flags & 0x1ff0000  # __future__ features stay on, as in a prompt
            flags |= self.flags
        if last is not None:
            last = compile(_ast.Expression(last.value), name, "eval", flags, True)
        return body, last, stores

    def is_watched(self, code):
        """Whether the code may contain a word that advice() looks for."""
        global _check
        if _check is None:
            _check = _load("cordon_check")
        return not code.isascii() or any(w in code for w in _check.WORDS)

    def advice(self, code, tree):
        """Calls in the code that a sandbox may restrict; none of it has run yet."""
        return _check.advice(tree)[:64] if self.is_watched(code) else []

    def compile_expression(self, code, name, flags):
        """The code of what is one expression on one line, else None: without a syntax tree, whose
        objects touch many pages that a session shares with its template."""
        if len(code) > 200 or "\n" in code or "=" in code or code[:1] in " \t\f;":
            return None
        if self.validating and self.is_watched(code):
            return None
        try:
            last = compile(code, name, "eval", flags, True)
        except (SyntaxError, ValueError):
            return None  # a statement, or an error that the other way reports
        self.remember(code, name)
        return last

    def remember(self, code, name):
        """The lines of the code, for tracebacks."""
        tools.lines.add(name, code)
        if self.count > 1000:
            tools.lines.drop("<execution %d>" % (self.count - 1000))

    def go(self, code, g):
        if code.co_flags & 0x80:  # CO_COROUTINE: there is a top-level await
            import asyncio
            if self.loop is None or self.loop.is_closed():
                self.loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self.loop)
            return self.complete(self.loop.create_task(eval(code, g)))
        return eval(code, g)

    def complete(self, task):
        """Runs the event loop until the task is done. One that is interrupted must not go on in a later execution."""
        try:
            return self.loop.run_until_complete(task)
        except BaseException:
            if not task.done() and not self.loop.is_closed():
                import asyncio
                task.cancel()
                self.loop.run_until_complete(asyncio.wait([task]))
            if task.done() and not task.cancelled():
                task.exception()  # else its end would be told on stderr, too
            raise

    def with_columns(self, form, header):
        """The form with the binary columns that the host has for it."""
        with self.wire.lock:
            fd = self.wire.buffer(self.ident)
        try:
            return columns().resolve(form, header, _columns.read_file(fd, header["bytes"]))
        finally:
            os.close(fd)

    def send_columns(self, writer):
        try:
            with self.wire.lock:
                fd = self.wire.buffer(self.ident, writer.bytes)
        except ValueError as e:
            raise values.ValueFormError(str(e)) from None
        try:
            _columns.write_file(fd, writer)
        finally:
            os.close(fd)

    def value_fields(self, value):
        apart = _Columns(self.value_bytes) if self.buffers else None
        try:
            form = values.encode(value, self.rpc_bytes, apart)
            if apart is not None and apart.writer is not None and apart.writer.table:
                self.send_columns(apart.writer)
            else:
                apart = None
        except values.ValueFormError as e:
            self.lacks_value(str(e))
            return {"ok": True, "text": self.text(value, None)}
        r = {"ok": True, "value": form}
        if apart is not None:
            r["buffer"] = apart.writer.header()
        if value is not None:
            text = self.text(value, None if apart is not None else form)
            if text is not None:
                r["text"] = text
        return r

    def lacks_value(self, why):
        """The code succeeded, so that its last value cannot cross is no failure, but it is told."""
        self.warnings.insert(0, "The result has no value, only its text: %s" % why)
        return self.warnings

    def text(self, value, form):
        if type(form) is dict and form.get("$") == "int":
            return form["v"][:TEXT_BYTES]
        try:
            text = rich.bounded_text(value) if form is None and value is not None else repr(value)
            if type(text) is not str:
                text = str.__str__(text)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:
            if type(form) is dict and form.get("$") == "repr":
                return form["v"]
            return "<%s object>" % _name(value)
        if len(text) * 4 > TEXT_BYTES and len(text.encode("utf-8", "replace")) > TEXT_BYTES:
            text = text.encode("utf-8", "replace")[:TEXT_BYTES].decode("utf-8", "ignore") + "..."
        return text

    def safely(self, fn, *args):
        """Rich forms are optional: a failure is only printed on stderr."""
        try:
            return fn(*args)
        except (KeyboardInterrupt, MemoryError):
            raise
        except BaseException as e:
            try:
                self.streams.err.write("cordon: no rich output: %s: %s\n" % (_name(e), e))
            except Exception:
                pass
        return None

    # -- failures

    def failure(self, e):
        """The result of an exception; never raises, whatever the exception's own methods do."""
        self.wire.armed = True
        try:
            if isinstance(e, KeyboardInterrupt):
                where = self.describe(e)["error"] if type(e) is KeyboardInterrupt else {}
                return self.interrupted({k: where[k] for k in ("traceback", "line") if k in where})
            return self.describe(e)
        except KeyboardInterrupt:
            return self.interrupted()
        except BaseException:
            if isinstance(e, KeyboardInterrupt):
                return self.interrupted()
            return {"ok": False, "error": {"kind": "memory" if isinstance(e, MemoryError)
                                           else "exception", "name": _name(e),
                                           "message": ""}}
        finally:
            self.wire.armed = False

    def interrupted(self, where=()):
        """where: the traceback and the line that the code was at."""
        return {"ok": False, "error": {"kind": "interrupted", "name": "KeyboardInterrupt",
                                       "message": "The execution was interrupted", **dict(where)}}

    def describe(self, e):
        kind = "exception"
        if isinstance(e, MemoryError):
            kind = "memory"
        elif isinstance(e, tools.ModuleNotAllowedError):
            kind = "import"
        elif isinstance(e, tools.ToolError):
            kind = "tool"
        error = {"kind": kind, "name": _name(e), "message": _message(e)}
        tb, line, code, here = e.__traceback__, None, None, "<execution %d>" % self.count
        while tb is not None:
            code = tb.tb_frame.f_code
            if code.co_filename == here:
                line = tb.tb_lineno
            tb = tb.tb_next
        error["traceback"] = self.traceback(e)
        if line is not None:
            error["line"] = line
        result = {"ok": False, "error": error}
        # A program that does not exist. The host knows whether it was requested, and asks which one.
        if isinstance(e, OSError) and isinstance(e.filename, str) and code and code.co_name == "_execute_child":
            result["denials"] = [{"operation": "exec", "target": e.filename.rpartition("/")[2][:255]}]
        return result

    def traceback(self, e):
        import traceback
        te = traceback.TracebackException(type(e), e, e.__traceback__, capture_locals=False)
        seen, queue = set(), [te]
        while queue:  # chained exceptions and groups have frames of their own
            t = queue.pop()
            if t is None or id(t) in seen:
                continue
            seen.add(id(t))
            t.stack[:] = [f for f in t.stack if f.filename not in self.runtime_files]
            queue += [t.__cause__, t.__context__] + list(getattr(t, "exceptions", None) or ())
        return _bounded("".join(te.format()))

    def syntax_error(self, e, name):
        import traceback
        if not isinstance(e, SyntaxError):
            kind = "memory" if type(e) is MemoryError and not e.args else "syntax"
            return {"ok": False, "error": {"kind": kind, "name": _name(e),
                                           "message": _message(e)}}
        text = _bounded("".join(traceback.format_exception_only(type(e), e)))
        error = {"kind": "syntax", "name": _name(e), "message": str(e.msg),
                 "traceback": text}
        if e.lineno is not None:
            error["line"] = e.lineno
        return {"ok": False, "error": error}

    def exited(self, e, before, stores):
        code = e.code
        if code is None:
            code = 0
        elif not isinstance(code, int):
            self.safely(lambda: print(code, file=self.streams.err))
            code = 1
        code = int(code)
        r = {"ok": code == 0, "exit_code": code & 255}
        after = self.globals.get(self.result_name, _MISSING)
        has = after is not _MISSING and (stores or after is not before)
        self.show(after if has else None)
        if r["ok"] and has:
            r.update(self.value_fields(after))
        if not r["ok"]:
            r.setdefault("error", {"kind": "exception", "name": "SystemExit",
                                   "message": "the code asked to exit with status %d"
                                   % r["exit_code"]})
        return r

    # -- what the code calls

    def call_tool(self, name, args):
        wire = self.wire
        if os.getpid() != wire.pid:
            raise tools.ToolError("tools can only be called from the session's own process")
        if self.ident is None:
            raise tools.ToolError("tools can only be called while an execution runs")
        main = get_ident() == wire.main
        armed = wire.armed if main else False
        try:
            if main:
                wire.armed = False
            with wire.lock:
                ident = self.ident
                if ident is None:
                    raise tools.ToolError("tools can only be called while an execution runs")
                self.calls += 1
                call = self.calls
                line = self.tool_line(ident, call, name, args)
                wire.send_bytes(line)
                m = wire.answer(ident, call, None if main else 50, lambda: self.ident == ident)
        finally:
            if main:
                wire.armed = armed
        if wire.pending and armed:
            wire.pending = False
            raise KeyboardInterrupt
        if "error" in m:
            raise tools.ToolError(str(m["error"]))
        return values.decode(m.get("value"))

    def tool_line(self, ident, call, name, args):
        limit = self.tool_bytes.get(name) or self.message_bytes
        try:
            form = values.encode_args(args, limit)
        except values.ValueFormError as e:
            raise tools.ToolError("Tool '%s': an argument cannot cross: %s" % (name, e)) from None
        line = to_bytes('{"type":"tool_call","id":%d,"call":%d,"tool":%s,"args":%s}\n'
                        % (ident, call, dumps(str(name)), dumps(form)))
        if len(line) > limit:
            raise tools.ToolError("IPC message too large (%d bytes, max %d)" % (len(line), limit))
        return line

    def display(self, *objects):
        """Shows each object in its rich form where it has one, else prints it."""
        for o in objects:
            if not rich.value(o, self.emit):
                print(o if isinstance(o, str) else repr(o))

    def emit(self, mime, data, name, value=False):
        if self.ident is None or os.getpid() != self.wire.pid:
            return
        message = {"type": "output", "id": self.ident}
        message.update(rich.encode(mime, data, name))
        if value:
            message["value"] = True
        line = to_bytes(dumps(message)) + b"\n"
        if len(line) > self.rpc_bytes:
            self.streams.err.write("cordon: an output of type %s was left out: %d bytes, max %d\n"
                              % (mime, len(line), self.rpc_bytes))
            return
        self.wire.send_bytes(line)


def _ends_with_semicolon(code):
    last = code.rstrip().rpartition("\n")[2]
    if "#" in last and "'" not in last and '"' not in last:
        last = last.partition("#")[0].rstrip()
    return last.endswith(";")


def _where(getcwd=os.getcwd):
    """None: it was removed, or its name is not valid text."""
    try:
        cwd = getcwd()
        cwd.encode()
        return cwd
    except (OSError, UnicodeError):
        return None


def _go_to(directory, chdir=os.chdir):
    try:
        chdir(directory)
    except (OSError, ValueError):  # it no longer exists: stay
        pass
    return _where()


def _change_env(changes):
    for k, v in (changes or {}).items():
        if v is None:
            os.environ.pop(k, None)
        else:
            os.environ[k] = str(v)


def _stores(tree, name):
    """Whether any statement assigns the name (a name in Store context)."""
    todo = [tree]
    while todo:
        n = todo.pop()
        if type(n) is list:
            todo += n
        elif isinstance(n, _ast.AST):
            if type(n) is _ast.Name and n.id == name and type(n.ctx) is _ast.Store:
                return True
            todo += [getattr(n, f, None) for f in n._fields]
    return False


_type_name = type.__dict__["__name__"].__get__


def _drop_halves():
    """After an interrupted import Python removes the package, but not its modules, with which it could not be imported
    again. Extension modules stay: most cannot be loaded twice."""
    try:
        for name, module in list(sys.modules.items()):
            parent = name.rpartition(".")[0]
            if parent and parent not in sys.modules and not str(getattr(module, "__file__", "")).endswith(".so"):
                sys.modules.pop(name, None)
    except BaseException:  # the code can put anything there
        pass


def _name(v):
    """The name of v's class, ignoring what its metaclass overrides."""
    return _type_name(type(v))


def _message(e):
    try:
        text = str(e)
        if type(text) is not str:
            text = str.__str__(text)
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException:
        text = "<unprintable %s object>" % _name(e)
    return text if len(text) <= 16384 else text[:16384] + "..."


def _bounded(text):
    if len(text) <= 32768:
        return text
    return text[:8192] + "\n  ...\n" + text[-24576:]


# ---- starting

def _take_token(wire):
    """The token: the wire's first line, or the environment's, which then is in none that the code
    can read: neither os.environ nor the block of memory behind /proc/self/environ."""
    token = os.environ.pop("CORDON_TOKEN", None)
    if token is None:
        return (wire.next() or {}).get("token") or ""
    try:
        import _ctypes
    except ImportError:
        return token

    class Pointer(_ctypes._SimpleCData):
        _type_ = "P"

    try:
        with open("/proc/self/stat") as f:
            start = int(f.read().rpartition(")")[2].split()[47])  # env_start
        with open("/proc/self/environ", "rb") as f:
            at = f.read().find(token.encode())
        memset = _ctypes.dlsym(_ctypes.dlopen(None, 0), "memset")
        if start and at >= 0:
            _ctypes.call_function(memset, (Pointer(start + at), 120, Pointer(len(token))))
    except (OSError, ValueError, IndexError, AttributeError):
        pass
    return token


def _ready_streams():
    for s in (sys.stdout, sys.stderr):
        s.reconfigure(encoding="utf-8", line_buffering=True)
    sys.stdin.reconfigure(encoding="utf-8", errors="replace")


# The runtime's own frames, which tracebacks leave out.
_FILES = frozenset((rich.__file__, site.__file__, streams.__file__, tools.__file__, values.__file__, __file__,
                    sys.modules["cordon_wire"].__file__, sys.modules["__main__"].__file__,
                    *(__file__.rpartition("/")[0] + "/cordon_%s.py" % n
                      for n in ("check", "columns", "inspect", "ipython", "magics", "tables"))))


def main(argv, load):
    """load(name) gives a module of the runtime."""
    global _load
    _load = load
    values.load_tables = lambda: load("cordon_tables")
    os.set_inheritable(WIRE, False)
    site.start()
    wire = Wire()
    token = _take_token(wire)
    signal(SIGINT, wire.on_sigint)
    _ready_streams()
    sys.argv = [""]
    sys.path.insert(0, "")
    session = Session(wire, token)
    if "--template" in argv:
        site.complete()
        template = load("cordon_template")
        session = template.serve(session, Session, Wire)
    else:
        session.hello()
        session.welcome(wire.next())
        session.prepare()
        session.adapt()
    session.run()
    return 0
