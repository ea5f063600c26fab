#!/usr/bin/env python3
"""The manual says what the tool says, and shells complete what the tool takes.

usage: test_manual.py CANDELA MANUAL

Types lines into bash, and into zsh and fish where they are installed, with completions as they are installed.
"""

import gzip
import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tools/candela-manual"))
import commands  # noqa: E402

FILES = ["digits.onnx", "small model.onnx", "small.tflite", "data.npy", "notes.txt", "mine.toml", "libacme.so", "deep/inner.onnx"]
# (line, what it may go on to in that order or not; ... beside others). A line ends where the cursor is.
CASES = [
    ("candela ", {"run", "bench", "npu", "new-backend", ...}),
    ("candela ben", {"bench"}),
    ("candela --ver", {"--version"}),
    ("candela run --par", {"--partition"}),
    ("candela run --partition ", {"preference", "cost", "pipeline"}),
    ("candela run digits.onnx --partition p", {"preference", "pipeline"}),
    ("candela run --partition=co", {"cost"}),
    ("candela run --backend ", {"soft", "reference", "template", ...}),
    ("candela run --backend tem", {"template"}),
    ("candela run --backend template,so", {"template,soft"}),
    ("candela run ", {"digits.onnx", "small model.onnx", "small.tflite", "deep"}),
    ("candela run deep/", {"deep/inner.onnx"}),
    ("candela run di", {"digits.onnx"}),
    ("candela run digits.onnx --input images=da", {"images=data.npy"}),
    ("candela run digits.onnx --output ", {"deep"}),
    ("candela simulate --npu edge", {"edge4t", "edge8t"}),
    ("candela simulate --npu mi", {"mine.toml"}),
    ("candela simulate --engine s", {"systemc"}),
    ("candela npu ", {"as", "dis", "config", "run"}),
    ("candela npu run --lock", {"--lockstep"}),
    ("candela npu config gem", {"gem16"}),
    ("candela opt --passes canonicalize,fold-b", {"canonicalize,fold-batch-norm"}),
    ("candela quantize --scheme symm", {"symmetric", "symmetric-uint8"}),
    ("candela run --dim ", set()),
    ("candela run --no-such", set()),
]


class Manual(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tool, cls.version = commands.read_tool(CANDELA)
        folder = tempfile.TemporaryDirectory(prefix="candela_manual_")
        cls.addClassCleanup(folder.cleanup)
        # A path with a blank, where the plugin of the lines above lies beside the tool.
        cls.root = pathlib.Path(folder.name) / "a place"
        for name in ("bin", "lib/candela", "here/deep"):
            (cls.root / name).mkdir(parents=True)
        (cls.root / "bin/candela").write_text("#!/bin/sh\n")
        (cls.root / "bin/candela").chmod(0o755)
        (cls.root / "lib/candela/libcandela_template.so").touch()
        for name in FILES:
            (cls.root / "here" / name).touch()
        cls.environment = {"PATH": f"{cls.root}/bin:/usr/bin:/bin", "HOME": folder.name, "LC_ALL": "C.UTF-8", "TERM": "dumb"}

    def check(self, complete):
        for line, expected in CASES:
            with self.subTest(line):
                found = {word.replace("\\ ", " ").rstrip("/") for word in complete(line)}
                if ... in expected:
                    self.assertLessEqual(expected - {...}, found)
                else:
                    self.assertEqual(found, expected)

    def test_a_page_for_each_command(self):
        pages = {path.name.removesuffix(".1.gz"): gzip.decompress(path.read_bytes()).decode() for path in MANUAL.glob("man/man1/*.1.gz")}
        self.assertEqual(set(pages), {command.name for command in self.tool.all()})
        self.assertIn(f"candela {self.version}", pages["candela"])
        for command in self.tool.all():
            page = pages[command.name].replace("\\-", "-").replace("\\e", "\\").replace("\\(ga", "`").replace("\\&", "")
            shown = subprocess.run([CANDELA, *command.words, "--help"], capture_output=True, text=True, check=True).stdout
            self.assertEqual(set(re.findall(r"^  (?:-\w,)?(--[\w-]+)", shown, re.M)),
                             {name for option in command.options for name in option.names if name.startswith("--")}, command.name)
            for argument in command.options + command.positionals:
                self.assertIn(argument.text, page, command.name)
                for name in argument.names:
                    self.assertIn(f"\\fB{name}\\fR", page)
            # Every word of the help is on the page.
            words = [word for word in re.split(r"\s+", " ".join([command.summary, *command.prose, *command.examples])) if word]
            self.assertEqual([word for word in words if word not in page], [])
            formatted = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z"], input=pages[command.name], text=True, capture_output=True)
            self.assertEqual((formatted.returncode, formatted.stderr), (0, ""), command.name)

    def test_a_line_that_is_not_understood(self):
        for line in ("--x9  a text", "   --odd by three", "  --Q:[ nothing that is an option"):
            with self.subTest(line), self.assertRaises(commands.Misunderstood):
                for row in commands.rows([line]):
                    commands.argument(*row, [], [])

    def test_bash(self):
        script = ('source "$1"; while IFS= read -r COMP_LINE; do COMP_POINT=${#COMP_LINE}; _candela candela "" ""; '
                  'printf "%s\\n" "${COMPREPLY[@]}" "=="; done')
        for breaks in (" \t\n\"'><=;|&(:", " \t\n"):
            done = subprocess.run(["bash", "--norc", "-c", f"COMP_WORDBREAKS=$2; {script}", "bash", MANUAL / "bash/candela", breaks],
                                  input="".join(f"{line}\n" for line, _ in CASES), text=True, capture_output=True, cwd=self.root / "here",
                                  env=self.environment, timeout=60)
            self.assertEqual(done.stderr, "")
            answers = dict(zip([line for line, _ in CASES], done.stdout.split("==\n")))

            def complete(line):
                # What the shell keeps of the word is not in the answer.
                kept = re.search(r"[^ ]*=", line.split(" ")[-1]) if "=" in breaks else None
                before = "" if not kept or kept[0] == "--partition=" else kept[0]
                return [before + word for word in answers[line].splitlines() if word]
            self.check(complete)

    @unittest.skipUnless(shutil.which("fish"), "fish is not installed")
    def test_fish(self):
        def complete(line):
            quoted = line.replace("'", "\\'")
            done = subprocess.run(["fish", "--no-config", "-c", f"source $argv[1]; complete -C '{quoted}'", MANUAL / "fish/candela.fish"],
                                  text=True, capture_output=True, cwd=self.root / "here", env=self.environment, timeout=60)
            self.assertEqual(done.stderr, "")
            return [answer.split("\t")[0].removeprefix("--partition=") for answer in done.stdout.splitlines()]
        self.check(complete)

    @unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
    def test_zsh(self):
        """zsh completes in its line editor alone: in a terminal, where each answer is written to a file in place of the screen."""
        answers = self.root / "answers"
        setup = (f"fpath=('{MANUAL}/zsh' $fpath); autoload -Uz compinit; compinit -u -D; cd '{self.root}/here'\n"
                 "compadd() { local -a all; local arg; if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)* ]]; then builtin compadd \"$@\"; return; fi\n"
                 f"  builtin compadd -O all \"$@\"; print -rl -- $IPREFIX${{^all}} >>'{answers}'; builtin compadd \"$@\" }}\n"
                 f"ask() {{ : >'{answers}'; zle complete-word; print -r -- '==' >>'{answers}'; zle kill-buffer }}; zle -N ask; bindkey '^T' ask\n"
                 "unsetopt list_beep; LISTMAX=100000; PS1=; print ready\n")
        pid, terminal = pty.fork()
        if not pid:
            os.chdir(self.root)
            os.execvpe("zsh", ["zsh", "-f", "-i"], self.environment)
        try:
            (self.root / "setup").write_text(setup)
            os.write(terminal, f". '{self.root}/setup'\n".encode())

            def wait(until):
                end = time.monotonic() + 15
                while time.monotonic() < end and not until():
                    if select.select([terminal], [], [], 0.05)[0]:
                        self.screen += os.read(terminal, 65536).decode(errors="replace")
                self.assertTrue(until(), self.screen[-2000:])
            self.screen = ""
            wait(lambda: "ready\r" in self.screen)

            def complete(line):
                answers.write_text("")
                os.write(terminal, b"\x15" + line.encode() + b"\x14")
                wait(lambda: answers.read_text().endswith("==\n"))
                found = answers.read_text().splitlines()[:-1]
                word = line.split(" ")[-1]
                folder = word.split("=")[-1].rpartition("/")[0]
                # Names of files are told without their folder.
                return [(f"{folder}/{name}" if folder else name).removeprefix("--partition=") for name in dict.fromkeys(found) if name]
            self.check(complete)
        finally:
            os.close(terminal)
            os.waitpid(pid, 0)


if __name__ == "__main__":
    MANUAL = pathlib.Path(sys.argv.pop(2)).resolve()
    CANDELA = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main(verbosity=2)
