"""The product as it is built for others: one build without paths or times of this machine, and the files of its installation."""

import os
import re
import shutil
import stat
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Meson installs these too, but the program carries them and never looks there.
EMBEDDED = ("usr/libexec/cordon/cordon-sh", "usr/libexec/cordon/cordon_bash.so", "usr/libexec/cordon/cordon_r.so")
# Whatever sorts, writes dates or reads the user's settings does so in one way.
KEPT = ("PATH", "CC", "HOME", "CCACHE_DIR", "CCACHE_NOHASHDIR", "TMPDIR")


class Failure(Exception):
    """Something that makes the packages impossible; the text says what."""


def run(command, cwd=ROOT, **env):
    """The standard output of a command, which must succeed."""
    done = subprocess.run(command, cwd=cwd, env={**environment(), **env}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise Failure(f"{' '.join(command[:6])}: status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def epoch():
    """The second that all files bear: SOURCE_DATE_EPOCH, or that of the last commit."""
    said = os.environ.get("SOURCE_DATE_EPOCH")
    if not said:
        done = subprocess.run(["git", "-C", ROOT, "log", "-1", "--format=%ct"], stdout=subprocess.PIPE, text=True, check=False)
        said = done.stdout.strip()
    if not said or not said.isdigit():
        raise Failure("no commit to take the date from; set SOURCE_DATE_EPOCH")
    return int(said)


def environment():
    env = {name: os.environ[name] for name in KEPT if name in os.environ}
    return {**env, "LC_ALL": "C.UTF-8", "TZ": "UTC", "SOURCE_DATE_EPOCH": str(epoch())}


def text_of(*parts):
    with open(os.path.join(ROOT, *parts), encoding="utf-8") as file:
        return file.read()


def version():
    return re.search(r"^project\(.*?version : '([^']+)'", text_of("meson.build"), re.M | re.S)[1]


def multiarch():
    return run(["gcc", "-print-multiarch"]).strip()


def build(folder):
    """Configures and builds what is installed; tests and benchmarks are left out."""
    if not os.path.exists(os.path.join(folder, "build.ninja")):
        # Without debug information nothing but __FILE__ names a path, and the map shortens that.
        run(["meson", "setup", folder, "-Dprefix=/usr", "-Dlibexecdir=libexec", f"-Dlibdir=lib/{multiarch()}", "-Dmandir=share/man",
             "-Doptimization=2", "-Ddebug=false", f"-Dc_args=-ffile-prefix-map={ROOT}=. -ffile-prefix-map={folder}=."])
    made = re.findall(rf'"{re.escape(folder)}/([^"]+)": "/', run(["meson", "introspect", "--installed", folder]))
    # These are made when the build is configured.
    targets = [path for path in made if not path.startswith(("meson-private/", "systemd/"))]
    run(["ninja", "-C", folder, *targets, "man/cordon.bash", "man/_cordon", "man/cordon.fish"])


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def files_under(top):
    """Paths of all files and links, relative and in order."""
    found = []
    for folder, folders, names in os.walk(top):
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        found += [os.path.relpath(os.path.join(folder, name), top) for name in names + links]
    return sorted(found)


def tidy(top):
    """Rights as packages have them, and the one date."""
    for folder, _, names in os.walk(top, topdown=False):
        for path in [os.path.join(folder, name) for name in names]:
            if not os.path.islink(path):
                os.chmod(path, 0o755 if os.stat(path).st_mode & stat.S_IXUSR else 0o644)
            os.utime(path, (epoch(), epoch()), follow_symlinks=False)
        os.chmod(folder, 0o1777 if os.stat(folder).st_mode & stat.S_ISVTX else 0o755)
        os.utime(folder, (epoch(), epoch()))


def strip(path):
    if path.endswith(".a"):
        run(["strip", "--strip-debug", "--enable-deterministic-archives", path])
    elif is_elf(path):
        run(["strip", "--strip-unneeded", "--remove-section=.comment", "--remove-section=.note", path])


def stage(folder, top):
    """Installs the build into `top`, stripped."""
    shutil.rmtree(top, ignore_errors=True)
    run(["meson", "install", "-C", folder, "--no-rebuild", "--quiet", "--destdir", top])
    for name in files_under(top):
        path = os.path.join(top, name)
        if os.path.islink(path):
            continue
        if name in EMBEDDED:
            os.remove(path)
            continue
        strip(path)
        if name.endswith(".so") or ".so." in name:
            os.chmod(path, 0o644)
    tidy(top)
