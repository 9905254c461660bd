# bundle.py OUTPUT FILE... [--at DIRECTORY] - compiles the runtime's files for the interpreter that runs this,
# into one file that cordon_guest.py loads: the interpreter's magic number, then, marshalled, marshalled code by name.
import importlib.util
import marshal
import os
import sys


def main(argv):
    at = "/run/cordon"
    if "--at" in argv:
        i = argv.index("--at")
        at = argv[i + 1]
        del argv[i:i + 2]
    codes = {}
    for path in argv[1:]:
        name = os.path.basename(path)
        with open(path, "rb") as f:
            code = compile(f.read(), at + "/" + name, "exec", dont_inherit=True, optimize=0)
        codes[name[:-3]] = marshal.dumps(code)  # separately, because most runs need only half of them
    with open(argv[0], "wb") as f:
        f.write(importlib.util.MAGIC_NUMBER + marshal.dumps(codes))


if __name__ == "__main__":
    main(sys.argv[1:])
