"""The archive with install.sh, for any Linux with a glibc that is new enough."""

import os
import platform
import re
import shutil

from . import archive, portable, product


def system():
    """As in the names of archives: linux-x86_64."""
    return f"linux-{platform.machine()}"


def make(stage, portable_top, out, work):
    name = f"cordon-{product.version()}-{system()}"
    top = os.path.join(work, "tarball", name)
    shutil.rmtree(top, ignore_errors=True)
    shutil.copytree(portable_top, os.path.join(top, "libexec/cordon"))
    os.makedirs(os.path.join(top, "bin"))
    os.rename(os.path.join(top, "libexec/cordon/cordon"), os.path.join(top, "bin/cordon"))
    os.makedirs(os.path.join(top, "share/doc"))
    os.rename(os.path.join(top, "libexec/cordon/licenses"), os.path.join(top, "share/doc/cordon"))
    for part in ("include", "share/man", "share/bash-completion", "share/zsh", "share/fish", "lib/systemd"):
        shutil.copytree(os.path.join(stage, "usr", part), os.path.join(top, part))
    # A prefix has no folders of an architecture; install.sh writes the prefix in.
    shutil.copytree(os.path.join(stage, "usr/lib", product.multiarch()), os.path.join(top, "lib"), symlinks=True, dirs_exist_ok=True)
    edit(os.path.join(top, "lib/pkgconfig/libcordon.pc"), rf"/{product.multiarch()}$", "")
    edit(os.path.join(top, "lib/pkgconfig/libcordon.pc"), r"^prefix=.*$", "prefix=@prefix@")
    edit(os.path.join(top, "lib/systemd/system/cordon-serve.service"), r"^ExecStart=/usr/", "ExecStart=@prefix@/")
    os.makedirs(os.path.join(top, "share/cordon"))
    shutil.copy(os.path.join(product.ROOT, "packaging/apparmor.profile"), os.path.join(top, "share/cordon"))
    major, minor = portable.glibc_version(portable.programs(portable_top))
    write_script(os.path.join(top, "install.sh"), f"{major}.{minor}")
    for page in ("README.md", "SECURITY.md", "docs/install.md"):
        shutil.copy(os.path.join(product.ROOT, page), top)
    product.tidy(top)
    path = os.path.join(out, f"{name}.tar.gz")
    archive.tar_gz(top, name, path)
    return [path]


def edit(path, pattern, to):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    with open(path, "w", encoding="utf-8") as file:
        file.write(re.sub(pattern, to, text, flags=re.M))


def write_script(path, glibc):
    shutil.copy(os.path.join(product.ROOT, "packaging/install.sh"), path)
    edit(path, "@glibc@", glibc)
    os.chmod(path, 0o755)
