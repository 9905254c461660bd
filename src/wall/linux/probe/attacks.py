"""Attacks in Python, as code that a model might write would carry them out.

Outside: python3 attacks.py NAME KEY=VALUE... (control=1); in the sandbox this text is followed by a call of try_attack().
An attack returns when it worked and raises when it was refused."""
import _thread
import ctypes
import errno
import mmap
import os
import signal
import sys
import threading
import time


class NotHere(Exception):
    """Not applicable on this machine."""


class Refused(Exception):
    pass


def must(condition, why="nothing came of it"):
    if not condition:
        raise Refused(why)


def libc_call(name, *args):
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*args) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def child(function, *args):
    """Runs it in a child, so that a refusal by signal is seen."""
    pid = os.fork()
    if pid == 0:
        try:
            function(*args)
            os._exit(0)
        except OSError as error:
            os._exit(min(error.errno or 1, 126))
        except BaseException:
            os._exit(126)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status < 0:
        raise Refused("killed by " + signal.Signals(-status).name)
    if status:
        raise OSError(status, os.strerror(status))


def attack_py_subprocess(bait):
    """start a program with subprocess"""
    import subprocess
    must(subprocess.run(["/usr/bin/env", "sh", "-c", "exit 42"]).returncode == 42)


def attack_py_system(bait):
    """start a shell with os.system"""
    must(os.waitstatus_to_exitcode(os.system("exit 42")) == 42)


def attack_py_unshare(bait):
    """new user namespace by ctypes"""
    child(libc_call, "unshare", 0x10000000)


def attack_py_ptrace(bait):
    """trace the parent by ctypes"""
    child(libc_call, "ptrace", 0x4206, os.getppid(), 0, 0)


def attack_py_setuid(bait):
    """become root with os.setuid"""
    if bait.get("control") and os.getuid() != 0:
        raise NotHere()
    child(os.setuid, 0)


def attack_py_chroot(bait):
    """os.chroot"""
    if bait.get("control") and os.getuid() != 0:
        raise NotHere()
    child(os.chroot, "/tmp")


def attack_py_machine_code(bait):
    """machine code of its own that makes a 32-bit system call"""
    if os.uname().machine != "x86_64":
        raise NotHere()

    def run():
        code = b"\xb8\x14\x00\x00\x00\xcd\x80\xc3"  # mov eax, 20 (getpid); int 0x80; ret
        page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        page.write(code)
        address = ctypes.addressof(ctypes.c_char.from_buffer(page))
        must(ctypes.CFUNCTYPE(ctypes.c_int)(address)() > 0)
    try:
        child(run)
    except Refused as refusal:
        if bait.get("control") and "SIGSEGV" in str(refusal):
            raise NotHere() from None
        raise


def attack_py_connect(bait):
    """connect to a TCP service of the host"""
    import socket
    socket.create_connection(("127.0.0.1", int(bait["tcp"])), 2).close()


def attack_py_http(bait):
    """fetch a page from the host"""
    import http.client
    connection = http.client.HTTPConnection("127.0.0.1", int(bait["tcp"]), timeout=1)
    connection.connect()


def attack_py_unix(bait):
    """connect to an abstract socket of the host"""
    import socket
    with socket.socket(socket.AF_UNIX) as s:
        s.connect("\0" + bait["abstract"])


def attack_py_unix_file(bait):
    """connect to a socket file of the host"""
    import socket
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(bait["path"])


def attack_py_host_file(bait):
    """open a file of the host"""
    with open(bait["file"], encoding="utf-8") as f:
        must(bait["secret"] in f.read())


def attack_py_walk(bait):
    """find a file of the host by walking from the root"""
    name = os.path.dirname(bait["file"])
    must(any(name in (os.path.join(top, d) for d in dirs) or top == name
             for start in ("/tmp", os.path.dirname(name), "/home", "/root", "/mnt", "/proc/1/root/tmp")
             for top, dirs, _ in ((t, d, f) for i, (t, d, f) in zip(range(200), os.walk(start)))))


def attack_py_link_race(bait):
    """open a name while a thread turns it from an own file into a link to the host's"""
    here = os.environ.get("TMPDIR", "/tmp")
    name, own, stop = f"{here}/cordon-race.{os.getpid()}", f"{here}/cordon-own.{os.getpid()}", []
    with open(own, "w", encoding="utf-8") as f:
        f.write("own")

    def flip():
        for turn in range(6000):
            if stop:
                break
            os.symlink(own if turn % 2 else bait["file"], name + ".new")
            os.replace(name + ".new", name)
    thread = threading.Thread(target=flip)
    thread.start()
    seen = False
    try:
        # As long as it turns, not a number of times: on a busy machine the thread may come late.
        while thread.is_alive() and not seen:
            try:
                with open(name, encoding="utf-8") as f:
                    seen = bait["secret"] in f.read()
            except FileNotFoundError:
                pass
    finally:
        stop.append(1)
        thread.join()
        for path in (name, own):
            os.unlink(path)
    must(seen, "only the own file was ever there")


def attack_py_environment(bait):
    """find a secret in the environment"""
    with open("/proc/self/environ", encoding="utf-8", errors="replace") as f:
        must(bait["secret"] in f.read() + str(dict(os.environ)))


def attack_py_descriptors(bait):
    """read through a descriptor of the host"""
    for fd in range(4, 1024):
        try:
            target = os.readlink(f"/proc/self/fd/{fd}")
        except OSError:
            continue
        if target == bait["file"]:
            return
    raise Refused("no descriptor of the host")


def attack_py_kill(bait):
    """signal a process of the host"""
    os.kill(int(bait["pid"]), 0)


def attack_py_processes(bait):
    """list the processes of the host"""
    must(any(int(p) == int(bait["pid"]) and p != str(os.getpid()) for p in os.listdir("/proc") if p.isdigit()))


def attack_py_write_library(bait):
    """change the library that everybody imports"""
    if bait.get("control") and os.getuid() != 0:
        raise NotHere()
    with open(os.__file__, "ab"):
        pass


def attack_py_terminal(bait):
    """open a new terminal"""
    for fd in os.openpty():
        os.close(fd)


def attack_py_memfd(bait):
    """run a program from memory"""
    def run():
        fd = os.memfd_create("x", 0)
        with open(os.path.realpath(sys.executable), "rb") as f:
            os.write(fd, f.read())
        ro = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY)
        os.close(fd)
        os.execve(ro, ["python3", "-c", ""], {})
    child(run)


def attack_py_planted(bait):
    """run a program from the workspace"""
    path = os.environ.get("TMPDIR", "/tmp") + f"/cordon-planted.{os.getpid()}"

    def run():
        os.execve(path, ["python3", "-I", "-S", "-c", ""], {})
    try:
        fd = os.open(path, os.O_CREAT | os.O_WRONLY, 0o755)
        with open(os.path.realpath(sys.executable), "rb") as source, open(fd, "wb") as to:
            to.write(source.read())
        child(run)
    finally:
        os.unlink(path)


def attack_py_forks(bait):
    """more processes than allowed"""
    pids = []
    try:
        for _ in range(int(bait["processes"]) + 20):
            pid = os.fork()
            if pid == 0:
                signal.pause()
            pids.append(pid)
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def attack_py_threads(bait):
    """more threads than allowed"""
    event = threading.Event()
    try:
        for _ in range(int(bait["processes"]) + 20):
            _thread.start_new_thread(event.wait, ())  # Thread.start() waits for ever for one without memory
    except RuntimeError as error:
        raise Refused(str(error)) from None
    finally:
        event.set()


def attack_py_memory(bait):
    """more memory than allowed"""
    def run():
        try:
            block = bytearray(int(bait["memory_bytes"]) * 2)
            for i in range(0, len(block), 4096):
                block[i] = 1
        except MemoryError:
            raise OSError(errno.ENOMEM, "") from None
    child(run)


def attack_py_survive(bait):
    """outlive the sandbox as a daemon"""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for s in range(1, 65):
                try:
                    signal.signal(s, signal.SIG_IGN)
                except (OSError, ValueError):
                    pass
            # The marker must be in the command line, where the host looks.
            os.execve(sys.executable, ["python3", "-I", "-S", "-c", "import time; time.sleep(20)", bait["marker"]], {})
        os._exit(0)
    time.sleep(0.3)


def burn(seconds, more):
    """Uses that much, in as many processes as the hard limit asks for, each the parent of the next."""
    import resource
    most = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (most, most))
    each = max(most - 0.5, 0.3) if most > 0 else seconds + more
    left = seconds + more
    while left > 0:
        began = time.process_time()
        while time.process_time() - began < min(each, left):
            pass
        left -= min(each, left)
        if left > 0 and os.fork():
            os._exit(0)


def attack_py_idle_cpu(bait):
    """burn CPU time between executions, with the soft limit lifted"""
    limit = int(bait["cpu_seconds"])
    if bait.get("control"):
        child(burn, limit, 0.3)
        return
    if os.fork() == 0:
        burn(limit, 8)  # it is looked at once a second
        with open(os.environ.get("TMPDIR", "/tmp") + "/cordon-attack-done", "w", encoding="utf-8"):
            pass
        os._exit(0)


kept = []  # what an attack holds while its sibling tries


def attack_py_sibling_name(bait):
    """listen on an abstract name, which another session of the same template would reach"""
    import socket
    s = socket.socket(socket.AF_UNIX)
    kept.append(s)
    s.bind("\0cordon-sibling-" + bait["secret"])
    s.listen(8)


def sibling_py_sibling_name(bait):
    import socket
    with socket.socket(socket.AF_UNIX) as s:
        s.connect("\0cordon-sibling-" + bait["secret"])


def harmed(function, *args):
    """The sibling's part: the attack worked if it cannot have a little of the same."""
    try:
        function(*args)
    except OSError:
        return
    raise Refused("not in its way")


def queue_signal():
    signal.pthread_sigmask(signal.SIG_BLOCK, [40])
    libc_call("sigqueue", os.getpid(), 40, None)


def pass_descriptors(count):
    import array
    import socket
    kept.append(socket.socketpair())
    kept[-1][0].setblocking(False)
    kept[-1][0].sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0] * count))])


def take_all(function, *args):
    """Until it is refused."""
    for _ in range(100000):
        try:
            function(*args)
        except OSError:
            return


PORT = 8000
SERVERS = []


def attack_py_sibling_port(bait):
    """listen on a port"""
    import socket
    global PORT
    try:
        SERVERS.append(socket.create_server(("127.0.0.1", PORT)))
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        SERVERS.append(socket.create_server(("127.0.0.1", 0)))
        PORT = SERVERS[-1].getsockname()[1]


def sibling_py_sibling_port(bait):
    import socket
    socket.create_connection(("127.0.0.1", PORT), 2).close()


def attack_py_sibling_descriptors(bait):
    """have all the descriptors on their way that the user may have"""
    take_all(pass_descriptors, 100)
    take_all(pass_descriptors, 1)


def sibling_py_sibling_descriptors(bait):
    # In a sandbox that is here at all it got its own: they come with its start.
    must(bait.get("control"), "not in its way")
    harmed(pass_descriptors, 3)


def attack_py_sibling_watches(bait):
    """take all inotify instances of the user"""
    take_all(libc_call, "inotify_init")


def sibling_py_sibling_watches(bait):
    harmed(libc_call, "inotify_init")


def attack_py_sibling_signals(bait):
    """queue as many signals as the user may have"""
    take_all(queue_signal)


def sibling_py_sibling_signals(bait):
    harmed(queue_signal)


MARK = b"cordon-changed-by-a-sibling"


def shared_memory():
    """The ranges that come from the template's file, and the names by which /proc shows that file."""
    ranges, names = [], []
    with open("/proc/self/maps", encoding="utf-8") as f:
        for line in f:
            if "cordon-image" in line:
                place = line.split()[0]
                ranges.append([int(x, 16) for x in place.split("-")])
                names.append("/proc/self/map_files/" + place)
    for n in os.listdir("/proc/self/fd"):
        try:
            if "cordon-image" in os.readlink("/proc/self/fd/" + n):
                names.append("/proc/self/fd/" + n)
        except OSError:
            pass
    return ranges, names


def overwrite(name):
    fd = os.open(name, os.O_RDWR)
    os.pwrite(fd, MARK, os.fstat(fd).st_size - len(MARK))
    os.close(fd)


def attack_py_sibling_memory(bait):
    """write to the file behind memory that every session of the template maps"""
    if bait.get("control"):
        fd = os.memfd_create("cordon-image")
        os.ftruncate(fd, mmap.PAGESIZE)
        kept.append(mmap.mmap(fd, mmap.PAGESIZE, mmap.MAP_PRIVATE))
    ranges, names = shared_memory()
    if not ranges:
        raise NotHere()
    why = None
    for tried, *args in [(overwrite, name) for name in names] + [
            (libc_call, "madvise", ctypes.c_void_p(r[0]), ctypes.c_size_t(r[1] - r[0]), 9) for r in ranges]:  # MADV_REMOVE
        try:
            return tried(*args)
        except OSError as error:
            why = error
    raise why


def sibling_py_sibling_memory(bait):
    must(any(ctypes.string_at(end - len(MARK), len(MARK)) == MARK for _, end in shared_memory()[0]), "nothing changed")


def try_outside(name, words):
    """With a sibling of its own, where there is one; as a user who may not have everything, where root may."""
    if "sibling_" + name not in globals():
        return try_attack("attack_" + name, words)
    if os.getuid() == 0:
        with open("/proc/self/uid_map", encoding="ascii") as f:
            has_many = any(int(line.split()[2]) > 1 << 31 for line in f)
        # A number that nobody has; in a container there may be few.
        other = 2000000000 + os.getpid() if has_many else 61000 + os.getpid() % 4000
        os.setgid(other)
        os.setuid(other)
    said = try_attack("attack_" + name, words)
    ours, theirs = os.pipe()
    if said == "worked" and os.fork() == 0:
        os.write(theirs, try_attack("sibling_" + name, words).encode())
        os._exit(0)
    os.close(theirs)
    return os.read(ours, 80).decode() if said == "worked" else said


def try_attack(name, words):
    """name: of the function."""
    bait = dict(word.split("=", 1) for word in words)
    try:
        globals()[name](bait)
    except NotHere:
        return "not here"
    except OSError as error:
        return "refused " + errno.errorcode.get(error.errno, str(error))
    except (Refused, ImportError, MemoryError) as error:
        return "refused " + str(error)[:50]
    return "worked"


if __name__ == "__main__" and len(sys.argv) > 1:
    print(try_outside(sys.argv[1], sys.argv[2:]))
