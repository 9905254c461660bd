#!/usr/bin/python3
"""prestart.py [PAIRS] - what wall/linux/prestart_entry.c gains: `cordon run -g sh -e :` with and without it, in turn.

Both are copies of one program. In the one without it, the ELF header names the C library's _start as its entry. They differ in
nothing else, so their difference is meaningful on a busy machine too; the fastest tenth was disturbed least."""
import os
import struct
import subprocess
import sys
import tempfile
import time

PROGRAM = os.environ.get("CORDON", "build/cordon")
COMMAND = ("run", "-g", "sh", "-e", ":")
E_ENTRY = 24  # offset in an ELF header of 64 bits


def address(name):
    table = subprocess.run(["nm", PROGRAM], check=True, capture_output=True, text=True).stdout
    return next((int(line.split()[0], 16) for line in table.splitlines() if line.endswith(f" {name}")), None)


def copy(path, entry):
    with open(PROGRAM, "rb") as f:
        image = bytearray(f.read())
    image[E_ENTRY:E_ENTRY + 8] = struct.pack("<Q", address(entry))
    with open(path, "wb") as f:
        f.write(image)
    os.chmod(path, 0o755)
    return path


def milliseconds(program):
    begin = time.perf_counter()
    subprocess.run([program, *COMMAND], check=True, stdin=subprocess.DEVNULL)
    return (time.perf_counter() - begin) * 1000


def at(values, share):
    return values[int(len(values) * share)]


def main(pairs):
    if address("prestart_entry") is None:
        print("this program is not prestarted: not static, or not for x86-64")
        return
    if os.path.exists("/sys/fs/cgroup/cgroup.controllers"):
        print("this machine has unified control groups: nothing is prestarted")
        return
    with tempfile.TemporaryDirectory(prefix="cordon-prestart-") as folder:
        early, late = copy(os.path.join(folder, "with"), "prestart_entry"), copy(os.path.join(folder, "without"), "_start")
        rows = []
        for i in range(pairs + 5):
            took = {program: milliseconds(program) for program in ((early, late) if i % 2 else (late, early))}
            rows.append((took[early], took[late]))
    rows = rows[5:]  # the first are cold
    print(f"{'':<10}{'fastest tenth':>15}{'quarter':>12}{'median':>12}")
    columns = {"with": sorted(a for a, _ in rows), "without": sorted(b for _, b in rows), "gain": sorted(b - a for a, b in rows)}
    for name, values in list(columns.items())[:2]:
        print(f"{name:<10}{at(values, 0.1):12.2f} ms{at(values, 0.25):9.2f} ms{at(values, 0.5):9.2f} ms")
    gains = columns["gain"]
    print(f"{'gain':<10}{at(columns['without'], 0.1) - at(columns['with'], 0.1):12.2f} ms"
          f"{at(columns['without'], 0.25) - at(columns['with'], 0.25):9.2f} ms{at(gains, 0.5):9.2f} ms (of {len(rows)} pairs)")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 400)
