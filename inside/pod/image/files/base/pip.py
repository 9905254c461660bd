"""pip - Python packages of a pod: what is there, wheels from files, and those that the host's policy has let in.

There is no index to ask: a name is looked for among the wheels the host has checked (/run/pod/packages/wheels, see
pkg) and in the directories of --find-links. Only pure Python can be installed; nothing of it runs on the way in."""
import getopt
import glob
import importlib.metadata
import os
import re
import shutil
import sys
import zipfile

__version__ = "23.0"
HOST = "/run/pod/packages/wheels"
USAGE = """Usage:
  pip install [--no-index] [-f DIR] [-t DIR] [-r FILE] [-U] WHEEL|NAME...
  pip uninstall [-y] NAME...
  pip list | freeze | check
  pip show [-f] NAME..."""


class Refused(Exception):
    pass


def in_venv():
    return sys.prefix != sys.base_prefix


def user_site():
    if in_venv():
        return os.path.join(sys.prefix, "lib/python%d.%d/site-packages" % sys.version_info[:2])
    return os.path.expanduser("~/.local/lib/python%d.%d/site-packages" % sys.version_info[:2])


def canonical(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def installed(paths=None):
    """name -> distribution; the first on the path is the one that is imported."""
    found = {}
    for one in importlib.metadata.distributions(path=paths or [user_site()] + sys.path):
        found.setdefault(canonical(one.metadata["Name"] or ""), one)
    found.pop("", None)
    return found


def tools():
    """Packages of the host's tools have no metadata."""
    try:
        names = {e.split(".")[0] for e in os.listdir("/usr/lib/python")}
    except OSError:
        from zipfile import ZipFile, is_zipfile
        names = {e.split("/")[0].split(".")[0] for e in ZipFile("/usr/lib/python").namelist()} \
            if os.path.exists("/usr/lib/python") and is_zipfile("/usr/lib/python") else set()
    return sorted(n for n in names if n.isidentifier())


def told(name):
    """What the package of a tool says of itself, which is not run for that: __version__ and __doc__."""
    import ast
    from zipfile import ZipFile
    try:
        text = ZipFile("/usr/lib/python").read(name + "/__init__.py").decode()
        found = [re.search(r"^%s = (\".*\"|'.*')$" % key, text, re.M) for key in ("__version__", "__doc__")]
        version, summary = [str(ast.literal_eval(m[1])) if m else "" for m in found]
    except (OSError, KeyError, ValueError, SyntaxError):
        version = summary = ""
    return version or "1.0.0", " ".join(summary.split())


def version_key(text):
    return [(1, int(p), "") if p.isdigit() else (0, 0, p) for p in re.split(r"[.+]|(?<=\d)(?=[a-z])", text)]


def satisfies(version, wanted):
    tests = {"==": lambda a, b: a == b, "!=": lambda a, b: a != b, ">=": lambda a, b: a >= b, "<=": lambda a, b: a <= b,
             ">": lambda a, b: a > b, "<": lambda a, b: a < b, "~=": lambda a, b: a >= b and a[:len(b) - 1] == b[:-1]}
    for one in filter(None, (w.strip() for w in wanted.split(","))):
        found = re.match(r"(==|!=|>=|<=|~=|>|<)\s*(\S+)$", one)
        if not found:
            raise Refused("Invalid requirement: '%s'" % one)
        operator, right = found.groups()
        if operator == "==" and right.endswith(".*"):
            good = version.startswith(right[:-1]) or version == right[:-2]
        else:
            left, right = version_key(version), version_key(right)
            zero = [(1, 0, "")]
            if operator != "~=":
                left, right = (k + zero * (max(len(left), len(right)) - len(k)) for k in (left, right))
            good = tests[operator](left, right)
        if not good:
            return False
    return True


def parse(requirement):
    """A name, its versions, and whether it is wanted here at all."""
    text, _, marker = requirement.partition(";")
    found = re.match(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\])?\s*\(?([^)]*)\)?\s*$", text)
    if not found:
        raise Refused("Invalid requirement: '%s'" % requirement.strip())
    return found.group(1), found.group(2).strip(), "extra" not in marker and not re.search(r"win32|Windows|python_version *<", marker)


def wheel_of(path):
    """The name and version in a wheel's file name; only pure Python runs here."""
    parts = os.path.basename(path)[:-4].split("-")
    if len(parts) not in (5, 6):
        raise Refused("%s is not a valid wheel filename." % os.path.basename(path))
    python, abi, platform = parts[-3:]
    fits = any(p == "py3" or re.fullmatch(r"(py|cp)3\d*", p) for p in python.split("."))
    if not fits or abi not in ("none", "abi3") or platform != "any":
        raise Refused("%s is not a supported wheel on this platform." % os.path.basename(path))
    return parts[0], parts[1]


def look_up(name, wanted, folders):
    best, seen = None, []
    for path in (p for d in folders for p in sorted(glob.glob(os.path.join(glob.escape(d), "*.whl")))):
        try:
            there, version = wheel_of(path)
        except Refused:
            continue
        if canonical(there) != canonical(name):
            continue
        seen.append(version)
        if satisfies(version, wanted) and (best is None or version_key(version) > version_key(best[1])):
            best = path, version
    if not best:
        raise Refused("Could not find a version that satisfies the requirement %s%s (from versions: %s)\nERROR: No matching "
                      "distribution found for %s%s" % (name, wanted, ", ".join(sorted(seen, key=version_key)) or "none", name, wanted))
    return best[0]


def unpack(path, target):
    """Writes a wheel's files beneath target and records them; a name that leads out is refused before any is written."""
    with zipfile.ZipFile(path) as wheel:
        names = [n for n in wheel.namelist() if not n.endswith("/")]
        infos = [n for n in names if re.fullmatch(r"[^/]+\.dist-info/METADATA", n)]
        if len(infos) != 1:
            raise Refused("%s has an invalid wheel: no .dist-info" % os.path.basename(path))
        info = infos[0].split("/")[0]
        places = {}
        for name in names:
            place = re.sub(r"^[^/]+\.data/(purelib|platlib)/", "", name)
            if re.match(r"^[^/]+\.data/", place):
                continue  # scripts, headers and data have no place here
            if place.startswith("/") or ".." in place.split("/") or "\0" in place:
                raise Refused("%s has a file outside of its place: %s" % (os.path.basename(path), name))
            places[name] = place
        for name, place in places.items():
            to = os.path.join(target, place)
            os.makedirs(os.path.dirname(to), exist_ok=True)
            with wheel.open(name) as source, open(to, "wb") as out:
                shutil.copyfileobj(source, out)
        scripts = scripts_of(wheel, info)
    lines = [p for p in places.values() if p != info + "/RECORD"] + [info + "/INSTALLER", info + "/RECORD"]
    lines += [os.path.relpath(write_script(*one), target) for one in scripts]
    with open(os.path.join(target, info, "RECORD"), "w", encoding="utf-8") as out:
        out.write("".join(line + ",,\n" for line in lines))
    with open(os.path.join(target, info, "INSTALLER"), "w", encoding="utf-8") as out:
        out.write("pip\n")


def scripts_of(wheel, info):
    """The commands of its console_scripts, as (name, module, function)."""
    try:
        text = wheel.read(info + "/entry_points.txt").decode()
    except KeyError:
        return []
    part = re.search(r"^\[console_scripts\]\s*$(.*?)(?=^\[|\Z)", text, re.M | re.S)
    return re.findall(r"^\s*([\w.-]+)\s*=\s*([\w.]+)\s*:\s*([\w.]+)", part.group(1) if part else "", re.M)


def script_folder():
    return os.path.join(sys.prefix, "bin") if in_venv() else os.path.expanduser("~/.local/bin")


def write_script(name, module, function):
    os.makedirs(script_folder(), exist_ok=True)
    path = os.path.join(script_folder(), name)
    with open(path, "w", encoding="utf-8") as out:
        out.write("#!%s\nimport sys\nfrom %s import %s\nsys.exit(%s())\n" % (
            sys.executable or "/usr/bin/python3", module, function.split(".")[0], function))
    os.chmod(path, 0o755)
    return path


def read_requirements(path):
    with open(path, encoding="utf-8") as file:
        for line in file:
            line = line.split(" #")[0].strip()
            if line and not line.startswith(("#", "-")):
                yield line


def install(words):
    options, wanted = getopt.gnu_getopt(words, "Uf:t:r:qv", ["upgrade", "find-links=", "target=", "requirement=", "no-index", "user",
                                        "quiet", "no-deps", "force-reinstall", "break-system-packages", "disable-pip-version-check",
                                        "no-cache-dir", "no-input", "index-url=", "pre", "no-warn-script-location"])
    given = dict(options)
    target = given.get("-t") or given.get("--target") or user_site()
    folders = [v for o, v in options if o in ("-f", "--find-links")] + [HOST]
    for path in [v for o, v in options if o in ("-r", "--requirement")]:
        wanted += read_requirements(path)
    if not wanted:
        raise Refused("You must give at least one requirement to install (see \"pip help install\")")
    quiet, again = "-q" in given or "--quiet" in given, "-U" in given or "--upgrade" in given or "--force-reinstall" in given
    done, have = [], installed([target] if "-t" in given or "--target" in given else None)
    queue = list(wanted)
    while queue:
        one = queue.pop(0)
        if one.endswith(".whl"):
            path, deps = one, folders + [os.path.dirname(os.path.abspath(one))]
            name, version = wheel_of(path)
        else:
            name, versions, here = parse(one)
            there = have.get(canonical(name))
            if not here or (there and satisfies(there.version, versions) and not (again and one in wanted)):
                if here and one in wanted and not quiet:
                    print("Requirement already satisfied: %s in %s (%s)" % (one, there.locate_file(""), there.version))
                continue
            path, deps = look_up(name, versions, folders), folders
            name, version = wheel_of(path)
        if not os.path.isfile(path):
            raise Refused("Requirement '%s' looks like a filename, but the file does not exist" % path)
        if not quiet:
            print("Processing %s" % path, flush=True)
        if canonical(name) in have and str(have[canonical(name)].locate_file("")) == target:
            remove(have[canonical(name)])
        unpack(path, target)
        done.append("%s-%s" % (name.replace("_", "-"), version))
        have = installed([target])
        folders = deps
        if "--no-deps" not in given:
            queue += have[canonical(name)].requires or []
        have = {**installed(), **have}
    if done and not quiet:
        print("Successfully installed " + " ".join(sorted(done)))
    return 0


def remove(one):
    root = os.path.realpath(str(one.locate_file("")))
    folders = set()
    for file in one.files or []:
        path = os.path.realpath(os.path.join(root, str(file)))
        if not path.startswith((root + os.sep, os.path.realpath(script_folder()) + os.sep)):
            continue
        folders.add(os.path.dirname(path))
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass
    for folder in sorted(folders, key=len, reverse=True):
        shutil.rmtree(os.path.join(folder, "__pycache__"), ignore_errors=True)
        while folder.startswith(root + os.sep) and os.path.isdir(folder) and not os.listdir(folder):
            os.rmdir(folder)
            folder = os.path.dirname(folder)


def uninstall(words):
    options, names = getopt.gnu_getopt(words, "yr:", ["yes", "break-system-packages"])
    if not names:
        raise Refused("You must give at least one requirement to uninstall (see \"pip help uninstall\")")
    have = installed()
    for name in names:
        one = have.get(canonical(name))
        if not one:
            print("WARNING: Skipping %s as it is not installed." % name, file=sys.stderr)
            continue
        if not os.access(str(one.locate_file("")), os.W_OK):
            raise Refused("Cannot uninstall '%s': it is a part of the image" % name)
        words = "%s-%s" % (one.metadata["Name"], one.version)
        remove(one)
        print("Successfully uninstalled " + words)
    return 0


def rows():
    table = {n: (d.metadata["Name"], d.version) for n, d in installed().items()}
    table["pip"] = ("pip", __version__)
    for name in tools():
        table.setdefault(canonical(name), (name, told(name)[0]))
    return [table[k] for k in sorted(table)]


def listed(words):
    options, _ = getopt.gnu_getopt(words, "", ["format=", "user", "local", "disable-pip-version-check"])
    format_ = dict(options).get("--format", "columns")
    if format_ == "json":
        import json
        print(json.dumps([{"name": n, "version": v} for n, v in rows()]))
    elif format_ == "freeze":
        return freeze([])
    else:
        table = [("Package", "Version")] + rows()
        wide = [max(len(r[i]) for r in table) for i in (0, 1)]
        for number, (name, version) in enumerate(table):
            print("%-*s %s" % (wide[0], name, version))
            if number == 0:
                print("-" * wide[0], "-" * wide[1])
    return 0


def freeze(_):
    for one in sorted(installed().values(), key=lambda d: canonical(d.metadata["Name"])):
        print("%s==%s" % (one.metadata["Name"], one.version))
    return 0


def show(words):
    options, names = getopt.gnu_getopt(words, "f", ["files"])
    if not names:
        print("WARNING: ERROR: Please provide a package name or names.", file=sys.stderr)
        return 1
    have, shown = installed(), 0
    missing = [n for n in names if canonical(n) not in have and n not in tools() and n != "pip"]
    for name in names:
        one = have.get(canonical(name))
        if name in missing:
            continue
        if shown:
            print("---")
        shown += 1
        version, summary = (one.version, one.metadata.get("Summary")) if one else (__version__, "") if name == "pip" else told(name)
        meta = one.metadata if one else {}
        place = str(one.locate_file("")) if one else os.path.dirname(__file__) if name == "pip" else "/usr/lib/python"
        requires = [parse(r)[0] for r in (one.requires or []) if parse(r)[2]] if one else []
        for key, value in (("Name", meta["Name"] if one else name), ("Version", version),
                           ("Summary", summary or ""), ("Home-page", meta.get("Home-page") or ""),
                           ("Author", meta.get("Author") or ""), ("License", meta.get("License") or ""), ("Location", place.rstrip("/")),
                           ("Requires", ", ".join(requires)), ("Required-by", ", ".join(sorted(
                               d.metadata["Name"] for d in have.values()
                               if canonical(name) in [canonical(parse(r)[0]) for r in d.requires or [] if parse(r)[2]])))):
            print("%s: %s" % (key, value))
        if options and one:
            print("Files:")
            for file in one.files or []:
                print("  %s" % file)
    if missing:
        print("WARNING: Package(s) not found: " + ", ".join(missing), file=sys.stderr)
    return 0 if shown else 1


def check(_):
    have, bad = installed(), 0
    for one in have.values():
        for requirement in one.requires or []:
            name, versions, here = parse(requirement)
            there = have.get(canonical(name))
            if here and (not there or not satisfies(there.version, versions)):
                print("%s %s requires %s, which is not installed." % (one.metadata["Name"], one.version, name) if not there else
                      "%s %s has requirement %s%s, but you have %s %s." % (one.metadata["Name"], one.version, name, versions, name, there.version))
                bad = 1
    if not bad:
        print("No broken requirements found.")
    return bad


VERBS = {"install": install, "uninstall": uninstall, "list": listed, "freeze": freeze, "show": show, "check": check}


def main(words=None):
    words = sys.argv[1:] if words is None else words
    if words[:1] in (["--version"], ["-V"]):
        print("pip %s from %s (python %d.%d)" % (__version__, __file__, *sys.version_info[:2]))
        return 0
    if not words or words[0] in ("help", "-h", "--help"):
        print(USAGE)
        return 0
    try:
        if words[0] not in VERBS:
            raise Refused("unknown command \"%s\"" % words[0])
        return VERBS[words[0]](words[1:])
    except getopt.GetoptError as error:
        print(USAGE, "\n\npip %s: error: %s" % (words[0], error), file=sys.stderr)
        return 2
    except BrokenPipeError:
        os._exit(1)
    except (Refused, OSError, zipfile.BadZipFile) as error:
        print("ERROR: %s" % error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
