# tests/pod/natives.py - which native programs have the version that the image was built from.
"""The machine may have an older or a newer update of a program than the one that the image was made of, or none. What it prints is then no
measure. The pins are inside/pod/image/sources; a command belongs to a module, a module to a recipe, and a recipe to its sources."""
import os
import re
import shutil
import subprocess

PATH = "/usr/bin:/bin"
# Commands of busybox are compared with those of util-linux, which is pinned for that.
INSTEAD = {"busybox": ["util-linux"], "checks": []}
# Words of bash and of jq that happen to be commands of the image, too.
WORDS = {"time", "ascii"}
ZONES = re.compile(r"\bTZ=|zoneinfo")


def table(path):
    with open(path, encoding="utf-8") as file:
        return [line.split() for line in file if line.strip() and not line.startswith("#")]


def recipe(path):
    """The words of a recipe's source=, needs= and provides=."""
    with open(path, encoding="utf-8") as file:
        found = dict(re.findall(r"^(source|needs|provides)='?([^'\n]*)'?$", file.read(), re.M))
    return {key: found.get(key, "").split() for key in ("source", "needs", "provides")}


def installed():
    """Source package -> version, of what is installed; nothing where there is no dpkg."""
    if not shutil.which("dpkg-query"):
        return {}
    out = subprocess.run(["dpkg-query", "-W", "-f", "${db:Status-Abbrev}\t${source:Package}\t${source:Version}\n"],
                         stdout=subprocess.PIPE, check=True, text=True).stdout
    rows = [line.split("\t") for line in out.splitlines()]
    return {source: version for status, source, version in rows if status.strip() == "ii"}


class Natives:
    def __init__(self, build, programs):
        """build: inside/pod/image, or a copy of its sources and recipes; programs: the image's table of modules and their commands."""
        self.pins = {row[0]: row[1] for row in table(os.path.join(build, "sources"))}
        folder = os.path.join(build, "recipes")
        self.recipes = {name: recipe(os.path.join(folder, name)) for name in os.listdir(folder)}
        self.firsts = {r["source"][0] for r in self.recipes.values() if r["source"] and r["provides"]}
        makers = {module: name for name, r in self.recipes.items() for module in r["provides"]}
        have = installed()
        differ = {}
        self.commands = {}  # name -> why its native program is no measure, or nothing
        with open(programs, encoding="utf-8") as file:
            for line in file:
                module, _, names = line.rstrip("\n").split("\t")
                maker = makers[module]
                if maker not in differ:
                    differ[maker] = self.differences(self.sources(maker), have)
                for name in names.split():
                    gone = [] if name in WORDS or shutil.which(name, path=PATH) else [f"no {name}"]
                    self.commands[name] = gone + differ[maker]
        self.zones = self.differences(["tzdata"], have)

    def sources(self, name):
        if name in INSTEAD:
            return INSTEAD[name]
        own = self.recipes[name]["source"]
        found = own[:1] + [s for s in own[1:] if s not in self.firsts]
        for need in self.recipes[name]["needs"]:
            found += self.sources(need)
        return found

    def differences(self, sources, have):
        return [f"{s} {have.get(s, 'missing')}, not {self.pins[s]}" for s in sources if have.get(s) != self.pins[s]]

    def others(self, script):
        """Why native programs that the script may use are no measure for the image's; a word that is no command there does no harm."""
        words = {"bash", *re.findall(r"[\w.+\[-]+", script)}
        found = {why for word in words for why in self.commands.get(word, [])}
        if ZONES.search(script):
            found.update(self.zones)
        return sorted(found)
