# cordon_inspect.py - what a prompt asks about code that it does not run yet: whether it is complete, and
# which names continue its last word. Runs none of the code, and no property or method of its objects.
import builtins
import sys

MATCHES = 200
_MISSING = object()


def is_complete(code, flags, magics):
    """complete, incomplete (more lines may make it valid) or invalid."""
    import codeop
    import warnings
    ask = codeop.CommandCompiler()
    ask.compiler.flags |= flags
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if ask(code, "<input>", "exec") is None:
                return "incomplete"
        except SyntaxError:
            new = magics and (magics().is_complete(code) or magics().translate(code))
            if not new:
                return "invalid"
            return new if type(new) is str else is_complete(new[0], flags, None)
        except (ValueError, OverflowError, RecursionError, MemoryError):
            return "invalid"
    # A block may go on: as at any Python prompt, an empty line ends it.
    lines = code.rstrip(" \t").split("\n")
    return "incomplete" if lines[-1][:1] in (" ", "\t") and lines[-1].strip() else "complete"


def _token(code):
    """The dotted name at the end of the code."""
    at = len(code)
    while at and (code[at - 1].isalnum() or code[at - 1] in "_."):
        at -= 1
    return code[at:]


def _static(obj, name):
    """An attribute, unless code of its class would have to run for it."""
    from inspect import getattr_static
    v = getattr_static(obj, name, _MISSING)
    plain = isinstance(v, type) or not hasattr(type(v), "__get__") or hasattr(v, "__code__")
    return v if plain else _MISSING


def _names(obj):
    if isinstance(obj, type(sys)):
        return list(obj.__dict__)
    return type.__dir__(obj) if isinstance(obj, type) else object.__dir__(obj)


def complete(code, g):
    """(the word at the end of the code, what it may become)"""
    token = _token(code)
    head, dot, tail = token.rpartition(".")
    if not dot:
        import keyword
        pool = set(g) | set(dir(builtins)) | set(keyword.kwlist)
    else:
        first, *rest = head.split(".")
        obj = g.get(first, builtins.__dict__.get(first, _MISSING))
        for name in rest:
            obj = obj if obj is _MISSING else _static(obj, name)
        pool = () if obj is _MISSING else _names(obj)
    found = sorted(n for n in pool if type(n) is str and n.startswith(tail) and n != tail
                   and (tail.startswith("_") or not n.startswith("_")))
    return token, [head + dot + n for n in found[:MATCHES]] if tail or dot else []


def answer(m, g, flags, magics):
    """The value of the answer to an inspect message."""
    code = m.get("code") or ""
    if m.get("question") == "is_complete":
        return {"status": is_complete(code, flags, magics)}
    token, matches = complete(code, g)
    return {"token": token, "matches": matches}
