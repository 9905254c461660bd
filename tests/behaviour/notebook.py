#!/usr/bin/python3
"""Notebooks and documents run cell by cell (TAP)."""

import json
import os
import shutil
import sys
import tempfile

from oneshot import Tap, run

HAS = {"python": "/usr/bin/python3", "r": "/usr/lib/R/bin/exec/R", "node": "/usr/bin/node", "sh": "/bin/bash"}
FENCE = "```"


def code(source, **more):
    return dict({"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": source}, **more)


def book(cells, language="python", **more):
    return dict({"cells": cells, "metadata": {"kernelspec": {"language": language, "name": language}}, "nbformat": 4,
                 "nbformat_minor": 5}, **more)


class Place:
    def __init__(self, tap):
        self.tap, self.dir = tap, tempfile.mkdtemp(prefix="notebook-")

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, name, content):
        with open(self.path(name), "w", encoding="utf-8") as f:
            f.write(content if isinstance(content, str) else json.dumps(content))
        return self.path(name)

    def run(self, name, content, *options):
        """Status, stdout, stderr and, where -o out was given, the cells that were written."""
        path = self.write(name, content)
        status, out, err, _ = run(["run", path, *options])
        return status, out.decode(), err.decode()

    def cells(self, name):
        with open(self.path(name), encoding="utf-8") as f:
            return json.load(f)["cells"]


def unshown(place, check):
    """What a terminal cannot show is not dropped without a word."""
    html = "class H:\n    def _repr_html_(self): return '<b>x</b>'\n    def __repr__(self): return 'H'\ndisplay(H())\n"
    png = "class P:\n    def _repr_png_(self): return b'\\x89PNG\\r\\n\\x1a\\n'\ndisplay(P())\n"
    status, _, err = place.run("p.ipynb", book([code(html), code(png), code(png + "1")]))
    check(status == 0 and err == "cordon: run: not shown: 2 plots and 1 other output; -o FILE.ipynb writes them\n", "what was not shown is told", err)
    status, _, err = place.run("p.ipynb", book([code(png)]), "-o", place.path("q.ipynb"))
    check(status == 0 and err == "" and "image/png" in str(place.cells("q.ipynb")), "with -o the file has it", err)
    status, _, err = place.run("t.ipynb", book([code("print(1)"), code("[1, 2]")]))
    check(status == 0 and err == "", "text is shown, and nothing else is said", err)
    for options, said in (([], "cordon: run: not shown: 1 plot; --show shows plots, --out-dir DIR saves them\n"), (["--json"], "")):
        status, _, err, _ = run(["run", *options, "-e", png])
        check(status == 0 and err.decode() == said, f"run -e says it too, {options}", err)


def python(place, check):
    cells = [{"cell_type": "markdown", "metadata": {"a": 1}, "source": ["# Title\n", "text"]},
             code(["x = 2\n", "print('hi')\n", "x + 1"], id="one", outputs=[{"output_type": "stream", "name": "stdout", "text": "old"}]),
             code("1/0", metadata={"tags": ["raises-exception"]}),
             code("class T:\n    def _repr_html_(self): return '<b>x</b>'\ndisplay(T())\nT()"),
             code("import asyncio\nawait asyncio.sleep(0, 'awaited')"),
             code("  \n"),
             code("undefined_name"),
             code("print('after')")]
    out = place.path("out.ipynb")
    status, said, err = place.run("a.ipynb", book(cells), "-o", out)
    check(status == 1 and said.startswith("hi\n3\n") and "after" not in said, "it stops at the first error", status, said)
    check("NameError" in err and "cell 7 failed" in err, "and says where", err)
    got = place.cells("out.ipynb")
    check(got[0] == cells[0] and got[1]["id"] == "one" and got[1]["source"] == cells[1]["source"], "cells are kept", got[:2])
    check(got[1]["outputs"] == [{"output_type": "stream", "name": "stdout", "text": ["hi\n"]},
                                {"output_type": "execute_result", "execution_count": 1, "metadata": {},
                                 "data": {"text/plain": ["3"]}}] and got[1]["execution_count"] == 1,
          "streams and the value are written", got[1])
    e = got[2]["outputs"][0]
    check(e["output_type"] == "error" and e["ename"] == "ZeroDivisionError" and e["evalue"] == "division by zero" and
          e["traceback"][-1] == "ZeroDivisionError: division by zero", "an expected error is written", e)
    shown = got[3]["outputs"]
    check([o["output_type"] for o in shown] == ["display_data", "execute_result"] and
          shown[0]["data"] == {"text/html": ["<b>x</b>"]} and shown[1]["data"]["text/html"] == ["<b>x</b>"],
          "what is displayed and the value have their rich forms", shown)
    check(got[4]["outputs"][0]["data"]["text/plain"] == ["'awaited'"], "await at the top level", got[4])
    check(got[5]["execution_count"] is None and got[7]["outputs"] == [] and got[7]["execution_count"] is None,
          "a cell that did not run has no outputs", got[5:])
    status, said, err = place.run("a.ipynb", book(cells), "--keep-going", "--output", out)
    check(status == 1 and said.endswith("after\n"), "--keep-going runs the others; the status still tells", status, said)
    status, said, err = place.run("t.ipynb", book([code("while True: pass"), code("print('no')")]), "--timeout=1")
    check(status == 124 and "no" not in said and "cell 1 failed" in err, "a cell that takes too long", status, err)
    status, said, err = place.run("t.ipynb", book([code("while True: pass")]), "--timeout=1", "-o", out)
    e = place.cells("out.ipynb")[0]["outputs"][-1]
    check(status == 124 and "Execution timed out after 1 second" in err and "timed out" in e["evalue"], "it says so", status, err, e)
    status, said, err = place.run("k.ipynb", book([code("v = 1"), code("import os; os._exit(1)"), code("v")]), "--keep-going", "-o", out)
    got = place.cells("out.ipynb")[1]["outputs"]
    check(status == 1 and err.count("variables and processes of the session are gone") == 1 and
          any("are gone" in "".join(o.get("text", [])) for o in got), "state that is lost is told", status, err, got)
    status, said, err = place.run("n.ipynb", book([code("print('a\\0b')"), code("print('\\0')")]), "-o", out)
    got = [c["outputs"] for c in place.cells("out.ipynb")]
    check(status == 0 and got == [[{"output_type": "stream", "name": "stdout", "text": [t]}] for t in ("ab\n", "\n")],
          "what follows a NUL is written", status, got)
    status, said, err = place.run("o.ipynb", book([code("print('ran')")]), "-o", "/nope/x.ipynb")
    check(status != 0 and said == "" and "cannot write '/nope/x.ipynb'" in err, "a place that cannot be written is found first", status, said, err)
    cells = [code("from IPython.display import display, HTML, Image, Markdown\ndisplay(HTML('<i>h</i>'))\n41;"), code("_ + 1"),
             code("import os\nfor i in range(20000): os.write(1, b'x')"), code("for i in range(500): os.write(1, b'a'); os.write(2, b'b')\n7")]
    status, said, err = place.run("i.ipynb", book(cells), "-o", out)
    got = [c["outputs"] for c in place.cells("out.ipynb")]
    check(status == 0 and len(got[0]) == 1 and got[0][0]["data"] == {"text/html": ["<i>h</i>"]} and
          got[1][0]["data"]["text/plain"] == ["42"], "IPython.display, a value that is hidden, and _", status, err, got[:2])
    check(got[2] == [{"output_type": "stream", "name": "stdout", "text": ["x" * 20000]}], "many small pieces are one", len(got[2]))
    check("".join(t for o in got[3] for t in o.get("text", []) if o.get("name") == "stdout") == "a" * 500 and said.endswith("a\n7\n"),
          "two streams", len(got[3]), said[-9:])
    status, said, err = place.run("e.ipynb", book([]), "-o", out)
    check(status == 0 and place.cells("out.ipynb") == [], "a notebook without cells", status, err)
    status, said, err = place.run("big.ipynb", book([code("print('x' * 70_000_000)"), code("print('small')")]), "-o", out)
    got = place.cells("out.ipynb")
    check(status == 0 and len(said) > 70_000_000 and os.path.getsize(out) < 80_000_000 and
          "more output was not kept" in got[0]["outputs"][-1]["text"][-1], "what is written has a limit", status, err)


LANGUAGES = {
    "r": ("R", ["x <- 1:3\ncat('hi\\n')\nsum(x)\nsum(x) + 1", "stop('bad')"], ["hi\n", "[1] 6", "[1] 7"], "simpleError"),
    "node": ("javascript", ["let x = 2; console.log('hi'); await Promise.resolve(x + 1)", "throw new TypeError('bad')"],
             ["hi\n", "3"], "TypeError"),
    "sh": ("bash", ["x=2; echo hi; echo $((x + 1))", "false"], ["hi\n3\n"], "exit"),
}


def languages(place, check):
    for guest, (name, sources, wanted, error) in LANGUAGES.items():
        if not os.access(HAS[guest], os.X_OK):
            check(os.environ.get("CORDON_NEEDS") != "strict", guest + " # SKIP it is missing")
            continue
        out = place.path("out.ipynb")
        status, said, err = place.run("l.ipynb", book([code(s) for s in sources], name), "-o", out)
        got = place.cells("out.ipynb")
        texts = ["".join(o.get("text") or o["data"]["text/plain"]) for o in got[0]["outputs"]]
        check(status == 1 and texts == wanted, guest + ": outputs", status, texts, err)
        check(got[1]["outputs"][-1]["output_type"] == "error" and got[1]["outputs"][-1]["ename"] == error,
              guest + ": errors", got[1]["outputs"])


MALFORMED = (
    ("a.ipynb", "{", "is not a notebook, which is JSON"),
    ("a.ipynb", "[]", "has no nbformat"),
    ("a.ipynb", {"cells": []}, "has no nbformat"),
    ("a.ipynb", book([], nbformat=3), "nbformat is 3, and only 4 is supported"),
    ("a.ipynb", {"nbformat": 4}, "has no cells"),
    ("a.ipynb", book([{"source": ""}]), "cell 1 has no cell_type"),
    ("a.ipynb", book([code("1"), code(7)]), "cell 2: its source is neither"),
    ("a.ipynb", book([code("1"), code(["a", 7])]), "cell 2: its source is neither"),
    ("a.ipynb", book([code("1")], "cobol"), "language is 'cobol', which is not supported"),
    ("a.Rmd", "x\n\n" + FENCE + "{r}\n1 + 1\n", "the chunk at line 3 is not closed"),
    ("a.Rmd", FENCE + "{sql}\nselect\n" + FENCE + "\n", "line 1: the engine 'sql' is not supported"),
    ("a.Rmd", FENCE + "{r, eval=x > 1}\n1\n" + FENCE + "\n", "eval is 'x', and only TRUE and FALSE"),
)


def malformed(place, check):
    for name, content, text in MALFORMED:
        status, said, err = place.run(name, content)
        check(status == 2 and text in err and said == "", f"{name}: {text}", status, said, err)
    for words, text in ((["--json"], "--json is not for notebooks"), (["more"], "a notebook takes no arguments: 'more'")):
        status, said, err = place.run("a.ipynb", book([]), *words)
        check(status == 2 and text in err, text, status, err)
    status, out, err, _ = run(["run", "--output=x", "-e", "1"])
    check(status == 2 and b"are for notebooks" in err, "--output of code", status, err)
    status, out, err, _ = run(["run", place.write("a.xyz", "1")])
    check(status == 2 and b"python (.py)" in err and b".ipynb" in err, "an unknown ending is refused with the list", err)


DOCUMENT = f"""---
title: "{FENCE}"
---
Text.

{FENCE}{{r setup, include=FALSE}}
x <- 5
cat("hidden\\n")
{FENCE}

{FENCE}{{r}}
x + 1
y <- c(x,
  2)
sum(y)
{FENCE}

{FENCE}r
not run
{FENCE}

{FENCE}{{r, eval=FALSE, fig.cap="a, eval=TRUE"}}
stop("no")
{FENCE}

{FENCE}{{sql}}
#| eval: false
select
{FENCE}

{FENCE}{{r e, echo=FALSE, error=TRUE}}
stop("wanted")
{FENCE}
End.
"""


def documents(place, check):
    if os.access(HAS["r"], os.X_OK):
        out = place.path("out.md")
        status, said, err = place.run("d.Rmd", DOCUMENT, "-o", out)
        check(status == 0 and said == "[1] 6\n[1] 7\n" and "wanted" in err, "an R Markdown document", status, said, err)
        with open(out, encoding="utf-8") as f:
            text = f.read()
        check(f"{FENCE}r\nx + 1\ny <- c(x,\n  2)\nsum(y)\n{FENCE}\n\n{FENCE}\n[1] 6\n{FENCE}\n\n{FENCE}\n[1] 7\n{FENCE}\n" in text
              and "setup" not in text and text.endswith("End.\n") and f"{FENCE}sql\n" in text and FENCE + 'r\nstop("wanted")' not in text,
              "its outputs as Markdown", text)
        status, said, err = place.run("v.Rmd", f"{FENCE}{{r}}\nx <- 3\n1:3; x\n{FENCE}\n")
        check(status == 0 and said == "[1] 1 2 3\n[1] 3\n", "every value of a line of R", status, said, err)
        status, out, err, _ = run(["run", "-g", "r", "-e", "1:3; invisible(4); 'a'"])
        check(status == 0 and out == b'[1] 1 2 3\n[1] "a"\n', "every value of R code", status, out, err)
    chunks = (("python", "x = 5\nopen('a.csv', 'w').write('v\\n1\\n2\\n')\n"), ("bash", "wc -l < a.csv\n"),
              ("r", "x <- 7\nsum(read.csv('a.csv')$v)\n"), ("python", "x\n"))
    if os.access(HAS["r"], os.X_OK):
        status, said, err = place.run("m.qmd", "".join(f"{FENCE}{{{e}}}\n{c}{FENCE}\n\n" for e, c in chunks))
        check(status == 0 and said == "6\n3\n[1] 3\n5\n", "several languages, one place", status, said, err)
    source = f"{FENCE}{{python}}\n#| echo: true\nx = 2\nprint('hi')\nx + 1\n{FENCE}\n\n{FENCE}{{python}}\n1/0\n{FENCE}\n"
    out = place.path("out.md")
    status, said, err = place.run("d.qmd", source, "-o", out)
    with open(out, encoding="utf-8") as f:
        check(f"{FENCE}python\nx = 2\n" in f.read(), "option lines are not repeated")
    check(status == 1 and said == "hi\n3\n" and "the chunk at line 8 failed" in err, "a Quarto document", status, said, err)


def main():
    tap = Tap()
    place = Place(tap)
    python(place, tap.check)
    unshown(place, tap.check)
    languages(place, tap.check)
    malformed(place, tap.check)
    documents(place, tap.check)
    shutil.rmtree(place.dir)
    tap.done()


sys.exit(main())
