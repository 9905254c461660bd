# cordon_streams.py - descriptors 0, 1 and 2 and what Python has made of them: whole again for every
# execution, whatever the one before has closed, redirected or replaced (docs/guests.md).
import os
import sys

# The runtime's own, where code replaces those of the module.
_dup2, _fstat, _open_fd, _close = os.dup2, os.fstat, os.open, os.close
OUT, ERR = 1, 2


class Streams:
    """out, err: where the session prints, also while the code has put others in their place."""

    def __init__(self):
        self.out, self.err, self.input = sys.stdout, sys.stderr, sys.stdin
        self.kept_out, self.kept_err = 254, 255
        self.keep()

    def keep(self):
        """Puts duplicates aside: high, where code does not reach by habit, and not for programs. In a
        fork of a template every line of this is memory of its own: what stdin is, is seen when asked."""
        try:
            _dup2(OUT, self.kept_out, False)
            _dup2(ERR, self.kept_err, False)
        except OSError:  # a limit below the template's
            top = min(os.sysconf("SC_OPEN_MAX"), 256)
            self.kept_out, self.kept_err = _dup2(OUT, top - 2, False), _dup2(ERR, top - 1, False)
        self.input_is, self.is_new = None, True

    def take_input(self, path):
        """This execution's own stdin. Waits until the host has opened its end."""
        fd = _open_fd(path, os.O_RDONLY)
        if fd != 0:  # as it is where the code closed the last
            _dup2(fd, 0)
            _close(fd)
        self.input_is = _which(0)
        self.input = sys.stdin = sys.__stdin__ = open(0, "r", encoding="utf-8", errors="replace", closefd=False)

    def mend_descriptors(self):
        """False: the code has closed those that were put aside, too."""
        try:
            _dup2(self.kept_out, OUT)
            _dup2(self.kept_err, ERR)
        except OSError:
            return False
        return True

    def mend(self):
        """Before an execution; False: it cannot be done."""
        if self.is_new:  # no code has had them
            self.is_new = False
            if self.input_is is None:
                self.input_is = _which(0)
            return True
        if not self.mend_descriptors():
            return False
        # First put back, then looked at: the end of what stood there may close what is below both.
        sys.stdout, sys.stderr = self.out, self.err
        if _is_closed(self.out):
            self.out = sys.stdout = sys.__stdout__ = _stream(OUT, "strict")
        if _is_closed(self.err):
            self.err = sys.stderr = sys.__stderr__ = _stream(ERR, "backslashreplace")
        if _which(0) != self.input_is:  # nothing of what another left unread is this one's
            self.take_input(os.devnull)
        sys.stdin = self.input
        if _is_closed(self.input):  # exit() does so
            self.input = sys.stdin = sys.__stdin__ = open(0, "r", encoding="utf-8", errors="replace", closefd=False)
        return True

    def flush(self):
        """After an execution; False: nothing can be printed any more. What could not be written where the
        code has closed a descriptor is written then."""
        failed = False
        for s in (getattr(sys, "stdout", None), getattr(sys, "stderr", None), self.out, self.err):
            failed = not _flush(s) or failed
        if not self.mend_descriptors():
            return False
        if failed:
            _flush(self.out)
            _flush(self.err)
        return True


def _flush(stream):
    try:
        stream.flush()
        return True
    except BaseException:
        return False


def _is_closed(stream):
    try:
        return stream.closed
    except ValueError:  # what was below it was taken away
        return True


def _which(fd):
    try:
        s = _fstat(fd)
        return s.st_dev, s.st_ino
    except OSError:
        return 0, 0


def _stream(fd, errors):
    return open(fd, "w", encoding="utf-8", errors=errors, buffering=1, closefd=False)
