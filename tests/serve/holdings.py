"""What a server holds: descriptors, threads, processes, control groups, memory. So that tests can wait for a state instead of time."""
import collections
import os
import re
import time

from serving import BUILD

KEPT_WORKERS = 2  # of each set of workers, for ever (src/serve/http/workers.c); the others leave after ten seconds
KEPT_GROUPS = 8  # of each template, for its next sessions (src/wall/linux/slots.h)
WORKER_SETS = 4  # requests, what is done later, the ends of E2B's sandboxes, and spare ones


def slack_kib(plain):
    """How much memory may grow: a sanitizer keeps what was freed for a while."""
    with open(os.path.join(BUILD, "cordon-http"), "rb") as f:
        return plain + (800 << 10 if re.search(rb"__[at]san_init", f.read()) else 0)


def until(condition, seconds=60.0):
    """Waits for it. The time is no measure: it only ends a test that would never end."""
    end = time.monotonic() + seconds
    while not (good := condition()) and time.monotonic() < end:
        time.sleep(0.02)
    return good


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read()
    except OSError:
        return ""


def links(pid):
    for fd in os.listdir("/proc/%d/fd" % pid):
        try:
            yield os.readlink("/proc/%d/fd/%s" % (pid, fd))
        except OSError:
            pass


def group_name(link):
    """The name of a session's control groups, which are several descriptors; None: it is something else."""
    found = re.search(r"^/sys/fs/cgroup/.*/cordon/(\d+-[^/ ]+)", link)
    return found and found.group(1)


def below(pid):
    """Every process that descends from this one and is not dead."""
    parents = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        fields = read("/proc/%s/stat" % name).rpartition(")")[2].split()
        if fields and fields[0] not in "ZX":
            parents.setdefault(int(fields[1]), []).append(int(name))
    found, todo = [], [pid]
    while todo:
        children = parents.get(todo.pop(), [])
        found += children
        todo += children
    return found


def groups_of(pid):
    """The names of its control groups that exist."""
    names = set()
    for path, folders, _ in os.walk("/sys/fs/cgroup"):
        if os.path.basename(path) == "cordon":
            names |= {f for f in folders if f.startswith("%d-" % pid)}
            folders[:] = []
    return names


class Holdings:
    def __init__(self, pid):
        all_links = list(links(pid))
        self.descriptors = sorted(re.sub(r"\d+", "N", link) for link in all_links if not group_name(link))
        self.open_groups = {group_name(link) for link in all_links} - {None}
        self.threads, self.workers = 0, 0
        for task in os.listdir("/proc/%d/task" % pid):
            name = read("/proc/%d/task/%s/comm" % (pid, task)).strip()
            self.workers += name == "idle worker"
            self.threads += name not in ("idle worker", "")
        self.processes = sorted(read("/proc/%d/comm" % p).strip() for p in below(pid))
        self.groups = groups_of(pid)
        self.kib = int((re.search(r"VmRSS:\s+(\d+)", read("/proc/%d/status" % pid)) or [0, 0])[1])

    def __str__(self):
        return "%d descriptors, %d groups, %d threads, %d idle workers, processes %s, %d KiB" % (
            len(self.descriptors), len(self.groups), self.threads, self.workers, dict(collections.Counter(self.processes)), self.kib)

    def more_than(self, before, templates=1):
        """What there is now and was not then, as text; "": nothing. Control groups are kept for as many sessions as there were at
        once, at most KEPT_GROUPS of a template; the template has one, too."""
        more = []
        if len(self.descriptors) > len(before.descriptors):
            left = list(self.descriptors)
            for d in before.descriptors:
                if d in left:
                    left.remove(d)
            more.append("descriptors %s" % left[:20])
        if self.threads > before.threads:
            more.append("%d threads" % (self.threads - before.threads))
        if self.workers > WORKER_SETS * KEPT_WORKERS:
            more.append("%d workers" % self.workers)
        if len(self.processes) > len(before.processes):
            more.append("processes %s, before %s" % (self.processes, before.processes))
        if len(self.groups) > templates * (KEPT_GROUPS + 2):
            more.append("%d control groups" % len(self.groups))
        if not self.open_groups <= self.groups:
            more.append("control groups that are gone: %s" % (self.open_groups - self.groups))
        return "; ".join(more)


def more_than(pid, before, templates=1, seconds=90):
    """Waits until it has no more than before; returns what it still has."""
    seen = []
    until(lambda: seen.append(Holdings(pid).more_than(before, templates)) or not seen[-1], seconds)
    return seen[-1]
