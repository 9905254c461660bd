"""The pages as one HTML site, for people without the repository: a menu, a search that needs no server, pictures, and nothing from elsewhere.

cmark-gfm reads the Markdown as GitHub does. A link that leads nowhere is a failure here, not in front of a reader."""

import glob
import html
import json
import os
import posixpath
import re
import shutil
import xml.etree.ElementTree as ET

from . import product
from .product import Failure, run

HERE = os.path.join(product.ROOT, "packaging", "site")
ASSETS = ("site.css", "site.js")
HEADINGS = ("h1", "h2", "h3", "h4")
# What cmark-gfm makes of Markdown; other HTML in a page is a fault of the page.
TAGS = {"div", "p", "h1", "h2", "h3", "h4", "ul", "ol", "li", "pre", "code", "a", "img", "strong", "em", "b", "br", "hr", "blockquote", "table", "thead",
        "tbody", "tr", "th", "td"}
OUTSIDE = re.compile(r"^(https?|mailto):")


class Page:
    """path: in the tree; address: its file in the site; body: its text as elements."""

    def __init__(self, top, path):
        self.path, self.address = path, address_of(path)
        said = run(["cmark-gfm", "--unsafe", "-e", "table", "-e", "autolink", os.path.join(top, path)])
        # Comments are for the tests that read the page.
        text = re.sub(r"<!--.*?-->\n?", "", said, flags=re.S)
        try:
            self.body = ET.fromstring(f"<div>{text}</div>")
        except ET.ParseError as error:
            raise Failure(f"{path}: HTML in it is not well-formed: {error}") from error
        strange = sorted({node.tag for node in self.body.iter()} - TAGS)
        if strange:
            raise Failure(f"{path}: not allowed in a page: <{strange[0]}>")
        self.anchors = name_headings(self.body)
        title = self.body.find("h1")
        if title is None:
            raise Failure(f"{path}: it has no title")
        self.title = words_of(title)


def address_of(path):
    """README.md is the first page; a client's README is named after the client."""
    if path == "README.md":
        return "index.html"
    client = re.fullmatch(r"clients/(\w+)/README\.md", path)
    return f"client-{client[1]}.html" if client else posixpath.basename(path).removesuffix(".md").lower() + ".html"


def words_of(node):
    return " ".join("".join(node.itertext()).split())


def slug_of(text, taken):
    """The anchor of a heading, as GitHub makes it."""
    slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
    number, name = 0, slug
    while name in taken:
        number += 1
        name = f"{slug}-{number}"
    return name


def name_headings(body):
    taken = []
    for node in body:
        if node.tag in HEADINGS:
            node.set("id", slug_of(words_of(node), taken))
            taken.append(node.get("id"))
    return set(taken)


def read_menu(top):
    """[(group, [path])]; what docs/ has beyond it comes last."""
    groups, listed = [], set()
    with open(os.path.join(HERE, "menu"), encoding="utf-8") as file:
        for line in file:
            if line.startswith("\t"):
                groups[-1][1].append(line.strip())
                listed.add(line.strip())
            elif line.strip() and not line.startswith("#"):
                groups.append((line.strip(), []))
    rest = sorted(os.path.relpath(path, top) for path in glob.glob(os.path.join(glob.escape(top), "docs/*.md")))
    more = [path for path in rest if path not in listed]
    return groups + [("More", more)] if more else groups


def relink(page, node, key, pages, files):
    """Leads a link of the tree to the same place of the site; files collects what is not a page."""
    target = node.get(key)
    if OUTSIDE.match(target):
        if key == "src":
            raise Failure(f"{page.path}: a picture from elsewhere: {target}")
        return
    if re.match(r"[\w+.-]+:|/", target):
        raise Failure(f"{page.path}: a link to {target}, which is not in the site")
    place, _, anchor = target.partition("#")
    path = posixpath.normpath(posixpath.join(posixpath.dirname(page.path), place)) if place else page.path
    if path in pages:
        if anchor and anchor not in pages[path].anchors:
            raise Failure(f"{page.path}: {path} has no heading '#{anchor}'")
        new = (pages[path].address if place else "") + (f"#{anchor}" if anchor else "")
    elif path.startswith("docs/") and not path.endswith(".md"):
        files.add(path)
        new = path.removeprefix("docs/")
    else:
        raise Failure(f"{page.path}: a link to {target}, which is not in the site")
    node.set(key, new)


def wants_more(command):
    """Whether a shell would ask for more lines, as tests/docs/page.py has it."""
    here = re.search(r"<<'?(\w+)'?", command)
    return command.endswith("\\") or bool(here and not command.endswith("\n> " + here[1]))


def mark_commands(code):
    """Of a transcript: what a reader types."""
    lines, last, code.text = (code.text or "").splitlines(keepends=True), None, ""
    for line in lines:
        if line.startswith("$ "):
            last = ET.SubElement(code, "b")
            last.text, last.tail = line.rstrip("\n"), "\n"
        elif last is not None and line.startswith("> ") and last.tail == "\n" and wants_more(last.text):
            last.text += "\n" + line.rstrip("\n")
        elif last is not None:
            last.tail += line
        else:
            code.text += line


def dress(page, pages, files):
    for node in list(page.body.iter()):
        if node.tag == "a":
            relink(page, node, "href", pages, files)
        elif node.tag == "img":
            relink(page, node, "src", pages, files)
            node.set("loading", "lazy")
        elif node.tag == "code" and node.get("class") == "language-console":
            mark_commands(node)
        elif node.tag == "pre":
            node.set("tabindex", "0")  # the keyboard can scroll it
    for parent in list(page.body.iter()):
        for at, node in enumerate(list(parent)):
            if node.tag == "table":
                wide = ET.Element("div", {"class": "scroll", "tabindex": "0"})
                wide.tail, node.tail = node.tail, None
                parent[at] = wide
                wide.append(node)
    sections = [(node.get("id"), words_of(node)) for node in page.body if node.tag == "h2"]
    for node in page.body:
        if node.tag in HEADINGS[1:]:
            ET.SubElement(node, "a", {"class": "anchor", "href": f"#{node.get('id')}", "aria-label": "Link to this section"}).text = "#"
    if len(sections) > 2:
        page.body.insert(list(page.body).index(page.body.find("h1")) + 1, contents(sections))


def contents(sections):
    box = ET.Element("details", {"class": "contents"})
    ET.SubElement(box, "summary").text = "On this page"
    rows = ET.SubElement(box, "ul")
    for anchor, text in sections:
        ET.SubElement(ET.SubElement(rows, "li"), "a", {"href": f"#{anchor}"}).text = text
    return box


def rows_of(page):
    """What search reads of a page: [address, title, heading, text] for each section."""
    rows = []
    for node in page.body:
        if node.tag in HEADINGS[:3]:
            anchor = "" if node.tag == "h1" else f"#{node.get('id')}"
            rows.append([page.address + anchor, page.title, words_of(node), []])
        elif rows:
            rows[-1][3].append(words_of(node))
    return [[address, title, heading, " ".join(texts)] for address, title, heading, texts in rows]


def menu_html(menu, pages, here):
    parts = []
    for group, paths in menu:
        parts.append(f"<h2>{html.escape(group)}</h2>\n<ul>")
        for path in paths:
            current = ' aria-current="page"' if path == here.path else ""
            parts.append(f'<li><a href="{pages[path].address}"{current}>{html.escape(pages[path].title)}</a></li>')
        parts.append("</ul>")
    return "\n".join(parts)


def neighbours_html(order, at):
    def link(index, words):
        if not 0 <= index < len(order):
            return "<span></span>"
        return f'<a href="{order[index].address}">{words.format(html.escape(order[index].title))}</a>'
    return f'<div class="neighbours">{link(at - 1, "← {}")}{link(at + 1, "{} →")}</div>'


def write_pages(out, menu, order):
    with open(os.path.join(HERE, "page.html"), encoding="utf-8") as file:
        frame = file.read()
    pages = {page.path: page for page in order}
    for at, page in enumerate(order):
        body = "\n".join(ET.tostring(node, encoding="unicode", method="html").strip() for node in page.body)
        title = page.title if page.address == "index.html" else f"{page.title} - Cordon"
        parts = {"title": html.escape(title), "menu": menu_html(menu, pages, page), "body": body, "neighbours": neighbours_html(order, at),
                 "version": product.version()}
        write(os.path.join(out, page.address), re.sub(r"@(\w+)@", lambda m: parts[m[1]], frame))


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def make(out, top=product.ROOT):
    """Writes the site of the tree `top` into the folder `out`, which is emptied first. Returns how many pages there are."""
    menu = read_menu(top)
    order = [Page(top, path) for _, paths in menu for path in paths]
    pages, files, rows = {page.path: page for page in order}, set(), []
    if len({page.address for page in order}) != len(order):
        raise Failure("two pages have the same address")
    for page in order:
        rows += rows_of(page)
        dress(page, pages, files)
    lacking = [path for path in sorted(files) if not os.path.isfile(os.path.join(top, path))]
    if lacking:
        raise Failure(f"a page links to {lacking[0]}, which is not there")
    # Nothing is written before all is known to be right.
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(out)
    for name in ASSETS:
        shutil.copyfile(os.path.join(HERE, name), os.path.join(out, name))
    for path in sorted(files):
        to = os.path.join(out, path.removeprefix("docs/"))
        os.makedirs(os.path.dirname(to), exist_ok=True)
        shutil.copyfile(os.path.join(top, path), to)
    write_pages(out, menu, order)
    data = ",\n".join(json.dumps(row, ensure_ascii=False).replace("</", "<\\/") for row in rows)
    write(os.path.join(out, "index.js"), f"window.cordonIndex = [\n{data}\n];\n")
    return len(order)
