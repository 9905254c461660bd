# cordon_values.py - converts values to and from tagged JSON (docs/values.md): data only, both ways.
# numpy and pandas are used only if the code has imported them itself: importing them here would cost
# every session what few need. Subclasses are read through their base type's own methods,
# so that an overridden __iter__ or __repr__ of the code never runs in the encoder.
import sys
from binascii import a2b_base64, b2a_base64

TYPE_CHECKING = False  # set by type checkers; importing typing costs too much in a session
if TYPE_CHECKING:
    from typing import Any
else:
    Any = object

MAX_DEPTH = 62  # JSON levels of one value; with the message around it, within the wire's 64
MAX_COUNT = 1000000
MAX_DIGITS_BITS = 1000000  # printing an integer in decimal is quadratic in time

_INT_MIN, _INT_MAX = -(1 << 63), (1 << 63) - 1
_INF = float("inf")
_type_name = type.__dict__["__name__"].__get__  # type: ignore  # past whatever a metaclass does
_SIMPLE = frozenset((str, bool, type(None)))


class ValueFormError(ValueError):
    """A value that cannot cross: a cycle, too deep, too many elements, too large."""


def int_text(v: Any) -> Any:
    """The decimal digits, beyond the interpreter's limit of 4300, up to a bound on time."""
    if v.bit_length() > MAX_DIGITS_BITS:
        raise ValueFormError("the integer is too large (%d bits)" % v.bit_length())
    limit = getattr(sys, "set_int_max_str_digits", None)
    if limit is None:
        return int.__repr__(v)
    old = sys.get_int_max_str_digits()
    limit(0)
    try:
        return int.__repr__(v)
    finally:
        limit(old)


def _int_parse(s: Any) -> Any:
    limit = getattr(sys, "set_int_max_str_digits", None)
    if limit is None or len(s) < 4000:
        return int(s)
    old = sys.get_int_max_str_digits()
    limit(0)
    try:
        return int(s)
    finally:
        limit(old)


def _float(v: Any) -> Any:
    if -_INF < v < _INF:
        return v
    return {"$": "float", "v": "nan" if v != v else "inf" if v > 0 else "-inf"}


def _vec_float(v: Any) -> Any:
    """A float inside a vector: a value that is not finite is a string there."""
    if -_INF < v < _INF:
        return v
    return "nan" if v != v else "inf" if v > 0 else "-inf"


def encode(v: Any, limit: Any) -> Any:
    """The JSON form of v; limit: its maximum size in bytes when written."""
    t = type(v)
    if t in _SIMPLE:
        if t is str and len(v) > limit:
            raise ValueFormError("the value is too large (more than %d bytes)" % limit)
        return v
    if t is int:
        return v if _INT_MIN <= v <= _INT_MAX else {"$": "int", "v": int_text(v)}
    if t is float:
        return _float(v)
    return _Encoder(limit).any(v, 1)


def encode_args(args: Any, limit: Any) -> Any:
    """The JSON form of a tool's arguments: most are few, short and plain, and need no conversion."""
    if len(args) > 16 or "$" in args:
        return encode(dict(args), limit)
    for v in args.values():
        t = type(v)
        if t is int:
            if not _INT_MIN <= v <= _INT_MAX:
                break
        elif t is str:
            if len(v) > 256:
                break
        elif t is not bool and v is not None:
            break
    else:
        return args
    return encode(dict(args), limit)


class _Encoder:
    __slots__ = ("left", "bytes", "limit", "path")

    def __init__(self, limit: Any) -> None:
        self.left = MAX_COUNT
        self.bytes = self.limit = limit
        self.path: Any = set()

    def _take(self, n: Any, size: Any) -> None:
        self.left -= n
        self.bytes -= size
        if self.left < 0:
            raise ValueFormError("the value has more than %d elements" % MAX_COUNT)
        if self.bytes < 0:
            raise ValueFormError("the value is too large (more than %d bytes)" % self.limit)

    def any(self, v: Any, depth: Any) -> Any:
        t = type(v)
        if t is str:
            self._take(1, len(v))
            return v
        if t is bool or v is None:
            self._take(1, 4)
            return v
        if t is int:
            if _INT_MIN <= v <= _INT_MAX:
                self._take(1, 1)
                return v
            s = int_text(v)
            self._take(1, len(s))
            return {"$": "int", "v": s}
        if t is float:
            self._take(1, 3)
            return _float(v)
        if depth > MAX_DEPTH:
            raise ValueFormError("the value is nested deeper than %d levels" % MAX_DEPTH)
        form = _FORMS.get(t)
        if form is not None:
            return form(self, v, depth)
        for base, form in _BASES:
            if issubclass(t, base):
                return form(self, v, depth)
        return self.odd(v, t, depth)

    # Containers: the path has the ids of the enclosing values, so a cycle is found at once.
    def _enter(self, v: Any) -> None:
        if id(v) in self.path:
            raise ValueFormError("the value contains itself")
        self.path.add(id(v))

    def items(self, it: Any, depth: Any) -> Any:
        """A sequence's elements; depth is that of the array that holds them."""
        if depth > MAX_DEPTH:
            raise ValueFormError("the value is nested deeper than %d levels" % MAX_DEPTH)
        any_, d = self.any, depth + 1
        return [any_(x, d) for x in it]

    def list(self, v: Any, depth: Any) -> Any:
        self._enter(v)
        n = list.__len__(v)
        self._take(0, 2 * n)
        if n > self.left:
            self._take(n, 0)
        r = self.items(list.__iter__(v), depth)
        self.path.discard(id(v))
        return r

    def tuple(self, v: Any, depth: Any) -> Any:
        self._enter(v)
        r = {"$": "tuple", "v": self.items(tuple.__iter__(v), depth + 1)}
        self.path.discard(id(v))
        return r

    def set(self, v: Any, depth: Any) -> Any:
        it = set.__iter__(v) if issubclass(type(v), set) else frozenset.__iter__(v)
        return {"$": "set", "v": self.items(it, depth + 1)}

    def dict(self, v: Any, depth: Any) -> Any:
        self._enter(v)
        any_, d = self.any, depth + 1
        plain = {}
        for k, x in dict.items(v):
            if type(k) is not str or k == "$":
                break
            self._take(0, len(k) + 4)
            plain[k] = any_(x, d)
        else:
            self.path.discard(id(v))
            return plain
        if depth + 2 > MAX_DEPTH:
            raise ValueFormError("the value is nested deeper than %d levels" % MAX_DEPTH)
        if all(issubclass(type(k), str) for k in dict.keys(v)) and not dict.__contains__(v, "$"):
            r = {str.__str__(k): any_(x, d) for k, x in dict.items(v)}
        else:
            r = {"$": "map",
                 "v": [[any_(k, depth + 3), any_(x, depth + 3)] for k, x in dict.items(v)]}
        self.path.discard(id(v))
        return r

    def bytes_(self, v: Any, depth: Any) -> Any:
        self._take(1, len(v) * 4 // 3)
        return {"$": "bytes", "v": b2a_base64(v, newline=False).decode("ascii")}

    def complex(self, v: Any, depth: Any) -> Any:
        self._take(2, 16)
        z = complex.__pos__(v)  # past a subclass; an addition would lose the sign of zero
        return {"$": "complex", "v": [_float(z.real), _float(z.imag)]}

    def repr(self, v: Any, t: Any) -> Any:
        try:
            text = repr(v)
            if type(text) is not str:
                text = str.__str__(text)
        except Exception as e:
            text = "<%s object, whose repr raised %s>" % (_type_name(t), _type_name(type(e)))
        if len(text) > 65536:
            text = text[:65536] + "..."
        self._take(1, len(text))
        return {"$": "repr", "class": _type_name(t), "v": text}

    def odd(self, v: Any, t: Any, depth: Any) -> Any:
        """Types of modules that are only used if they are already loaded."""
        mods = sys.modules
        for name, form in _LAZY:
            m = mods.get(name)
            if m is not None:
                r = form(self, m, v, t, depth)
                if r is not NotImplemented:
                    return r
        return self.repr(v, t)

    # Vectors of numpy and pandas.
    def column(self, values: Any, depth: Any) -> Any:
        """A pandas Series, Index or extension array as a vec, factor, or list."""
        import numpy as np
        pd = sys.modules["pandas"]
        dtype = values.dtype
        if isinstance(dtype, pd.CategoricalDtype):
            return self.factor(getattr(values, "array", values), depth)
        n = len(values)
        self._take(n, 2 * n)
        kind = getattr(dtype, "kind", "O")
        if kind == "f" and isinstance(dtype, np.dtype):
            return {"$": "vec", "t": "float",
                    "v": [_vec_float(x) for x in np.asarray(values, float).tolist()]}
        if kind in "biu" and isinstance(dtype, np.dtype):
            return {"$": "vec", "t": "logical" if kind == "b" else "int",
                    "v": [self.any(x, depth + 3) for x in values.tolist()]}
        if kind == "M" or kind == "m":
            t, iso = ("datetime", _iso_datetime) if kind == "M" else ("duration", _seconds)
            return {"$": "vec", "t": t,
                    "v": [None if x is pd.NaT else iso(x) for x in pd.Series(values)]}
        data = list(values)
        missing = [x is None or x is pd.NA or x is pd.NaT or (type(x) is float and x != x)
                   for x in data]
        present = {type(x) for x, m in zip(data, missing) if not m}
        if present <= {str}:
            for x, m in zip(data, missing):
                self._take(0, 0 if m else len(x))
            return {"$": "vec", "t": "string", "v": [None if m else x
                                                     for x, m in zip(data, missing)]}
        if kind in "biuf":  # pandas' own dtypes, with missing values
            convs: Any = {"b": ("logical", bool), "f": ("float", lambda x: _vec_float(float(x)))}
            t, conv = convs.get(kind, ("int", int))
            return {"$": "vec", "t": t, "v": [None if m else conv(x)
                                              for x, m in zip(data, missing)]}
        return self.items(data, depth)

    def factor(self, cat: Any, depth: Any) -> Any:
        codes = [None if c < 0 else c + 1 for c in cat.codes.tolist()]
        self._take(len(codes), 2 * len(codes))
        levels = [x if type(x) is str else str(x) for x in cat.categories]
        return {"$": "factor", "levels": levels, "v": codes, "ordered": bool(cat.ordered)}

    def frame(self, pd: Any, v: Any, depth: Any) -> Any:
        self._enter(v)
        r = {"$": "frame",
             "names": [self.any(x, depth + 2) for x in v.columns.tolist()],
             "columns": [self.column(v.iloc[:, i], depth + 2) for i in range(v.shape[1])],
             "rows": int(v.shape[0])}
        if not isinstance(v.index, pd.RangeIndex) or v.index.start != 0 or v.index.step != 1:
            r["index"] = self.index(pd, v.index, depth + 1)
        self.path.discard(id(v))
        return r

    def index(self, pd: Any, v: Any, depth: Any) -> Any:
        if isinstance(v, pd.MultiIndex):
            return self.items(v.tolist(), depth)
        return self.column(v, depth)

    def array(self, np: Any, v: Any, depth: Any) -> Any:
        if isinstance(v, np.ma.MaskedArray):
            return self.items(v.tolist(), depth) if v.ndim else self.any(v.tolist(), depth)
        a, kind = np.asarray(v), v.dtype.kind
        if kind in "Mm":
            a = a.astype(v.dtype.str[:3] + "[us]").astype(object)
        if kind not in "biufc":
            return self.any(a.tolist(), depth)
        if a.dtype.itemsize > (16 if kind == "c" else 8):  # long double
            a = a.astype("c16" if kind == "c" else "f8")
        self._take(min(a.size, 1), a.nbytes * 4 // 3)
        name = a.dtype.newbyteorder("=").name
        raw = a.astype(a.dtype.newbyteorder("<"), order="C", copy=False).tobytes("C")
        return {"$": "array", "dtype": name, "shape": [int(n) for n in a.shape],
                "v": b2a_base64(raw, newline=False).decode("ascii")}


def _iso_datetime(v: Any) -> Any:
    if getattr(v, "nanosecond", 0):
        v = v.floor("us")
    return v.isoformat()


def _seconds(v: Any) -> Any:
    return v.days * 86400.0 + v.seconds + v.microseconds / 1e6


def _numpy(enc: Any, np: Any, v: Any, t: Any, depth: Any) -> Any:
    if issubclass(t, np.ndarray):
        return enc.array(np, v, depth)
    if issubclass(t, np.generic):
        if issubclass(t, (np.datetime64, np.timedelta64)):
            if np.isnat(v):
                return {"$": "na", "t": "logical"}
            return enc.any(v.astype(v.dtype.str[:3] + "[us]").item(), depth)
        x = v.item()
        if isinstance(x, np.generic):  # long double has no other form
            x = complex(x) if isinstance(x, np.complexfloating) else float(x)
        return enc.any(x, depth)
    return NotImplemented


def _pandas(enc: Any, pd: Any, v: Any, t: Any, depth: Any) -> Any:
    if issubclass(t, pd.DataFrame):
        return enc.frame(pd, v, depth)
    if issubclass(t, pd.Series):
        r = enc.column(v, depth)
        if type(r) is dict and r["$"] == "vec" and not isinstance(v.index, pd.RangeIndex):
            r["names"] = [str(x) for x in v.index.tolist()]
        return r
    if issubclass(t, pd.Index):
        return enc.index(pd, v, depth)
    if issubclass(t, pd.api.extensions.ExtensionArray):
        return enc.column(v, depth)
    if v is pd.NA or v is pd.NaT:
        return {"$": "na", "t": "logical"}
    return NotImplemented


def _datetime(enc: Any, dt: Any, v: Any, t: Any, depth: Any) -> Any:
    if issubclass(t, dt.datetime):
        if v is getattr(sys.modules.get("pandas"), "NaT", enc):
            return {"$": "na", "t": "logical"}
        enc._take(1, 40)
        return {"$": "datetime", "v": _iso_datetime(v)}
    if issubclass(t, dt.date):
        enc._take(1, 30)
        return {"$": "date", "v": dt.date.isoformat(v)}
    if issubclass(t, dt.time):
        enc._take(1, 30)
        return {"$": "time", "v": dt.time.isoformat(v)}
    if issubclass(t, dt.timedelta):
        enc._take(1, 30)
        return {"$": "duration", "v": dt.timedelta.total_seconds(v)}
    return NotImplemented


def _decimal(enc: Any, m: Any, v: Any, t: Any, depth: Any) -> Any:
    if issubclass(t, m.Decimal):
        s = m.Decimal.__str__(v)
        enc._take(1, len(s))
        return {"$": "decimal", "v": s}
    return NotImplemented


_LAZY = (("datetime", _datetime), ("decimal", _decimal), ("pandas", _pandas), ("numpy", _numpy))
_FORMS: Any = {list: _Encoder.list, tuple: _Encoder.tuple, dict: _Encoder.dict, set: _Encoder.set,
          frozenset: _Encoder.set, bytes: _Encoder.bytes_, bytearray: _Encoder.bytes_,
          complex: _Encoder.complex}
_BASES: Any = ((int, lambda e, v, d: e.any(int.__add__(v, 0), d)),
          (float, lambda e, v, d: e.any(float.__float__(v), d)),
          (str, lambda e, v, d: e.any(str.__str__(v), d)),
          (dict, _Encoder.dict), (list, _Encoder.list), (tuple, _Encoder.tuple),
          (set, _Encoder.set), (frozenset, _Encoder.set),
          (bytes, lambda e, v, d: e.bytes_(bytes.__getitem__(v, slice(None)), d)),
          (bytearray, lambda e, v, d: e.bytes_(bytearray.__getitem__(v, slice(None)), d)),
          (complex, _Encoder.complex))


# Decoding: the host's messages are trusted to be well-formed, so nothing is checked.

def decode(v: Any) -> Any:
    t = type(v)
    if t is list:
        return [decode(x) for x in v]
    if t is dict:
        tag = v.get("$")
        if tag is None:
            return {k: decode(x) for k, x in v.items()}
        form = _DECODE.get(tag)
        return form(v) if form is not None else v
    return v


def _vec_value(t: Any, x: Any) -> Any:
    if x is None:
        return None
    if t == "float":
        return float(x)
    if t == "complex" and type(x) is list:
        return complex(_part(x[0]), _part(x[1]))
    if t == "date" or t == "datetime":
        return _DECODE[t]({"v": x})
    if t == "duration":
        return _DECODE["duration"]({"v": x})
    return decode(x)


def _part(x: Any) -> Any:
    return float(x["v"]) if type(x) is dict else float(x)


def _d_vec(v: Any) -> Any:
    t = v.get("t")
    return [_vec_value(t, x) for x in v["v"]]


def _d_factor(v: Any) -> Any:
    levels = v["levels"]
    return [None if c is None else levels[c - 1] for c in v["v"]]


def _d_datetime(v: Any) -> Any:
    import datetime
    s = v["v"]
    if s.endswith("Z"):
        s = s[:-1] + "+00:00"
    return datetime.datetime.fromisoformat(s)


def _d_date(v: Any) -> Any:
    import datetime
    return datetime.date.fromisoformat(v["v"])


def _d_time(v: Any) -> Any:
    import datetime
    return datetime.time.fromisoformat(v["v"])


def _d_duration(v: Any) -> Any:
    import datetime
    return datetime.timedelta(seconds=v["v"])


def _d_decimal(v: Any) -> Any:
    import decimal
    return decimal.Decimal(v["v"])


def _d_array(v: Any) -> Any:
    raw = a2b_base64(v["v"])
    try:
        import numpy as np
    except ImportError:
        return _plain_array(raw, v["dtype"], v["shape"])
    a = np.frombuffer(raw, np.dtype(v["dtype"]).newbyteorder("<"))
    return a.astype(v["dtype"]).reshape(v["shape"])


def _plain_array(raw: Any, dtype: Any, shape: Any) -> Any:
    """Nested lists, without numpy."""
    import struct
    code = {"bool": "?", "int8": "b", "uint8": "B", "int16": "h", "uint16": "H", "int32": "i",
            "uint32": "I", "int64": "q", "uint64": "Q", "float16": "e", "float32": "f",
            "float64": "d", "complex64": "f", "complex128": "d"}[dtype]
    flat = list(struct.unpack("<%d%s" % (len(raw) // struct.calcsize(code), code), raw))
    if dtype.startswith("complex"):
        flat = [complex(a, b) for a, b in zip(flat[::2], flat[1::2])]
    for n in reversed(shape[1:]):
        flat = [flat[i:i + n] for i in range(0, len(flat), n)] if n else []
    return flat if shape else flat[0]


def _d_frame(v: Any) -> Any:
    try:
        import pandas as pd
    except ImportError:
        return {k if type(k) is str else str(decode(k)): decode(c)
                for k, c in zip(v["names"], v["columns"])}
    cols = [_pd_column(pd, c) for c in v["columns"]]
    index = v.get("index")
    if index is None:
        index = pd.RangeIndex(v.get("rows", len(cols[0]) if cols else 0))
    elif type(index) is list:
        index = pd.MultiIndex.from_tuples(decode(index))
    else:
        index = pd.Index(_pd_column(pd, index))
    names = [decode(n) for n in v["names"]]
    frame = pd.DataFrame({i: c for i, c in enumerate(cols)}, index=range(len(index)))
    frame.columns = pd.MultiIndex.from_tuples(names) if names and type(names[0]) is tuple else names
    frame.index = index
    return frame


def _pd_column(pd: Any, c: Any) -> Any:
    if type(c) is not dict:
        return decode(c)
    if c.get("$") == "factor":
        codes = [-1 if x is None else x - 1 for x in c["v"]]
        return pd.Categorical.from_codes(codes, c["levels"], ordered=bool(c.get("ordered")))
    if c.get("$") != "vec":
        return decode(c)
    t, v = c.get("t"), c["v"]
    if t == "float":
        return [float("nan") if x is None else float(x) for x in v]
    data = [_vec_value(t, x) for x in v]
    holes = any(x is None for x in v)
    if t == "int":
        return pd.array(data, dtype="Int64") if holes else pd.array(data, dtype="int64")
    if t == "logical":
        return pd.array(data, dtype="boolean") if holes else data
    if t == "datetime":
        return pd.to_datetime(data)
    if t == "duration":
        return pd.to_timedelta(data)
    return pd.array(data, dtype=object) if t in ("string", "date") else data


def _no_value(v: Any) -> Any:
    pd = sys.modules.get("pandas")
    return pd.NA if pd is not None else None


_DECODE: Any = {
    "int": lambda v: _int_parse(v["v"]),
    "float": lambda v: float(v["v"]),
    "na": _no_value,
    "bytes": lambda v: a2b_base64(v["v"]),
    "date": _d_date, "datetime": _d_datetime, "time": _d_time,
    "duration": _d_duration, "decimal": _d_decimal,
    "complex": lambda v: complex(_part(v["v"][0]), _part(v["v"][1])),
    "tuple": lambda v: tuple(decode(v["v"])),
    "set": lambda v: set(decode(v["v"])),
    "map": lambda v: {decode(k): decode(x) for k, x in v["v"]},
    "vec": _d_vec, "factor": _d_factor, "array": _d_array, "frame": _d_frame,
    "repr": lambda v: v["v"],
}
