

# In a pod there is no TLS library: the gateway, which every connection goes through anyway, is asked for the whole URL and
# speaks TLS with the server. It always verifies the server; no context of the program's changes that.
class HTTPSConnection(HTTPConnection):
    "https by the gateway of the pod."

    default_port = HTTPS_PORT

    def __init__(self, host, port=None, key_file=None, cert_file=None, timeout=socket._GLOBAL_DEFAULT_TIMEOUT,
                 source_address=None, *, context=None, check_hostname=None, blocksize=8192):
        if key_file is not None or cert_file is not None:
            raise ValueError("a certificate of the client's own needs a TLS library, and a pod has none")
        super().__init__(host, port, timeout, source_address, blocksize=blocksize)

    def _target(self):
        host, port = (self._tunnel_host, self._tunnel_port) if self._tunnel_host else (self.host, self.port)
        host = "[%s]" % host if ":" in host else host
        return "https://" + (host if port == self.default_port else "%s:%d" % (host, port))

    def _gateway(self):
        if self._tunnel_host:  # as urllib does it: the connection is to the proxy
            return self.host, self.port
        import os
        proxy = os.environ.get("https_proxy") or os.environ.get("HTTPS_PROXY") or ""
        where = urlsplit(proxy if "://" in proxy else "//" + proxy)
        if not where.hostname:
            raise OSError(errno.ENETUNREACH, "networking not configured")
        return where.hostname, where.port or 3128

    def connect(self):
        sys.audit("http.client.connect", self, self.host, self.port)
        self.sock = self._create_connection(self._gateway(), self.timeout, self.source_address)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def putrequest(self, method, url, skip_host=False, skip_accept_encoding=False):
        url = url or "/"
        if not url.startswith("https://"):
            url = self._target() + (url if url[0] == "/" else "/" + url)
        super().putrequest(method, url, skip_host, skip_accept_encoding)


__all__.append("HTTPSConnection")
