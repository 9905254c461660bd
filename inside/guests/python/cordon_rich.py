# cordon_rich.py - sends figures, tables and other rich values as outputs.
import sys
from binascii import b2a_base64

# A backend module: matplotlib's way to let another program show figures.
BACKEND = """
from matplotlib.backends.backend_agg import FigureCanvasAgg as FigureCanvas
from matplotlib.backend_bases import FigureManagerBase as FigureManager
from cordon import _charts, _show_figures

_charts()


def show(*args, **kwargs):
    _show_figures()
"""

_METHODS = (("_repr_png_", "image/png", True), ("_repr_jpeg_", "image/jpeg", True),
            ("_repr_svg_", "image/svg+xml", False), ("_repr_html_", "text/html", False),
            ("_repr_markdown_", "text/markdown", False), ("_repr_latex_", "text/latex", False),
            ("_repr_pdf_", "application/pdf", True), ("_repr_javascript_", "application/javascript", False),
            ("_repr_json_", "application/json", False))
_PLAIN = frozenset((str, bool, int, float, complex, type(None), list, tuple, dict, set, frozenset,
                    bytes, bytearray))
TABLE_ROWS = 1000  # of a data frame's application/json
charts = None  # cordon_charts, if this session wants figures as data too


def figures(emit):
    """Sends every open figure of pyplot and closes it, so that the next execution starts clean."""
    plt = sys.modules.get("matplotlib.pyplot")
    if plt is None:
        return
    try:
        numbers = plt.get_fignums()
    except AttributeError:  # the import of pyplot failed halfway
        return
    for n in numbers:
        figure(plt.figure(n), "figure %d" % n, emit)
    if numbers:
        plt.close("all")


def figure(fig, name, emit):
    import io
    out = io.BytesIO()
    fig.savefig(out, format="png", bbox_inches="tight")
    emit("image/png", out.getvalue(), name)
    data = charts and charts.describe(fig)
    if data:
        emit(charts.MIME, data, name)


def value(v, emit):
    """Sends the rich forms of a value; returns whether there was one."""
    t = type(v)
    if t in _PLAIN:
        return False
    pd = sys.modules.get("pandas")
    if pd is not None and issubclass(t, pd.DataFrame):
        emit("text/html", v._repr_html_() or v.to_html(max_rows=60), None)
        emit("application/json", v.head(TABLE_ROWS).to_json(orient="split", date_format="iso"), None)
        return True
    if t.__module__.startswith("matplotlib.") and hasattr(t, "savefig"):
        plt = sys.modules.get("matplotlib.pyplot")
        if plt is None or getattr(v, "number", None) not in plt.get_fignums():
            figure(v, "figure", emit)
        return True
    found = False
    for method, mime, binary in _METHODS:
        if getattr(t, method, None) is None:
            continue
        data = getattr(v, method)()
        if type(data) is tuple:
            data = data[0] if data else None
        if method == "_repr_json_" and isinstance(data, (dict, list)):
            import json
            data = json.dumps(data)
        if isinstance(data, (bytes, bytearray)) if binary else isinstance(data, str):
            emit(mime, bytes(data) if binary else str.__str__(data), None)
            found = True
    return found


_OPEN = {list: ("[", "]"), tuple: ("(", ")"), set: ("{", "}"), dict: ("{", "}")}
TEXT_CHARS = 65536


class _Full(Exception):
    pass


class _Text:
    """repr() of a value that cannot cross. It writes no more than TEXT_CHARS: a value that has the same list in
    it twice, and so on forty times, would fill the memory."""

    def __init__(self):
        self.parts, self.left, self.path = [], TEXT_CHARS, set()

    def put(self, text):
        self.left -= len(text)
        self.parts.append(text if self.left >= 0 else text[:self.left] + "...")
        if self.left < 0:
            raise _Full

    def any(self, v):
        t = type(v)
        if t not in _OPEN or (t is set and not v):
            self.put("<int of %d bits>" % v.bit_length() if t is int and v.bit_length() > 14000 else repr(v))
        elif id(v) in self.path or len(self.path) > 200:
            self.put(_OPEN[t][0] + "..." + _OPEN[t][1])
        else:
            self.path.add(id(v))
            self.container(v, t)
            self.path.discard(id(v))

    def container(self, v, t):
        start, end = _OPEN[t]
        for i, x in enumerate(v):
            self.put(", " if i else start)
            self.any(x)
            if t is dict:
                self.put(": ")
                self.any(v[x])
        self.put(",)" if t is tuple and len(v) == 1 else end if v else start + end)


def bounded_text(v):
    out = _Text()
    try:
        out.any(v)
    except _Full:
        pass
    return "".join(out.parts)


def encode(mime, data, name):
    """The message of one output, without its id."""
    if isinstance(data, bytes):
        m = {"mime": mime, "encoding": "base64",
             "data": b2a_base64(data, newline=False).decode("ascii")}
    else:
        m = {"mime": mime, "encoding": "text", "data": data}
    if name:
        m["name"] = name
    return m
