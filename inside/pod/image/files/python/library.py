# files/python/library.py - lays out a tree of Python modules with their bytecode beside them.
"""usage: library.py TREE OUT

A tree and not an archive: to read a zip file's directory takes longer than to start Python.
"""
import importlib.util
import marshal
import os
import shutil
import sys

WHERE = "/usr/lib/python3.11/"


def compiled(source, name):
    # Unchecked: the image is read-only, and a look at times would be for nothing.
    code = compile(source, WHERE + name, "exec", dont_inherit=True)
    return importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + bytes(8) + marshal.dumps(code)


def main():
    tree, out = sys.argv[1:3]
    for directory, folders, files in os.walk(tree):
        folders.sort()
        for file in sorted(files):
            path = os.path.join(directory, file)
            name = os.path.relpath(path, tree)
            target = os.path.join(out, name)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copyfile(path, target)
            if not name.endswith(".py"):
                continue
            with open(path, "rb") as f:
                source = f.read()
            try:
                code = compiled(source, name)
            except SyntaxError:
                continue  # an example of one, which some packages have
            cache = importlib.util.cache_from_source(target)
            os.makedirs(os.path.dirname(cache), exist_ok=True)
            with open(cache, "wb") as f:
                f.write(code)


main()
