"""codepod's files, mounts and file systems of one's own."""
from codepod_shell import out
from expectations import differs, fails, same

import cordon
from cordon import DirEntry, FileInfo, FileStat, MemoryFS, RpcError, Sandbox, VirtualFileSystem


class TestFiles:
    def test_bytes(self):
        with Sandbox() as sb:
            sb.files.write("/tmp/t", b"\x00\x01\xff")
            same(sb.files.read("/tmp/t"), b"\x00\x01\xff")

    def test_text(self):
        with Sandbox() as sb:
            sb.files.write("/tmp/t", "hällo")
            same(sb.files.read("/tmp/t"), "hällo".encode())

    def test_list_gives_file_infos(self):
        with Sandbox() as sb:
            sb.files.write("/tmp/a", b"aaa")
            sb.files.mkdir("/tmp/d")
            entries = sb.files.list("/tmp")
        assert all(isinstance(e, FileInfo) for e in entries)
        same({(e.name, e.type) for e in entries}, {("a", "file"), ("d", "dir")})

    def test_stat_of_a_directory(self):
        with Sandbox() as sb:
            sb.files.mkdir("/tmp/d")
            same(sb.files.stat("/tmp/d").type, "dir")

    def test_stat_of_a_file(self):
        with Sandbox() as sb:
            sb.files.write("/tmp/sized.txt", b"12345")
            info = sb.files.stat("/tmp/sized.txt")
        assert isinstance(info, FileInfo)
        same((info.name, info.type, info.size), ("sized.txt", "file", 5))

    def test_rm(self):
        with Sandbox() as sb:
            sb.files.write("/tmp/x", b"")
            sb.files.rm("/tmp/x")
            assert "ENOENT" in str(fails(RpcError, "", sb.files.read, "/tmp/x"))

    def test_errors_have_code_1(self):
        with Sandbox() as sb:
            sb.files.write("/tmp/f", "")
            for call, path, text in ((sb.files.read, "/tmp/none", "ENOENT"), (sb.files.stat, "/tmp/none", "ENOENT"),
                                     (sb.files.list, "/tmp/none", "ENOENT"), (sb.files.rm, "/tmp/none", "ENOENT"),
                                     (sb.files.read, "/tmp", "EISDIR"), (sb.files.list, "/tmp/f", "ENOTDIR"),
                                     (sb.files.mkdir, "/tmp/f", "EEXIST"), (sb.files.mkdir, "/tmp/no/d", "ENOENT")):
                e = fails(RpcError, text, call, path)
                same((e.code, e.message.startswith(text + ": ")), (1, True))

    def test_enospc(self):
        with Sandbox(fs_limit_bytes=1 << 20) as sb:
            e = fails(RpcError, "ENOSPC", sb.files.write, "/tmp/big", bytes(4 << 20))
            same(e.code, 1)

    @differs("what is not writable says `EACCES`")
    def test_read_only_places(self):
        with Sandbox() as sb:
            same(fails(RpcError, "EROFS", sb.files.write, "/etc/x", b"").code, 1)
            for command in ("echo x > /etc/x", "mkdir /newtop", "rm /usr/bin/ls", "echo x > /tmp/../../../etc/passwd"):
                assert sb.commands.run(command).exit_code != 0, command

    @differs("the size of a directory is the number of its entries")
    def test_size_of_a_directory(self):
        with Sandbox() as sb:
            sb.files.mkdir("/tmp/d")
            assert isinstance(sb.files.stat("/tmp/d").size, int)
            same(len(sb.files.list("/tmp/d")), 0)


class TestMount:
    def test_at_creation(self):
        with Sandbox(mounts=[("/mnt/tools", {"hello.sh": b"echo hi", "data.txt": b"some data"})]) as sb:
            same(out(sb, "cat /mnt/tools/data.txt; sh /mnt/tools/hello.sh"), "some datahi\n")

    def test_memory_fs(self):
        with Sandbox(mounts=[("/mnt/pkg", MemoryFS({"lib/__init__.py": b"", "lib/u.py": b"def greet(): pass"}))]) as sb:
            assert "def greet" in out(sb, "cat /mnt/pkg/lib/u.py")

    def test_later(self):
        with Sandbox() as sb:
            sb.mount("/mnt/up", {"f": b"content"})
            same(out(sb, "cat /mnt/up/f"), "content")

    def test_later_memory_fs(self):
        with Sandbox() as sb:
            sb.mount("/mnt/docs", MemoryFS({"readme.md": "# Hello"}))
            same(out(sb, "cat /mnt/docs/readme.md"), "# Hello")

    def test_is_listed(self):
        with Sandbox(mounts=[("/mnt/tools", {"a": b"", "sub/b": b""})]) as sb:
            same(out(sb, "ls /mnt/tools; ls /mnt/tools/sub; ls /mnt"), "a\nsub\nb\ntools\n")

    def test_text_is_encoded(self):
        with Sandbox() as sb:
            sb.mount("/mnt/t", {"x": "ä"})
            same(out(sb, "cat /mnt/t/x"), "ä")

    def test_is_not_exported(self):
        with Sandbox(mounts=[("/mnt/tools", {"t": b"x"})]) as sb:
            sb.files.write("/tmp/normal", b"normal")
            blob = sb.export_state()
        with Sandbox() as other:
            other.import_state(blob)
            same(other.files.read("/tmp/normal"), b"normal")
            assert other.commands.run("cat /mnt/tools/t").exit_code != 0

    def test_is_read_only(self):
        with Sandbox(mounts=[("/mnt/t", {"x": b"1"})]) as sb:
            assert sb.commands.run("echo 2 > /mnt/t/x").exit_code != 0
            assert sb.commands.run("echo 2 > /mnt/t/new").exit_code != 0
            same(out(sb, "cat /mnt/t/x"), "1")

    def test_writable(self):
        with Sandbox(mounts=[("/workspace/w", MemoryFS({"a": b"1"}, writable=True))]) as sb:
            same(out(sb, "echo 2 > /workspace/w/a; mkdir /workspace/w/d; echo 3 > /workspace/w/d/b; cat /workspace/w/a /workspace/w/d/b"), "2\n3\n")

    def test_of_ones_own(self):
        """The five methods, of a class that somebody writes."""
        class Squares(VirtualFileSystem):
            def read_file(self, path):
                if not self.exists(path) or path in ("", "deep"):
                    raise FileNotFoundError(path)
                return str(int(path.rsplit("/", 1)[-1]) ** 2).encode()

            def write_file(self, path, data):
                raise PermissionError("read-only")

            def exists(self, path):
                return path in ("", "2", "3", "deep", "deep/4")

            def stat(self, path):
                return FileStat(type="dir" if path in ("", "deep") else "file", size=0)

            def readdir(self, path):
                entries = {"": [("2", "file"), ("3", "file"), ("deep", "dir")], "deep": [("4", "file")]}
                return [DirEntry(name=n, type=t) for n, t in entries[path]]
        with Sandbox(mounts=[("/mnt/sq", Squares())]) as sb:
            same(out(sb, "cat /mnt/sq/3 /mnt/sq/deep/4; ls /mnt/sq"), "9162\n3\ndeep\n")
            sb.mount("/mnt/again", Squares())
            same(out(sb, "cat /mnt/again/2 /mnt/sq/2"), "44")

    def test_names_stay_inside(self):
        class Bad(MemoryFS):
            def _to_flat_files(self):
                return {"../../etc/x": b""}
        fails(cordon.SandboxError, "leaves its mount", lambda: Sandbox(mounts=[("/mnt/x", Bad({}))]))

    @differs("a read-only mount is one wherever it is")
    def test_beneath_the_home(self):
        with Sandbox(mounts=[("/home/user/m", {"f": b"1"})]) as sb:
            same(out(sb, "cat m/f"), "1")
            same(fails(RpcError, "EROFS", sb.files.write, "/home/user/m/f", b"2").code, 1)


class TestPythonPath:
    @differs("`PYTHONPATH` ends with `/usr/lib/python`")
    def test_option(self):
        with Sandbox(python_path=["/mnt/libs", "/mnt/extra"]) as sb:
            same(out(sb, "printenv PYTHONPATH"), "/mnt/libs:/mnt/extra:/opt/extensions\n")

    def test_with_a_mount(self):
        with Sandbox(mounts=[("/mnt/libs", {"mymod.py": b"GREETING = 'hello from mymod'"})], python_path=["/mnt/libs"]) as sb:
            same(out(sb, "python3 -c 'import mymod; print(mymod.GREETING)'"), "hello from mymod\n")


class TestMemoryFS:
    def test_read_file(self):
        same(MemoryFS({"hello.txt": b"hello world"}).read_file("hello.txt"), b"hello world")

    def test_text_is_encoded(self):
        same(MemoryFS({"m": "utf8 ä"}).read_file("m"), "utf8 ä".encode())

    def test_read_missing(self):
        fails(FileNotFoundError, "nope", MemoryFS({}).read_file, "nope")

    def test_read_directory(self):
        fails(IsADirectoryError, "d", MemoryFS({"d/f": b""}).read_file, "d")

    def test_exists(self):
        fs = MemoryFS({"dir/file": b"x"})
        same([fs.exists(p) for p in ("", "dir", "dir/file", "nope", "di")], [True, True, True, False, False])

    def test_stat_file(self):
        s = MemoryFS({"data": b"12345"}).stat("data")
        assert isinstance(s, FileStat)
        same((s.type, s.size), ("file", 5))

    def test_stat_directory(self):
        s = MemoryFS({"d/a": b"", "d/b": b""}).stat("d")
        same((s.type, s.size), ("dir", 2))

    def test_stat_root(self):
        s = MemoryFS({"a": b""}).stat("")
        same((s.type, s.size), ("dir", 1))

    def test_stat_missing(self):
        fails(FileNotFoundError, "nope", MemoryFS({}).stat, "nope")

    def test_readdir_root(self):
        entries = MemoryFS({"a": b"", "b": b"", "sub/c": b""}).readdir("")
        assert all(isinstance(e, DirEntry) for e in entries)
        same({e.name: e.type for e in entries}, {"a": "file", "b": "file", "sub": "dir"})

    def test_readdir_below(self):
        same(sorted(e.name for e in MemoryFS({"lib/__init__.py": b"", "lib/u.py": b""}).readdir("lib")), ["__init__.py", "u.py"])

    def test_write_if_writable(self):
        fs = MemoryFS({}, writable=True)
        fs.write_file("new", b"hello")
        same(fs.read_file("new"), b"hello")

    def test_write_if_not(self):
        fails(PermissionError, "read-only", MemoryFS({}).write_file, "t", b"x")

    def test_flat_files(self):
        same(MemoryFS({"a": b"a", "d/b": b"b"})._to_flat_files(), {"a": b"a", "d/b": b"b"})

    def test_paths_are_normalised(self):
        fs = MemoryFS({"./dir/file": b"x"})
        same((fs.read_file("dir/file"), fs.read_file("/dir//file"), fs.exists("dir/file/")), (b"x", b"x", True))

    def test_without_files(self):
        same(MemoryFS().readdir(""), [])


class TestVirtualFileSystem:
    def test_is_abstract(self):
        same(VirtualFileSystem.__abstractmethods__, frozenset({"read_file", "write_file", "exists", "stat", "readdir"}))

    def test_is_walked(self):
        class Dict(VirtualFileSystem):
            data = {"a.txt": b"aaa", "sub/b.txt": b"bbb", "sub/deep/c": b"c"}

            def read_file(self, path):
                return self.data[path]

            def write_file(self, path, data):
                raise PermissionError("read-only")

            def exists(self, path):
                return path == "" or any(f == path or f.startswith(path + "/") for f in self.data)

            def stat(self, path):
                return FileStat("file", len(self.data[path])) if path in self.data else FileStat("dir", 0)

            def readdir(self, path):
                before = path + "/" if path else ""
                below = [f[len(before):].split("/") for f in self.data if f.startswith(before)]
                return [DirEntry(name=n, type=t) for n, t in sorted({(p[0], "dir" if len(p) > 1 else "file") for p in below})]
        same(Dict()._to_flat_files(), Dict.data)

    def test_endless_one_is_ended(self):
        class Endless(MemoryFS):
            def readdir(self, path):
                return [DirEntry("d", "dir")]
            _to_flat_files = VirtualFileSystem._to_flat_files
        fails(cordon.SandboxError, "too deep", Endless({})._to_flat_files)
