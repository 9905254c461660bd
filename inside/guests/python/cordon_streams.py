# cordon_streams.py - restores descriptors 0, 1 and 2 and Python's streams for every execution, whatever
# the previous one has closed, redirected or replaced (docs/guests.md).
import os
import sys

# Our own references, because code may replace those in the module.
_dup2, _fstat, _open_fd, _close = os.dup2, os.fstat, os.open, os.close
OUT, ERR = 1, 2


class Streams:
    """out, err: where the session prints, even while the code has replaced sys.stdout and sys.stderr."""

    def __init__(self):
        self.out, self.err, self.input = sys.stdout, sys.stderr, sys.stdin
        self.kept_out, self.kept_err = 254, 255
        self.keep()

    def keep(self):
        """Saves duplicates with high numbers, which code rarely uses and programs do not inherit. In a fork of
        a template every line here costs memory, so what stdin is gets checked only when needed."""
        try:
            _dup2(OUT, self.kept_out, False)
            _dup2(ERR, self.kept_err, False)
        except OSError:  # the limit is below the template's
            top = min(os.sysconf("SC_OPEN_MAX"), 256)
            self.kept_out, self.kept_err = _dup2(OUT, top - 2, False), _dup2(ERR, top - 1, False)
        self.input_is, self.is_new = None, True

    def take_input(self, path):
        """Opens this execution's stdin. Waits until the host has opened its end."""
        fd = _open_fd(path, os.O_RDONLY)
        if fd != 0:  # it is 0 if the code closed the old one
            _dup2(fd, 0)
            _close(fd)
        self.input_is = _which(0)
        self.input = sys.stdin = sys.__stdin__ = open(0, "r", encoding="utf-8", errors="replace", closefd=False)

    def mend_descriptors(self):
        """False: the code has closed the duplicates too."""
        try:
            _dup2(self.kept_out, OUT)
            _dup2(self.kept_err, ERR)
        except OSError:
            return False
        return True

    def mend(self):
        """Before an execution; False: the streams cannot be restored."""
        if self.is_new:  # no code has run yet
            self.is_new = False
            if self.input_is is None:
                self.input_is = _which(0)
            return True
        if not self.mend_descriptors():
            return False
        # Restore first, then check: freeing the replaced object may close the descriptor below both.
        sys.stdout, sys.stderr = self.out, self.err
        if _is_closed(self.out):
            self.out = sys.stdout = sys.__stdout__ = _stream(OUT, "strict")
        if _is_closed(self.err):
            self.err = sys.stderr = sys.__stderr__ = _stream(ERR, "backslashreplace")
        if _which(0) != self.input_is:  # input that an earlier execution left unread is dropped
            self.take_input(os.devnull)
        sys.stdin = self.input
        if _is_closed(self.input):  # exit() closes it
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
    except ValueError:  # its underlying stream was detached
        return True


def _which(fd):
    try:
        s = _fstat(fd)
        return s.st_dev, s.st_ino
    except OSError:
        return 0, 0


def _stream(fd, errors):
    return open(fd, "w", encoding="utf-8", errors=errors, buffering=1, closefd=False)
