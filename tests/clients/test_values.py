"""Values of Python out of the guest, in, and through a tool: each must come back as it is."""
import dataclasses
import datetime
import decimal

import cordon

# An expression of Python, evaluated here and there.
PROBES = [
    "None", "True", "7", "2**70", "-0.0", "float('inf')", "'a\\0b\\u2028😀'", "b'\\0\\xff'", "(1, (2,))", "()", "[1, [2.5]]", "{}", "{1: 'a', (2, 3): None}",
    "{'$': 1}", "{1, 2}", "frozenset({1})", "frozenset()", "1+2j", "complex('nan')", "decimal.Decimal('1.10')", "decimal.Decimal('NaN')",
    "datetime.date(2024, 2, 29)", "datetime.time(12, 30, 0, 5)", "datetime.datetime(2024, 2, 29, 12)", "datetime.datetime(2024, 2, 29, 12, 0, 0, 1, datetime.timezone.utc)",
    "datetime.datetime(2024, 7, 1, 12, tzinfo=zoneinfo.ZoneInfo('Europe/Paris'))", "datetime.datetime(2024, 7, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=5, minutes=30)))",
    "datetime.timedelta(days=3, microseconds=7)", "collections.namedtuple('P', 'x y')(1, 'b')", "[collections.namedtuple('P', 'x y')(1, (2,))]",
    "collections.OrderedDict(a=1)", "float('nan')",
]
NUMPY = [
    "np.arange(6).reshape(2, 3)", "np.array([1.5, np.nan], dtype='float32')", "np.zeros((2, 0, 3))", "np.array(5)", "np.array([1+2j])", "np.array([True, False])",
    "np.array([(1, 2.5, 'ab'), (3, 4.5, 'c')], dtype=[('a', 'i4'), ('b', 'f8'), ('c', 'U5')])", "np.zeros((2, 2), dtype=[('p', 'f4', (3,)), ('q', '?')])", "np.float64(1.5)", "np.int64(7)",
    "np.bool_(True)",
]
PANDAS = [
    "pd.Series([1.5, 2.5])", "pd.Series([1, 2], index=['a', 'b'], name='n')", "pd.Series([1, None], dtype='Int64', name=3)", "pd.Series(['a', None], dtype='string')", "pd.Series([True, None], dtype='boolean')",
    "pd.Series([1.5, None], dtype='Float64')", "pd.Series([1, 2], dtype='int8')", "pd.Series([1, 2], dtype='Int64')", "pd.Series([0.5], dtype='float32')", "pd.Series(['x', 'y'], dtype=object)",
    "pd.Series(pd.Categorical(['x', 'y', None], categories=['y', 'x'], ordered=True))", "pd.Categorical([1, 2, 1])", "pd.Series([1, 2], index=pd.MultiIndex.from_tuples([('a', 1), ('b', 2)], names=['k', 'l']))",
    "pd.Series(pd.to_datetime(['2024-02-29', None]))", "pd.Series(pd.to_datetime(['2024-07-01T12:00:00.123456789']).tz_localize('Europe/Paris'))", "pd.Series(pd.to_datetime(['2024-07-01']).tz_localize('UTC'))",
    "pd.Series(pd.to_timedelta([1500000001, None], unit='ns'))", "pd.Timestamp('2024-07-01T12:00:00.123456789', tz='Asia/Tokyo')", "pd.Timestamp('2024-07-01')", "pd.Timedelta(1500000001, unit='ns')",
    "pd.Index([3, 1])", "pd.Index(['a'], name='n')", "pd.MultiIndex.from_product([['a', 'b'], [1, 2]], names=['x', None])", "pd.RangeIndex(2, 10, 3)", "pd.date_range('2024-01-01', periods=3, freq='D')",
    "pd.period_range('2024-01', periods=2, freq='M').to_series().reset_index(drop=True)", "pd.array([1, None], dtype='Int64')", "pd.DataFrame()",
    "pd.DataFrame({'i': [1, 2], 'f': [0.5, np.nan], 's': ['a', None], 'b': [True, False], 'c': pd.Categorical(['x', 'y']), 'd': pd.to_datetime(['2024-02-29', None]), 'n': pd.array([1, None], dtype='Int64')})",
    "pd.DataFrame({'i8': np.array([1, 2], dtype='int8'), 't': pd.to_datetime(['2024-01-01', '2024-01-02']).tz_localize('America/New_York'), 'l': [[1], (2,)]})",
    "pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([('a', 'x'), ('a', 'y')], names=['p', 'q']), index=pd.Index([7], name='id'))", "pd.DataFrame({'a': [1, 2, 3]}).groupby(['u', 'v', 'u']).sum()",
    "pd.DataFrame({1: [2], 'x': [decimal.Decimal('1.1')]})", "pd.DataFrame({'a': [1, 2]}, index=pd.date_range('2024', periods=2, freq='H'))", "pd.crosstab(pd.Series(list('aab'), name='l'), pd.Series(list('xyx'), name='r'))",
]
START = "import collections, datetime, decimal, zoneinfo\n"


def names():
    scope = {}
    exec(START, scope)
    return scope


def same(a, b):
    """Equal, of the same type, in every part; of numpy and pandas, also the dtype."""
    kind = type(b).__module__.split(".")[0]
    if kind == "pandas":
        import pandas as pd
        if type(a) is not type(b):
            return False
        if isinstance(b, pd.DataFrame):
            pd.testing.assert_frame_equal(a, b, check_column_type=True)
        elif isinstance(b, pd.Series):
            pd.testing.assert_series_equal(a, b)
        elif isinstance(b, pd.Index):
            pd.testing.assert_index_equal(a, b)
        elif isinstance(b, pd.api.extensions.ExtensionArray):
            return a.dtype == b.dtype and list(map(repr, a)) == list(map(repr, b))
        else:
            return a == b and str(a.tzinfo) == str(b.tzinfo) if isinstance(b, pd.Timestamp) else a == b
        return True
    if kind == "numpy":
        import numpy as np
        if isinstance(b, np.generic):  # a number is a number
            return a == b.item() and type(a) is type(b.item())
        return a.dtype == b.dtype and a.shape == b.shape and repr(a) == repr(b)
    if isinstance(b, tuple) and hasattr(b, "_fields"):
        return type(a).__name__ == type(b).__name__ and a._fields == b._fields and tuple(a) == tuple(b)
    if isinstance(b, collections_type()):
        return a == dict(b)
    if type(a) is not type(b):
        return False
    if isinstance(b, datetime.datetime):
        return a == b and a.utcoffset() == b.utcoffset() and str(a.tzinfo) == str(b.tzinfo)
    if isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(b, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in b)
    return repr(a) == repr(b) or a == b


def collections_type():
    import collections
    return collections.OrderedDict


def probe(codes, start):
    scope = names()
    exec(start, scope)
    seen = []
    echo = cordon.Tool(lambda v: seen.append(v) or v, name="echo", args={"v": None})
    with cordon.Session("python", tools=[echo]) as s:
        s.run(START + start)
        for code in codes:
            want = eval(code, scope)
            got = s.execute(code)
            assert got.success and same(got.value, want), (code, got.value, got.error, got.warnings)
            r = s.execute("(type(x).__name__ if type(x).__module__ != 'numpy' else type(x.item() if x.shape == () else x).__name__, repr(x))", {"x": want})
            local = want.item() if type(want).__module__ == "numpy" and type(want).__name__ != "ndarray" else want
            assert r.success and (r.value[1] == repr(local) or isinstance(local, (dict, set, frozenset))), (code, r.value, repr(local), r.error)
            r = s.execute("echo(%s)\nNone" % code)
            assert r.success and same(seen[-1], want), ("through a tool", code, seen[-1:], r.error)


def test_values_of_python():
    probe(PROBES, "")


def has(module):
    try:
        __import__(module)
        return True
    except ImportError:
        return False


def test_values_of_numpy():
    if has("numpy"):
        probe(NUMPY, "import numpy as np\n")


def test_values_of_pandas():
    if has("pandas"):
        probe(PANDAS, "import pandas as pd\nimport numpy as np\n")


@dataclasses.dataclass
class Point:
    x: int
    y: list


def test_dataclasses_are_records():
    with cordon.Session("python") as s:
        r = s.run("import dataclasses\n@dataclasses.dataclass\nclass Point:\n    x: int\n    y: list\nPoint(1, [2])")
        assert r == {"x": 1, "y": [2]} and r.y == [2] and repr(r) == "Point(x=1, y=[2])" and type(r) is cordon.Record
        assert s.run("(type(p).__name__, p.type_name, p.x, p['y'], repr(p))", {"p": Point(1, [2])}) == ("Record", "Point", 1, [2], "Point(x=1, y=[2])")
        assert s.run("p == {'x': 1, 'y': [2]} and p.type_name == 'Point'", {"p": r}) is True


def test_objects_of_r():
    """What R's objects are here, and handles that go back."""
    with cordon.Session("r") as s:
        assert s.run("lm(mpg ~ wt, mtcars)")["call"] == "lm(formula = mpg ~ wt, data = mtcars)"
        assert s.run("y ~ x") == "y ~ x"
        assert s.run("as.POSIXct('2024-07-01 12:00', tz = 'Europe/Paris')").isoformat() == "2024-07-01T12:00:00+02:00"
        assert s.run("setClass('P', representation(x = 'numeric')); new('P', x = 1)") == {"x": 1.0}
        f = s.run("function(x) x + 1")
        assert isinstance(f, cordon.Handle) and f == "function(x) x + 1" and f.type_name == "function"
        assert s.run("f(1)", {"f": f}) == 2.0
        t = s.run("table(c('a', 'b', 'a'))")
        assert (t.to_dict() if has("pandas") else t) == {"a": 2, "b": 1}
        if has("pandas"):
            t = s.run("table(g = c(1, 2, 1), h = c('x', 'y', 'y'))")
            assert t.index.name == "g" and t.columns.name == "h" and t.loc["1", "y"] == 1
            d = s.run("d <- data.frame(a = 1:2); d$m <- matrix(1:4, 2); d$d <- data.frame(x = 3:4); d")
            assert d["a"].tolist() == [1, 2] and d["m"][1].tolist() == [2, 4] and d["d"][0] == {"x": 3}


def test_what_is_no_form_stays_what_it_is():
    """A hostile guest says what it likes; the client raises nothing because of it."""
    from cordon._values import decode
    for v in ({"$": "vec"}, {"$": "vec", "t": "float", "v": ["x"]}, {"$": "frame", "names": ["a"], "columns": [1], "rows": 1e9}, {"$": "array", "dtype": "object", "shape": [1], "v": ""},
              {"$": "array", "dtype": "int8", "shape": [-1, -5], "v": "AA=="}, {"$": "datetime", "v": 5}, {"$": "record", "class": "import os", "names": ["x y"], "v": 1}, {"$": "struct", "names": ["a"],
              "dtypes": ["O"], "shape": [1], "columns": [[1]]}, {"$": [1]}, {"$": "decimal", "v": "x"}, {"$": "int", "v": []}, {"$": "factor", "levels": [], "v": [9]}, {"$": "attr"}, {"$": "handle"},
              {"$": "series", "v": {"$": "vec", "t": "int", "v": [1]}, "index": {"$": "vec", "t": "int", "v": [1, 2]}}, {"$": "nothing", "v": 1}):
        assert decode(v) == v, v
    assert decode({"$": "vec", "t": "int", "v": [1], "dtype": "__import__"}) is not None
    assert decode({"$": "set", "v": [[1]]}) == [[1]] and decode({"$": "map", "v": [[[1], 2]]}) == [([1], 2)]
    assert isinstance(decode({"$": "datetime", "v": "2024-01-01T00:00:00+00:00", "tz": "../../etc/passwd"}), datetime.datetime)
    assert decode({"$": "decimal", "v": "1.50"}) == decimal.Decimal("1.50")


def test_table_of_values():
    """What arrives here of each guest's values."""
    import table
    if not has("pandas"):
        return
    scope = names()
    exec("import cordon\nimport numpy as np\nimport pandas as pd\n", scope)
    guests, bad = table.Guests(), []
    try:
        for row in table.values():
            got, want = guests.of(row["guest"]).execute(row["code"]), eval(row["python"], scope)
            if isinstance(got.value, cordon.Record):
                got.value = dict(got.value)
            if not (got.success and agrees(got.value, want)):
                bad.append((row["guest"], row["name"], got.value, want, got.error))
    finally:
        guests.close()
    assert not bad, "\n".join(map(str, bad))


def agrees(a, b):
    try:
        return same(a, b)
    except AssertionError:
        return False
