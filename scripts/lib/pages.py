"""Pages whose commands are run as a reader would run them: fenced blocks, a shell, and outputs that can be compared."""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile

# What a suite says of itself when it takes long, which depends on the machine.
PROGRESS = re.compile(r"conform: \d+/\d+, \d+ failed +\d+ %")
# A line of a page that stands for any number of lines of an output.
ELISION = "..."


class PageError(Exception):
    """A command of a page failed, or a block cannot be understood."""


class Block:
    """A fenced block: where it stands in its page, and what its first line says."""

    def __init__(self, page, line, info, body):
        words = shlex.split(info)
        self.page, self.line, self.body = page, line, body
        self.language = words[0] if words else ""
        self.flags = {w for w in words[1:] if "=" not in w}
        self.values = dict(w.split("=", 1) for w in words[1:] if "=" in w)

    def where(self):
        return f"{self.page.name}:{self.line + 1}"


def parts(page, text):
    """The blocks that say what they hold, and the names of `<!-- level: NAME -->`, in the order of the page."""
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        fence = re.match(r"```(\S.*)", lines[at])
        level = re.match(r"<!-- level: (.+) -->", lines[at])
        if level:
            yield level[1]
        if fence:
            end = lines.index("```", at)
            yield Block(page, at, fence[1], lines[at + 1 : end])
            at = end
        at += 1


def comparable(lines):
    """Output without what differs from run to run: times, rates, hashes of builds, spacing."""
    text = "\n".join(line.rstrip() for line in lines)
    # A second here may be 900 ms elsewhere, so units go too.
    text = re.sub(r"\d[\d,.]*(?:e[+-]?\d+)? ?(ns|us|ms|s)\b", "TIME", text)
    text = re.sub(r"\b\d[\d.]* (KB|MB|GB)/s", "RATE", text)
    return re.sub(r" +", " ", text)


def agrees(shown, printed):
    """Whether the lines that a page shows are what was printed. ELISION stands for any lines, also for none."""
    pattern = ""
    for line in shown:
        if line.strip() == ELISION:
            pattern += r"(?:.*\n)*?"
        else:
            pattern += re.escape(line) + r"\n"
    return re.fullmatch(pattern, "".join(line + "\n" for line in printed)) is not None


class Reader:
    """Who follows a page: a folder to begin in, and a shell whose exports and folder stay.

    Nothing of the outer environment that steers Candela or reaches the terminal is seen by the commands.
    """

    def __init__(self, folder, **environment):
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("CANDELA")}
        self.env |= {"NO_COLOR": "1", "LC_ALL": "C.UTF-8", "PWD": str(folder)} | environment
        if shutil.which("ccache"):
            self.env |= {"CMAKE_CXX_COMPILER_LAUNCHER": "ccache", "CCACHE_BASEDIR": str(folder), "CCACHE_NOHASHDIR": "1"}

    def run(self, command, where, status=0):
        """What a command prints, as lines; what it says on stderr too where it is expected to fail."""
        with tempfile.NamedTemporaryFile() as after:
            script = f"{command}\nstatus=$?; env -0 >{shlex.quote(after.name)}; exit $status"
            done = subprocess.run(["bash", "-c", script], cwd=self.env["PWD"], env=self.env, capture_output=True,
                                  stdin=subprocess.DEVNULL, text=True, errors="replace", timeout=600)
            if done.returncode != status:
                raise PageError(f"{where}: `{command}` ended with {done.returncode}, expected {status}\n"
                                f"{done.stdout}{done.stderr}")
            variables = pathlib.Path(after.name).read_text(errors="surrogateescape").split("\0")
        self.env = dict(each.split("=", 1) for each in variables if each)  # exports stay, what was unset is gone
        said = (done.stdout + (done.stderr if status else "")).rstrip("\n")
        return [line for line in said.split("\n") if not PROGRESS.fullmatch(line)] if said else []
