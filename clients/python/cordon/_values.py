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


def encode(v: Any, limit: Any, columns: Any = None) -> Any:
    """The JSON form of v; limit: its maximum size in bytes when written; columns: takes its large parts (cordon_columns)."""
    t = type(v)
    if t in _SIMPLE:
        if t is str and len(v) > limit:
            raise ValueFormError("the value is too large (more than %d bytes)" % limit)
        return v
    if t is int:
        return v if _INT_MIN <= v <= _INT_MAX else {"$": "int", "v": int_text(v)}
    if t is float:
        return _float(v)
    return _Encoder(limit, columns).any(v, 1)


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


class Handle(str):
    """An object that stays in its session: a function, an environment or a connection of R's. As a
    text it is what the session prints of it; in a context, and as a tool's result, it is the object."""
    id = type_name = ""


class Record(dict):  # type: ignore[type-arg]
    """The fields of an object of another place, by name, and the name of its class."""
    type_name = ""

    def __getattr__(self, name: Any) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __repr__(self) -> Any:
        return "%s(%s)" % (self.type_name, ", ".join("%s=%r" % x for x in self.items()))


_bases_of = type.__dict__["__mro__"].__get__  # type: ignore
_names_of = type.__dict__["__dict__"].__get__  # type: ignore


def _declared(t: Any, name: Any) -> Any:
    """What a class or its bases declare under this name, past whatever a metaclass does."""
    for base in _bases_of(t):
        names = _names_of(base)
        if name in names:
            return names[name]
    return None


class _Encoder:
    __slots__ = ("left", "bytes", "limit", "path", "columns")

    def __init__(self, limit: Any, columns: Any = None) -> None:
        self.columns = columns
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
        n = list.__len__(v)
        ref = self.columns.sequence(list.copy(v)) if self.columns is not None and n >= 8192 else None
        if ref is not None:
            self._take(1, 40)
            return {"$": "list", "v": ref}
        self._enter(v)
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
        if issubclass(type(v), set):
            return {"$": "set", "v": self.items(set.__iter__(v), depth + 1)}
        return {"$": "set", "v": self.items(frozenset.__iter__(v), depth + 1), "frozen": True}

    def named_tuple(self, v: Any, depth: Any) -> Any:
        """A subclass of tuple, with its fields if it is a named one."""
        names = _declared(type(v), "_fields")
        r = self.tuple(v, depth)
        if (type(names) is tuple and len(names) == len(r["v"])
                and all(type(n) is str for n in names)):
            self._take(len(names), sum(map(len, names)))
            return {"$": "record", "class": _type_name(type(v)), "names": list(names),
                    "v": r["v"], "tuple": True}
        return r

    def record(self, v: Any, names: Any, depth: Any) -> Any:
        """The fields of a dataclass."""
        self._enter(v)
        self._take(len(names), sum(map(len, names)))
        fields = self.items([object.__getattribute__(v, n) for n in names], depth + 1)
        self.path.discard(id(v))
        return {"$": "record", "class": _type_name(type(v)), "names": names, "v": fields}

    def own_record(self, v: Any, depth: Any) -> Any:
        self._enter(v)
        r = {"$": "record", "class": v.type_name, "names": [str(n) for n in dict.keys(v)],
             "v": self.items(dict.values(v), depth + 1)}
        self.path.discard(id(v))
        return r

    def handle(self, v: Any, depth: Any) -> Any:
        self._take(1, len(v.id))
        return {"$": "handle", "id": v.id}

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
        if self.columns is not None and len(v) >= self.columns.floor:
            self._take(1, 40)
            return {"$": "bytes", "v": self.columns.add("uint8", len(v), v)}
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
        fields = _declared(t, "__dataclass_fields__")
        if type(fields) is dict and all(type(n) is str for n in fields):
            try:
                return self.record(v, list(fields), depth)
            except AttributeError:
                pass  # a field without a value
        return self.repr(v, t)


# Tables: numpy and pandas have a file of their own, which is loaded when a value needs it.

def load_tables() -> Any:
    from . import _tables
    return _tables


_table_module: Any = None


def _tables() -> Any:
    global _table_module
    if _table_module is None:
        _table_module = load_tables()
        _table_module.begin(decode, _vec_value, ValueFormError)
    return _table_module


def _numpy(enc: Any, np: Any, v: Any, t: Any, depth: Any) -> Any:
    if issubclass(t, (np.ndarray, np.generic)):
        return _tables().numpy_form(enc, np, v, t, depth)
    return NotImplemented


def _pandas(enc: Any, pd: Any, v: Any, t: Any, depth: Any) -> Any:
    if v is pd.NA or v is pd.NaT:
        return {"$": "na", "t": "logical"}
    if issubclass(t, (pd.DataFrame, pd.Series, pd.Index, pd.Timestamp, pd.Timedelta,
                      pd.api.extensions.ExtensionArray)):
        return _tables().pandas_form(enc, pd, v, t, depth)
    return NotImplemented


def _datetime(enc: Any, dt: Any, v: Any, t: Any, depth: Any) -> Any:
    if issubclass(t, dt.datetime):
        enc._take(1, 40)
        r = {"$": "datetime", "v": dt.datetime.isoformat(v)}
        zone = getattr(v.tzinfo, "key", None)
        if type(zone) is str and zone != "UTC":
            r["tz"] = zone
        return r
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


_LAZY = (("pandas", _pandas), ("datetime", _datetime), ("decimal", _decimal), ("numpy", _numpy))
_FORMS: Any = {list: _Encoder.list, tuple: _Encoder.tuple, dict: _Encoder.dict, set: _Encoder.set,
          frozenset: _Encoder.set, bytes: _Encoder.bytes_, bytearray: _Encoder.bytes_,
          complex: _Encoder.complex, Handle: _Encoder.handle, Record: _Encoder.own_record}
_BASES: Any = ((int, lambda e, v, d: e.any(int.__add__(v, 0), d)),
          (float, lambda e, v, d: e.any(float.__float__(v), d)),
          (str, lambda e, v, d: e.any(str.__str__(v), d)),
          (dict, _Encoder.dict), (list, _Encoder.list), (tuple, _Encoder.named_tuple),
          (set, _Encoder.set), (frozenset, _Encoder.set),
          (bytes, lambda e, v, d: e.bytes_(bytes.__getitem__(v, slice(None)), d)),
          (bytearray, lambda e, v, d: e.bytes_(bytearray.__getitem__(v, slice(None)), d)),
          (complex, _Encoder.complex))


# Decoding. A guest trusts the host's messages to be well-formed. A client must not: there a form that
# is none stays the object that it is.
_IS_CLIENT = bool(__package__)


def decode(v: Any) -> Any:
    t = type(v)
    if t is list:
        return [decode(x) for x in v]
    if t is dict:
        tag = v.get("$")
        if tag is None:
            return {k: decode(x) for k, x in v.items()}
        form = _DECODE.get(tag) if type(tag) is str else None
        if form is None:
            return v
        try:
            return form(v)
        except Exception:
            if not _IS_CLIENT:
                raise
            return v
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
    return float("nan") if x is None else float(x["v"]) if type(x) is dict else float(x)


def _d_vec(v: Any) -> Any:
    t, dtype = v.get("t"), v.get("dtype")
    if dtype is not None:
        r = _tables().column(v)
        if r is not NotImplemented:
            return r
    if type(v["v"]) is not list:  # a binary column
        return v["v"].vector(v)
    if t == "datetime" and v.get("tz"):
        return [None if x is None else _d_datetime({"v": x, "tz": v["tz"]}) for x in v["v"]]
    return [_vec_value(t, x) for x in v["v"]]


def _d_factor(v: Any) -> Any:
    if v.get("dtype") == "category":
        r = _tables().column(v)
        if r is not NotImplemented:
            return r
    levels = v["levels"]
    if type(v["v"]) is not list:
        return [None if c is None else levels[c - 1] for c in v["v"].tolist()]
    return [None if c is None else levels[c - 1] for c in v["v"]]


def _d_datetime(v: Any) -> Any:
    import datetime
    if "ns" in v:
        r = _tables().timestamp(v)
        if r is not NotImplemented:
            return r
    s, at = v["v"], 0
    if s.endswith("Z"):
        s = s[:-1] + "+00:00"
    dot = s.find(".")
    if dot >= 0:  # more digits than a datetime has
        at = dot + 1
        while at < len(s) and s[at].isdigit():
            at += 1
        s = s[:dot + 1] + (s[dot + 1:at] + "000000")[:6] + s[at:]
    r = datetime.datetime.fromisoformat(s)
    zone = v.get("tz")
    if zone and r.tzinfo is not None:
        try:
            import zoneinfo
            return r.astimezone(zoneinfo.ZoneInfo(zone))
        except Exception:
            return r  # a zone that is not known here
    return r


def _d_date(v: Any) -> Any:
    import datetime
    return datetime.date.fromisoformat(v["v"])


def _d_time(v: Any) -> Any:
    import datetime
    return datetime.time.fromisoformat(v["v"])


def _d_duration(v: Any) -> Any:
    import datetime
    if "ns" in v:
        r = _tables().timedelta(v)
        if r is not NotImplemented:
            return r
    return datetime.timedelta(seconds=v["v"])


def _d_decimal(v: Any) -> Any:
    import decimal
    return decimal.Decimal(v["v"])


def _no_value(v: Any) -> Any:
    pd = sys.modules.get("pandas")
    return pd.NA if pd is not None else None


def _d_set(v: Any) -> Any:
    items = decode(v["v"])
    try:
        return frozenset(items) if v.get("frozen") else set(items)
    except TypeError:
        return items  # of another language, where lists can be elements


def _d_map(v: Any) -> Any:
    pairs = [(decode(k), decode(x)) for k, x in v["v"]]
    try:
        return dict(pairs)
    except TypeError:
        return pairs


_named: Any = {}


def _d_record(v: Any) -> Any:
    names, values, name = v["names"], decode(v["v"]), v["class"]
    if not v.get("tuple"):
        r = Record(zip(names, values))
        r.type_name = name
        return r
    key = (name, tuple(names))
    made = _named.get(key)
    if made is None:
        import collections
        if len(_named) > 255:
            _named.clear()
        try:
            made = _named[key] = collections.namedtuple(name, names)
        except ValueError:  # no names of Python's
            return tuple(values)
    return made(*values)


def _d_handle(v: Any) -> Any:
    r = Handle(v.get("v", ""))
    r.id, r.type_name = v["id"], v.get("class", "")
    return r


def _d_attr(v: Any) -> Any:
    """The object without what only R knows of it. An array with names is a table."""
    base = v["v"]
    if type(base) is dict and base.get("$") == "array" and "dimnames" in base:
        return _tables().labelled(base, {k: x for k, x in v.get("attr", ())})
    return decode(base)


def _d_error(v: Any) -> Any:
    """An error of JavaScript: its fields."""
    r = Record({"message": v["message"], "stack": v.get("stack", "")})
    r.update((k, decode(x)) for k, x in v.get("fields", ()))
    r.type_name = v["class"]
    return r


def _table(name: Any) -> Any:
    return lambda v: getattr(_tables(), name)(v)


_DECODE: Any = {
    "int": lambda v: _int_parse(v["v"]),
    "float": lambda v: float(v["v"]),
    "na": _no_value,
    "bytes": lambda v: a2b_base64(v["v"]) if type(v["v"]) is str else bytes(v["v"].values),
    "list": lambda v: v["v"].tolist(),
    "date": _d_date, "datetime": _d_datetime, "time": _d_time,
    "duration": _d_duration, "decimal": _d_decimal,
    "complex": lambda v: complex(_part(v["v"][0]), _part(v["v"][1])),
    "tuple": lambda v: tuple(decode(v["v"])),
    "set": _d_set, "map": _d_map, "record": _d_record,
    "vec": _d_vec, "factor": _d_factor, "array": _table("array"), "frame": _table("frame"),
    "series": _table("series"), "index": _table("index"), "struct": _table("struct"),
    "attr": _d_attr, "handle": _d_handle, "error": _d_error,
    "s4": lambda v: {k: decode(x) for k, x in v["slots"]},
    "lang": lambda v: v["text"], "env": lambda v: v["v"],
    "repr": lambda v: v["v"],
}
