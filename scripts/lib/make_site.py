#!/usr/bin/env python3
"""Makes a site of the documentation with Sphinx, and follows every link of it.

usage: make_site.py --output DIR

Pages are README.md, what lies below docs/, and every Markdown file of the repository that one of those leads to; other files that they
lead to lie beside them, to be read as they are. Sphinx reads Markdown as code hosts do (MyST), and its warnings are errors.

Exit status: 1 where a link leads nowhere, or Sphinx is not content.
"""

import argparse
import html.parser
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from urllib.parse import unquote, urlsplit

import site_api

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(\s*<?)([^)\s>]+)(>?(?:\s+\"[^\"]*\")?\s*\))")
# Folders of the menu, in this order; what is in none of them is the last, by its place in the repository.
PARTS = (("Begin", ["docs/install.md", "docs/tour", "docs/python.md", "docs/python_api.md", "docs/glossary.md"]),
         ("Port a device", ["docs/porting_guide", "backends", "examples", "conformance"]),
         ("Reference", ["docs/reference"]),
         ("How it is made", ["docs/architecture.md", "core", "simulator", "rtl", "docs/adr"]),
         ("Work on it", ["CONTRIBUTING.md", "docs/dev", "tests", "SECURITY.md", "CHANGELOG.md"]))
REST = "Folders"
CONFIGURATION = """
project = "Candela"
extensions = ["myst_parser"]
root_doc = "index"
myst_heading_anchors = 6
suppress_warnings = ["myst.header", "misc.highlighting_failure"]
html_theme = "furo"
html_title = "Candela {version}"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_static_path = ["site_style"]
html_css_files = ["site.css"]
highlight_language = "none"
pygments_style = "default"
"""
# Tables are wider than a page: they scroll by themselves, and a narrow screen does not.
STYLE = """
article table.docutils { display: block; max-width: 100%; overflow-x: auto; }
article code { overflow-wrap: anywhere; }
article table code { overflow-wrap: normal; white-space: nowrap; }
"""


def is_external(target):
    return bool(re.match(r"[a-z][a-z0-9+.-]*:", target))


def goal_of(path, target):
    """The file of the repository that a link of a page names, from its root; a folder's README. None: there is none."""
    place = unquote(target.partition("#")[0])
    goal = os.path.normpath(os.path.join(os.path.dirname(path), place)) if place else path
    if (ROOT / goal).is_dir():
        goal = os.path.normpath(os.path.join(goal, "README.md"))
    return goal if (ROOT / goal).is_file() else None


def links(text):
    return [match[2] for match in LINK.finditer(re.sub(r"^[ \t]*```.*?^[ \t]*```[ \t]*$", "", text, flags=re.M | re.S))]


def closure():
    """{page: text}, and the other files that pages lead to."""
    start = ["README.md", *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))]
    found, others, waiting = {}, set(), list(start)
    while waiting:
        path = waiting.pop(0)
        if path in found:
            continue
        found[path] = (ROOT / path).read_text(encoding="utf-8")
        for target in links(found[path]):
            goal = None if is_external(target) else goal_of(path, target)
            if goal and goal.endswith(".md"):
                waiting.append(goal)
            elif goal:
                others.add(goal)
    return found, others


def rewritten(path, text):
    """The page with links to what they mean on the site: the root's README is its index; a folder without a README is no page."""
    def change(match):
        target = match[2]
        if is_external(target) or target.startswith("#"):
            return match[0]
        goal = goal_of(path, target)
        if not goal and not (ROOT / os.path.dirname(path) / unquote(target)).is_dir():
            return match[0]  # Sphinx says that it leads nowhere
        if not goal:
            return re.sub(r"^\[(.*)\]\(<?$", r"\1", match[1])
        if goal == "README.md":
            goal = "index.md"
        anchor = target.partition("#")[2]
        return match[1] + os.path.relpath(goal, os.path.dirname(path) or ".") + (f"#{anchor}" if anchor else "") + match[3]
    lines, fenced = [], False
    for line in text.splitlines():
        if re.match(r"\s*(```|~~~)", line):
            fenced = not fenced
        lines.append(line if fenced else LINK.sub(change, line))
    return "\n".join(lines) + "\n"


def title(text):
    return next((line[2:].strip() for line in text.splitlines() if line.startswith("# ")), "")


def order(pages, folder):
    """The pages of a folder: its README, then in the order in which that names them, then the others."""
    inside = [path for path in pages if path.startswith(folder + "/")]
    readme = f"{folder}/README.md"
    named = [goal_of(readme, target) for target in links(pages.get(readme, "")) if not is_external(target)]
    return sorted(inside, key=lambda path: (path != readme, named.index(path) if path in named else len(named), path))


def menu(pages):
    """The menu at the end of the index, and the pages of folders, which have menus of their own."""
    left = dict.fromkeys(path for path in pages if path != "README.md")
    text, of_folder = "", {}
    for part, entries in (*PARTS, (REST, None)):
        listed = []
        for entry in entries if entries is not None else list(left):
            if entry in left:
                listed.append(entry)
                del left[entry]
            elif inside := [path for path in order(pages, entry) if path in left]:
                for path in inside:
                    del left[path]
                head = inside[:1] if inside[0] == f"{entry}/README.md" else inside
                listed += head
                of_folder[inside[0]] = inside[len(head):]
        if listed:
            text += toctree(listed, "", part)
    return text, of_folder


def toctree(paths, folder, caption=""):
    names = "\n".join(os.path.relpath(path, folder or ".").removesuffix(".md") for path in paths)
    return f"\n```{{toctree}}\n:hidden:\n{f':caption: {caption}' if caption else ':titlesonly:'}\n\n{names}\n```\n"


def stage(folder):
    """Writes what Sphinx reads; the number of pages."""
    pages, others = closure()
    pages["docs/python_api.md"] = site_api.page(ROOT / "python/candela")
    text, of_folder = menu(pages)
    for path, page in pages.items():
        page = rewritten(path, page)
        if path == "README.md":
            path, page = "index.md", page + text
        elif of_folder.get(path):
            page += toctree(of_folder[path], os.path.dirname(path))
        if not title(page):
            page = f"# {os.path.dirname(path) or path}\n\n{page}"
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(page, encoding="utf-8")
    for path in others:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, folder / path)
    version = re.search(r"project\(Candela VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())[1]
    (folder / "conf.py").write_text(CONFIGURATION.replace("{version}", version))
    (folder / "site_style").mkdir()
    (folder / "site_style/site.css").write_text(STYLE)
    return len(pages)


class Page(html.parser.HTMLParser):
    """The anchors of a page, and what it links to or loads."""

    def __init__(self, path):
        super().__init__()
        self.anchors, self.targets = set(), []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("id", "name") and value:
                self.anchors.add(value)
            elif name in ("href", "src") and value is not None:
                self.targets.append((tag, value))


def broken_links(site):
    """[text] of each link of the site that leads nowhere or loads from a network, and the number of links."""
    pages = {path: Page(path) for path in site.rglob("*.html")}
    broken, count = [], 0
    for path, page in sorted(pages.items()):
        for tag, target in page.targets:
            place = urlsplit(target)
            if place.scheme or place.netloc:
                if tag != "a" and place.scheme != "data":
                    broken.append(f"{path.relative_to(site)}: loads {target}")
                continue
            count += 1
            goal = pathlib.Path(os.path.normpath(path.parent / unquote(place.path))) if place.path else path
            if not goal.is_file():
                broken.append(f"{path.relative_to(site)}: {target} leads nowhere")
            elif place.fragment and goal in pages and unquote(place.fragment) not in pages[goal].anchors:
                broken.append(f"{path.relative_to(site)}: {target}: no such heading")
    return broken, count


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    output = parser.parse_args(arguments).output
    # What an older site leaves is taken away, and nothing else is.
    if output.exists() and not (output.is_dir() and (not any(output.iterdir()) or (output / "objects.inv").is_file())):
        parser.error(f"--output {output}: it is there, and no site of this script")
    with tempfile.TemporaryDirectory(prefix="candela_site_") as place:
        sources, made = pathlib.Path(place) / "sources", pathlib.Path(place) / "made"
        sources.mkdir()
        pages = stage(sources)
        # Sphinx makes a site as a whole: nothing of an older one stays.
        done = subprocess.run([sys.executable, "-B", "-m", "sphinx", "-b", "html", "-j", "2", "-q", "-W", "--keep-going", sources, made],
                              capture_output=True, text=True)
        if done.returncode:
            print(done.stderr.replace(f"{sources}/", ""), file=sys.stderr)
            return 1
        shutil.rmtree(made / ".doctrees", ignore_errors=True)
        broken, count = broken_links(made)
        for text in broken:
            print(text, file=sys.stderr)
        if broken:
            return 1
        shutil.rmtree(output, ignore_errors=True)
        output.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(made, output)
    print(f"{output}/index.html  {pages} pages, {count} links")
    return 0


if __name__ == "__main__":
    sys.exit(main())
