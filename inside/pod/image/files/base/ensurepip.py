"""ensurepip - pip is a part of a pod's library; a virtual environment only needs the commands for it."""
import os
import sys

import pip


def version():
    return pip.__version__


def bootstrap(**_):
    if not pip.in_venv():
        return
    for name in ("pip", "pip3"):
        path = os.path.join(sys.prefix, "bin", name)
        with open(path, "w", encoding="utf-8") as out:
            out.write("#!%s\nimport sys\nfrom pip import main\nsys.exit(main())\n" % sys.executable)
        os.chmod(path, 0o755)


if __name__ == "__main__":
    if "--version" in sys.argv:
        print("pip " + version())
    else:
        bootstrap()
