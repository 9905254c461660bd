"""The Node client with a package of its own for the program, and the R client as R CMD build makes it."""

import json
import os
import platform
import re
import shutil
import tarfile
import time

from . import archive, product
from .product import run

# As Node's process.arch has it.
ARCH = {"x86_64": "x64", "aarch64": "arm64"}


def write_json(path, value):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file, indent=2)
        file.write("\n")


def npm(portable_top, out, work):
    """Two archives as `npm pack` would make them: the client, and the program for this platform, which the client may depend on."""
    source = os.path.join(product.ROOT, "clients/node")
    with open(os.path.join(source, "package.json"), encoding="utf-8") as file:
        client = json.load(file)
    arch = ARCH[platform.machine()]
    carrier = {"name": f"{client['name']}-linux-{arch}", "version": client["version"], "description": "The program cordon, for its client",
               "license": client["license"], "os": ["linux"], "cpu": [arch], "libc": ["glibc"], "bin": {"cordon": "bin/cordon"}, "files": ["bin"]}
    client["optionalDependencies"] = {carrier["name"]: carrier["version"]}
    top = os.path.join(work, "npm")
    shutil.rmtree(top, ignore_errors=True)
    for part in ("client", "carrier"):
        os.makedirs(os.path.join(top, part))
        shutil.copy(os.path.join(product.ROOT, "LICENSE"), os.path.join(top, part))
    for name in [*client["files"], "README.md"]:
        shutil.copy(os.path.join(source, name), os.path.join(top, "client"))
    shutil.copytree(portable_top, os.path.join(top, "carrier/bin"))
    write_json(os.path.join(top, "client/package.json"), client)
    write_json(os.path.join(top, "carrier/package.json"), carrier)
    made = []
    for part, about in (("client", client), ("carrier", carrier)):
        product.tidy(os.path.join(top, part))
        made.append(os.path.join(out, f"{about['name']}-npm-{about['version']}.tgz"))
        archive.tar_gz(os.path.join(top, part), "package", made[-1])
    return made


def r(out, work):
    """R CMD build notes who packed it and when; that becomes the one date."""
    top = os.path.join(work, "r")
    shutil.rmtree(top, ignore_errors=True)
    os.makedirs(top)
    shutil.copytree(os.path.join(product.ROOT, "clients/r"), os.path.join(top, "source/cordon"), symlinks=True)
    run(["R", "CMD", "build", "source/cordon"], cwd=top, R_ENVIRON_USER="", R_PROFILE_USER="")
    name = next(name for name in os.listdir(top) if name.endswith(".tar.gz"))
    with tarfile.open(os.path.join(top, name)) as tar:
        tar.extractall(os.path.join(top, "packed"))
    description = os.path.join(top, "packed/cordon/DESCRIPTION")
    with open(description, encoding="utf-8") as file:
        text = file.read()
    when = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(product.epoch()))
    with open(description, "w", encoding="utf-8") as file:
        file.write(re.sub(r"^Packaged: .*$", f"Packaged: {when}; cordon", text, flags=re.M))
    product.tidy(os.path.join(top, "packed/cordon"))
    path = os.path.join(out, name.replace("cordon_", "cordon-r_"))
    archive.tar_gz(os.path.join(top, "packed/cordon"), "cordon", path)
    return [path]
