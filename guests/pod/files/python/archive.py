# files/python/archive.py - packs a tree of Python modules, compiled, into one zip file.
"""usage: archive.py TREE FILE

Stored, not compressed: reading is cheaper than inflating, and the image is shared. Sources stay
beside the bytecode, for tracebacks and inspect.
"""
import importlib.util
import marshal
import os
import sys
import zipfile

STAMP = (2023, 1, 1, 0, 0, 0)


def compiled(source, name):
    # Unchecked: the archive is read-only, and a look at times would be for nothing.
    code = compile(source, "/usr/lib/python311.zip/" + name, "exec", dont_inherit=True)
    head = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + bytes(8)
    return head + marshal.dumps(code)


def main():
    tree, out = sys.argv[1:3]
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for directory, folders, files in os.walk(tree):
            folders.sort()
            for file in sorted(files):
                path = os.path.join(directory, file)
                name = os.path.relpath(path, tree)
                with open(path, "rb") as f:
                    data = f.read()
                archive.writestr(zipfile.ZipInfo(name, STAMP), data)
                if name.endswith(".py"):
                    try:
                        archive.writestr(zipfile.ZipInfo(name + "c", STAMP), compiled(data, name))
                    except SyntaxError:
                        pass


main()
