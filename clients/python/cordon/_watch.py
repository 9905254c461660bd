"""Changes in a directory of a session, as they happen."""
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, List, Optional

from ._errors import NotFound, StateError

SLICE = 2.0  # seconds; an iteration asks again and again, so that ^C and close() end it


@dataclass(frozen=True)
class Change:
    """change: created, modified or removed. lost: some changes are not told; list the directory. type: file or directory."""
    path: str
    change: str
    type: str


def wait_params(watch: int, timeout: Optional[float]) -> Dict[str, Any]:
    return {"watch": watch, "wait_ms": max(0, int((timeout or 0) * 1000))}


class Watch:
    """A watched directory: a context manager, and an iterator of changes that waits for the next one until close()."""

    def __init__(self, call: Callable[[str, Dict[str, Any]], Any], path: str, recursive: bool) -> None:
        self._call = call
        self._number = call("watch", {"path": path, "recursive": recursive})["watch"]
        self._is_closed = False

    def changes(self, timeout: Optional[float] = 0) -> List[Change]:
        """What has changed since the last call. Waits for it, for at most so many seconds; None: until there is something."""
        while True:
            found = self._call("changes", wait_params(self._number, SLICE if timeout is None else timeout))["changes"]
            if found or timeout is not None:
                return [Change(**c) for c in found]

    def __iter__(self) -> Iterator[Change]:
        while not self._is_closed:
            try:
                found = self.changes(SLICE)
            except (NotFound, StateError):
                if self._is_closed:
                    return
                raise
            yield from found

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            try:
                self._call("unwatch", {"watch": self._number})
            except (NotFound, StateError):
                pass  # the session has ended

    def __enter__(self) -> "Watch":
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()
