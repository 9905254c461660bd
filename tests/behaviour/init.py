#!/usr/bin/python3
"""`cordon init` with answers on a terminal and with options: what it writes is a policy that works."""
import json
import os
import shutil
import tempfile

from oneshot import Tap, run
from terminal import Terminal


def load(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def is_policy(tap, name, path, **want):
    """The file passes the check, says what was wanted, and the file beside it explains it."""
    status, out, err, _ = run(["policy", "check", path])
    got = load(path) if os.path.exists(path) else {}
    with open(path.removesuffix(".json") + ".txt", encoding="utf-8") as f:
        text = f.read()
    tap.check(status == 0 and all(got.get(k) == v for k, v in want.items()) and out.decode() in text and "cordon run --policy" in text,
              name, status, err, got, text)


def answers(tap, folder, name, *lines):
    """Types each line when its question is there; the exit status and what the terminal showed."""
    path = f"{folder}/{name}.json"
    t = Terminal(path, folder, verb="init")
    for question, line in lines:
        if not tap.check(t.wait(question), f"{name}: it asks: {question}", t.shown()):
            break
        t.type(line + "\n")
    # It ends by itself; the terminal's end must not be an answer.
    ended = t.wait("is the policy", "nothing was written")
    return path, t.leave("") if ended else None


def terminal(tap, folder):
    path, status = answers(tap, folder, "least", ("1. What", ""), ("2. Which", ""), ("3. Which", ""))
    tap.check(status == 0, "no answers", status)
    is_policy(tap, "no answers: strict, and nothing else", path, level="strict")
    tap.check(load(path) == {"level": "strict"}, "no answers: nothing is allowed", load(path))
    path, status = answers(tap, folder, "full", ("shell-agent", "nope"), ("no profile 'nope'", "data-science"),
                           ("2. Which", "not a host!"), ("is not a host pattern", "a.org, b.org:8443"),
                           ("3. Which", folder + "/none"), ("No such file", folder + "/shown"))
    tap.check(status == 0, "bad answers are asked again", status)
    is_policy(tap, "all answers", path, level="standard", memory_bytes=4 << 30)
    got = load(path)
    tap.check(got["network"]["allow"] == ["a.org", {"host": "b.org", "port": 8443}], "hosts", got)
    tap.check(got["mounts"] == [{"host": folder + "/shown", "guest": "/data", "mode": "ro"}], "the folder", got)
    path, status = answers(tap, folder, "left", ("1. What", "grader"), ("2. Which", "\x04"))
    tap.check(status not in (0, None) and not os.path.exists(path), "^D writes nothing", status)


def options(tap, folder):
    def init(name, words, status, text, file="made.json"):
        got, out, err, _ = run(["init", *words, f"{folder}/{file}"])
        tap.check(got == status and text in (out + err).decode(), name, got, out, err)

    init("without a terminal", [], 2, "give --profile or --level, and --allow-host, --mount")
    tap.check(not os.path.exists(folder + "/made.json"), "nothing is written then")
    init("options", ["--profile", "grader", "--mount", folder + "/shown:/data:ro"], 0, "made.json is the policy")
    is_policy(tap, "options: a policy", folder + "/made.json", level="strict", cpu_seconds=5)
    init("does not overwrite", ["--level", "strict"], 125, "-f replaces it")
    tap.check(load(folder + "/made.json")["cpu_seconds"] == 5, "the old file is there")
    init("replaces with -f", ["--level", "standard", "-f"], 0, "is the policy")
    tap.check(load(folder + "/made.json") == {"level": "standard"}, "the new file is there")
    with open(folder + "/other.txt", "w", encoding="ascii") as f:
        f.write("mine")
    init("does not overwrite a text", ["--level", "strict"], 125, "other.txt' exists", file="other.json")
    tap.check(not os.path.exists(folder + "/other.json"), "and writes no half")
    init("a bad option", ["--set", "timout_ms=1"], 2, "Did you mean 'timeout_ms'?", file="bad.json")
    init("no such folder", ["--level", "strict"], 125, "No such file", file="none/x.json")
    init("a profile to run with", ["--profile", "grader", "-f"], 0, "is the policy")
    status, out, err, _ = run(["run", "--policy", folder + "/made.json", "-e", "print(6 * 7)"])
    tap.check(status == 0 and out == b"42\n", "it runs", status, out, err)


def main():
    tap = Tap()
    folder = os.path.realpath(tempfile.mkdtemp(prefix="init-"))
    try:
        os.mkdir(folder + "/shown")
        terminal(tap, folder)
        options(tap, folder)
    finally:
        shutil.rmtree(folder)
    tap.done()


main()
