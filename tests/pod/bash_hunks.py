"""Checks the output of one file of bash's own suite, hunk by hunk: bash_hunks.py DIFFERENCES NAME OUTPUT

A file of that suite prints the diff between actual and expected output, so no output means success. Each hunk is
identified by its content, without line numbers and times. DIFFERENCES has lines "NAME KEY REASON": a hunk that is
not listed is a failure, and so is a line whose hunk does not occur. "NAME KEY? REASON" is a hunk that may be missing,
because it depends on the machine. Prints one failure per line."""
import hashlib
import re
import sys

HEAD = re.compile(r"^\d+(,\d+)?[acd]\d+(,\d+)?$")
TIME = re.compile(r"^([<>] (?:real|user|sys)\b).*")
PID = re.compile(r"(process group) \(\d+\)")
# The image's help is a script with a pipe in it: how many of its lines fail, and in which order, is a race.
HELP = re.compile(r"^([<>] )(?:/usr/bin/help: line \d+: echo|fold): write error: Bad file descriptor$")


def bare(line):
    """A line without what no two runs have in common."""
    return HELP.sub(r"\1help cannot write", PID.sub(r"\1", TIME.sub(r"\1", line)))


def hunks(text):
    """The hunks of a diff; a line that belongs to none is one of its own."""
    found = []
    for line in text.splitlines():
        if line.startswith("warning:"):
            continue
        if HEAD.match(line):
            found.append([])
        elif re.match(r"^([<>] ?|---$|\\ )", line) and found and found[-1] is not None:
            if not (HELP.match(line) and found[-1][-1:] == [bare(line)]):
                found[-1].append(bare(line))
        else:
            found.append([line])
            found.append(None)  # what follows is no part of it
    return [h for h in found if h and differs(h)]


def differs(hunk):
    """Whether its two sides are still two, times aside."""
    old, new = ([line[2:] for line in hunk if line[:1] == side] for side in "<>")
    return not (old and old == new)


def key(hunk):
    return hashlib.sha256("\n".join(hunk).encode(errors="surrogateescape")).hexdigest()[:12]


def known(path, name):
    """key -> may it be gone"""
    table = {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if line.strip() and not line.startswith("#"):
                file, which, _reason = line.rstrip("\n").split(" ", 2)
                if file == name:
                    table[which.rstrip("?")] = which.endswith("?")
    return table


def faults(table, text):
    seen = set()
    for hunk in hunks(text):
        which = key(hunk)
        if which not in table and which not in seen:
            yield "\n".join(["not known: " + which, *hunk])
        seen.add(which)
    for which, may_be_gone in table.items():
        if which not in seen and not may_be_gone:
            yield "its line in bash-differences is stale: " + which


def main():
    differences, name, output = sys.argv[1:]
    with open(output, encoding="utf-8", errors="surrogateescape") as stream:
        found = list(faults(known(differences, name), stream.read()))
    sys.stdout.reconfigure(errors="surrogateescape")
    print("\n".join(found), end="\n" if found else "")


if __name__ == "__main__":
    main()
