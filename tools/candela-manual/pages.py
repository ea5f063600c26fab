"""Pages of man(1), from the records of commands."""

import re

ENVIRONMENT = [
    ("CANDELA_PLUGIN_PATH", "folders, with colons between them, in which plugins are looked for before those of the installation; each "
                            "begins with a slash"),
    ("CANDELA_CACHE_DIR", "where what is built once is kept, in place of candela in XDG_CACHE_HOME or ~/.cache"),
    ("CANDELA_THREADS", "threads of the host's own executor"),
    ("CANDELA_NPU_RTL", "the sources of the NPU's hardware description, where they do not lie with the installation"),
]


def escaped(text):
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "\\(ga")
    return "\\&" + text if text.startswith((".", "'")) else text


def spec(argument):
    label = re.sub(r"^=", "", argument.label)
    names = ", ".join(f"\\fB{escaped(name)}\\fR" for name in argument.names)
    return f"{names} \\fI{escaped(label)}\\fR" if label and argument.names[0].startswith("-") else names


def listed(arguments):
    for argument in arguments:
        more = [word for word, holds in (("required", argument.required), ("may be given more than once", argument.repeated)) if holds]
        yield from (".TP", spec(argument), escaped(argument.text + (f" ({', '.join(more)})" if more else "")))


def page(command, version, root):
    """The text of a command's page."""
    title = command.name.upper()
    summary = command.summary.removeprefix("Candela: ").rstrip(".")  # the name stands in front already
    lines = [f'.TH {escaped(title)} 1 "" "candela {escaped(version)}" "User Commands"', ".SH NAME",
             f"{escaped(command.name)} \\- {escaped(summary[0].lower() + summary[1:])}",
             ".SH SYNOPSIS", f".B {escaped(' '.join(['candela', *command.words]))}"]
    if rest := command.usage.removeprefix(" ".join(["candela", *command.words])).strip():
        lines.append(escaped(rest))
    status = [text for text in command.prose if "Exit status" in text]
    lines.append(".SH DESCRIPTION")
    for text in [command.summary, *(text for text in command.prose if text not in status)]:
        lines += [".PP", escaped(text)]
    if command.commands:
        lines.append(".SH COMMANDS")
        for other in command.commands:
            lines += [".TP", f"\\fB{escaped(other.words[-1])}\\fR", escaped(other.summary)]
    if command.positionals:
        lines += [".SH ARGUMENTS", *listed(command.positionals)]
    lines += [".SH OPTIONS", *listed(command.options)]
    if command.examples:
        lines += [".SH EXAMPLES", ".nf", *map(escaped, command.examples), ".fi"]
    if not command.words:
        lines.append(".SH ENVIRONMENT")
        for name, text in ENVIRONMENT:
            lines += [".TP", f"\\fB{name}\\fR", escaped(text)]
    if status:
        lines.append(".SH EXIT STATUS")
        for text in status:
            lines += [".PP", escaped(text)]
    others = command.commands or [root]
    lines += [".SH SEE ALSO", ",\n".join(f".BR {escaped(other.name)} (1)" for other in others).replace("(1),", "(1),")]
    return "\n".join(lines) + "\n"
