"""Where a `cordon serve` is. Every session asks for it, so what only the address of one needs is imported there."""
import os
from typing import NamedTuple, Optional, Tuple

from ._errors import ConnectFailed


class Address(NamedTuple):
    """Where a server is, and how to prove who asks. Printing it does not show the key."""
    scheme: str
    host: str  # of "unix": the path
    port: int
    key: Optional[str]
    ca_file: Optional[str]

    def __repr__(self) -> str:
        return "<cordon server %s>" % self.text

    @property
    def text(self) -> str:
        name = "[%s]" % self.host if ":" in self.host else self.host
        return "unix:" + self.host if self.scheme == "unix" else "%s://%s:%d" % (self.scheme, name, self.port)

    @property
    def share_name(self) -> Tuple[str, str, Optional[str]]:
        """Those with the same may share a connection."""
        import hashlib
        return self.text, hashlib.sha256((self.key or "").encode()).hexdigest(), self.ca_file


def is_loopback(host: str) -> bool:
    import ipaddress
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def find_server(server: Optional[str] = None, key: Optional[str] = None, ca_file: Optional[str] = None) -> Optional[Address]:
    """What was given, or $CORDON_SERVER, $CORDON_KEY and $CORDON_CA. None: the local program."""
    if server is None:
        server = os.environ.get("CORDON_SERVER") or None
    if server is None:
        if key is not None:
            raise ConnectFailed("key= needs server=, or the environment variable CORDON_SERVER")
        return None
    key = key if key is not None else os.environ.get("CORDON_KEY") or None
    if key is not None and not (key.isascii() and key.isprintable() and " " not in key and key):
        raise ConnectFailed("a key has only visible ASCII characters and no blanks: check key=, or CORDON_KEY")
    return parse_server(server, key, ca_file or os.environ.get("CORDON_CA") or None)


def parse_server(server: str, key: Optional[str], ca_file: Optional[str]) -> Address:
    if server.startswith("unix:") and len(server) > 5:
        return Address("unix", os.path.abspath(os.path.expanduser(server[5:])), 0, key, ca_file)
    from urllib.parse import urlsplit
    try:
        url = urlsplit(server)
        port = url.port
    except ValueError:
        url, port = urlsplit(""), None
    if url.scheme not in ("http", "https") or not url.hostname or url.path.strip("/") or url.query or url.fragment or "@" in url.netloc:
        raise ConnectFailed("a server is https://HOST[:PORT], http://HOST[:PORT] on the loopback, or unix:PATH; the key goes to key=")
    if url.scheme == "http" and not is_loopback(url.hostname):
        raise ConnectFailed("http:// would show the key and the code to the network: use https://")
    return Address(url.scheme, url.hostname, port or (443 if url.scheme == "https" else 80), key, ca_file)
