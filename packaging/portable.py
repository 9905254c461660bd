"""The program with what it needs beyond glibc, for machines without Debian's packages: the helpers' libraries are carried in `lib`
beside them. `cordon` itself needs none: it is static."""

import os
import re
import shutil

from . import product
from .product import run

# Of glibc, which is the machine's own.
GLIBC = re.compile(r"^(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|util|mvec))\.so\.\d+$")


def needed(path):
    return re.findall(r"NEEDED.*\[(.+)\]", run(["readelf", "-dW", path]))


def glibc_version(paths):
    """The newest version of glibc's symbols that any of the files asks for, as (2, 36)."""
    found = {(2, 5)}
    for path in paths:
        found |= {tuple(map(int, m.split("."))) for m in re.findall(r"Name: GLIBC_([\d.]+)", run(["readelf", "-VW", path]))}
    return max(found)[:2]


def owner(path):
    """The Debian package of a file of this machine."""
    for name in (os.path.realpath(path), re.sub(r"^/usr/lib/", "/lib/", os.path.realpath(path))):
        try:
            return run(["dpkg-query", "-S", name]).split(":")[0]
        except product.Failure:
            continue
    raise product.Failure(f"no package has {path}")


def libraries(paths):
    """{soname: path} of everything that the files load, and what that loads, without glibc."""
    found = {}
    for path in paths:
        for name, place in re.findall(r"^\s*(\S+) => (/\S+)", run(["ldd", path]), re.M):
            if not GLIBC.match(name):
                found[name] = place
    return found


def licence(package, folder):
    os.makedirs(folder, exist_ok=True)
    shutil.copyfile(os.path.join("/usr/share/doc", package, "copyright"), os.path.join(folder, package))


def make(stage, top, static):
    """Fills `top` with the program and its helpers; static: the packages whose archives are linked in. Returns the packages that
    are carried as shared libraries."""
    shutil.rmtree(top, ignore_errors=True)
    helpers = os.path.join(stage, "usr/libexec/cordon")
    os.makedirs(os.path.join(top, "lib"))
    shutil.copy(os.path.join(stage, "usr/bin/cordon"), top)
    loaders = []
    for name in sorted(os.listdir(helpers)):
        shutil.copy(os.path.join(helpers, name), top)
        if needed(os.path.join(top, name)):
            loaders.append(os.path.join(top, name))
    carried = libraries(loaders)
    for path in loaders:
        run(["patchelf", "--set-rpath", "$ORIGIN/lib", path])
    for name, place in sorted(carried.items()):
        to = os.path.join(top, "lib", name)
        shutil.copyfile(place, to)
        os.chmod(to, 0o644)
        run(["patchelf", "--set-rpath", "$ORIGIN", to])
    packages = sorted({owner(place) for place in carried.values()})
    for package in sorted({*packages, *static}):
        licence(package, os.path.join(top, "licenses"))
    shutil.copy(os.path.join(product.ROOT, "LICENSE"), os.path.join(top, "licenses", "cordon"))
    product.tidy(top)
    return packages


def programs(top):
    return [os.path.join(top, name) for name in product.files_under(top) if product.is_elf(os.path.join(top, name))]
