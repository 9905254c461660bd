"""A result as the text that a model reads. The words are those of `cordon mcp`."""
from typing import List

from ._result import Result

MAX_CHARS = 16384  # of each of stdout, stderr and the value


def cut(text: str, most: int) -> str:
    """The text without its middle, if it is long: the beginning says what it is, the end how it ended."""
    if len(text) <= most:
        return text
    half = most // 2
    return "%s\n[... %d of %d characters are left out here; print less, or write it to a file ...]\n%s" % (
        text[:half], len(text) - 2 * half, len(text), text[len(text) - half:])


def printable(text: str) -> str:
    """A target is the code's own text, and stands in a line of ours."""
    return "".join(c if c.isprintable() else "?" for c in text)


def lost(r: Result, name: str) -> str:
    return "[the policy keeps no more of %s (%s_bytes, output_lines); the rest is lost]" % (name, name) if r.truncated.get(name) else ""


def error_lines(r: Result, most: int) -> List[str]:
    line = (r.exception or {}).get("line") or 0
    where = " in line %d" % line if isinstance(line, int) and line > 0 else ""
    return ["%s%s: %s" % (r.error_kind or "error", where, cut(r.error or "", most // 4)), cut(r.traceback or "", most // 2)]


def denial_lines(r: Result) -> List[str]:
    return ["denied: %s (%s); to allow it: %s" % (printable(" ".join(filter(None, (d.operation, d.target)))), d.layer or "?", d.remedy or "none")
            for d in r.denials]


def state_lines(r: Result) -> List[str]:
    if not r.restarted:
        kept = "State kept: the code was interrupted; variables and files are as it left them."
        return [kept] if r.error_kind in ("timeout", "cpu") else []
    how = "was ended (%s)" % r.error_kind if r.error_kind not in (None, "exception") else "had ended"
    return ["State lost: the interpreter %s and was started anew. Its variables and processes are gone; files are kept." % how,
            "Reason: %s." % r.restart_reason if r.restart_reason else ""]


def model_text(r: Result, max_chars: int = MAX_CHARS) -> str:
    """What a model needs to go on: output, value, traceback, denials with their remedies, what was cut or lost."""
    parts = [cut(r.stdout, max_chars), lost(r, "stdout"), cut(r.text or "", max_chars),
             "stderr:\n" + cut(r.stderr, max_chars) if r.stderr else "", lost(r, "stderr")]
    parts += ["[an output of type %s was made; it is not shown here]" % printable(o.mime) for o in r.outputs if o.mime.startswith("image/")]
    parts += ([] if r.success else error_lines(r, max_chars)) + denial_lines(r) + state_lines(r)
    return "\n".join(p.rstrip("\n") for p in parts if p) or "(no output)"
