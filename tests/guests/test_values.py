# test_values.py - docs/values.md as properties: nested values from a fixed seed go into Python, R and Node as context and
# come back as the table says, exactly.
import base64
import json
import datetime
import random
import struct

import test_node
import test_python
import test_r

ROUNDS, PER_ROUND = 12, 40
NAMES = ("a", "b c", "ü", "😀", "$", "$x", "", "0", "a\u2028b", "names", "__proto__", "constructor", "if", "NA")
STRINGS = NAMES + ("a\0b", "\u0001\t\n\\\"'", "e\u0301", "\U0010ffff", "NaN", "TRUE", "x" * 300)
DATES = ("2024-02-29", "1969-12-31", "1970-01-01", "1900-02-28", "9999-12-31", "0001-01-01")
INSTANTS = ("2024-02-29T12:00:00.000001+00:00", "1969-12-31T23:59:59.500000+00:00", "1900-01-01T00:00:00+00:00",
            "2024-07-01T12:30:00+05:30", "1969-07-20T20:17:40-04:00")
INTEGERS = (0, 1, -1, 2**31 - 1, -2**31, 2**31, -2**31 + 1, 2**53, 2**53 + 1, -2**53 - 1, 2**63 - 1, -2**63)
DOUBLES = (0.0, -0.0, 0.1, 1e-300, 5e-324, 1.7976931348623157e308, 1 / 3, 2.0, -1e15, 1e22, 123456789.125)


def tagged(form, v, **more):
    return dict({"$": form, "v": v}, **more)


def scalar(r):
    return r.choice((
        lambda: None, lambda: r.random() < 0.5, lambda: r.choice(INTEGERS), lambda: r.randint(-2**63, 2**63 - 1),
        lambda: tagged("int", str(r.choice((1, -1)) * (2**64 + r.getrandbits(r.choice((70, 200, 3000)))))),
        lambda: r.choice(DOUBLES), lambda: r.uniform(-1, 1) * 10.0 ** r.randint(-300, 300),
        lambda: tagged("float", r.choice(("nan", "inf", "-inf"))), lambda: r.choice(STRINGS),
        lambda: "".join(chr(r.choice((r.randint(1, 0xd7ff), r.randint(0xe000, 0x10ffff)))) for _ in range(r.randint(0, 9))),
        lambda: tagged("bytes", base64.b64encode(r.randbytes(r.randint(0, 40))).decode()),
        lambda: tagged("date", r.choice(DATES)), lambda: tagged("datetime", r.choice(INSTANTS)),
        lambda: tagged("complex", [r.choice(DOUBLES), r.choice(DOUBLES)])))()


def value(r, depth):
    if depth == 0 or r.random() < 0.4:
        return scalar(r)
    kind, n = r.choice(("list", "list", "tuple", "map", "map")), r.randint(0, 5)
    if kind == "map":
        pairs = [[k, value(r, depth - 1)] for k in r.sample(NAMES, n)]
        return tagged("map", pairs) if any(k == "$" for k, _ in pairs) else dict(pairs)
    items = [value(r, depth - 1) for _ in range(n)]
    return tagged("tuple", items) if kind == "tuple" else items


def is_form(v, *names):
    return isinstance(v, dict) and v.get("$") in names


def utc(text, digits="auto"):
    """As R and Node write an instant: in UTC."""
    t = datetime.datetime.fromisoformat(text)
    return t.replace(tzinfo=t.tzinfo or datetime.timezone.utc).astimezone(datetime.timezone.utc).isoformat(timespec=digits)


def walk(v, leaf, pairs, sequence):
    if isinstance(v, list):
        return sequence("list", [walk(x, leaf, pairs, sequence) for x in v])
    if is_form(v, "tuple"):
        return sequence("tuple", [walk(x, leaf, pairs, sequence) for x in v["v"]])
    if is_form(v, "map"):
        return pairs([[k, walk(x, leaf, pairs, sequence)] for k, x in v["v"]])
    if isinstance(v, dict) and "$" not in v:
        return pairs([[k, walk(x, leaf, pairs, sequence)] for k, x in v.items()])
    return leaf(v)


def plain_pairs(pairs):
    return tagged("map", pairs) if any(k == "$" for k, _ in pairs) else dict(pairs)


# What each language makes of a value, where that is not the value itself.

def of_python(v):
    return walk(v, lambda x: x, plain_pairs, lambda kind, items: tagged("tuple", items) if kind == "tuple" else items)


def r_leaf(v):
    if isinstance(v, int) and not isinstance(v, bool):
        if -2**31 < v < 2**31:
            return v
        return float(v) if abs(v) <= 2**53 else tagged("int", str(v))
    if is_form(v, "datetime"):
        return tagged("datetime", utc(v["v"]))
    return v


def without_nul(v):
    """R has no text with a NUL, and refuses it (test_r.py)."""
    return json.loads(json.dumps(v).replace("\\u0000", " "))


def r_pairs(pairs):
    pairs = [[r_leaf(k), x] for k, x in pairs]
    if any(k in ("$", "") for k, _ in pairs):
        return tagged("map", pairs)
    return dict(pairs)


def of_r(v):
    return walk(v, r_leaf, r_pairs, lambda kind, items: items)


def node_leaf(v):
    if isinstance(v, bool) or v is None:
        return v
    if isinstance(v, int):
        return v if abs(v) < 2**53 else tagged("int", str(v))
    if isinstance(v, float) and v.is_integer() and abs(v) < 2**53 and str(v) != "-0.0":
        return int(v)
    if is_form(v, "date", "datetime"):
        return tagged("datetime", utc(v["v"], "milliseconds"))
    if is_form(v, "complex"):
        return [node_leaf(x) for x in v["v"]]
    return v


def node_pairs(pairs):
    """An object has the names that are indices first."""
    if any(k == "$" for k, _ in pairs):
        return tagged("map", pairs)
    return dict(sorted(pairs, key=lambda p: p[0] != "0"))


def of_node(v):
    return walk(v, node_leaf, node_pairs, lambda kind, items: items)


def same(a, b):
    """Equal in type, sign of zero and order of keys as well."""
    if type(a) is not type(b):
        return False
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    return repr(a) == repr(b)


def through(guest, expect, seed, echo="x", fit=lambda v: v):
    for n in range(ROUNDS):
        r = random.Random("%s %d" % (seed, n))
        sent = [fit(value(r, 4)) for _ in range(PER_ROUND)]
        got = guest.value(echo, {"x": sent})
        for one, back in zip(sent, got):
            want = expect(one)
            assert same(back, want), "seed %s %d:\nsent %r\nwant %r\ngot  %r" % (seed, n, one, want, back)
        assert len(got) == len(sent)


def test_through_python():
    with test_python.guest() as g:
        through(g, of_python, "python")


def test_through_r():
    with test_r.guest() as g:
        through(g, of_r, "r", fit=without_nul)


def test_through_node():
    with test_node.guest() as g:
        through(g, of_node, "node")


# Forms with a shape of their own, which come back as they went.

def array(code, dtype, shape, count):
    size = struct.calcsize("<" + code)
    data = random.Random(dtype).randbytes(size * count) if code != "d" else struct.pack("<%dd" % count, *range(count))
    if code == "?":
        data = bytes(b & 1 for b in data)
    return {"$": "array", "dtype": dtype, "shape": shape, "v": base64.b64encode(data).decode()}


def test_arrays_of_numpy():
    with test_python.guest() as g:
        g.run("import numpy")
        for code, dtype in (("b", "int8"), ("h", "int16"), ("i", "int32"), ("q", "int64"), ("B", "uint8"), ("H", "uint16"),
                            ("I", "uint32"), ("Q", "uint64"), ("d", "float64"), ("?", "bool")):
            for shape, count in (([6], 6), ([2, 3], 6), ([0], 0), ([2, 0, 3], 0), ([1, 1, 1], 1)):
                form = array(code, dtype, shape, count)
                assert g.value("x", {"x": form}) == form, (dtype, shape, g.value("x", {"x": form}))
                assert g.value("str(x.dtype), list(x.shape)")["v"] == [dtype, shape]


def vec(t, v, **more):
    return dict({"$": "vec", "t": t, "v": v}, **more)


def test_vectors_of_r():
    same_back = [
        vec("logical", [True, None, False]), vec("int", [1, None, -2147483647]), vec("float", [0.5, None, "nan", "inf", "-inf", -0.0]),
        vec("string", ["a", None, "", "ü😀"]), vec("date", ["1969-12-31", None, "2024-02-29"]),
        vec("datetime", ["1900-01-01T00:00:00+00:00", None, "1969-12-31T23:59:59.500000+00:00"]), vec("duration", [1.5, None]),
        vec("int", [1, 2], names=["a", "😀"]), vec("string", ["x"], names=["a"]),
        {"$": "factor", "levels": ["a", "b", "😀"], "v": [1, None, 3], "ordered": False},
        {"$": "factor", "levels": ["lo", "hi"], "v": [2, None, 1], "ordered": True},
        {"$": "factor", "levels": [], "v": [], "ordered": False}, {"$": "factor", "levels": ["a"], "v": [None], "ordered": False},
        {"$": "frame", "names": [], "columns": [], "rows": 0},
        {"$": "frame", "names": ["a", "b c"], "columns": [vec("int", []), vec("string", [])], "rows": 0},
        {"$": "frame", "names": ["x", "ü"], "columns": [vec("float", [1.0, None]),
                                                        {"$": "factor", "levels": ["p"], "v": [None, 1], "ordered": False}], "rows": 2},
    ] + [vec(t, []) for t in ("logical", "int", "float", "string", "complex", "date", "datetime", "duration")]
    with test_r.guest() as g:
        for form in same_back:
            got = g.value("x", {"x": form})
            assert same(got, form), (form, got)


def test_frames_of_pandas():
    frames = [
        {"$": "frame", "names": ["a", "b"], "columns": [vec("int", [1, 2]), vec("string", ["x", None])], "rows": 2},
        {"$": "frame", "names": ["t"], "columns": [vec("float", ["nan", 0.5])], "rows": 2},
        {"$": "frame", "names": ["f"], "columns": [{"$": "factor", "levels": ["p", "q"], "v": [2, None], "ordered": False}], "rows": 2},
    ]
    with test_python.guest() as g:
        for form in frames:
            got = g.value("x", {"x": form})
            assert same(got, form), (form, got)
