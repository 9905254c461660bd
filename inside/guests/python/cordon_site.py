# cordon_site.py - does the work of the module `site` at start (the interpreter runs with -S), except
# that .pth files of the site directories, and a sitecustomize that is not a plain file, wait until the
# code imports something outside the standard library. They run code and load modules that most runs
# never need; on many machines they take as long as the interpreter itself.
import os
import site
import sys

# In the standard library, but such files may change them, or they look for what these add.
_TOUCHED = frozenset(("distutils", "ensurepip", "importlib.metadata", "pkgutil", "runpy", "ssl", "venv"))


class _Later:
    """The first finder until it is needed; after that it never finds anything."""

    def __init__(self, dirs, known):
        self.dirs = dirs
        self.known = known
        self.names = getattr(sys, "stdlib_module_names", None)

    def find_spec(self, name, path=None, target=None):
        if self.dirs is None or name not in _TOUCHED and name.partition(".")[0] in self.names:
            return None
        self.complete()
        # Starts again with the first finder, which may be new.
        from _frozen_importlib import _find_spec
        return _find_spec(name, path, target)

    def complete(self):
        dirs, self.dirs = self.dirs, None
        for d in dirs or ():
            site.addsitedir(d, self.known)
        if dirs is not None:
            site.execsitecustomize()


_later = None
# Where packages are installed into the workspace; None: they are on the path.
_user = "%s/.local/lib/python%d.%d/site-packages" % ((os.environ.get("HOME") or "/home/user",) + sys.version_info[:2])


def start():
    """What must be done at once. Nothing if the interpreter has already done it."""
    global _later
    if not sys.flags.no_site:
        return
    site.ENABLE_USER_SITE = False
    known = site.removeduppaths()
    dirs = [d for d in site.getsitepackages() if os.path.isdir(d)]
    for d in dirs:
        if d not in known:
            sys.path.append(d)
            known.add(d)
    site.setquit()
    site.setcopyright()
    site.sethelper()
    _later = _Later(dirs, known)
    # Before Python 3.10 there is no list of the standard library's modules.
    if _later.names is None or any(os.path.isfile(d + "/sitecustomize.py") for d in sys.path):
        complete()
    else:
        sys.meta_path.insert(0, _later)


def complete():
    """Does the rest now."""
    if _later is not None:
        _later.complete()


def add_user():
    """Before each execution: packages may have been installed meanwhile. They come before those of the machine, as they do
    for an interpreter that is started without -I."""
    global _user
    # access() first: for a directory that is not there, which is the rule, it raises nothing. The exception that isdir()
    # handles takes longer than many an execution, and touches pages that a session shares with its template.
    if _user is None or not os.access(_user, os.F_OK) or not os.path.isdir(_user):
        return
    try:
        complete()
        first = len(sys.path)
        for d in site.getsitepackages():
            if d in sys.path:
                first = min(first, sys.path.index(d))
        before = len(sys.path)
        site.addsitedir(_user)
        added = sys.path[before:]
        sys.path[before:] = []
        sys.path[first:first] = added
        sys.path_importer_cache.clear()
    except Exception:  # the code can put anything there
        pass
    _user = None
