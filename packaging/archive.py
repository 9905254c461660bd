"""Archives that are the same bytes for the same files: sorted, owned by root, with the one date."""

import gzip
import io
import os
import tarfile

from . import product


def entry(path, name):
    info = tarfile.TarInfo(name)
    info.mtime = product.epoch()
    info.uname = info.gname = "root"
    if os.path.islink(path):
        info.type, info.linkname, info.mode = tarfile.SYMTYPE, os.readlink(path), 0o777
    elif os.path.isdir(path):
        info.type, info.mode = tarfile.DIRTYPE, 0o755
    else:
        info.size, info.mode = os.path.getsize(path), 0o755 if os.access(path, os.X_OK) and os.stat(path).st_mode & 0o100 else 0o644
    return info


def walk(top):
    """Everything below top, folders before what is in them, in order."""
    for folder, folders, names in os.walk(top):
        folders.sort()
        here = os.path.relpath(folder, top)
        yield folder, "" if here == "." else here
        for name in sorted(names + [f for f in folders if os.path.islink(os.path.join(folder, f))]):
            yield os.path.join(folder, name), os.path.normpath(os.path.join(here, name))


def tar_gz(top, name, out):
    """Writes the folder `top` as the folder `name` of an archive."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path, inside in walk(top):
            info = entry(path, f"{name}/{inside}" if inside else name)
            if info.isreg():
                with open(path, "rb") as file:
                    tar.addfile(info, file)
            else:
                tar.addfile(info)
    with open(out, "wb") as file:
        file.write(gzip_bytes(data.getvalue()))


def gzip_bytes(data):
    return gzip.compress(data, compresslevel=9, mtime=0)
