"""Large values as binary columns (docs/values.md): what arrives, where the limits are, and guests that lie about them."""
import asyncio
import os
import time

import cordon
import cordon.aio

try:
    import numpy as np
    import pandas as pd
except ImportError:  # they are Debian's python3-numpy and python3-pandas
    np = pd = None

ROOMY = {"memory_bytes": 3 << 30, "timeout_ms": 240000, "cpu_seconds": 240}
ROWS = 50000


def raises(kind, text, action, *args, **kwargs):
    try:
        action(*args, **kwargs)
    except kind as e:
        assert text in str(e), e
        return e
    raise AssertionError("it did not fail")


def mixed():
    n = ROWS
    return pd.DataFrame({
        "i": np.arange(n), "f": np.arange(n) / 3, "s": ["\u00e4%d" % i for i in range(n)], "b": np.arange(n) % 2 == 0,
        "d": pd.date_range("2024-01-01", periods=n, freq="s"),
        "z": pd.date_range("2024-01-01", periods=n, freq="s", tz="Europe/Berlin"),
        "n": pd.array([None if i % 7 == 0 else i for i in range(n)], dtype="Int64"),
        "c": pd.Categorical(["x", "y"] * (n // 2)), "o": [None if i % 5 == 0 else "t%d" % i for i in range(n)],
        "t": pd.to_timedelta(np.arange(n), unit="s"),
        "g": [float("nan") if i % 3 == 0 else float("inf") if i % 3 == 1 else -0.0 for i in range(n)]})


def test_large_frames():
    frame = mixed()
    with cordon.Session("python", policy=ROOMY) as s:
        r = s.execute("df", {"df": frame}, check=True)
        pd.testing.assert_frame_equal(r.value, frame)
        r.value.iloc[0, 1] = 7.0  # it is the client's own
        assert "buffer" not in r.raw and not r.warnings
        back = s.run("df.index = ['r%d' % i for i in range(len(df))]; df[['f', 'g']]")
        assert list(back.index[:2]) == ["r0", "r1"] and back.f[3] == 1.0
        wide = pd.DataFrame(np.arange(1000.0 * 500).reshape(500, 1000))
        pd.testing.assert_frame_equal(s.run("w", {"w": wide}), wide)  # short columns, many of them


def test_large_values_of_python():
    values = {"floats": [i / 7 for i in range(100000)], "ints": list(range(100000)), "texts": ["\u20ac%d" % i for i in range(20000)],
              "bytes": os.urandom(1000000), "deep": {"a": [1, {"b": [0.5] * 10000}], "c": ("x", b"y" * 70000)},
              "mixed": [1, 2.0, "x"] * 5000, "large": [1 << 70] * 9000, "empty": []}
    with cordon.Session("python", policy=ROOMY) as s:
        for name, v in values.items():
            assert s.run("v", {"v": v}) == v, name
        for a in (np.arange(100000.0).reshape(100, 1000), np.arange(30000, dtype="i2"), np.ones((50, 50, 50), "c16"),
                  np.zeros(70000, "?"), np.arange(60000, dtype=">i4"), np.asfortranarray(np.arange(90000).reshape(300, 300)),
                  np.arange(100000, dtype="u8")[::2]):
            b = s.run("a", {"a": a})
            assert b.dtype == a.dtype.newbyteorder("=") and (b == a).all()
        assert s.run("d", {"d": {"$": [0.5] * 10000, "x": {"$buf": 0}}}) == {"$": [0.5] * 10000, "x": {"$buf": 0}}
        r = s.execute("'x' * 100", check=True)
        assert r.value == "x" * 100


def test_large_values_of_r():
    with cordon.Session("r", policy=ROOMY) as s:
        frame = mixed().drop(columns=["z", "d"])
        back = s.run("df", {"df": frame})
        pd.testing.assert_frame_equal(back, frame)
        assert s.run("x <- as.numeric(1:1000000); x[3] <- NA; x")[1:4] == [2.0, None, 4.0]
        assert s.run("paste0('\u00e4', 1:100000)")[99999] == "\u00e4100000"
        a = np.arange(300000.0).reshape(1000, 300)
        assert s.run("c(a[2, 3], dim(a))", {"a": a}) == [302.0, 1000.0, 300.0]
        assert (s.run("a", {"a": a}) == a).all()
        assert s.run("as.raw(rep(7, 1e5))") == b"\7" * 100000


def test_200_mb_in_and_coefficients_out():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.random((2500000, 10)), columns=["y"] + ["x%d" % i for i in range(1, 10)])
    frame["y"] = frame.x1 * 2 - frame.x2 + 3
    assert frame.memory_usage(index=False).sum() == 200000000
    models = {
        "python": "import numpy as np, pandas as pd\nx = df.iloc[:, 1:].to_numpy()\nx = np.c_[np.ones(len(x)), x]\n"
                  "b = np.linalg.solve(x.T @ x, x.T @ df.y.to_numpy())\n"
                  "pd.DataFrame({'term': ['(Intercept)', *df.columns[1:]], 'estimate': b})",
        "r": "x <- cbind(1, as.matrix(df[-1]))\nb <- solve(crossprod(x), crossprod(x, df$y))\n"
             "data.frame(term = c('(Intercept)', names(df)[-1]), estimate = as.vector(b))"}
    for guest, code in models.items():
        with cordon.Session(guest, policy=ROOMY) as s:
            table = s.run(code, {"df": frame})
            assert list(table.term[:3]) == ["(Intercept)", "x1", "x2"], table
            assert np.allclose(table.estimate, [3, 2, -1] + [0] * 7, atol=1e-6), table


def test_value_bytes():
    with cordon.Session("python", policy={"value_bytes": 1000000}) as s:
        e = raises(cordon.LimitExceeded, "max 1000000", s.run, "1", {"x": np.ones(200000)})
        assert "1600000 bytes" in str(e) and "value_bytes" in str(e), e
        assert s.run("len(x)", {"x": np.ones(100000)}) == 100000
        r = s.execute("[0.5] * 200000", check=True)
        assert r.value is None and "value_bytes" in r.warnings[0], r.warnings
        assert s.run("[0.5] * 100000") == [0.5] * 100000
    with cordon.Session("r", policy={"value_bytes": 1000000}) as s:
        raises(cordon.LimitExceeded, "value_bytes", s.run, "1", {"x": np.ones(200000)})
        r = s.execute("numeric(200000)", check=True)
        assert r.value is None and "value_bytes" in r.warnings[0], r.warnings


def test_guests_without_columns():
    with cordon.Session("sh") as s:
        assert s.execute('echo "${#x}"', {"x": "a" * 100000}, check=True).stdout == "100000\n"
        assert s.execute('echo "${#x[@]}"', {"x": list(range(9000))}, check=True).stdout == "9000\n"


def test_large_values_with_asyncio():
    async def go():
        async with cordon.aio.Session("python", policy=ROOMY) as s:
            a = np.arange(500000.0)
            b, c = await asyncio.gather(s.run("a * 2", {"a": a}), asyncio.sleep(0))
            assert (b == a * 2).all() and c is None
            assert await s.run("1 + 1") == 2
    asyncio.run(go())


def test_pools_take_large_values():
    with cordon.Pool("python", 1, policy=ROOMY) as p:
        assert (p.run("a", {"a": np.arange(100000)}, wait=60) == np.arange(100000)).all()


def test_a_client_that_does_not_ask_gets_no_columns():
    with cordon.Session("python") as s:
        raw = s._c.request("session.execute", {"session": s.id, "code": "[0.5] * 9000"}, session=s.id)
        assert "buffer" not in raw and raw["result"][:2] == [0.5, 0.5]
        raises(cordon.RpcError, "attachment", s._c.request, "session.execute",
               {"session": s.id, "code": "1", "buffer": {"bytes": 8, "columns": []}}, session=s.id)


# The code speaks for its guest: it finds the session's end of the wire, and says what a hostile guest could.
LIAR = """
import fcntl, mmap, os, socket, struct, sys
f = sys._getframe()
while not hasattr(f.f_locals.get("self"), "wire"):
    f = f.f_back
me = f.f_locals["self"]
def tell(fields):
    os.write(3, ('{"type":"result","id":%d,"ok":true,%s}\\n' % (me.ident, fields)).encode())
def get(size):
    return me.wire.buffer(me.ident, size)
def put(fd, data):
    with mmap.mmap(fd, len(data)) as m:
        m[:] = data
F64 = '"buffer":{"bytes":%d,"columns":[{"type":"float64","count":%d,"values":0}]}'
"""
WAIT = "\nimport time; time.sleep(60)"

LIES = {
    "a buffer that was not given": ("tell(F64 % (8, 1))", "not given"),
    "still mapped": ("fd = get(8); m = mmap.mmap(fd, 8); tell(F64 % (8, 1))", "seal"),
    "sealed against seals": ("fd = get(8); fcntl.fcntl(fd, 1033, 1); tell(F64 % (8, 1))", "seal"),
    "shorter than told": ("get(8); tell(F64 % (16, 2))", "not as long"),
    "longer than told": ("get(4096); tell(F64 % (8, 1))", "not as long"),
    "a count beyond the buffer": ("get(8); tell(F64 % (8, 1 << 50))", "values are not inside"),
    "beyond the limit": ("get(8); tell(F64 % (1 << 40, 1))", "value_bytes"),
    "no table": ("get(8); tell('\"buffer\":{}')", "table"),
    "a text that is not UTF-8": (
        "put(get(65), struct.pack('<2i', 0, 1).ljust(64) + b'\\xff'); "
        "tell('\"buffer\":{\"bytes\":65,\"columns\":[{\"type\":\"utf8\",\"count\":1,\"offsets\":0,\"values\":64,\"bytes\":1}]}')",
        "not valid UTF-8"),
    "offsets that descend": (
        "put(get(66), struct.pack('<3i', 0, 2, 1).ljust(64) + b'ab'); "
        "tell('\"buffer\":{\"bytes\":66,\"columns\":[{\"type\":\"utf8\",\"count\":2,\"offsets\":0,\"values\":64,\"bytes\":2}]}')",
        "do not ascend"),
}
# Well-formed for the host, which does not read the value: the client must not believe it either.
UNTRUE = {
    "a column used twice": ("get(8); tell('\"value\":[{\"$\":\"vec\",\"t\":\"float\",\"v\":{\"$buf\":0}},"
                            "{\"$\":\"vec\",\"t\":\"float\",\"v\":{\"$buf\":0}}],' + F64 % (8, 1))"),
    "no such column": "get(8); tell('\"value\":{\"$\":\"vec\",\"t\":\"float\",\"v\":{\"$buf\":7}},' + F64 % (8, 1))",
    "no number": "get(8); tell('\"value\":{\"$\":\"vec\",\"t\":\"float\",\"v\":{\"$buf\":\"x\"}},' + F64 % (8, 1))",
}
# A form that does not fit its columns stays a form.
ODD = ("get(8); tell('\"value\":{\"$\":\"array\",\"dtype\":\"float64\",\"shape\":[1000000,1000],\"v\":{\"$buf\":0}},'"
                      " + F64 % (8, 1))")


def server_pid(s):
    """Of the local program, or of the server that all tests use."""
    return int(os.environ.get("CORDON_SERVER_PID") or 0) or s._c._process.pid


def fds_of(s):
    return len(os.listdir("/proc/%d/fd" % server_pid(s)))


def comes_down_to(s, fds):
    """The memory of a value is closed when it was sent, so a moment after the client has it."""
    end = time.monotonic() + 60
    while fds_of(s) > fds and time.monotonic() < end:
        time.sleep(0.01)
    return fds_of(s) <= fds


def test_guests_that_lie():
    with cordon.connect() as c, cordon.Session("python", connection=c) as s:
        for name, (code, text) in LIES.items():
            r = s.execute(LIAR + code + WAIT)
            assert r.error_kind == "protocol" and text in r.error, (name, r.error_kind, r.error)
            assert s.run("1 + 1") == 2, name
        for name, code in UNTRUE.items():
            raises(cordon.CordonError, "cannot be read", s.execute, LIAR + code)
            assert s.run("1 + 1") == 2, name
        value = s.execute(LIAR + ODD).value
        assert type(value) is dict and value["$"] == "array" and s.run("1 + 1") == 2


def test_guests_that_ask_too_much():
    with cordon.connect() as c, cordon.Session("python", connection=c) as s:
        for size, text in ((1 << 40, "value_bytes"), (0, "there is none")):
            r = s.execute(LIAR + "get(%d)" % size)
            assert r.error_kind == "exception" and text in r.error, r.error
        r = s.execute(LIAR + "get(8)\nget(8)")
        assert r.error_kind == "exception" and "gets none" in r.error, r.error
        r = s.execute(LIAR + "for i in range(100000): os.write(3, b'{\"type\":\"buffer\",\"id\":%d}\\n' % me.ident)" + WAIT,
                      tool_calls=1)
        assert r.error_kind == "protocol" and "Maximum IPC messages" in r.error, r.error
        r = s.execute(LIAR + "fd = get(1 << 20); os.ftruncate(fd, 0)")  # its size is sealed
        assert not r.success and "not permitted" in r.error, r.error
        assert s.run("1 + 1") == 2


def test_descriptors_of_guests_are_dropped():
    """The host takes none: whatever comes is closed by the kernel, and the session goes on."""
    with cordon.connect() as c, cordon.Session("python", connection=c) as s:
        s.run("1")
        before = fds_of(s)
        send = ("end = socket.socket(fileno=os.dup(3))\nfds = [os.open('/dev/null', os.O_RDONLY) for i in range(50)]\n"
                "for i in range(2): socket.send_fds(end, [b'{\"type\":\"x%d\"}\\n' % i], fds)\nn = len(fds)\n"
                "for fd in fds: os.close(fd)\nend.close()\nn")
        for _ in range(5):
            assert s.run(LIAR + send, tool_calls=100) == 50
        assert comes_down_to(s, before), (fds_of(s), before)


def test_nothing_stays_behind():
    """Neither descriptors nor memory of the server grow with the number of large values, whether the guest keeps them or not."""
    def resident(s):
        with open("/proc/%d/statm" % server_pid(s)) as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    a = np.arange(125000.0)  # 1 MB
    keep = "import os, sys; keep = globals().setdefault('kept', []); keep.append(a); a"
    with cordon.connect() as c, cordon.Session("python", connection=c, policy=ROOMY) as s:
        s.run("1")
        fds = fds_of(s)
        for _ in range(5):
            assert len(s.run("a", {"a": a})) == 125000
        memory = resident(s)
        for _ in range(100):
            assert len(s.run(keep, {"a": a})) == 125000
        assert comes_down_to(s, fds) and resident(s) < memory + (20 << 20), (fds_of(s), fds, resident(s), memory)


if pd is None:
    for name in [n for n in globals() if n.startswith("test_")]:
        del globals()[name]
