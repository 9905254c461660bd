# cordon_columns.py - binary columns (docs/values.md): the large parts of a value, beside its JSON. The guest and the
# client use it. numpy and pandas are used only where the value has them.
import sys

TYPE_CHECKING = False  # set by type checkers; importing typing costs too much in a session
if TYPE_CHECKING:
    from typing import Any
else:
    Any = object

THRESHOLD = 65536  # a part of a value that has fewer bytes stays in the JSON
FRAME_FLOOR = 1024  # the same for a column, if its data frame has more than THRESHOLD
LIST_MIN = 8192  # elements
ALIGN = 64
_PAD = bytes(ALIGN)
_CODES: Any = {"bool8": "?", "int8": "b", "uint8": "B", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I",
               "int64": "q", "uint64": "Q", "float16": "e", "float32": "f", "float64": "d", "complex64": "f",
               "complex128": "d"}
_WIDTHS: Any = {"bool8": 1, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8,
                "uint64": 8, "float16": 2, "float32": 4, "float64": 8, "complex64": 8, "complex128": 16}
IS_POSSIBLE = sys.byteorder == "little"


class Writer:
    """Collects columns. The parts refer to the values' own memory, and are written out later, in order."""
    __slots__ = ("limit", "error", "bytes", "parts", "table", "floor")

    def __init__(self, limit: Any = None, error: Any = ValueError) -> None:
        """limit: of the bytes; beyond it, error is raised."""
        self.limit, self.error = limit, error
        self.bytes = 0
        self.parts: Any = []
        self.table: Any = []
        self.floor = THRESHOLD

    def header(self) -> Any:
        return {"bytes": self.bytes, "columns": self.table}

    def _part(self, data: Any) -> Any:
        view = memoryview(data)
        if view.format != "B" or view.ndim != 1:
            view = view.cast("B")
        pad = -self.bytes % ALIGN
        if self.limit is not None and self.bytes + pad + len(view) > self.limit:
            raise self.error("the value is too large (more than %d bytes); the policy's value_bytes raises the limit"
                                  % self.limit)
        if pad:
            self.parts.append(memoryview(_PAD)[:pad])
        at = self.bytes + pad
        self.parts.append(view)
        self.bytes = at + len(view)
        return at

    def add(self, name: Any, count: Any, data: Any, validity: Any = None) -> Any:
        """data: any contiguous memory of that type; validity: None, or its bits."""
        column: Any = {"type": name, "count": count}
        if validity is not None:
            column["validity"] = self._part(validity)
        column["values"] = self._part(data) if count else self._part(b"")
        self.table.append(column)
        return {"$buf": len(self.table) - 1}

    def texts(self, texts: Any) -> Any:
        """A list of str and None."""
        from array import array
        from itertools import accumulate
        n = len(texts)
        column: Any = {"type": "utf8", "count": n}
        if None in texts:
            column["validity"] = self._part(pack_bits([x is not None for x in texts]))
            texts = ["" if x is None else x for x in texts]
        joined = "".join(texts)
        if joined.isascii():
            data, sizes = joined.encode(), map(len, texts)
        else:
            encoded = [_utf8(x) for x in texts]
            data, sizes = b"".join(encoded), map(len, encoded)
        if len(data) >= 1 << 31:
            column["type"] = "large_utf8"
        column["offsets"] = self._part(array("q" if len(data) >= 1 << 31 else "i", accumulate(sizes, initial=0)))
        column["bytes"] = len(data)
        column["values"] = self._part(data)
        self.table.append(column)
        return {"$buf": len(self.table) - 1}

    def sequence(self, v: Any) -> Any:
        """A list whose elements are all float, int of 64 bits, or str; else None."""
        from array import array
        types = set(map(type, v))
        if len(types) != 1:
            return None
        t = types.pop()
        if t is float:
            return self.add("float64", len(v), array("d", v))
        if t is str:
            return self.texts(v)
        if t is int:
            try:
                return self.add("int64", len(v), array("q", v))
            except OverflowError:
                return None
        return None

    def array(self, a: Any) -> Any:
        """A numpy array of a type that has a column, in C order."""
        a = a.astype(a.dtype.newbyteorder("<"), order="C", copy=False)
        name = a.dtype.newbyteorder("=").name
        return self.add("bool8" if name == "bool" else name, a.size, _bytes_of(a))

    def series(self, pd: Any, values: Any) -> Any:
        """The vec of a pandas Series, Index or array; None: no column has its type."""
        import numpy as np
        dtype, n = values.dtype, len(values)
        kind = getattr(dtype, "kind", "O")
        plain = isinstance(dtype, np.dtype)
        if plain and dtype.itemsize > 8:
            return None
        if kind in "biuf" and plain:
            a = np.ascontiguousarray(np.asarray(values))
            if kind == "f":
                a = a.astype("f8", copy=False)
            name = a.dtype.newbyteorder("=").name
            if name == "uint64" and n and int(a.max()) > (1 << 63) - 1:
                return None
            a = a.astype(a.dtype.newbyteorder("<"), copy=False)
            t = "logical" if kind == "b" else "float" if kind == "f" else "int"
            return {"$": "vec", "t": t, "v": self.add("bool8" if kind == "b" else name, n, _bytes_of(a))}
        if kind in "biuf" and hasattr(values, "to_numpy"):
            return self._nullable(pd, np, getattr(values, "array", values), kind, n)
        if kind in "Mm":
            return self._instants(pd, np, values, kind, n)
        if kind == "O":
            return self._texts_of(pd, values)
        return None

    def _nullable(self, pd: Any, np: Any, values: Any, kind: Any, n: Any) -> Any:
        missing = np.asarray(values.isna())
        to, fill = {"b": ("?", False), "f": ("f8", 0.0)}.get(kind, ("i8", 0))
        if kind == "u" and n:
            return None
        a = np.ascontiguousarray(values.to_numpy(dtype=to, na_value=fill))
        bits = np.packbits(~missing, bitorder="little") if missing.any() else None
        t, name = {"b": ("logical", "bool8"), "f": ("float", "float64")}.get(kind, ("int", "int64"))
        return {"$": "vec", "t": t, "v": self.add(name, n, _bytes_of(a), bits)}

    def _instants(self, pd: Any, np: Any, values: Any, kind: Any, n: Any) -> Any:
        index = (pd.DatetimeIndex if kind == "M" else pd.TimedeltaIndex)(values)
        a = np.ascontiguousarray(index.asi8)
        unit = getattr(index, "unit", "ns")
        missing = np.asarray(index.isna())
        bits = np.packbits(~missing, bitorder="little") if missing.any() else None
        r = {"$": "vec", "t": "datetime" if kind == "M" else "duration", "unit": unit,
             "v": self.add("int64", n, _bytes_of(a), bits)}
        if kind == "M" and index.tz is not None:
            r["tz"] = str(index.tz)
        return r

    def _texts_of(self, pd: Any, values: Any) -> Any:
        data = list(values)
        types = set(map(type, data))
        types.discard(str)
        if types:
            data = [None if x is None or x is pd.NA or x is pd.NaT or (type(x) is float and x != x) else x for x in data]
            if set(map(type, data)) - {str, type(None)}:
                return None
        return {"$": "vec", "t": "string", "v": self.texts(data)}

    def codes(self, codes: Any) -> Any:
        """The codes of a pandas Categorical as those of a factor, from 1."""
        import numpy as np
        bits = np.packbits(codes >= 0, bitorder="little") if (codes < 0).any() else None
        return self.add("int32", len(codes), _bytes_of((codes + 1).astype("<i4")), bits)


def _utf8(text: Any) -> Any:
    try:
        return text.encode()
    except UnicodeEncodeError:  # lone surrogates
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


def _bytes_of(a: Any) -> Any:
    return memoryview(a.reshape(-1).view("u1")) if a.size else b""


def pack_bits(flags: Any) -> Any:
    """Bits from truth values, the lowest first."""
    np = sys.modules.get("numpy")
    if np is not None:
        return np.packbits(np.asarray(flags, "?"), bitorder="little")
    out = bytearray((len(flags) + 7) // 8)
    for i, flag in enumerate(flags):
        if flag:
            out[i >> 3] |= 1 << (i & 7)
    return out


class Column:
    """One column of a message that arrived: views of its memory."""
    __slots__ = ("type", "count", "values", "validity", "offsets", "buffer", "at")

    def __init__(self, buffer: Any, table: Any) -> None:
        self.type, self.count = table["type"], table["count"]
        self.buffer, self.at = buffer, table["values"]
        view = memoryview(buffer)
        n = table["bytes"] if "bytes" in table else self.count * _WIDTHS[self.type]
        self.values = view[self.at:self.at + n]
        self.validity = self.offsets = None
        if "validity" in table:
            self.validity = view[table["validity"]:table["validity"] + (self.count + 7) // 8]
        if "offsets" in table:
            w, code = (4, "i") if self.type == "utf8" else (8, "q")
            self.offsets = view[table["offsets"]:table["offsets"] + (self.count + 1) * w].cast(code)

    def flags(self) -> Any:
        """Which values are there, as a list; None: all."""
        if self.validity is None:
            return None
        bits = self.validity
        return [bits[i >> 3] >> (i & 7) & 1 for i in range(self.count)]

    def _all(self) -> Any:
        if self.offsets is not None:
            offsets = self.offsets.tolist()
            data = bytes(self.values)
            if data.isascii():
                text = data.decode("ascii")
                return [text[a:b] for a, b in zip(offsets, offsets[1:])]
            return [data[a:b].decode("utf-8", "replace") for a, b in zip(offsets, offsets[1:])]
        if self.type == "float16":
            import struct
            return list(struct.unpack("<%de" % self.count, self.values))
        flat = self.values.cast(_CODES[self.type]).tolist() if self.count else []
        return [complex(a, b) for a, b in zip(flat[::2], flat[1::2])] if self.type.startswith("complex") else flat

    def tolist(self) -> Any:
        """The values; None where one is missing."""
        flags = self.flags()
        data = self._all()
        return data if flags is None else [x if f else None for x, f in zip(data, flags)]

    def numpy(self, np: Any) -> Any:
        """An array over the same memory; not for texts."""
        name = "bool" if self.type == "bool8" else self.type
        return np.frombuffer(self.values, np.dtype(name))

    def array(self, np: Any, form: Any) -> Any:
        """The array that a form describes: in C's order, or in Fortran's, as R has it."""
        a, missing = self.numpy(np), self.missing(np)
        if missing is not None:  # a matrix of R: in numpy only a float can be missing
            a = a.astype("c16" if a.dtype.kind == "c" else "f8")
            a[missing] = float("nan")
        return a.reshape(form["shape"], order=form.get("order", "C"))

    def missing(self, np: Any) -> Any:
        """Which values are missing, as an array; None: none."""
        if self.validity is None:
            return None
        return ~np.unpackbits(np.frombuffer(self.validity, "u1"), bitorder="little")[:self.count].view("?")

    def vector(self, vec: Any) -> Any:
        """The list that a vec is."""
        t = vec.get("t")
        return instants(self, t, vec) if t in ("date", "datetime", "duration") else self.tolist()

    def codes(self) -> Any:
        """A factor's codes as those of a pandas Categorical, from 0; -1: missing."""
        import numpy as np
        codes, missing = self.numpy(np) - 1, self.missing(np)
        if missing is not None:
            codes[missing] = -1
        return codes

    def series(self, pd: Any, vec: Any) -> Any:
        """A column of a data frame."""
        import numpy as np
        t = vec.get("t")
        if self.offsets is not None:
            return pd.array(self.tolist(), dtype=object)
        a, missing = self.numpy(np), self.missing(np)
        if t == "datetime" or t == "duration":
            return _pd_instants(pd, np, a, missing, t, vec)
        if t == "float":
            if str(vec.get("dtype", "")).startswith("F"):
                return pd.array(np.where(missing, np.nan, a) if missing is not None else a, dtype="Float64")
            if missing is not None:
                a[missing] = float("nan")
            return a
        if t == "int":
            a = a.astype("i8", copy=False)  # as a short column has it
            return a if missing is None else pd.arrays.IntegerArray(a, missing)
        if t == "logical":
            return a if missing is None else pd.arrays.BooleanArray(a, missing)
        return instants(self, t, vec) if t == "date" else self.tolist()

    def block(self, columns: Any) -> Any:
        """All columns of a data frame as one array over their memory, if they are alike; else None."""
        if len(columns) < 2 or not all(type(c) is dict and c.get("$") == "vec" and type(c["v"]) is Column for c in columns):
            return None
        cols = [c["v"] for c in columns]
        first = cols[0]
        step = cols[1].at - first.at
        kinds = {(c.get("t"), c["v"].type, c["v"].count, c["v"].validity is None, c["v"].buffer is first.buffer)
                 for c in columns}
        if kinds != {("float", "float64", first.count, True, True)} or first.count == 0 or any("dtype" in c for c in columns):
            return None
        if any(c.at != first.at + i * step for i, c in enumerate(cols)):
            return None
        import numpy as np
        return np.ndarray((len(cols), first.count), "f8", first.buffer, first.at, (step, 8))


_SCALES: Any = {"s": 1, "ms": 1000, "us": 1000000, "ns": 1000000000}


def _pd_instants(pd: Any, np: Any, a: Any, missing: Any, t: Any, vec: Any) -> Any:
    if a.dtype.kind == "i":
        a = a.astype("i8")
    if a.dtype.kind == "f":  # seconds
        with np.errstate(invalid="ignore"):
            lost = ~np.isfinite(a)
            a = np.where(lost, 0, np.round(a * 1e6)).astype("i8")
            missing, unit = lost if missing is None else missing | lost, "us"
    else:
        unit = vec.get("unit", "ns")
    if missing is not None:
        a = np.where(missing, np.iinfo("i8").min, a)
    if t == "duration":
        return pd.TimedeltaIndex(a.view("m8[%s]" % unit))
    index = pd.DatetimeIndex(a.view("M8[%s]" % unit))
    return index.tz_localize("UTC").tz_convert(vec["tz"] or "UTC") if "tz" in vec else index


def instants(column: Any, t: Any, vec: Any) -> Any:
    """Dates, times and durations as Python has them."""
    import datetime
    data = column.tolist()
    if t == "date":
        start = datetime.date(1970, 1, 1).toordinal()
        return [None if x is None or x != x else datetime.date.fromordinal(start + int(x // 1)) for x in data]
    scale = 1 if column.type == "float64" else _SCALES[vec.get("unit", "s")]
    if t == "duration":
        return [None if x is None or x != x else datetime.timedelta(seconds=x / scale) if scale == 1
                else datetime.timedelta(microseconds=x * 1000000 // scale) for x in data]
    zone = datetime.timezone.utc if "tz" in vec else None  # null: R's without one, which is UTC here
    epoch = datetime.datetime(1970, 1, 1, tzinfo=zone)
    return [None if x is None or x != x else epoch + datetime.timedelta(microseconds=round(x * 1000000 / scale)
                                                                      if scale == 1 else x * 1000000 // scale)
            for x in data]


def resolve(form: Any, header: Any, buffer: Any) -> Any:
    """The form with its columns in place of the references, which only tagged forms have. Each can be used once: so a
    small message cannot make a large value many times over."""
    table, used = header["columns"], set()

    def column(i: Any) -> Any:
        if type(i) is not int or i in used or not 0 <= i < len(table):
            raise ValueError("a binary column is missing or used twice")
        used.add(i)
        return Column(buffer, table[i])

    def walk(v: Any) -> Any:
        if type(v) is list:
            return [walk(x) if type(x) is dict or type(x) is list else x for x in v]
        tagged = "$" in v
        return {k: x if type(x) is not dict and type(x) is not list
                else column(x["$buf"]) if tagged and type(x) is dict and "$buf" in x and len(x) == 1
                else walk(x) for k, x in v.items()}

    return walk(form) if type(form) is dict or type(form) is list else form


def room(size: Any) -> Any:
    """Writable memory of its own for so many bytes, which is touched only when it is filled."""
    import mmap
    return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def read_file(fd: Any, size: Any) -> Any:
    """A copy of a file's bytes: what the host gave is cut off when the execution ends."""
    import os
    buffer, at = room(size), 0
    with memoryview(buffer) as view:
        while at < size:
            n = os.preadv(fd, [view[at:]], at)
            if n <= 0:
                raise ValueError("the binary columns are cut off")
            at += n
    return buffer


def write_file(fd: Any, writer: Any) -> None:
    """Through a mapping: a limit on the size of files does not apply to it, and the file has its size already."""
    import mmap
    with mmap.mmap(fd, writer.bytes) as m:
        at = 0
        for part in writer.parts:
            m[at:at + len(part)] = part
            at += len(part)
