"""A virtual machine with a Debian kernel and this machine's programs, to test on other kernels: Machine.boot() starts one, runs
tests/vm/inside in it and returns the lines that it printed.

Kernels come as packages, which are downloaded but never installed. The unpacked files and the disk of programs are kept in the
cache. This machine's own disks are never written: changes by the guest are discarded."""

import contextlib
import fcntl
import glob
import hashlib
import lzma
import os
import re
import shutil
import subprocess
import tempfile
import threading

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CACHE = os.path.join(os.environ.get("CORDON_CACHE", os.path.expanduser("~/.cache/cordon")), "vm")
EMULATOR = "qemu-system-x86_64"
# A series and the package that depends on its newest kernel.
KERNELS = {"6.1": "linux-image-cloud-amd64", "6.12": "linux-image-6.12-cloud-amd64"}
# What the disks need, and what the probes ask for; loaded in any order.
MODULES = ["virtio", "virtio_ring", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci", "virtio_blk"]
# The programs on the disk: these packages and what they depend on. Not R: emulated, it takes longer to start than it is given.
PACKAGES = ["base-files", "bash", "coreutils", "dash", "debianutils", "diffutils", "findutils", "gawk", "grep", "iproute2", "libidn2-0", "libssl3", "mount", "nodejs",
            "procps", "python3", "sed", "strace", "util-linux"]
DISK_VERSION = 3


class Unavailable(Exception):
    """Why there can be no such machine here; is_far: for lack of the network, not of a program."""

    def __init__(self, why, is_far=False):
        super().__init__(why)
        self.is_far = is_far


@contextlib.contextmanager
def locked():
    os.makedirs(CACHE, exist_ok=True)
    with open(os.path.join(CACHE, "lock"), "w", encoding="ascii") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        yield


def output(*words):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, cwd=CACHE)
    if done.returncode != 0:
        raise Unavailable(f"{' '.join(words[:3])}: {done.stderr.decode(errors='replace').strip()[-300:]}")
    return done.stdout.decode(errors="replace")


def unpack(package, folder):
    """The kernel and the modules named above, out of a package."""
    with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
        subprocess.run(["apt-get", "-qq", "download", package], cwd=scratch, check=False, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        files = glob.glob(os.path.join(scratch, "*.deb"))
        if not files:
            raise Unavailable(f"{package} cannot be downloaded", is_far=True)
        tree = os.path.join(scratch, "tree")
        output("dpkg-deb", "-x", files[0], tree)
        made = os.path.join(scratch, "made")
        os.makedirs(os.path.join(made, "modules"))
        shutil.copy(glob.glob(os.path.join(tree, "boot/vmlinuz-*"))[0], os.path.join(made, "vmlinuz"))
        for path in glob.glob(os.path.join(tree, "lib/modules/*/kernel/**/*.ko*"), recursive=True):
            name = os.path.basename(path).split(".")[0]
            if name in MODULES:
                with (lzma.open if path.endswith(".xz") else open)(path, "rb") as f:
                    data = f.read()
                with open(os.path.join(made, "modules", name + ".ko"), "wb") as f:
                    f.write(data)
        os.rename(made, folder)


def kernel(series):
    """The folder of a kernel of this series, from the cache or from Debian."""
    have = sorted(glob.glob(os.path.join(CACHE, f"kernel-{series}-*")))
    if have:
        return have[-1]
    listed = subprocess.run(["apt-cache", "depends", KERNELS[series]], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    depends = re.search(r"Depends: (linux-image-\S+)", listed.stdout.decode(errors="replace"))
    if not depends:
        raise Unavailable(f"apt knows no {KERNELS[series]}", is_far=True)
    package = depends[1]
    folder = os.path.join(CACHE, f"kernel-{series}-{package}")
    unpack(package, folder)
    return folder


def cpio_entry(name, mode, data=b""):
    head = b"070701" + b"%08X" * 13 % (0, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0)
    head += name.encode() + b"\0"
    return head + b"\0" * (-len(head) % 4) + data + b"\0" * (-len(data) % 4)


def archive(folder, scratch, series):
    """The initial file system: our first program and the kernel's modules."""
    program = os.path.join(scratch, "init")
    output("musl-gcc", "-static", "-Os", "-o", program, os.path.join(ROOT, "tests/vm/init.c"))
    parts = [cpio_entry("modules", 0o40755), cpio_entry("dev", 0o40755), cpio_entry("root", 0o40755)]
    files = [(program, "init")] + [(p, "modules/" + os.path.basename(p)) for p in sorted(glob.glob(folder + "/modules/*"))]
    for path, name in files:
        with open(path, "rb") as f:
            parts.append(cpio_entry(name, 0o100755, f.read()))
    path = os.path.join(scratch, "initrd-" + series)
    with open(path, "wb") as f:
        f.write(b"".join(parts) + cpio_entry("TRAILER!!!", 0))
    return path


def closure(packages):
    """Those of them that are installed, with all that they depend on, each with its version."""
    table = {}
    for line in output("dpkg-query", "-W", "-f", "${Package}\t${Version}\t${Pre-Depends}, ${Depends}\t${Provides}\n").splitlines():
        name, version, depends, provides = line.split("\t")
        table[name] = (version, depends)
        for word in re.findall(r"[a-z0-9][a-z0-9+.-]+", re.sub(r"\([^)]*\)", "", provides)):
            table.setdefault(word, (version, name))
    found, todo = {}, list(packages)
    while todo:
        name = todo.pop()
        if name in table and name not in found:
            found[name] = table[name][0]
            todo += re.findall(r"[a-z0-9][a-z0-9+.-]+", re.sub(r"\([^)]*\)|:any", "", table[name][1]))
    return found


def copy(path, tree):
    """One path of this machine into a tree, as it is."""
    target = tree + path
    if os.path.lexists(target) or not os.path.lexists(path):
        return
    # /bin and /lib are links into /usr: what a package calls /bin/sh lies there.
    parent = os.path.realpath(os.path.dirname(path))
    if parent != os.path.dirname(path):
        copy(os.path.join(parent, os.path.basename(path)), tree)
        return
    if os.path.isdir(path) and not os.path.islink(path):
        os.makedirs(target, exist_ok=True)
        return
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with contextlib.suppress(PermissionError):
        shutil.copy2(path, target, follow_symlinks=False)


def make_disk(tree, image, spare):
    size = sum(os.lstat(os.path.join(folder, name)).st_size + 4096 for folder, dirs, names in os.walk(tree) for name in dirs + names)
    with open(image, "wb") as f:
        f.truncate(size * 5 // 4 + (spare << 20))
    output("mke2fs", "-q", "-F", "-t", "ext4", "-O", "^has_journal", "-E", "lazy_itable_init=1,root_owner=0:0", "-d", tree, image)


def programs():
    """The disk of programs; made again when a package has another version."""
    packages = closure(PACKAGES)
    key = hashlib.sha256(repr((DISK_VERSION, sorted(packages.items()))).encode()).hexdigest()[:16]
    image = os.path.join(CACHE, f"programs-{key}.ext4")
    if os.path.exists(image):
        return image
    for old in glob.glob(os.path.join(CACHE, "programs-*")):
        os.unlink(old)
    with tempfile.TemporaryDirectory(dir=CACHE) as tree:
        names = output("dpkg-query", "-W", "-f", "${binary:Package}\t${Package}\n").splitlines()
        chosen = [line.split("\t")[0] for line in names if line.split("\t")[1] in packages]
        for path in output("dpkg-query", "-L", *chosen).splitlines():
            if path.startswith("/") and not path.startswith(("/usr/share/doc", "/usr/share/locale", "/usr/share/man")):
                copy(path, tree)
        for path in ["/bin", "/lib", "/lib64", "/sbin", "/lib32", "/libx32"]:
            if os.path.islink(path):
                copy(path, tree)
        for path in glob.glob("/etc/alternatives/*") + ["/etc/ld.so.cache", "/etc/passwd", "/etc/group", "/etc/nsswitch.conf",
                                                       "/etc/localtime", "/etc/mime.types"]:
            copy(path, tree)
        for alternative in glob.glob("/usr/bin/*") + glob.glob("/usr/lib/x86_64-linux-gnu/*"):
            if os.path.islink(alternative) and os.readlink(alternative).startswith("/etc/alternatives/"):
                copy(alternative, tree)
        for place in ["proc", "sys", "dev", "tmp", "run", "vm", "root", "home", "mnt", "var/tmp", "var/lib", "etc"]:
            os.makedirs(os.path.join(tree, place), exist_ok=True)
        make_disk(tree, image + ".new", 200)
    os.rename(image + ".new", image)
    return image


def build_disk(build, scratch):
    """The disk of what was built, and the tests."""
    tree = os.path.join(scratch, "tree")
    os.makedirs(tree + "/build")
    shutil.copytree(os.path.join(ROOT, "tests"), tree + "/src/tests", symlinks=True,
                    ignore=shutil.ignore_patterns("corpus", "__pycache__", "pod"))
    os.makedirs(tree + "/src/src/wall/linux/probe")
    for name in "attacks.py", "attacks_build.py":
        shutil.copy(os.path.join(ROOT, "src/wall/linux/probe", name), tree + "/src/src/wall/linux/probe/")
    for program in ("cordon", "src/net/cordon-gateway"):
        shutil.copy(os.path.join(build, program), tree + "/build/")
    for path in glob.glob(os.path.join(build, "tests/behaviour/*")) + glob.glob(os.path.join(build, "tests/unit/wall/*")):
        if os.path.isfile(path) and os.access(path, os.X_OK):
            target = os.path.join(tree, "build", os.path.relpath(path, build))
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy(path, target)
    image = os.path.join(scratch, "build.ext4")
    make_disk(tree, image, 50)
    return image


def check_tools():
    for tool, package in ((EMULATOR, "qemu-system-x86"), ("mke2fs", "e2fsprogs"), ("musl-gcc", "musl-tools"),
                          ("apt-get", "apt"), ("dpkg-deb", "dpkg")):
        if not shutil.which(tool):
            raise Unavailable(f"there is no {tool} (package {package})")


def accelerator():
    """KVM where the processor has what it needs, not just the device; elsewhere the machine is emulated."""
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        has_it = re.search(r"^flags.*\b(vmx|svm)\b", f.read(), re.M)
    return "kvm" if has_it and os.access("/dev/kvm", os.R_OK | os.W_OK) else "tcg,thread=multi"


class Machine:
    """What boots share: the disks and the kernels. Use it in a with statement."""

    def __init__(self, build, wanted):
        check_tools()
        self.scratch = tempfile.mkdtemp(prefix="cordon-vm-")
        try:
            with locked():
                self.kernels = {series: kernel(series) for series in wanted}
                self.archives = {series: archive(folder, self.scratch, series) for series, folder in self.kernels.items()}
                self.disks = [programs(), build_disk(build, self.scratch)]
        except BaseException:
            shutil.rmtree(self.scratch, ignore_errors=True)
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.scratch, ignore_errors=True)

    def command(self, name, series, words):
        # The timer of ACPI has a known frequency. That of the TSC is measured at boot, and on a busy machine so wrongly that the
        # clock ran six times too fast, and time limits with it.
        line = ["console=ttyS0", "quiet", "panic=-1", "mitigations=off", "nokaslr", "no_timer_check", "clocksource=acpi_pm", *words]
        disks = []
        for i, image in enumerate(self.disks):
            disks += ["-drive", f"file={image},format=raw,if=none,id=d{i},snapshot=on,cache=unsafe", "-device", f"virtio-blk-pci,drive=d{i}"]
        return [EMULATOR, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-machine", "pc", "-accel", accelerator(),
                "-cpu", "max", "-smp", "2", "-m", "2048", "-kernel", self.kernels[series] + "/vmlinuz", "-initrd", self.archives[series],
                "-append", " ".join(line), *disks, "-serial", f"file:{self.scratch}/{name}.log", "-serial", "stdio"]

    def boot(self, name, series, words, seconds):
        """Yields the lines of tests/vm/inside as they come; at the end of its time the machine is turned off."""
        with open(f"{self.scratch}/{name}.err", "wb") as errors:
            child = subprocess.Popen(self.command(name, series, words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors,
                                     env=dict(os.environ, TMPDIR=self.scratch))
        timer = threading.Timer(seconds, child.kill)
        timer.start()
        try:
            for line in child.stdout:
                yield line.decode(errors="replace").rstrip("\r\n")
        finally:
            child.kill()
            child.wait()
            timer.cancel()

    def log(self, name):
        """The last words of the kernel and of the emulator."""
        found = []
        for ending in ("log", "err"):
            with contextlib.suppress(OSError), open(f"{self.scratch}/{name}.{ending}", encoding="utf-8", errors="replace") as f:
                found += f.read().splitlines()[-20:]
        return found
