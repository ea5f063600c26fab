"""Completions of the command line, from the records of commands. Each shell gets a table of what stands in the help, and functions of
its own that read it."""

MADE = "# Made by tools/candela-manual of `candela --help`.\n"


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


# --- bash ---------------------------------------------------------------------------------------------------------------

BASH = r"""
# The backends that `candela backends` would find, without loading one. $1: the command as it was typed.
_candela_backends() {
  local tool folder file
  printf '%s\n' reference soft
  tool=$(type -P -- "$1") && tool=$(readlink -f -- "$tool") || return 0
  local IFS=:
  for folder in $CANDELA_PLUGIN_PATH "${tool%/*/*}"/lib/candela "${tool%/*/*}"/lib/*/candela "${tool%/*}"/candela; do
    for file in "$folder"/libcandela_*.so; do
      [[ -e $file ]] || continue
      file=${file##*/libcandela_}
      printf '%s\n' "${file%.so}"
    done
  done
}

# _candela_paths PREFIX EXTENSION...: files of these, of any without one, and folders.
_candela_paths() {
  local prefix=$1 path extension
  shift
  while IFS= read -r path; do
    if [[ $# -eq 0 || -d $path ]]; then
      printf '%s\n' "$path"
      continue
    fi
    for extension; do
      [[ $path != *."$extension" ]] || printf '%s\n' "$path"
    done
  done < <(compgen -f -- "$prefix")
}

# _candela_values VALUE KIND FLAG WORD...: what the value may go on to, one a line, and in `form` whether these are names of files.
_candela_values() {
  local value=$1 kind=$2 flag=$3 before=
  shift 3
  case $flag in
    key)
      [[ $value == *=* ]] || return 0
      before=${value%%=*}= value=${value#*=} ;;
    list)
      [[ $value != *,* ]] || before=${value%,*}, value=${value##*,} ;;
  esac
  case $kind in
    choices) compgen -P "$before" -W "$*" -- "$value" ;;
    backends)
      if [[ $value == */* ]]; then
        _candela_paths "$value" so
      else
        compgen -P "$before" -W "$(_candela_backends "$tool")" -- "$value"
      fi ;;
    presets)
      [[ $value == */* ]] || compgen -W "$*" -- "$value"
      _candela_paths "$value" toml ;;
    files) _candela_paths "$value" "$@" | while IFS= read -r path; do printf '%s\n' "$before$path"; done ;;
    folders) compgen -d -- "$value" ;;
  esac
}

_candela() {
  local line=${COMP_LINE:0:COMP_POINT} tool=$1 current previous= command= word words path REPLY
  local -a kind
  COMPREPLY=()
  # Not COMP_WORDS, which are cut at = and : too.
  read -a words <<<"$line"
  if [[ $line == *[[:blank:]] ]]; then words+=(''); fi
  current=${words[-1]}
  for word in "${words[@]:1:${#words[@]}-2}"; do
    _candela_commands "$command"
    if [[ " $REPLY " == *" $word "* ]]; then command=${command:+$command }$word; fi
    previous=$word
  done

  local value=$current option=$previous
  if [[ $current == --*=* ]]; then option=${current%%=*} value=${current#*=}; fi
  _candela_kind "$command $option"
  kind=($REPLY)
  if [[ -z $REPLY ]]; then
    _candela_commands "$command"
    if [[ $current == -* ]]; then
      _candela_options "$command"
      kind=(choices -- $REPLY)
    elif [[ -n $REPLY ]]; then
      kind=(choices -- $REPLY)
    else
      _candela_kind "$command "
      kind=($REPLY)
    fi
  fi
  [[ ${#kind[@]} -gt 0 ]] || return 0
  case ${kind[0]} in files | folders | presets | backends) compopt -o filenames 2>/dev/null ;; esac
  while IFS= read -r path; do COMPREPLY+=("$path"); done < <(_candela_values "$value" "${kind[@]}")
  # The shell puts an answer behind the last of its breaks in the word, and not in the place of it.
  local i cut=
  for ((i = 0; i < ${#value}; i++)); do
    if [[ ${value:i:1} == [=:] && $COMP_WORDBREAKS == *${value:i:1}* ]]; then cut=${value:0:i+1}; fi
  done
  for i in "${!COMPREPLY[@]}"; do COMPREPLY[i]=${COMPREPLY[i]#"$cut"}; done
}
complete -F _candela candela
"""


def bash_kind(kind):
    flag = "key" if kind.key else "list" if kind.list else "--"
    return " ".join([kind.name, flag, *kind.words])


def bash(tool):
    def table(name, rows):
        """A function that leaves in REPLY what stands in a table."""
        body = "".join(f"    {quoted(key)}) REPLY={quoted(value)} ;;\n" for key, value in rows)
        return f"\n{name}() {{\n  case $1 in\n{body}    *) REPLY= ;;\n  esac\n}}\n"

    kinds = []
    for command in tool.all():
        words = " ".join(command.words)
        kinds += [(f"{words} {name}", bash_kind(option.kind)) for option in command.options if option.label for name in option.names]
        kinds += [(f"{words} ", bash_kind(argument.kind)) for argument in command.positionals[-1:]]
    return ("# bash completion for candela\n" + MADE +
            table("_candela_commands", [(" ".join(command.words), " ".join(other.words[-1] for other in command.commands))
                                        for command in tool.all() if command.commands]) +
            table("_candela_options", [(" ".join(command.words), " ".join(name for option in command.options for name in option.names))
                                       for command in tool.all()]) +
            "\n# Kind, form and words of a value: of an option, or of what is none." + table("_candela_kind", kinds) + BASH)


# --- zsh ----------------------------------------------------------------------------------------------------------------

# Two underscores, as a command's own function has one.
ZSH = r"""
# The backends that `candela backends` would find, without loading one.
__candela_backends() {
  local tool=${commands[candela]:A}
  local -a files names
  [[ $1 != list ]] || compset -P '*,'
  if [[ $PREFIX == */* ]]; then
    _files -g '*.so'
    return
  fi
  files=(${^${(s.:.)CANDELA_PLUGIN_PATH}}/libcandela_*.so(N) ${tool:h:h}/lib/candela/libcandela_*.so(N)
    ${tool:h:h}/lib/*/candela/libcandela_*.so(N) ${tool:h}/candela/libcandela_*.so(N))
  names=(reference soft ${${files:t:r}#libcandela_})
  compadd -q -S '' -- ${(u)names}
}
__candela_list() { compset -P '*,'; compadd -q -S '' -- "$@" }
__candela_key_files() { compset -P '*=' && _files "$@" }
__candela_presets() { compadd -- "$@"; _files -g '*.toml' }
"""


def zsh_text(text):
    short = text if len(text) <= 70 else text[:67].rsplit(" ", 1)[0] + " …"
    return "".join("\\" + letter if letter in "\\[]:" else letter for letter in short)


def zsh_action(kind):
    pattern = f' -g "*.({"|".join(kind.words)})"' if kind.words else ""
    return {"choices": f" __candela_list {' '.join(kind.words)}" if kind.list else f"({' '.join(kind.words)})",
            "backends": f" __candela_backends{' list' if kind.list else ''}",
            "presets": f" __candela_presets {' '.join(kind.words)}",
            "files": f" __candela_key_files{pattern}" if kind.key else f"_files{pattern}",
            "folders": "_files -/"}.get(kind.name, " ")


def zsh_specs(command):
    for option in command.options:
        names = " ".join(option.names)
        for name in option.names:
            first = "*" if option.repeated else f"({names})"
            value = f":{zsh_text(option.label)}:{zsh_action(option.kind)}" if option.label else ""
            form = "=" if option.label and name.startswith("--") else ""  # --name=value too
            yield quoted(f"{first}{name}{form}[{zsh_text(option.text)}]{value}")
    if command.commands:
        yield quoted("1:command:->command")
        yield quoted("*::argument:->rest")
    for argument in command.positionals[-1:]:
        yield quoted(f"*:{zsh_text(argument.names[0])}:{zsh_action(argument.kind)}")


def zsh(tool):
    lines = ["#compdef candela", MADE + ZSH]
    for command in tool.all():
        name = "_".join(["_candela", *command.words])
        specs = " \\\n    ".join(zsh_specs(command))
        lines.append(f"{name}() {{")
        if not command.commands:
            lines += [f"  _arguments -s : \\\n    {specs}", "}\n"]
            continue
        described = " ".join(quoted(f"{other.words[-1]}:{other.summary}") for other in command.commands)
        lines += ["  local curcontext=$curcontext state line ret=1", f"  _arguments -C -s : \\\n    {specs} && ret=0",
                  "  case $state in", f"    command) local -a found=({described}); _describe command found && ret=0 ;;",
                  f"    rest) (( $+functions[{name}_$words[1]] )) && {name}_$words[1] && ret=0 ;;", "  esac", "  return ret", "}\n"]
    lines.append('if [[ $funcstack[1] == _candela ]]; then _candela "$@"; else compdef _candela candela; fi')
    return "\n".join(lines) + "\n"


# --- fish ---------------------------------------------------------------------------------------------------------------

FISH = r"""
# __candela_at WORD...: whether these are the commands that were typed; without one, whether there is none yet.
function __candela_at
    set -l words (string match -v -- '-*' (commandline -opc)[2..])
    set -l wanted (count $argv)
    test $wanted -eq 0; and test (count $words) -eq 0; and return
    test $wanted -gt 0; and test (count $words) -ge $wanted; and test "$words[1..$wanted]" = "$argv"
end
# The same, and no command behind them.
function __candela_last
    __candela_at $argv; and test (count (string match -v -- '-*' (commandline -opc)[2..])) -eq (count $argv)
end
# The backends that `candela backends` would find, without loading one.
function __candela_backends
    printf '%s\n' reference soft
    set -l tool (path resolve (command -s candela))
    set -l root (path dirname (path dirname $tool))
    for file in (string split -n : -- "$CANDELA_PLUGIN_PATH")/libcandela_*.so $root/lib/candela/libcandela_*.so $root/lib/*/candela/libcandela_*.so
        string replace -r '.*/libcandela_(.*)[.]so$' '$1' -- $file
    end
end
# __candela_files FORM EXTENSION...: files of these, of any without one, and folders. FORM key: behind NAME=.
function __candela_files
    set -l token (commandline -ct)
    set -l before ''
    if test $argv[1] = key
        set before (string match -r '^[^=]*=' -- $token); or return
        set token (string replace -r '^[^=]*=' '' -- $token)
    end
    for path in (complete -C "__candela_nothing $token" | string split -f 1 \t)
        if test (count $argv) -eq 1; or string match -q -- '*/' $path; or contains -- (string replace -r '.*[.]' '' -- $path) $argv[2..]
            echo $before$path
        end
    end
end
complete -c candela -f
"""


def fish_action(kind):
    words = " ".join(kind.words)
    if kind.name == "choices":
        return f"-x -a \"(__fish_complete_list , 'string split \\\" \\\" -- \\\"{words}\\\"')\"" if kind.list else f"-x -a {quoted(words)}"
    return {"backends": f"-x -a {quoted('(__fish_complete_list , __candela_backends)' if kind.list else '(__candela_backends)')}",
            "presets": f"-x -a {quoted(words + ' (__candela_files - toml)')}",
            "files": f"-x -a {quoted('(__candela_files ' + ('key ' if kind.key else '- ') + words + ')')}",
            "folders": "-x -a '(__fish_complete_directories)'"}.get(kind.name, "-x")


def fish(tool):
    lines = [MADE + FISH]
    for command in tool.all():
        at = quoted(" ".join(["__candela_at", *command.words]))
        last = quoted(" ".join(["__candela_last", *command.words]))
        for other in command.commands:
            lines.append(f"complete -c candela -n {last} -a {other.words[-1]} -d {quoted(other.summary)}")
        for option in command.options:
            names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
            value = f" {fish_action(option.kind)}" if option.label else ""
            lines.append(f"complete -c candela -n {at} {names}{value} -d {quoted(option.text)}")
        for argument in command.positionals[-1:]:
            if argument.kind.name != "nothing":
                lines.append(f"complete -c candela -n {at} {fish_action(argument.kind).replace('-x ', '-f ', 1)}")
    return "\n".join(lines) + "\n"
