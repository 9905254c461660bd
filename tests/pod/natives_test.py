# tests/pod/natives_test.py - the pod's tests give the same verdict whichever update of a program is installed (TAP).
"""usage: natives_test.py BUILD CORDON_POD ROOT"""
import os
import shutil
import sys
import tempfile

import bash_hunks
import differential
import natives

SCRIPT = "echo '[1,2]' | jq -c 'map(. + 1)'"
count = failed = 0


def check(good, name, *why):
    global count, failed
    count += 1
    failed += not good
    print("ok" if good else "not ok", count, "-", name)
    for line in () if good else why:
        print("#  ", line)


def told(build, programs, versions):
    """What is found where the machine has these versions."""
    natives.installed = lambda: versions
    return natives.Natives(build, programs)


def known_differences(folder):
    """A line of `differences` excuses one script that does one thing, and is stale otherwise."""
    path = os.path.join(folder, "differences")
    with open(path, "w", encoding="utf-8") as f:
        f.write("# why\n%s abc the moon\n%s abc the sun\n" % (differential.name_of("a"), differential.name_of("b")))
    known = differential.Differences(path)
    check(known.look("a", ["differs"], "abc") == ("the moon", []), "a known difference is excused")
    check(known.look("a", ["differs"], "abd")[1][0] == "differs", "not when it is another one")
    check("stale" in known.look("a", [], "abc")[1][0], "nor when there is none any more")
    check(known.look("c", ["differs"], "abc")[1][0] == "differs", "nor for another script")
    check(known.look("c", [], "abc") == ("", []), "what does not differ needs no line")
    check(known.unseen == {differential.name_of("b")}, "a line without a script is told")


def known_hunks():
    """A hunk of bash's own suite is known by its content, wherever it stands and however long it took."""
    text = "warning: x\n3c4\n< real 0.01\n---\n> real 0.00\n12a13\n> one\n40c41\n< two\n---\n> three\nloose\n"
    first, second, loose = bash_hunks.hunks(text)
    table = {bash_hunks.key(h): False for h in (first, second, loose)}
    check((first, loose) == (["> one"], ["loose"]) and len(second) == 3, "a diff is taken apart", first, second, loose)
    check(not list(bash_hunks.faults(table, text)), "known hunks are excused")
    check(not list(bash_hunks.faults(table, text.replace("12a13", "99a98"))), "wherever they stand")
    check(len(list(bash_hunks.faults(table, text.replace("two", "2")))) == 2, "another one is not, and the old one is stale")
    check(len(list(bash_hunks.faults(table, ""))) == 3, "those that are gone are stale")
    check(not list(bash_hunks.faults({k: True for k in table}, "")), "but for those that may be gone")


def main():
    build, pod, root = sys.argv[1:]
    programs = os.path.join(os.path.dirname(root), "programs")
    work = tempfile.mkdtemp(prefix="natives-", dir="/tmp") + "/w"
    same = {row[0]: row[1] for row in natives.table(os.path.join(build, "sources"))}
    older, gone = dict(same, jq="1.6-2.1+deb12u1"), {k: v for k, v in same.items() if k != "jq"}
    machine = told(build, programs, same)
    check(machine.others("echo; true") == [], "the same versions are a measure", machine.others("echo; true"))
    for name, versions, word in (("an older update", older, "deb12u1"), ("nothing of it", gone, "missing")):
        machine = told(build, programs, versions)
        others = machine.others(SCRIPT)
        check(len(others) > 0 and word in " ".join(others), f"{name} is none", others)
        check(machine.others("cat x | sort") == told(build, programs, same).others("cat x | sort"), f"{name} matters only where it is used")
    machine = told(build, programs, dict(same, libonig="0"))
    check(len(machine.others(SCRIPT)) > 0, "nor is one with another library")
    machine = told(build, programs, dict(same, tzdata="0"))
    check(len(machine.others("TZ=Europe/Berlin date")) > 0 and machine.others("ls") == told(build, programs, same).others("ls"), "nor are other time zones")
    # What is written down judges the pod, and not the machine's program.
    machine = told(build, programs, {})
    right = {differential.name_of(SCRIPT): [differential.digest((b"[2,3]\n", 0), {}, work)]}
    wrong = {differential.name_of(SCRIPT): [differential.digest((b"[2,4]\n", 0), {}, work)]}
    got = differential.judge(machine, right, pod, root, work, SCRIPT)
    check(got[0] == [] and got[2] == "", "as it is written down", got)
    check(differential.judge(machine, wrong, pod, root, work, SCRIPT)[0] != [], "not as it is written down")
    got = differential.judge(machine, {differential.name_of("exit $PPID"): []}, pod, root, work, "exit $PPID")
    check(got[0] == [], "what depends on the machine is not judged", got)
    known_differences(os.path.dirname(work))
    known_hunks()
    shutil.rmtree(os.path.dirname(work), ignore_errors=True)
    print(f"1..{count}")
    sys.exit(failed > 0)


main()
