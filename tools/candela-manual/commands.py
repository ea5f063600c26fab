"""What `candela --help` says, as records."""

from __future__ import annotations

import dataclasses
import re
import subprocess

COLUMN = 30  # where the texts of options begin
SECTIONS = ("Positionals", "Options", "Subcommands", "Example", "Examples")
EXTENSIONS = "onnx|tflite|cdl|cdb|npy|npz|pb|csv|toml|json|npu|npubin|cert|html"
# What stands for a value, and is no word for itself: a range, conditions, whether it has to be there.
NOT_LABEL = re.compile(r"( \.\.\.| x \d+)?( REQUIRED)?( (Excludes|Needs): --[\w-]+)*$")


class Misunderstood(Exception):
    """A line of the help has a form that is not known here."""


@dataclasses.dataclass
class Kind:
    """How values are completed. name: choices, files, folders, backends, presets, or nothing. key: NAME= comes before."""

    name: str = "nothing"
    words: list[str] = dataclasses.field(default_factory=list)
    """Of choices; of files the extensions, of which none means any; of presets their names."""
    key: bool = False
    list: bool = False
    """Several with commas between them."""


@dataclasses.dataclass
class Argument:
    """An option, or a positional argument, whose one name is the word that stands for it."""

    names: list[str]
    label: str
    """What stands for the value; empty for a switch."""
    text: str
    repeated: bool
    required: bool
    kind: Kind


@dataclasses.dataclass
class Command:
    words: list[str]
    """Behind `candela`; none for the tool itself."""
    summary: str
    usage: str
    positionals: list[Argument]
    options: list[Argument]
    examples: list[str]
    prose: list[str]
    """Paragraphs: the lines of each joined."""
    commands: list[Command]

    @property
    def name(self):
        return "-".join(["candela", *self.words])

    def all(self):
        yield self
        for command in self.commands:
            yield from command.all()


def said(candela, *arguments):
    return subprocess.run([candela, *arguments], check=True, capture_output=True, text=True, timeout=60).stdout


def rows(lines):
    """[(what stands before column 30, text)] of a section."""
    found = []
    for line in lines:
        if line.startswith(" " * COLUMN):
            if not found:
                raise Misunderstood(f"a text without an option: {line}")
            found[-1][1].append(line.strip())
        elif re.match(r"  \S", line):
            head, text = line[:COLUMN].rstrip(), line[COLUMN:].strip()
            # One that is too long for its column has its text in the next line.
            if len(line) > COLUMN and (line[COLUMN - 1] != " " or re.match(r"to [\d.]", text)):
                head, text = line, ""
            found.append((head.strip(), [text] if text else []))
        else:
            raise Misunderstood(f"neither an option nor its text: {line}")
    return [(head, " ".join(text)) for head, text in found]


def choices(label, text):
    """The words that a value may be, where label or text list them."""
    if braces := re.search(r"\{([^}]*)\}", label):
        return braces[1].split(",")
    if label in ("ENGINE", "FIDELITY", "LAYOUT", "LEVEL"):
        heads = [re.match(r"([\w-]+)(?::|$| \()", part.strip()) for part in text.split(";")]
        return [head[1] for head in heads if head]
    if label.split("=")[0] in ("TEXT", "TYPE"):
        parts = re.split(r",? or |, ", text.split("(")[0].strip())
        words = [part for part in parts if re.fullmatch(r"[\w-]+", part)]
        return words if " or " in text and len(words) > 1 else []
    return [label] if re.fullmatch(r"[a-z]+", label) else []


def kind_of(label, text, presets, passes):
    word = re.split(r"[:={ ]", label, maxsplit=1)[0] if not re.match(r"[A-Z\[]\S*=", label) else label
    key = re.match(r"(\[?\w+=\]?)(.*)", word)
    value = key[2] if key and key[2] else word
    named = f"{value} {text}" if "FILE" in value else value
    extensions = list(dict.fromkeys(re.findall(rf"\.({EXTENSIONS})\b", named)))
    if re.match(r"B([\[=]|$)", label):
        return Kind("backends", list="," in label or "by preference" in text)
    if label == "CONFIG":
        return Kind("presets", presets)
    if label.startswith("A,B") and "passes" in text:
        return Kind("choices", list(dict.fromkeys([*passes, "optimize"])), list=True)
    if words := choices(label, text):
        return Kind("choices", words)
    if re.match(r"(DIR$|DIR\b(?!\|))", value) or value == "TEXT" and "folder" in text:
        return Kind("folders")
    if re.search(r"FILE|\.json|\.toml|F\.cdl|DIR\|", value) or value.startswith("MODEL"):
        return Kind("files", extensions, key=bool(key))
    return Kind()


def argument(head, text, presets, passes):
    names, _, label = head.partition(" ")
    glued = re.match(r"(--[\w-]+)(\{.*\})$", names)  # a value that may be left away
    names, label = (glued[1], label) if glued else (names, label)
    name_list = names.split(",")
    if not all(re.fullmatch(r"-\w|--[\w-]+|[A-Z]\w*", name) for name in name_list) or not text:
        raise Misunderstood(f"no option with a text: {head} {text}")
    repeated = " ..." in f" {label}"
    required = "REQUIRED" in label
    label = NOT_LABEL.sub("", label).strip()
    if label == "...":
        label = ""
    return Argument(name_list, label, text, repeated, required, kind_of(label, text, presets, passes) if label else Kind())


def sections(text):
    """{name of a section: its lines}; what stands before under `head`, the paragraphs behind under `prose`."""
    found, name = {"head": [], "prose": []}, "head"
    for line in text.splitlines():
        if line.endswith(":") and line[:-1] in SECTIONS:
            name = line[:-1]
            found[name] = []
        elif name not in ("head", "prose") and line and not line.startswith(" "):
            name = "prose"
            found[name].append(line)
        elif line or name == "prose":
            found[name].append(line)
    return found


def read(candela, words, presets, passes):
    parts = sections(said(candela, *words, "--help"))
    summary, usage = parts["head"][0], parts["head"][1].removeprefix("Usage: ")
    prose = [" ".join(block.split()) for block in "\n".join(parts["prose"]).split("\n\n") if block.strip()]
    positionals, options = ([argument(*row, presets, passes) for row in rows(parts.get(name, []))]
                            for name in ("Positionals", "Options"))
    commands = [read(candela, [*words, name], presets, passes) for name, _ in rows(parts.get("Subcommands", []))]
    examples = [line.removeprefix("  ") for line in parts.get("Examples", parts.get("Example", []))]
    return Command(words, summary, usage, positionals, options, examples, prose, commands)


def first_column(text):
    return [line.split()[0] for line in text.splitlines()[1:] if line.strip()]


def read_tool(candela):
    """The tool and all of its commands."""
    presets, passes = first_column(said(candela, "npu", "config")), first_column(said(candela, "opt", "--list"))
    return read(candela, [], presets, passes), said(candela, "--version").strip()
