"""The program that a wheel carries, if it carries one (cordon/_bin), and the command `cordon` that such a wheel installs."""

import os
import sys
from typing import NoReturn, Optional


def carried_program() -> Optional[str]:
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_bin", "cordon")
    return path if os.access(path, os.X_OK) else None


def main() -> NoReturn:
    path = carried_program()
    if path is None:
        sys.exit("cordon: this installation of the client has no program")
    os.execv(path, ["cordon", *sys.argv[1:]])
