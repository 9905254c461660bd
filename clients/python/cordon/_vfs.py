"""Files of the host's to mount by value: codepod's VirtualFileSystem and MemoryFS."""
import abc
from dataclasses import dataclass
from typing import Dict, List, Mapping, Optional, Union

from ._errors import SandboxError

Content = Union[bytes, bytearray, memoryview, str]
DEPTH_MAX, FILES_MAX = 64, 100000  # of a file system that somebody else wrote


@dataclass(frozen=True)
class FileStat:
    type: str  # "file" or "dir"
    size: int
    permissions: int = 0
    mtime: float = 0.0


@dataclass(frozen=True)
class DirEntry:
    name: str
    type: str  # "file" or "dir"
    size: int = 0


def to_bytes(data: Content) -> bytes:
    return data.encode() if isinstance(data, str) else bytes(data)


class VirtualFileSystem(abc.ABC):
    """Where files come from: derive a class with these five methods. Paths are relative to where it is mounted; "" is its root.
    What it has when it is mounted is copied: later changes do not show. writable: the code may change its copy."""
    writable: bool = False

    @abc.abstractmethod
    def read_file(self, path: str) -> bytes:
        """FileNotFoundError: there is none."""

    @abc.abstractmethod
    def write_file(self, path: str, data: bytes) -> None:
        """PermissionError: it is read-only."""

    @abc.abstractmethod
    def exists(self, path: str) -> bool:
        """Whether there is such a file or directory."""

    @abc.abstractmethod
    def stat(self, path: str) -> FileStat:
        """FileNotFoundError: there is none."""

    @abc.abstractmethod
    def readdir(self, path: str) -> List[DirEntry]:
        """What is in a directory."""

    def _to_flat_files(self) -> Dict[str, bytes]:
        """Every file by its path."""
        found: Dict[str, bytes] = {}
        left = [("", 0)]
        while left:
            folder, depth = left.pop()
            for entry in self.readdir(folder):
                path = "%s/%s" % (folder, entry.name) if folder else entry.name
                if depth == DEPTH_MAX or len(found) == FILES_MAX:
                    raise SandboxError("'%s' is too deep, or there are more than %d files" % (path, FILES_MAX))
                if entry.type == "dir":
                    left.append((path, depth + 1))
                else:
                    found[path] = to_bytes(self.read_file(path))
        return found


def plain_path(path: str) -> str:
    """Without slashes at its ends, and without "."."""
    return "/".join(part for part in path.split("/") if part not in ("", "."))


class MemoryFS(VirtualFileSystem):
    """Files in a dict of paths. Directories are there because files are in them."""

    def __init__(self, files: Optional[Mapping[str, Content]] = None, *, writable: bool = False) -> None:
        self._files = {plain_path(path): to_bytes(data) for path, data in (files or {}).items()}
        self.writable = writable

    def _is_dir(self, path: str) -> bool:
        return not path or any(name.startswith(path + "/") for name in self._files)

    def read_file(self, path: str) -> bytes:
        path = plain_path(path)
        if path in self._files:
            return self._files[path]
        raise (IsADirectoryError if self._is_dir(path) else FileNotFoundError)(path)

    def write_file(self, path: str, data: Content) -> None:
        if not self.writable:
            raise PermissionError("read-only file system: %s" % path)
        self._files[plain_path(path)] = to_bytes(data)

    def exists(self, path: str) -> bool:
        path = plain_path(path)
        return path in self._files or self._is_dir(path)

    def stat(self, path: str) -> FileStat:
        """Of a directory the size is the number of its entries."""
        path = plain_path(path)
        if path in self._files:
            return FileStat("file", len(self._files[path]))
        if not self._is_dir(path):
            raise FileNotFoundError(path)
        return FileStat("dir", len(self.readdir(path)))

    def readdir(self, path: str) -> List[DirEntry]:
        path = plain_path(path)
        if not self._is_dir(path):
            raise (NotADirectoryError if path in self._files else FileNotFoundError)(path)
        before = path + "/" if path else ""
        entries: Dict[str, DirEntry] = {}
        for name, data in self._files.items():
            if not name.startswith(before):
                continue
            first, slash, _ = name[len(before):].partition("/")
            if slash or first not in entries:
                entries[first] = DirEntry(first, "dir") if slash else DirEntry(first, "file", len(data))
        return list(entries.values())

    def _to_flat_files(self) -> Dict[str, bytes]:
        return dict(self._files)
