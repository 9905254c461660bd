# cordon_ipython.py - IPython.display for notebooks, where IPython is not installed: the classes that most notebooks
# use, shown by display() through their _repr_*_ methods.
import builtins


def display(*objects, **options):
    builtins.display(*objects)


def clear_output(wait=False):
    """What was shown stays."""


class DisplayObject:
    """Of data, or of a file of the sandbox."""
    _mode = "r"

    def __init__(self, data=None, url=None, filename=None, metadata=None, **options):
        if data is None and filename is not None:
            with open(filename, self._mode) as f:
                data = f.read()
        if data is None and url is not None:
            raise ValueError("an address is not read: give the data, or a file of the sandbox")
        self.data, self.metadata = data, metadata or {}

    def __repr__(self):
        return "<IPython.core.display.%s object>" % type(self).__name__


class TextDisplayObject(DisplayObject):
    pass


class Pretty(TextDisplayObject):
    def __repr__(self):
        return str(self.data)


class HTML(TextDisplayObject):
    def _repr_html_(self):
        return self.data


class Markdown(TextDisplayObject):
    def _repr_markdown_(self):
        return self.data


class Latex(TextDisplayObject):
    def _repr_latex_(self):
        return self.data


class Math(TextDisplayObject):
    def _repr_latex_(self):
        return "$\\displaystyle %s$" % self.data.strip("$")


class SVG(DisplayObject):
    def _repr_svg_(self):
        return self.data.decode() if isinstance(self.data, bytes) else self.data


class JSON(DisplayObject):
    def __repr__(self):
        return repr(self.data)


class Javascript(TextDisplayObject):
    """Nothing runs it here."""


class Image(DisplayObject):
    _mode = "rb"

    def __init__(self, data=None, url=None, filename=None, format=None, **options):
        if isinstance(data, str) and filename is None:
            data, filename = None, data  # Image("a.png")
        super().__init__(data, url, filename, **options)

    def _repr_png_(self):
        return self.data if self.data[:8] == b"\x89PNG\r\n\x1a\n" else None

    def _repr_jpeg_(self):
        return self.data if self.data[:2] == b"\xff\xd8" else None


display_html = display_markdown = display_png = display_svg = display


class Finder:
    """Of the modules that notebooks import these from. An IPython that is installed comes first."""
    NAMES = {"IPython": True, "IPython.core": True, "IPython.display": False, "IPython.core.display": False}

    def find_spec(self, name, path=None, target=None):
        if name not in self.NAMES:
            return None
        from importlib.machinery import ModuleSpec, PathFinder
        found = PathFinder.find_spec(name, path)
        return found or ModuleSpec(name, self, is_package=self.NAMES[name])

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        if module.__name__.endswith("display"):
            module.__dict__.update((k, v) for k, v in globals().items() if k[:1] != "_" and k not in ("builtins", "Finder"))
        elif module.__name__ == "IPython":
            module.get_ipython = lambda: None
