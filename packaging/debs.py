"""Debian packages, made with dpkg-deb from the staged installation."""

import glob
import os
import re
import shutil
import time

from . import archive, product, site
from .product import run, text_of

HERE = os.path.join(product.ROOT, "packaging", "deb")
DAY, MONTH = "Mon Tue Wed Thu Fri Sat Sun".split(), "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()


def soname_number(stage):
    """What follows libcordon.so. in the library's soname: Debian names the package after it."""
    names = glob.glob(os.path.join(stage, "usr/lib", product.multiarch(), "libcordon.so.*.*"))
    return re.search(r"SONAME.*\[libcordon\.so\.(\d+)\]", run(["readelf", "-d", names[0]]))[1]


def stanzas(number):
    """The packages of packaging/deb/control, each a dict of its fields."""
    text = text_of("packaging/deb/control").replace("@so@", number).replace("@version@", product.version())
    common, *packages = [dict(re.findall(r"^([\w-]+): (.*(?:\n .*)*)$", part, re.M)) for part in re.split(r"\n\n+", text)]
    return [{**common, **package} for package in packages]


def changelog():
    t = time.gmtime(product.epoch())
    when = f"{DAY[t.tm_wday]}, {t.tm_mday:02} {MONTH[t.tm_mon - 1]} {t.tm_year} {t.tm_hour:02}:{t.tm_min:02}:{t.tm_sec:02} +0000"
    maintainer = re.search(r"^Maintainer: (.*)$", text_of("packaging/deb/control"), re.M)[1]
    return (f"cordon ({product.version()}) unstable; urgency=medium\n\n  * What is new is in CHANGELOG.md of cordon-doc.\n\n"
            f" -- {maintainer}  {when}\n")


def write(path, data, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())
    os.chmod(path, mode)


def take(stage, top, *patterns):
    """Copies what the patterns name, links as links."""
    for pattern in patterns:
        found = sorted(glob.glob(os.path.join(stage, pattern)))
        if not found:
            raise product.Failure(f"the installation has no {pattern}")
        for path in found:
            to = os.path.join(top, os.path.relpath(path, stage))
            os.makedirs(os.path.dirname(to), exist_ok=True)
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.copytree(path, to, symlinks=True, dirs_exist_ok=True)
            else:
                shutil.copy2(path, to, follow_symlinks=False)


def fill_cordon(stage, top, _):
    take(stage, top, "usr/bin/cordon", "usr/libexec/cordon", "usr/share/man", "usr/share/bash-completion", "usr/share/fish")
    # Debian's zsh looks there.
    shutil.copytree(os.path.join(stage, "usr/share/zsh/site-functions"), os.path.join(top, "usr/share/zsh/vendor-completions"))
    shutil.copytree(os.path.join(stage, "usr/lib/systemd"), os.path.join(top, "lib/systemd"))
    write(os.path.join(top, "usr/share/cordon/apparmor.profile"), text_of("packaging/apparmor.profile"))
    for page in glob.glob(os.path.join(top, "usr/share/man/man1/*.1")):
        with open(page, "rb") as file:
            write(page + ".gz", archive.gzip_bytes(file.read()))
        os.remove(page)


def fill_library(stage, top, number):
    take(stage, top, f"usr/lib/*/libcordon.so.{number}", "usr/lib/*/libcordon.so.*.*")
    write(os.path.join(top, "DEBIAN/shlibs"), f"libcordon {number} libcordon{number} (>= {product.version()})\n")
    write(os.path.join(top, "DEBIAN/triggers"), "activate-noawait ldconfig\n")


def fill_dev(stage, top, _):
    take(stage, top, "usr/include/cordon", "usr/lib/*/libcordon.so", "usr/lib/*/libcordon.a", "usr/lib/*/pkgconfig")


def fill_doc(_, top, __):
    doc = os.path.join(top, "usr/share/doc/cordon-doc")
    shutil.copytree(os.path.join(product.ROOT, "docs"), os.path.join(doc, "docs"))
    shutil.copytree(os.path.join(product.ROOT, "examples"), os.path.join(doc, "examples"), ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("README.md", "SECURITY.md", "CHANGELOG.md"):
        shutil.copy(os.path.join(product.ROOT, name), doc)
    site.make(os.path.join(doc, "html"))
    write(os.path.join(top, "usr/share/doc-base/cordon-doc.cordon"), text_of("packaging/deb/cordon-doc.doc-base"))


def fill_pod(pod):
    # As it was built: its programs are stripped already, and a guest sees its rights.
    return lambda _, top, __: shutil.copytree(pod, os.path.join(top, "usr/libexec/cordon/pod"), symlinks=True)


def depends(top, work, package):
    """What the programs load, as dpkg-shlibdeps finds it."""
    paths = [os.path.join(top, name) for name in product.files_under(top)]
    loaded = [p for p in paths if not os.path.islink(p) and product.is_elf(p) and "NEEDED" in run(["readelf", "-d", p])]
    if not loaded:
        return []
    os.makedirs(os.path.join(work, "debian"), exist_ok=True)
    write(os.path.join(work, "debian/control"), f"Source: cordon\n\nPackage: {package}\nArchitecture: any\n")
    said = run(["dpkg-shlibdeps", "-O", *[f"-e{path}" for path in loaded]], cwd=work)
    return said.strip().removeprefix("shlibs:Depends=").split(", ")


def size_kb(top):
    """Installed-Size as dpkg-gencontrol counts it."""
    total = 0
    for path, inside in archive.walk(top):
        if inside.split("/")[0] != "DEBIAN":
            regular = os.path.isfile(path) and not os.path.islink(path)
            total += (os.path.getsize(path) + 1023) // 1024 if regular else 1
    return total


def finish(fields, top, work):
    """The files that every package has: copyright, changelog, control, sums."""
    name = fields["Package"]
    doc = os.path.join(top, "usr/share/doc", name)
    write(os.path.join(doc, "copyright"), text_of("packaging/deb/copyright"))
    write(os.path.join(doc, "changelog.gz"), archive.gzip_bytes(changelog().encode()))
    overrides = os.path.join(HERE, re.sub(r"\d+$", "", name) + ".lintian-overrides")
    if os.path.exists(overrides):
        write(os.path.join(top, "usr/share/lintian/overrides", name), text_of(overrides).replace("@multiarch@", product.multiarch()))
    product.tidy(top)
    needs = [*depends(top, work, name), *filter(None, fields.get("Depends", "").split(", "))]
    fields = {"Package": name, "Source": "cordon" if name != "cordon" else "", "Version": product.version(), **fields,
              "Depends": ", ".join(sorted(needs)), "Installed-Size": str(size_kb(top))}
    if fields["Architecture"] == "any":
        fields["Architecture"] = run(["dpkg", "--print-architecture"]).strip()
    write(os.path.join(top, "DEBIAN/control"), "".join(f"{key}: {value}\n" for key, value in fields.items() if value))
    files = [f for f in product.files_under(top) if not f.startswith("DEBIAN/") and not os.path.islink(os.path.join(top, f))]
    write(os.path.join(top, "DEBIAN/md5sums"), run(["md5sum", *files], cwd=top))
    for script in ("postinst", "prerm", "postrm"):
        path = os.path.join(HERE, f"{name}.{script}")
        if os.path.exists(path):
            write(os.path.join(top, "DEBIAN", script), text_of(path), 0o755)
    return fields["Architecture"]


def make(stage, out, work, pod):
    """Writes the packages into `out`; returns their paths. Without an image of the pod there is no cordon-pod."""
    number = soname_number(stage)
    fill = {"cordon": fill_cordon, f"libcordon{number}": fill_library, "libcordon-dev": fill_dev, "cordon-doc": fill_doc}
    if pod:
        fill["cordon-pod"] = fill_pod(pod)
    made = []
    for fields in stanzas(number):
        name = fields["Package"]
        if name not in fill:
            continue
        top = os.path.join(work, "deb", name)
        shutil.rmtree(top, ignore_errors=True)
        os.makedirs(os.path.join(top, "DEBIAN"))
        fill[name](stage, top, number)
        architecture = finish(fields, top, os.path.join(work, "shlibs"))
        path = os.path.join(out, f"{name}_{product.version()}_{architecture}.deb")
        # One thread: with more, the bytes depend on how many there are.
        run(["dpkg-deb", "--root-owner-group", "-Zxz", "--threads-max=1", "--build", top, path])
        made.append(path)
    return made
