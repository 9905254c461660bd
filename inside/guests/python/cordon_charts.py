# cordon_charts.py - what a figure of matplotlib shows, as data: lines, points, bars, slices and boxes. Loaded with the first
# figure of a session that wants it (CORDON_CHARTS in the environment).
import re

POINTS = 10000  # of one element
MIME = "application/vnd.cordon.chart+json"
_UNIT = re.compile(r"\(([^()]+)\)\s*$")


def watch():
    """Keeps the statistics of box plots, which cannot be told from the lines that are drawn."""
    from matplotlib.axes import Axes
    plain = Axes.bxp
    if getattr(plain, "_cordon", False):
        return

    def bxp(self, bxpstats, *args, **kwargs):
        bxpstats = list(bxpstats)
        self._cordon_boxes = getattr(self, "_cordon_boxes", []) + bxpstats
        return plain(self, bxpstats, *args, **kwargs)
    bxp._cordon = True
    Axes.bxp = bxp


def _number(v):
    v = float(v)
    return v if v - v == 0 else None


def _scale(axis):
    converter = type(getattr(axis, "converter", None) or getattr(axis, "get_converter", lambda: None)()).__name__
    if "Date" in converter:
        return "datetime"
    return "categorical" if "Category" in converter else axis.get_scale()


def _value(axis, v):
    """A number; on an axis of dates or of words the text that stands there."""
    kind = _scale(axis)
    try:
        if kind == "datetime":
            from matplotlib.dates import date2num, num2date
            return num2date(v if isinstance(v, (int, float)) else date2num(v)).isoformat()
        if kind == "categorical":
            if isinstance(v, str):
                return v
            return {n: word for word, n in axis.units._mapping.items()}.get(int(v), _number(v))
        return _number(v)
    except (TypeError, ValueError, AttributeError, OverflowError):
        return str(v)


def _points(ax, xs, ys):
    pairs = []
    for x, y in zip(xs, ys):
        if len(pairs) == POINTS:
            break
        pairs.append([_value(ax.xaxis, x), _value(ax.yaxis, y)])
    return pairs


def _label(text):
    return text or None


def _unit(text):
    found = _UNIT.search(text or "")
    return found.group(1) if found else None


def _axis(chart, ax, name, axis):
    chart[name + "_label"] = _label(axis.get_label_text())
    chart[name + "_unit"] = _unit(axis.get_label_text())


def _ticks(chart, ax, name, axis):
    ticks = axis.get_ticklocs()
    chart[name + "_ticks"] = [_value(axis, t) for t in ticks[:1000]]
    chart[name + "_tick_labels"] = [t.get_text() for t in axis.get_ticklabels()[:1000]]
    chart[name + "_scale"] = _scale(axis)


def _own(label):
    label = str(label)
    return "" if label.startswith("_") else label


def _bars(ax):
    elements = []
    for container in ax.containers:
        patches = [p for p in getattr(container, "patches", ()) if hasattr(p, "get_height")]
        flat = getattr(container, "orientation", "vertical") == "horizontal"
        axis = ax.yaxis if flat else ax.xaxis
        words = {round(float(at), 6): t.get_text() for at, t in zip(axis.get_ticklocs(), axis.get_ticklabels())}
        for p in patches[:POINTS]:
            middle = p.get_y() + p.get_height() / 2 if flat else p.get_x() + p.get_width() / 2
            word = words.get(round(float(middle), 6)) or str(_value(axis, middle))
            elements.append({"label": word, "group": _own(container.get_label()), "value": _number(p.get_width() if flat else p.get_height())})
    return elements


def _boxes(ax):
    words = [t.get_text() for t in ax.get_xticklabels()]
    elements = []
    for i, b in enumerate(ax._cordon_boxes[:POINTS]):
        label = b.get("label") or (words[i] if i < len(words) else "")
        elements.append({"label": str(label), "min": _number(b["whislo"]), "first_quartile": _number(b["q1"]), "median": _number(b["med"]),
                         "third_quartile": _number(b["q3"]), "max": _number(b["whishi"]),
                         "outliers": [_number(v) for v in list(b.get("fliers", ()))[:POINTS]]})
    return elements


def _kind(ax):
    """The type of a plot and its elements."""
    from matplotlib.collections import PathCollection
    from matplotlib.patches import Wedge
    wedges = [p for p in ax.patches if isinstance(p, Wedge)]
    dots = [c for c in ax.collections if isinstance(c, PathCollection)]
    if getattr(ax, "_cordon_boxes", None):
        return "box_and_whisker", _boxes(ax)
    if wedges:
        return "pie", [{"label": _own(w.get_label()), "angle": round(abs(w.theta2 - w.theta1), 4), "radius": _number(w.r)} for w in wedges]
    if any(type(c).__name__ == "BarContainer" for c in ax.containers):
        return "bar", _bars(ax)
    if ax.lines:
        return "line", [{"label": _own(n.get_label()), "points": _points(ax, n.get_xdata(), n.get_ydata())} for n in ax.lines]
    if dots:
        return "scatter", [{"label": _own(c.get_label()), "points": _points(ax, *zip(*c.get_offsets().tolist())) if len(c.get_offsets()) else []}
                           for c in dots]
    return "unknown", []


def _chart(ax):
    kind, elements = _kind(ax)
    chart = {"type": kind, "title": _label(ax.get_title())}
    if kind not in ("pie", "unknown"):
        _axis(chart, ax, "x", ax.xaxis)
        _axis(chart, ax, "y", ax.yaxis)
    if kind in ("line", "scatter"):
        _ticks(chart, ax, "x", ax.xaxis)
        _ticks(chart, ax, "y", ax.yaxis)
    chart["elements"] = elements
    return chart


def describe(fig):
    """The chart of a figure, as JSON text; of several plots a superchart. None: there is no plot, or it cannot be told."""
    import json
    try:
        charts = [_chart(ax) for ax in fig.axes]
        if not charts:
            return None
        if len(charts) > 1:
            title = fig._suptitle.get_text() if fig._suptitle else None
            charts = [{"type": "superchart", "title": title, "elements": charts}]
        return json.dumps(charts[0])
    except Exception:  # a figure of another library's making
        return None
