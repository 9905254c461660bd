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
