# cordon_guest.py - the Python runtime inside a session: uses the wire (docs/wire.md) on descriptor 3.
#
#   python3 -I -S cordon_guest.py              one session
#   python3 -I -S cordon_guest.py --template   warms up, then forks a session per spawn request
#   python3 -I -S cordon_guest.py --validate   checks the code on stdin, runs nothing
#
# CPython 3.9 or newer. Nothing here is a security boundary: the code can reach all of it if it tries.
# This file only loads the others: compiled, if the build did that for this interpreter (bundle.py;
# compiling them takes a third of a cold start), else from source.
import marshal
import sys

_HERE = __file__.rpartition("/")[0] or "."
_compiled = {}


def _bundle():
    from _frozen_importlib_external import MAGIC_NUMBER
    try:
        with open(_HERE + "/cordon_python.bin", "rb") as f:
            data = f.read()
    except OSError:
        return {}
    if not data.startswith(MAGIC_NUMBER):
        return {}
    return marshal.loads(data[len(MAGIC_NUMBER):])


def _load(name):
    """Loads a module of the runtime, which is not on the code's import path."""
    code = _compiled.get(name)
    if code is None:
        file = _HERE + "/" + name + ".py"
        try:
            with open(file, "rb") as f:
                code = compile(f.read(), file, "exec", dont_inherit=True)
        except FileNotFoundError:
            sys.exit("this build's runtime is compiled for another Python; build Cordon again")
    else:
        code = marshal.loads(code)
    module = sys.modules[name] = type(sys)(name)
    module.__file__ = code.co_filename
    exec(code, module.__dict__)
    return module


def _main(argv):
    global _compiled
    _compiled = _bundle()
    if "--validate" in argv:
        return _load("cordon_check").main(_load)
    names = ("cordon_site", "cordon_rich", "cordon_streams", "cordon_tools", "cordon_values",
             "cordon_wire", "cordon_session")
    session = [_load(name) for name in names][-1]
    for name in names:
        del sys.modules[name]
    return session.main(argv, _load_aside)


def _load_aside(name):
    module = _load(name)
    del sys.modules[name]
    return module


if __name__ == "__main__":
    _keep = sys.modules["__main__"]  # this module; the code's own replaces it
    sys.exit(_main(sys.argv[1:]))
