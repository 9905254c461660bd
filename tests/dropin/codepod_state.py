"""codepod's state: snapshots, forks, exports, offloading, exported variables, and the history of commands."""
from codepod_shell import out
from expectations import differs, fails, same

import cordon
from cordon import RpcError, Sandbox


class TestState:
    def test_snapshots(self):
        with Sandbox() as sb:
            sb.files.write("/tmp/f", "v1")
            sb.set_env("E", "original")
            first = sb.snapshot()
            sb.files.write("/tmp/f", "v2")
            sb.files.write("/tmp/new", "")
            sb.set_env("E", "changed")
            for _ in range(2):  # it can be used again
                sb.restore(first)
                same(out(sb, "cat /tmp/f; printenv E; ls /tmp"), "v1original\nf\n")
            same((first, sb.snapshot()), ("1", "2"))

    def test_unknown_snapshot(self):
        with Sandbox() as sb:
            fails(cordon.CordonError, "no such snapshot: 99", sb.restore, "99")

    def test_fork_is_independent(self):
        with Sandbox() as sb:
            sb.files.write("/tmp/f", "both")
            sb.set_env("E", "1")
            child = sb.fork()
            same(out(child, "cat /tmp/f; printenv E"), "both1\n")
            child.files.write("/tmp/f", "child")
            child.set_env("E", "2")
            same(out(sb, "cat /tmp/f; printenv E"), "both1\n")
            sb.files.write("/tmp/g", "parent")
            assert child.commands.run("cat /tmp/g").exit_code != 0
            child.destroy()
            fails(cordon.SandboxError, "destroyed", child.commands.run, "true")
            same(out(sb, "echo on"), "on\n")

    def test_corrupt_states(self):
        with Sandbox() as sb:
            blob = sb.export_state()
            bad = bytearray(blob)
            bad[len(bad) // 2] ^= 1
            for wrong in (b"", b"x", blob[:20], bytes(bad), b"NOPE" + blob[4:]):
                fails(RpcError, "", sb.import_state, wrong)
            same(out(sb, "echo on"), "on\n")

    def test_storage(self):
        kept = {}
        with Sandbox(storage={"save": kept.__setitem__, "load": kept.__getitem__}) as sb:
            out(sb, "echo hello > /tmp/work.txt; export E=1")
            sb.offload()
            sb.offload()
            same(len(kept), 1)
            fails(cordon.SandboxError, "Sandbox is offloaded — call rehydrate() first", sb.commands.run, "true")
            fails(cordon.SandboxError, "offloaded", sb.files.read, "/tmp/work.txt")
            sb.rehydrate()
            sb.rehydrate()
            same(out(sb, "cat /tmp/work.txt; printenv E"), "hello\n1\n")

    def test_a_save_that_fails(self):
        def broken(*_):
            raise OSError("disk full")
        with Sandbox(storage={"save": broken, "load": broken}) as sb:
            sb.files.write("/tmp/f", "kept")
            fails(OSError, "disk full", sb.offload)
            same(sb.files.read("/tmp/f"), b"kept")

    @differs("`offload()` without `storage` fails")
    def test_offload_without_storage(self):
        with Sandbox() as sb:
            sb.files.write("/tmp/f", "kept")
            sb.offload()
            sb.rehydrate()
            same(sb.files.read("/tmp/f"), b"kept")

    @differs("states begin with `WSND`")
    def test_format_of_states(self):
        with Sandbox() as sb:
            out(sb, "ln -s target /tmp/link; echo x > /tmp/f; chmod 640 /tmp/f")
            blob = sb.export_state()
        assert blob.startswith(b"CORDONWS"), blob[:8]
        with Sandbox() as other:
            other.import_state(blob)
            same(out(other, "readlink /tmp/link; stat -c %a /tmp/f"), "target\n640\n")

    def test_environment_names_are_checked(self):
        with Sandbox() as sb:
            fails(RpcError, "Invalid environment variable name", sb.set_env, "1x", "")


class TestExportedVariables:
    """What commands export is state, as files are."""
    EXPORT = "export A='one two' B=x; export PATH=$PATH:/home/user/bin; NOT=exported"
    SHOW = "echo \"$A|$B|${PATH##*:}|$NOT\""
    SEEN = "one two|x|/home/user/bin|\n"

    def test_fork(self):
        with Sandbox() as sb:
            out(sb, self.EXPORT)
            child = sb.fork()
            same(out(child, self.SHOW), self.SEEN)
            out(child, "export A=child; unset B")
            same(out(sb, "echo $A $B"), "one two x\n")
            child.destroy()

    def test_export_and_import(self):
        with Sandbox() as sb:
            out(sb, self.EXPORT)
            blob = sb.export_state()
        with Sandbox() as other:
            other.import_state(blob)
            same(out(other, self.SHOW), self.SEEN)

    def test_offload_and_rehydrate(self):
        with Sandbox() as sb:
            out(sb, self.EXPORT)
            sb.offload()
            sb.rehydrate()
            same(out(sb, self.SHOW), self.SEEN)

    def test_mount(self):
        with Sandbox() as sb:
            out(sb, self.EXPORT)
            sb.mount("/mnt/x", {"f": "1"})
            same(out(sb, self.SHOW + "; cat /mnt/x/f"), self.SEEN + "1")

    def test_restore(self):
        with Sandbox() as sb:
            out(sb, "export A=before")
            first = sb.snapshot()
            out(sb, "export A=after B=new; export PATH=/nowhere")
            sb.restore(first)
            same(out(sb, "echo $A ${B-unset}; ls / > /dev/null && echo found"), "before unset\nfound\n")
            out(sb, "export A=again")
            same(out(sb, "echo $A"), "again\n")

    def test_unset(self):
        with Sandbox(env={"GIVEN": "1"}) as sb:
            out(sb, "unset GIVEN")
            child = sb.fork()
            same(out(child, "echo ${GIVEN-unset}"), "unset\n")
            child.destroy()

    def test_what_the_host_set_can_be_changed(self):
        with Sandbox() as sb:
            sb.set_env("E", "host")
            out(sb, "export E=code")
            same(out(sb, "echo $E"), "code\n")
            sb.set_env("E", "host again")
            same(out(sb, "echo $E"), "host again\n")

    def test_large_ones(self):
        with Sandbox() as sb:
            out(sb, "export BIG=$(head -c 9000 /dev/zero | tr '\\0' x); echo once >> /tmp/log")
            child = sb.fork()
            same(out(child, "echo ${#BIG}; cat /tmp/log"), "9000\nonce\n")
            child.destroy()


class TestHistory:
    def test_list(self):
        with Sandbox() as sb:
            sb.commands.run("echo hello")
            sb.commands.run("echo world")
            lines = out(sb, "history list").splitlines()
        same([line.split(None, 1)[1] for line in lines][:2], ["echo hello", "echo world"])
        same([line.split()[0] for line in lines][:2], ["1", "2"])

    def test_clear(self):
        with Sandbox() as sb:
            sb.commands.run("echo hello")
            out(sb, "history clear")
            assert "hello" not in out(sb, "history list")
