#!/usr/bin/env python3
"""Names of a file are shown and not obeyed: by terminals, by spreadsheets, by browsers, by readers of JSON."""

import csv
import html.parser
import io
import json
import os
import pty
import re
import subprocess
import unittest

from attack import TOOL, Attack, hiddenIn, onnxModel

# A colour, a carriage return, a bell, an erased line, a title, C1, overrides and marks of direction, a line that is forged.
EVIL = ("n\x1b[31mred\rPASS\x07\x1b[2K\x1b]0;title\x07\b\x7f\x85\x9b31m\u061c\u200b\u200e\u200f\u2028\u202a\u202e\u2066\u2069"
        "\ufeff\U000e0041\nerror: forged\n")
FORGED = re.compile(rb"^(error: forged|PASS)", re.M)


def quoted(name):
    return '"' + "".join(f"\\x{byte:02x}" for byte in name.encode()) + '"'


def graph(name, x, y, result):
    """The text form, of a model with these names."""
    return (f"graph @{quoted(name)}(%{quoted(x)}: f32[2,4]) -> (%{quoted(result)}: f32[2,4]) {{\n"
            f"  %{quoted(y)} = exp %{quoted(x)} : f32[2,4]\n  %{quoted(result)} = relu %{quoted(y)} : f32[2,4]\n}}\n")


def npuGraph(name, layers):
    """Convolutions that the NPU runs, one behind the other."""
    text, before = "", "%x"
    for i, layer in enumerate(layers):
        text += (f"  %w{i} = constant random({i}) : i8[16,16,1,1]\n"
                 f"  %{quoted(layer)} = conv_integer {before}, %w{i}, _, _ {{group = 1, pads = [0, 0, 0, 0], strides = [1, 1]}} : "
                 f"i32[1,16,4,4]\n"
                 f"  %m{i} = constant [9942054] : i32[]\n  %h{i} = constant [30] : i32[]\n  %z{i} = constant [0] : i32[]\n"
                 f"  %r{i} = rescale %{quoted(layer)}, %m{i}, %h{i}, %z{i} {{to = i8}} : i8[1,16,4,4]\n")
        before = f"%r{i}"
    return f"graph @{quoted(name)}(%x: i8[1,16,4,4]) -> ({before}: i8[1,16,4,4]) {{\n{text}}}\n"


class Scripts(html.parser.HTMLParser):
    """What the page's elements <script> hold, and the tags that it has."""

    def __init__(self, page):
        super().__init__()
        self.scripts, self.tags, self.inside = [], [], False
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.inside = tag == "script"
        if self.inside:
            self.scripts.append("")

    def handle_endtag(self, tag):
        self.inside = False

    def handle_data(self, data):
        if self.inside:
            self.scripts[-1] += data


class Terminal(Attack):
    def shown(self, *arguments):
        done = self.run_(*arguments)
        for output in (done.stdout, done.stderr):
            self.assertIsNone(hiddenIn(output), " ".join(arguments))
            self.assertIsNone(FORGED.search(output), " ".join(arguments))
        return done

    def testEveryCommand(self):
        self.write("text.cdl", graph(EVIL, EVIL + "x", EVIL + "y", EVIL + "z"))
        self.write("model.onnx", onnxModel(EVIL, EVIL + "node", EVIL + "x", EVIL + "y"))
        self.write("strange.onnx", onnxModel(EVIL, EVIL + "node", EVIL + "x", EVIL + "y", op="Op" + EVIL, domain="d" + EVIL))
        seen = 0
        for model in ("text.cdl", "model.onnx", "strange.onnx"):
            for command in (["inspect"], ["inspect", "--all"], ["inspect", "--dot"], ["inspect", "--json", "-"],
                            ["run", "--random", "1"], ["run", "--random", "1", "--explain"],
                            ["run", "--random", "1", "--json", "-"], ["run", "--random", "1", "--backend", "template"],
                            ["run", "--random", "1", "--backend", "template", "--profile"],
                            ["run", "--random", "1", "--require-native"], ["run"], ["run", "--input", "a=b"],
                            ["run", "--random", "1", "--backend", "reference"], ["run", "--random", "1", "--top", "2"],
                            ["compile", "-o", "out.cdb", "--explain"], ["plan"], ["plan", "--json", "-"], ["lower"],
                            ["lower", "--graph"], ["opt"], ["opt", "--passes", "optimize", "--print-after-all"],
                            ["bench", "--runs", "1"], ["debug", "--backend", "template"], ["simulate", "--random", "1"]):
                self.shown(command[0], model, *command[1:])
                seen += 1
            for command in (["run", "out.cdb", "--random", "1"], ["inspect", "out.cdb", "--all"], ["inspect", "out.cdb", "--json", "-"],
                            ["run", "out.cdb", "--random", "1", "--explain"]):
                self.shown(*command)
        self.assertEqual(seen, 72)

    def testMessages(self):
        """Errors that hold what a file, or a name of a file, says."""
        name = EVIL.replace("/", "")
        for content, file in ((f"graph @g(%x: f32[2]) -> (%y: f32[2]) {{ %y = \x1b[31m }}\n", name + ".cdl"),
                              ("graph @g(%x: f32[2]) -> (%y: f32[2]) {\n  %y = " + quoted(EVIL) + " %x : f32[2]\n}\n", "a.cdl"),
                              (graph("g", "x", "y", "y"), "twice.cdl"), ("{\"schema\": \"\x1b[31m\"}", "a.json"),
                              ("id,lower,upper,size\n\x1b[31m,9,1,1\n", "a.csv"), (b"\x9b\xff\x1b[31m", "a.onnx")):
            self.write(file, content)
            for command in (["inspect"], ["run", "--random", "1"], ["plan"], ["opt"], ["lower"], ["conform", "--merge"],
                            ["npu", "dis"], ["npu", "asm"], ["simulate", "--compare"]):
                done = self.shown(*command, file)
        self.shown("run", "a.cdl", "--backend", EVIL)
        self.shown("inspect", EVIL)
        self.shown(EVIL)
        self.shown("run", "--" + EVIL)

    def testColoursAreOurs(self):
        """On a terminal, which gets sequences for colours: ours and no other."""
        self.write("text.cdl", graph(EVIL, EVIL + "x", EVIL + "y", EVIL + "z"))
        os.rename(self.path("text.cdl"), self.path("\x1b[32mt\x0e00000000b.cdl"))
        for command in (["inspect", "\x1b[32mt\x0e00000000b.cdl"], ["run", "\x1b[32mt\x0e00000000b.cdl", "--random", "1"]):
            master, terminal = pty.openpty()
            env = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
            tool = subprocess.Popen([TOOL, *command], cwd=self.folder, stdout=terminal, stderr=terminal, env=env)
            os.close(terminal)
            output = b""
            try:
                while chunk := os.read(master, 65536):
                    output += chunk
            except OSError:  # the tool has closed its end
                pass
            os.close(master)
            self.assertEqual(tool.wait(), 0, output)
            plain = re.sub(rb"\x1b\[1m(.*?)\x1b\[0m", rb"\1", output.replace(b"\r\n", b"\n"))
            self.assertNotEqual(plain, output.replace(b"\r\n", b"\n"), "nothing is bold")
            self.assertIsNone(hiddenIn(plain))

    def testTextReadsBack(self):
        """What the text form escapes is the same name again."""
        self.write("text.cdl", graph(EVIL, EVIL + "x", EVIL + "y", EVIL + "z"))
        once = self.succeeds("opt", "text.cdl").stdout
        self.write("again.cdl", once)
        self.assertEqual(self.succeeds("opt", "again.cdl").stdout, once)
        page = json.loads(self.succeeds("inspect", "again.cdl", "--json", "-").stdout)
        self.assertIn(EVIL, [page.get("name"), *(row.get("name") for row in page.get("inputs", []))])


class Files(Attack):
    NAMES = ("=1+1", "+cmd", "-cmd|x", "@SUM(A1)", "\t=1", "\r=1", "a,b", 'q"q', "=1\n=2", "\uff1d1", "</script><b>", "<!--<script>",
             "]]>", "-5", "+5", "-2.5e3", "&amp;", "plain")

    def simulated(self, name, layers):
        self.write("model.cdl", npuGraph(name, layers))
        self.succeeds("simulate", "model.cdl", "--random", "1", "--csv", "out.csv", "--html", "out.html", "--trace", "out.json",
                      "--json", "report.json")
        with open(self.path("report.json")) as file:
            return json.load(file)

    def testCells(self):
        cells = []
        for first in range(0, len(self.NAMES), 2):
            cells += self.cells(self.NAMES[first:first + 2])
        for wanted in ("'=1+1", "'+cmd", "'-cmd|x", "'@SUM(A1)", "-5", "+5", "-2.5e3", "a,b", 'q"q', "plain"):
            self.assertIn(wanted, cells)

    def cells(self, layers):
        """The first ones of the lines of a simulation's CSV, whose cells are all seen to be no formula."""
        report = self.simulated("model", layers)
        names = [layer["name"] for layer in report["layers"]]
        for name in layers:
            self.assertIn(name, "\n".join(names))
        with open(self.path("out.csv"), newline="") as file:
            text = file.read()
        rows = list(csv.reader(io.StringIO(text)))
        self.assertEqual(len(rows), 1 + len(names))
        for row in rows:
            self.assertEqual(len(row), len(rows[0]))
            for cell in row:
                isNumber = re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", cell)
                self.assertTrue(isNumber or not re.match("[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]", cell), cell)
        return [row[0] for row in rows[1:]]

    def testPagesAndTraces(self):
        for name in ('a"b', "</script><script>alert(1)</script>", "<!--<script>", "a\\", "a\nb\x1b[31m", "'", "\u202e"):
            with self.subTest(name):
                report = self.simulated(name, [name, "</script><b>"])
                with open(self.path("out.html"), encoding="utf-8") as file:
                    text = file.read()
                self.assertIsNone(hiddenIn(text.encode()))
                page = Scripts(text)
                self.assertEqual(len(page.scripts), 2)
                self.assertEqual([layer["node"] for layer in json.loads(page.scripts[0])["layers"]],
                                 [layer["name"] for layer in report["layers"]])
                self.assertNotIn("<", page.scripts[0])
                with open(self.path("out.json"), encoding="utf-8") as file:
                    json.load(file)

    def testNamesThatAreNoText(self):
        """Bytes that are no UTF-8."""
        text = npuGraph("m", ["ab", "cd"]).replace("\\x61\\x62", "\\xff\\x9b\\xed\\xa0\\x80\\xc3")
        self.write("model.cdl", text)
        self.succeeds("simulate", "model.cdl", "--random", "1", "--csv", "out.csv", "--html", "out.html", "--trace", "out.json",
                      "--json", "report.json")
        for command in (["run", "model.cdl", "--random", "1", "--explain"], ["inspect", "model.cdl"], ["opt", "model.cdl"],
                        ["inspect", "model.cdl", "--dot"], ["inspect", "model.cdl", "--json", "-"]):
            self.assertIsNone(hiddenIn(self.succeeds(*command).stdout), command)
        for name in ("out.csv", "out.html", "out.json", "report.json"):
            with open(self.path(name), "rb") as file:
                self.assertIsNone(hiddenIn(file.read()), name)

    def testOtherPages(self):
        for name in ("</script><b>", "<!--<script>", '"><img src=x onerror=alert(1)>', "a\u202eb", "\x1b[31m"):
            self.write("model.cdl", graph(name, name + "x", name + "y", name + "z"))
            self.succeeds("inspect", "model.cdl", "--html", "out.html")
            with open(self.path("out.html"), encoding="utf-8") as file:
                text = file.read()
            page = Scripts(text)
            self.assertEqual(len(page.scripts), 1)
            self.assertNotIn("img", page.tags)
            self.assertNotIn("b", page.tags)
            self.assertIsNone(hiddenIn(text.encode()))
            self.succeeds("run", "model.cdl", "--random", "1", "--trace", "trace.json")
            with open(self.path("trace.json"), encoding="utf-8") as file:
                json.load(file)
            dot = self.succeeds("inspect", "model.cdl", "--dot").stdout.decode()
            for line in dot.splitlines()[2:-1]:  # each is one statement of quoted words
                self.assertRegex(line, r'^  ("([^"\\]|\\.)*"|->|label=|[\[\]; ])+$')

    def testPlans(self):
        self.write("problem.csv", "id,lower,upper,size\n=1+1,0,2,4\n@x,1,3,4\n-5,0,1,4\nplain,2,4,4\n")
        self.succeeds("plan", "problem.csv", "--capacity", "64", "-o", "solution.csv")
        with open(self.path("solution.csv")) as file:
            self.assertEqual([line.split(",")[0] for line in file][1:], ["'=1+1", "'@x", "-5", "plain"])

    def testSweeps(self):
        self.write("=cmd.cdl", npuGraph("m", ["a"]))
        self.write("s.toml", 'models = ["=cmd.cdl"]\nnpu = ["tiny"]\noutput = "here"\n')
        self.succeeds("simulate", "--sweep", "s.toml", "--jobs", "1")
        with open(self.path("here", "sweep.csv")) as file:
            self.assertIn("'=cmd.cdl", file.read())


if __name__ == "__main__":
    unittest.main()
