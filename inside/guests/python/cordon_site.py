# cordon_site.py - what the module `site` does when an interpreter starts (here it starts with -S),
# but for one thing: the .pth files of the site directories, and sitecustomize where it is no plain
# file, wait until the code asks for something that is not of the standard library. They run code and
# load modules that most runs never need; on many machines they take as long as the interpreter.
import os
import site
import sys

# Of the standard library, but known to be changed by such files, or to look for what they add.
_TOUCHED = frozenset(("distutils", "ensurepip", "importlib.metadata", "pkgutil", "runpy", "ssl", "venv"))


class _Later:
    """Stands first among the finders until it was needed; then it finds nothing ever again."""

    def __init__(self, dirs, known):
        self.dirs = dirs
        self.known = known
        self.names = getattr(sys, "stdlib_module_names", None)

    def find_spec(self, name, path=None, target=None):
        if self.dirs is None or name not in _TOUCHED and name.partition(".")[0] in self.names:
            return None
        self.complete()
        # From the first finder on, which may be a new one.
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
    """What is due at once. Nothing, where the interpreter has done it all."""
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
    # Before Python 3.10 nothing says what the standard library is.
    if _later.names is None or any(os.path.isfile(d + "/sitecustomize.py") for d in sys.path):
        complete()
    else:
        sys.meta_path.insert(0, _later)


def complete():
    """All of it now."""
    if _later is not None:
        _later.complete()
