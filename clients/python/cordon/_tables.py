# cordon_tables.py - arrays of numpy and tables of pandas to and from tagged JSON (docs/values.md). Loaded when a value
# needs it. Encoding runs only where the code has imported the library; decoding imports it if it is installed.
import re
import sys
from binascii import a2b_base64, b2a_base64

TYPE_CHECKING = False  # set by type checkers; importing typing costs too much in a session
if TYPE_CHECKING:
    from typing import Any
else:
    Any = object

_INF = float("inf")
# What each type of vector is without a dtype: with no value missing, and with some.
_DEFAULTS = {"float": ("float64", "float64"), "int": ("int64", "Int64"), "logical": ("bool", "boolean"),
             "string": ("object", "object"), "date": ("object", "object")}
# The dtypes that are made of a name.
_DTYPE = re.compile(r"(?:[uU]?[iI]nt(?:8|16|32|64)|[fF]loat(?:16|32|64)|bool(?:ean)?|object|complex(?:64|128)"
                    r"|string(?:\[\w+\])?|(?:u?int(?:8|16|32|64)|float|double|bool|string)\[pyarrow\]"
                    r"|datetime64\[\w+(?:, [\w/+:-]+)?\]|timedelta64\[\w+\]|period\[[\w-]+\])\Z")
_FIELD = re.compile(r"[<>|=]?[biufcSUmM?]\d*(?:\[\w+\])?\Z")

decode: Any = None
vec_value: Any = None
FormError: Any = ValueError


def begin(decode_: Any, vec_value_: Any, error: Any) -> None:
    """The functions of cordon_values.py that this uses: neither file can import the other in a guest."""
    global decode, vec_value, FormError
    decode, vec_value, FormError = decode_, vec_value_, error


def _vec_float(v: Any) -> Any:
    """A float inside a vector: a value that is not finite is a string there."""
    if -_INF < v < _INF:
        return v
    return "nan" if v != v else "inf" if v > 0 else "-inf"


def _pandas() -> Any:
    try:
        import pandas
        return pandas
    except ImportError:
        return None


# ---- numpy, to JSON

def numpy_form(enc: Any, np: Any, v: Any, t: Any, depth: Any) -> Any:
    if issubclass(t, np.ndarray):
        return _array_form(enc, np, v, depth)
    if issubclass(t, np.void) and v.dtype.names:
        return enc.items(v.item(), depth) if v.dtype.hasobject else {
            "$": "record", "class": "void", "names": list(v.dtype.names), "v": enc.items(v.item(), depth + 1)}
    if issubclass(t, (np.datetime64, np.timedelta64)):
        if np.isnat(v):
            return {"$": "na", "t": "logical"}
        return enc.any(v.astype(v.dtype.str[:3] + "[us]").item(), depth)
    x = v.item()
    if isinstance(x, np.generic):  # long double has no other form
        x = complex(x) if isinstance(x, np.complexfloating) else float(x)
    return enc.any(x, depth)


def _array_form(enc: Any, np: Any, v: Any, depth: Any) -> Any:
    if isinstance(v, np.ma.MaskedArray):
        return enc.items(v.tolist(), depth) if v.ndim else enc.any(v.tolist(), depth)
    a, kind = np.asarray(v), v.dtype.kind
    if kind == "V" and v.dtype.names and not v.dtype.hasobject:
        return _struct_form(enc, np, a, depth)
    if kind in "Mm":
        a = a.astype(v.dtype.str[:3] + "[us]").astype(object)
    if kind not in "biufc":
        return enc.any(a.tolist(), depth)
    if a.dtype.itemsize > (16 if kind == "c" else 8):  # long double
        a = a.astype("c16" if kind == "c" else "f8")
    ref = enc.columns.array(a) if enc.columns is not None and a.nbytes >= enc.columns.floor else None
    enc._take(min(a.size, 1), 80 if ref else a.nbytes * 4 // 3)
    name = a.dtype.newbyteorder("=").name
    if ref:
        return {"$": "array", "dtype": name, "shape": [int(n) for n in a.shape], "v": ref}
    raw = a.astype(a.dtype.newbyteorder("<"), order="C", copy=False).tobytes("C")
    return {"$": "array", "dtype": name, "shape": [int(n) for n in a.shape],
            "v": b2a_base64(raw, newline=False).decode("ascii")}


def _struct_form(enc: Any, np: Any, a: Any, depth: Any) -> Any:
    """A structured array by its fields."""
    if depth + 3 > 60:
        raise FormError("the value is nested too deeply")
    return {"$": "struct", "names": list(a.dtype.names), "shape": [int(n) for n in a.shape],
            "dtypes": [a.dtype[n].base.str for n in a.dtype.names],
            "columns": [_array_form(enc, np, a[n], depth + 2) for n in a.dtype.names]}


# ---- pandas, to JSON

def pandas_form(enc: Any, pd: Any, v: Any, t: Any, depth: Any) -> Any:
    if issubclass(t, pd.DataFrame):
        return _frame_form(enc, pd, v, depth)
    if issubclass(t, pd.Series):
        r = {"$": "series", "v": _column_form(enc, pd, v, depth + 1, True)}
        if v.name is not None:
            r["name"] = enc.any(v.name, depth + 1)
        _put_index(enc, pd, r, v.index, depth)
        return r
    if issubclass(t, pd.Index):
        r = {"$": "index", "v": _index_form(enc, pd, v, depth + 1)}
        if any(n is not None for n in v.names):
            r["names"] = [enc.any(n, depth + 2) for n in v.names]
        return r
    if issubclass(t, pd.Timestamp):
        enc._take(1, 60)
        r = {"$": "datetime", "v": v.isoformat(), "ns": True}
        zone = _zone_name(v.tz)
        if zone:
            r["tz"] = zone
        return r
    if issubclass(t, pd.Timedelta):
        enc._take(1, 40)
        return {"$": "duration", "v": v.value / 1e9, "ns": int(v.value)}
    return _column_form(enc, pd, v, depth, True)


def _zone_name(tz: Any) -> Any:
    """The name of a time zone, if it is one of the database."""
    name = getattr(tz, "key", None) or getattr(tz, "zone", None)
    return name if isinstance(name, str) and name != "UTC" else None


def _column_form(enc: Any, pd: Any, values: Any, depth: Any, is_alone: Any = False) -> Any:
    """A Series, Index or extension array as a vec, factor, or list; alone: not in a frame, which says what it is."""
    r = _plain_column(enc, pd, values, depth)
    if type(r) is dict:
        holes = None in r["v"]
        dtype = "category" if r["$"] == "factor" else str(values.dtype)
        default = _DEFAULTS.get(r.get("t", ""), (None, None))[holes]
        if r["$"] == "factor":
            default = "category"
        elif r["t"] in ("datetime", "duration"):
            default = "datetime64[ns]" if r["t"] == "datetime" else "timedelta64[ns]"
            zone = _zone_name(getattr(values.dtype, "tz", None))
            if zone:
                r["tz"] = zone
            elif getattr(values.dtype, "tz", None) is not None:
                default = dtype
        if dtype != default or is_alone:
            r["dtype"] = dtype
    return r


def _plain_column(enc: Any, pd: Any, values: Any, depth: Any) -> Any:
    import numpy as np
    dtype = values.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return _factor_form(enc, pd, getattr(values, "array", values), depth)
    n = len(values)
    r = enc.columns.series(pd, values) if enc.columns is not None and n * 8 >= enc.columns.floor else None
    if r is not None:
        enc._take(1, 60)
        return r
    enc._take(n, 2 * n)
    kind = getattr(dtype, "kind", "O")
    if kind == "f" and isinstance(dtype, np.dtype):
        return {"$": "vec", "t": "float", "v": [_vec_float(x) for x in np.asarray(values, float).tolist()]}
    if kind in "biu" and isinstance(dtype, np.dtype):
        return {"$": "vec", "t": "logical" if kind == "b" else "int",
                "v": [enc.any(x, depth + 3) for x in values.tolist()]}
    if kind == "M":
        return {"$": "vec", "t": "datetime", "v": [None if x is pd.NaT else x.isoformat() for x in pd.Series(values)]}
    if kind == "m":
        return _durations(pd, values)
    data = list(values)
    missing = [x is None or x is pd.NA or x is pd.NaT or (type(x) is float and x != x) for x in data]
    present = {type(x) for x, m in zip(data, missing) if not m}
    if isinstance(dtype, pd.PeriodDtype):
        return {"$": "vec", "t": "string", "v": [None if m else str(x) for x, m in zip(data, missing)]}
    if present <= {str} and kind not in "biuf":
        for x, m in zip(data, missing):
            enc._take(0, 0 if m else len(x))
        return {"$": "vec", "t": "string", "v": [None if m else x for x, m in zip(data, missing)]}
    if kind in "biuf":  # pandas' own dtypes, with missing values
        convs: Any = {"b": ("logical", bool), "f": ("float", lambda x: _vec_float(float(x)))}
        t, conv = convs.get(kind, ("int", int))
        return {"$": "vec", "t": t, "v": [None if m else conv(x) for x, m in zip(data, missing)]}
    return enc.items(data, depth)


def _durations(pd: Any, values: Any) -> Any:
    series = pd.Series(values)
    seconds: Any = [None if x is pd.NaT else x.value / 1e9 for x in series]
    r = {"$": "vec", "t": "duration", "v": seconds}
    ns = [None if x is pd.NaT else int(x.value) for x in series]
    if any(n is not None and round(s * 1e9) != n for s, n in zip(seconds, ns)):
        r["ns"] = ns
    return r


def _factor_form(enc: Any, pd: Any, cat: Any, depth: Any) -> Any:
    if enc.columns is not None and len(cat.codes) * 4 >= enc.columns.floor:
        codes = enc.columns.codes(cat.codes)
    else:
        codes = [None if c < 0 else c + 1 for c in cat.codes.tolist()]
        enc._take(len(codes), 2 * len(codes))
    levels = [x if type(x) is str else str(x) for x in cat.categories]
    r = {"$": "factor", "levels": levels, "v": codes, "ordered": bool(cat.ordered)}
    if any(type(x) is not str for x in cat.categories):
        r["categories"] = _column_form(enc, pd, cat.categories, depth + 1)
    return r


def _frame_form(enc: Any, pd: Any, v: Any, depth: Any) -> Any:
    enc._enter(v)
    floor = None if enc.columns is None else enc.columns.floor
    if floor is not None and v.size * 8 >= floor:
        enc.columns.floor = 1024  # many short columns may be as large as a few long ones
    r = {"$": "frame", "names": [enc.any(x, depth + 2) for x in v.columns.tolist()],
         "columns": [_column_form(enc, pd, v.iloc[:, i], depth + 2) for i in range(v.shape[1])],
         "rows": int(v.shape[0])}
    if any(n is not None for n in v.columns.names):
        r["columns_names"] = [enc.any(n, depth + 2) for n in v.columns.names]
    _put_index(enc, pd, r, v.index, depth)
    if floor is not None:
        enc.columns.floor = floor
    enc.path.discard(id(v))
    return r


def _put_index(enc: Any, pd: Any, r: Any, index: Any, depth: Any) -> None:
    """0, 1, 2, … is not written."""
    if not isinstance(index, pd.RangeIndex) or index.start != 0 or index.step != 1:
        r["index"] = _index_form(enc, pd, index, depth + 1)
    if any(n is not None for n in index.names):
        r["index_names"] = [enc.any(n, depth + 2) for n in index.names]


def _index_form(enc: Any, pd: Any, v: Any, depth: Any) -> Any:
    if isinstance(v, pd.MultiIndex):
        return enc.items(v.tolist(), depth)
    r = _column_form(enc, pd, v, depth)
    if isinstance(v, pd.RangeIndex):
        r["range"] = [v.start, v.stop, v.step]
    freq = getattr(v, "freqstr", None)
    if type(r) is dict and r["$"] == "vec" and r["t"] == "datetime" and isinstance(freq, str):
        r["freq"] = freq
    return r


# ---- from JSON

def is_binary(c: Any) -> Any:
    """Whether the elements of a form are a binary column (cordon_columns)."""
    return type(c) is dict and type(c.get("v")) not in (list, str, dict)


def array(v: Any) -> Any:
    raw = v["v"].values if is_binary(v) else a2b_base64(v["v"])
    try:
        import numpy as np
    except ImportError:
        return _plain_array(raw, v["dtype"], v["shape"])
    if is_binary(v):
        return v["v"].array(np, v)
    a = np.frombuffer(raw, np.dtype(v["dtype"]).newbyteorder("<"))
    return a.astype(v["dtype"]).reshape(v["shape"])


def _plain_array(raw: Any, dtype: Any, shape: Any) -> Any:
    """Nested lists, without numpy."""
    import struct as binary
    code = {"bool": "?", "int8": "b", "uint8": "B", "int16": "h", "uint16": "H", "int32": "i",
            "uint32": "I", "int64": "q", "uint64": "Q", "float16": "e", "float32": "f",
            "float64": "d", "complex64": "f", "complex128": "d"}[dtype]
    flat = list(binary.unpack("<%d%s" % (len(raw) // binary.calcsize(code), code), raw))
    if dtype.startswith("complex"):
        flat = [complex(a, b) for a, b in zip(flat[::2], flat[1::2])]
    for n in reversed(shape[1:]):
        flat = [flat[i:i + n] for i in range(0, len(flat), n)] if n else []
    return flat if shape else flat[0]


def struct(v: Any) -> Any:
    """A structured array; without numpy the fields by name."""
    columns = [decode(c) for c in v["columns"]]
    try:
        import numpy as np
    except ImportError:
        return dict(zip(v["names"], columns))
    shape, fields = tuple(v["shape"]), []
    for name, dtype, column_ in zip(v["names"], v["dtypes"], columns):
        if not _FIELD.match(dtype):
            raise ValueError("no dtype: %r" % (dtype,))
        fields.append((name, dtype, np.shape(column_)[len(shape):]))
    out = np.empty(shape, dtype=fields)
    for name, column_ in zip(v["names"], columns):
        out[name] = column_
    return out


def labelled(base: Any, attributes: Any) -> Any:
    """An array of R's with names: a table, or what tapply() gives."""
    names, a = base["dimnames"], array(base)
    titles = decode(attributes["dimnames"]) if "dimnames" in attributes else None
    keys = [k or None for k in titles] if isinstance(titles, dict) else [None] * len(names)
    pd = _pandas()
    classes = decode(attributes.get("class", []))
    is_table = "table" in classes if isinstance(classes, (list, str)) else False
    if len(names) == 1 and names[0] is not None:
        if pd is None:
            return dict(zip(names[0], a))
        return pd.Series(a, index=pd.Index(names[0], name=keys[0]))
    if len(names) == 2 and is_table and pd is not None and None not in names:
        return pd.DataFrame(a, index=pd.Index(names[0], name=keys[0]), columns=pd.Index(names[1], name=keys[-1]))
    return a


def frame(v: Any) -> Any:
    pd = _pandas()
    if pd is None:
        return {k if type(k) is str else str(decode(k)): decode(c) for k, c in zip(v["names"], v["columns"])}
    binary = [c["v"] for c in v["columns"] if is_binary(c) and c.get("$") == "vec"]
    whole = binary[0].block(v["columns"]) if binary else None
    cols = [] if whole is not None else [_in_frame(pd, _column(pd, c)) for c in v["columns"]]
    index = _index(pd, v, v.get("rows", len(cols[0]) if cols else 0))
    names = [decode(n) for n in v["names"]]
    if whole is not None:
        out = pd.DataFrame(whole.T, index=range(len(index)), copy=False)
    else:
        out = pd.DataFrame({i: c for i, c in enumerate(cols)}, index=range(len(index)), copy=not binary)
    out.columns = pd.MultiIndex.from_tuples(names) if names and type(names[0]) is tuple else names
    out.index = index
    if v.get("columns_names"):
        out.columns.names = [decode(n) for n in v["columns_names"]]
    return out


def _in_frame(pd: Any, c: Any) -> Any:
    """Columns of R's that are matrices or frames: a row of them in each cell."""
    if isinstance(c, pd.DataFrame):
        return c.to_dict("records")
    if getattr(c, "ndim", 1) > 1:
        return list(c)
    return list(c) if isinstance(c, bytes) else c


def _index(pd: Any, v: Any, rows: Any) -> Any:
    index = v.get("index")
    if index is None:
        index = pd.RangeIndex(rows)
    else:
        index = _index_of(pd, index)
    if v.get("index_names"):
        index.names = [decode(n) for n in v["index_names"]]
    return index


def _index_of(pd: Any, form: Any) -> Any:
    if type(form) is list:
        items = decode(form)
        return pd.MultiIndex.from_tuples(items) if items and type(items[0]) is tuple else pd.Index(items)
    if type(form) is dict and form.get("range"):
        return pd.RangeIndex(*form["range"])
    index = pd.Index(_column(pd, form))
    if type(form) is dict and form.get("freq"):
        try:
            index.freq = form["freq"]
        except Exception:
            pass  # a name of another version
    return index


def series(v: Any) -> Any:
    pd = _pandas()
    if pd is None:
        values, index = decode(v["v"]), v.get("index")
        return values if index is None else dict(zip(decode(index), values))
    values = _column(pd, v["v"])
    return pd.Series(values, index=_index(pd, v, len(values)), name=decode(v.get("name")))


def index(v: Any) -> Any:
    pd = _pandas()
    if pd is None:
        return decode(v["v"])
    out = _index_of(pd, v["v"])
    if v.get("names"):
        out.names = [decode(n) for n in v["names"]]
    return out


def column(v: Any) -> Any:
    """An extension array of pandas, outside of a frame."""
    pd = _pandas()
    return NotImplemented if pd is None else _column(pd, v)


def timestamp(v: Any) -> Any:
    pd = _pandas()
    if pd is None:
        return NotImplemented
    t = pd.Timestamp(v["v"])
    return t.tz_convert(v["tz"]) if v.get("tz") else t


def timedelta(v: Any) -> Any:
    pd = _pandas()
    return NotImplemented if pd is None else pd.Timedelta(v["ns"], unit="ns")


def _column(pd: Any, c: Any) -> Any:
    if type(c) is not dict:
        return decode(c)
    tag = c.get("$")
    if tag == "attr" and type(c["v"]) is dict and c["v"].get("$") in ("vec", "factor"):
        return _column(pd, c["v"])
    if tag == "factor":
        codes = c["v"].codes() if is_binary(c) else [-1 if x is None else x - 1 for x in c["v"]]
        levels = _column(pd, c["categories"]) if "categories" in c else c["levels"]
        return pd.Categorical.from_codes(codes, levels, ordered=bool(c.get("ordered")))
    if tag != "vec":
        return decode(c)
    return _typed(pd, c, _untyped(pd, c))


def _typed(pd: Any, c: Any, data: Any) -> Any:
    dtype = c.get("dtype")
    if type(dtype) is not str or not _DTYPE.match(dtype) or str(getattr(data, "dtype", "")) == dtype:
        return data
    try:
        if dtype == "object":
            data = [None if x is pd.NA else x for x in data]
        return pd.array(data, dtype=dtype)
    except Exception:
        return data  # a dtype of another version


def _untyped(pd: Any, c: Any) -> Any:
    t, v = c.get("t"), c["v"]
    if is_binary(c):
        return v.series(pd, c)
    if t == "float":
        if str(c.get("dtype", "")).startswith("F"):
            return pd.array([None if x is None else float(x) for x in v], dtype="Float64")
        return [float("nan") if x is None else float(x) for x in v]
    holes = any(x is None for x in v)
    if t == "datetime":
        times = pd.DatetimeIndex([pd.NaT if x is None else pd.Timestamp(x) for x in v])
        zone = c.get("tz")
        return times.tz_convert(zone) if zone and times.tz is not None else times
    if t == "duration":
        ns = c.get("ns") or [None if x is None else round(float(x) * 1e9) for x in v]
        return pd.to_timedelta([pd.NaT if x is None else x for x in ns], unit="ns")
    data = [vec_value(t, x) for x in v]
    if t == "int":
        return pd.array(data, dtype="Int64") if holes else pd.array(data, dtype="int64")
    if t == "logical":
        return pd.array(data, dtype="boolean") if holes else data
    return pd.array(data, dtype=object) if t in ("string", "date") else data
