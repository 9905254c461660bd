"""A build backend of one page, so that `pip install .` needs nothing from anywhere."""
import base64
import gzip
import hashlib
import io
import os
import re
import stat
import tarfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))


def field(name):
    with open(os.path.join(HERE, "pyproject.toml"), encoding="utf-8") as f:
        return re.search(r'^%s = "(.*)"$' % re.escape(name), f.read(), re.M).group(1)


def version():
    return field("version")


def metadata():
    with open(os.path.join(HERE, "README.md"), encoding="utf-8") as f:
        readme = f.read()
    return ("Metadata-Version: 2.1\nName: cordon\nVersion: %s\nSummary: %s\nLicense: Apache-2.0\nRequires-Python: %s\n"
            "Description-Content-Type: text/markdown\n\n%s" % (version(), field("description"), field("requires-python"), readme))


def sources():
    for name in sorted(os.listdir(os.path.join(HERE, "cordon"))):
        if name.endswith((".py", ".pyi", ".typed")):
            with open(os.path.join(HERE, "cordon", name), "rb") as f:
                yield "cordon/" + name, f.read()


def write_wheel(folder, files, tag="py3-none-any", infos=()):
    """files: (path, data) or (path, data, mode); infos: further files of the .dist-info folder. The same files give the same bytes."""
    info, name = "cordon-%s.dist-info" % version(), "cordon-%s-%s.whl" % (version(), tag)
    wheel = "Wheel-Version: 1.0\nGenerator: build_cordon\nRoot-Is-Purelib: %s\nTag: %s\n" % ("true" if tag.endswith("-any") else "false", tag)
    files = list(files) + [(info + "/METADATA", metadata().encode()), (info + "/WHEEL", wheel.encode())]
    files += [(info + "/" + path, data) for path, data in infos]
    record = []
    with zipfile.ZipFile(os.path.join(folder, name), "w", zipfile.ZIP_DEFLATED) as z:
        def add(path, data, mode=0o644):
            entry = zipfile.ZipInfo(path, (2020, 1, 1, 0, 0, 0))
            entry.external_attr = (stat.S_IFREG | mode) << 16
            z.writestr(entry, data, zipfile.ZIP_DEFLATED)
        for file in files:
            digest = base64.urlsafe_b64encode(hashlib.sha256(file[1]).digest()).rstrip(b"=").decode()
            record.append("%s,sha256=%s,%d\n" % (file[0], digest, len(file[1])))
            add(*file)
        add(info + "/RECORD", ("".join(record) + info + "/RECORD,,\n").encode())
    return name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return write_wheel(wheel_directory, sources())


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    return write_wheel(wheel_directory, [("cordon_editable.pth", HERE.encode() + b"\n")])


def build_sdist(sdist_directory, config_settings=None):
    base = "cordon-" + version()
    # gzip notes the time otherwise.
    with gzip.GzipFile(os.path.join(sdist_directory, base + ".tar.gz"), "wb", mtime=0) as zipped, tarfile.open(fileobj=zipped, mode="w") as tar:
        def add(path, data):
            entry = tarfile.TarInfo(base + "/" + path)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
        for path, data in sources():
            add(path, data)
        for path in ("pyproject.toml", "README.md", "build_cordon.py"):
            with open(os.path.join(HERE, path), "rb") as f:
                add(path, f.read())
        add("PKG-INFO", metadata().encode())
    return base + ".tar.gz"
