"""Finds what a run left behind: processes with its marker, control groups, mounts."""
import glob
import os
import time


def new_mark():
    return "c" + os.urandom(6).hex()


def processes(mark):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as f:
                if f.read().strip() == mark:
                    found.append(int(pid))
        except OSError:
            pass
    return found


def groups(pid, since):
    """Control groups that are named after the process that made them. Another may have had the number before, in another pid
    namespace or long ago, and have been killed with its supervisor: what was there before `since` is not of this run."""
    return [d for d in glob.glob(f"/sys/fs/cgroup/**/cordon/{pid}-*", recursive=True) if made(d) >= since - 1]  # the kernel's clock is coarse


def made(path):
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0


def mounts():
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        return {line.split(" ", 4)[4] for line in f if " - tmpfs root " in line or " - tmpfs workspace " in line}


def gone(mark, pid, seconds, since):
    """What is left after that long at most."""
    end = time.monotonic() + seconds
    while True:
        left = processes(mark) + groups(pid, since)
        if not left or time.monotonic() > end:
            return left
        time.sleep(0.05)
