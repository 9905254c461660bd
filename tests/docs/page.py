"""tests/docs/page.py - reads the pages that are run: sections, their files, their transcripts, and what is not run.

A section begins with a heading "## …". Its blocks run from top to bottom in one folder:

- A block after a line that ends with "`NAME`:" is the file NAME.
- A block `console` is a transcript. A line "$ …" is a command; lines "> …" right after it continue it. All commands of a block run in
  one bash, standard error goes where standard output goes, and what each prints must be what the page shows.
- "…" in a line of output stands for any text of that line. A line that is only "…" stands for any lines. If an output does not end
  with a line end, one is added, so that the next "$" begins a line.
- A command that fails must print something: a silent failure is a fault of the page.

Comments in the Markdown, which readers do not see:

    <!-- terminal -->            the next block is one command that stays, as in a terminal of its own, until the section ends; the
                                 blocks after it begin when it has printed what the page shows
    <!-- not run: REASON -->     the next block is not run; without that every block must be one of the above
    <!-- needs: WORD… -->        the section is skipped on a machine without one of these (NEEDS in tests/docs/run)
    <!-- not as root: REASON --> only as an ordinary user"""
import re

FENCE = re.compile(r"^```(\w*)\s*$")
COMMENT = re.compile(r"^<!-- (terminal|not run|needs|not as root)(?:: (.*?))? -->$")
NAMED = re.compile(r"`([\w./-]+)`:$")
FILES_OF = {"python", "r", "js", "sh", "c", "json", "csv", "text", "html", "toml"}


class Block:
    """kind: file, console, terminal, skipped, fault."""

    def __init__(self, kind, lines, first, name="", why=""):
        self.kind, self.lines, self.first, self.name, self.why = kind, lines, first, name, why

    def commands(self):
        """[(command, output)]; both are texts, an output ends with a line end or is empty."""
        found = []
        for line in self.lines:
            if line.startswith("$ "):
                found.append([[line[2:]], []])
            elif line.startswith("> ") and found and not found[-1][1] and wants_more("\n".join(found[-1][0])):
                found[-1][0].append(line[2:])
            elif found:
                found[-1][1].append(line)
        return [("\n".join(command), "".join(line + "\n" for line in output)) for command, output in found]


def wants_more(command):
    """Whether a shell would ask for more: a line that goes on, or a text in place whose end is missing."""
    here = re.search(r"<<'?(\w+)'?", command)
    return command.endswith("\\") or bool(here and not command.endswith("\n" + here[1]))


class Section:
    def __init__(self, title):
        self.title, self.blocks, self.needs, self.not_as_root = title, [], [], ""


def read_block(language, lines, first, before, comments):
    if "not run" in comments:
        return Block("skipped", lines, first, why=comments["not run"])
    named = NAMED.search(before)
    if language == "console":
        block = Block("terminal" if "terminal" in comments else "console", lines, first)
        if not lines or not lines[0].startswith("$ "):
            return Block("fault", lines, first, why="a transcript begins with '$ '")
        if block.kind == "terminal" and len(block.commands()) != 1:
            return Block("fault", lines, first, why="a terminal has one command")
        return block
    if named and language in FILES_OF:
        return Block("file", lines, first, name=named[1])
    return Block("fault", lines, first, why=f"a block '{language}' is neither a file, a transcript, nor marked as not run")


def read_page(text):
    """Sections in order; what is before the first heading is a section of its own."""
    sections, comments, before = [Section("beginning")], {}, ""
    lines = iter(enumerate(text.splitlines(), 1))
    for number, line in lines:
        comment, fence = COMMENT.match(line), FENCE.match(line)
        if line.startswith("## "):
            sections.append(Section(line[3:]))
        elif comment and comment[1] == "needs":
            sections[-1].needs += comment[2].split()
        elif comment and comment[1] == "not as root":
            sections[-1].not_as_root = comment[2]
        elif comment:
            comments[comment[1]] = comment[2] or ""
        elif fence:
            inside = []
            for _, line in lines:
                if line == "```":
                    break
                inside.append(line)
            sections[-1].blocks.append(read_block(fence[1], inside, number + 1, before, comments))
            comments = {}
        if line.strip() and not comment:
            before = line
    return [section for section in sections if section.blocks]


def fits(shown, printed):
    """Whether an output is what the page shows."""
    pattern = ""
    for line in shown.splitlines():
        if line == "…":
            pattern += r"(?:[^\n]*\n)*?"
        else:
            pattern += "[^\n]*?".join(re.escape(part) for part in line.split("…")) + "\n"
    return re.fullmatch(pattern, printed) is not None
