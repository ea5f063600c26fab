#!/usr/bin/env python3
"""The site of the documentation is whole, and its faults are found."""

import ast
import contextlib
import io
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "scripts/lib"))
import make_site  # noqa: E402
import site_api  # noqa: E402


class Site(unittest.TestCase):
    def test_whole(self):
        with tempfile.TemporaryDirectory(prefix="candela_site_") as place:
            made = pathlib.Path(place) / "site"
            done = subprocess.run([SOURCE / "scripts/site", "--output", made], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr[-4000:])
            pages = {str(path.relative_to(made)) for path in made.rglob("*.html")}
            for name in ("index.html", "docs/install.html", "docs/tour/README.html", "docs/porting_guide/1_memory.html",
                         "docs/reference/ops.html", "docs/python_api.html", "docs/dev/testing.html"):
                self.assertIn(name, pages)
            documents = {str(path.relative_to(SOURCE).with_suffix(".html")) for path in (SOURCE / "docs").rglob("*.md")}
            self.assertEqual(documents - pages, set())
            index = (made / "searchindex.js").read_text()
            for word in ("bundl", "systol", "dlpack"):  # stems
                self.assertIn(word, index)
            api = (made / "docs/python_api.html").read_text()
            for name in ("Session", "Tensor", "compile", "simulate", "onnx_backend"):
                self.assertIn(name, api)

    def test_broken_links(self):
        with tempfile.TemporaryDirectory(prefix="candela_site_") as place:
            folder = pathlib.Path(place)
            (folder / "a.html").write_text('<h1 id="top">A</h1><a href="b.html#there">b</a><a href="#top">a</a>'
                                           '<a href="https://elsewhere.example/x">x</a>')
            (folder / "b.html").write_text('<p id="there"><a href="a.html">a</a></p>')
            self.assertEqual(make_site.broken_links(folder), ([], 3))
            for text, message in (('<a href="c.html">c</a>', "b.html: c.html leads nowhere"),
                                  ('<a href="a.html#middle">a</a>', "b.html: a.html#middle: no such heading"),
                                  ('<script src="https://elsewhere.example/x.js"></script>',
                                   "b.html: loads https://elsewhere.example/x.js"),
                                  ('<img src="figure.png">', "b.html: figure.png leads nowhere")):
                with self.subTest(message):
                    (folder / "b.html").write_text('<p id="there"></p>' + text)
                    self.assertEqual(make_site.broken_links(folder)[0], [message])

    def test_a_page_that_is_not_there(self):
        with tempfile.TemporaryDirectory(prefix="candela_site_") as place:
            root = pathlib.Path(place)
            shutil.copytree(SOURCE / "python/candela", root / "python/candela")
            (root / "CMakeLists.txt").write_text("project(Candela VERSION 1.2.3)\n")
            (root / "docs").mkdir()
            (root / "docs/python.md").write_text("# Python\n")
            (root / "README.md").write_text("# Candela\n\n[here](docs/python.md)\n")
            with mock.patch.object(make_site, "ROOT", root), mock.patch.object(make_site.sys, "executable", "/usr/bin/python3"):
                self.assertEqual(make_site.main(["--output", str(root / "site")]), 0)
                said = io.StringIO()
                for link in ("docs/nowhere.md", "docs/python.md#nothing", "nothing.txt"):
                    (root / "README.md").write_text(f"# Candela\n\n[here]({link})\n")
                    with self.subTest(link), contextlib.redirect_stderr(said):
                        self.assertEqual(make_site.main(["--output", str(root / "site")]), 1)
                        self.assertIn(link, said.getvalue())
            self.assertIn("Candela 1.2.3", (root / "site/index.html").read_text())

    def test_links_mean_the_same(self):
        for path, text, expected in (("docs/python.md", "[a](../README.md#figures)", "[a](../index.md#figures)"),
                                     ("docs/python.md", "[a](tour)", "[a](tour/README.md)"),
                                     ("docs/python.md", "[a](https://x.example)", "[a](https://x.example)"),
                                     ("docs/python.md", "```\n[a](tour)\n```", "```\n[a](tour)\n```"),
                                     ("README.md", "[`a`](docs/python.md)", "[`a`](docs/python.md)")):
            self.assertEqual(make_site.rewritten(path, text), expected + "\n")

    def test_python_api_has_every_public_name(self):
        page = site_api.page(SOURCE / "python/candela")
        stub = ast.parse((SOURCE / "python/candela/_native.pyi").read_text())
        for node in stub.body:
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and not node.name.startswith("_"):
                self.assertIn(f"### `{node.name}`\n", page)
        names = next(node.value for node in ast.parse((SOURCE / "python/candela/__init__.py").read_text()).body
                     if isinstance(node, ast.Assign) and node.targets[0].id == "__all__")
        missing = [name for name in ast.literal_eval(names) if not re.search(rf"^### `{name}`$", page, re.M)]
        self.assertEqual(missing, [])


if __name__ == "__main__":
    if subprocess.run(["/usr/bin/python3", "-c", "import sphinx, myst_parser, furo"], capture_output=True).returncode:
        print("left out: it needs python3-sphinx, python3-myst-parser and furo")
        sys.exit(77)
    unittest.main(verbosity=2)
