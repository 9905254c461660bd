"""The Python client with the program in it (cordon/_bin), and its source archive."""

import os
import platform
import sys

from . import portable, product

CLIENT = os.path.join(product.ROOT, "clients/python")
ENTRY = b"[console_scripts]\ncordon = cordon._program:main\n"


def backend():
    sys.path.insert(0, CLIENT)
    import build_cordon  # the client's own build backend
    return build_cordon


def tag(portable_top):
    """The platform that the files really need: the newest of glibc's symbols in them."""
    major, minor = portable.glibc_version(portable.programs(portable_top))
    return f"py3-none-manylinux_{major}_{minor}_{platform.machine()}"


def carried(top):
    for name in product.files_under(top):
        path = os.path.join(top, name)
        with open(path, "rb") as file:
            yield f"cordon/_bin/{name}", file.read(), 0o755 if os.stat(path).st_mode & 0o100 else 0o644


def make(portable_top, out):
    build = backend()
    files = [*build.sources(), *carried(portable_top)]
    made = [build.write_wheel(out, files, tag(portable_top), [("entry_points.txt", ENTRY)]), build.build_sdist(out)]
    return [os.path.join(out, name) for name in made]
