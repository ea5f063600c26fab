"""The page of the Python API, from the sources of the package and the stub of its module: signatures and what stands below them."""

import ast
import pathlib
import re

MODULES = (("candela", "__init__.py"), ("candela", "_native.pyi"), ("candela", "backend.py"), ("candela", "errors.py"),
           ("candela", "tool.py"), ("candela.onnx_backend", "onnx_backend.py"))


def is_public(name):
    return not name.startswith("_") or name in ("__init__", "__call__", "__await__")


def arguments(of):
    """The text of each argument, with the marks of those that have no place or no name."""
    positional = [*of.posonlyargs, *of.args]
    defaults = [None] * (len(positional) - len(of.defaults)) + of.defaults
    def text(argument, default, mark=""):
        # A default by itself has blanks around its sign where there is a type.
        one = mark + ast.unparse(argument)
        return one + ((" = " if argument.annotation else "=") + ast.unparse(default) if default else "")
    found = [text(*pair) for pair in zip(positional, defaults)]
    if of.posonlyargs:
        found.insert(len(of.posonlyargs), "/")
    if of.vararg or of.kwonlyargs:
        found.append(text(of.vararg, None, "*") if of.vararg else "*")
    found += [text(*pair) for pair in zip(of.kwonlyargs, of.kw_defaults)]
    return found + ([text(of.kwarg, None, "**")] if of.kwarg else [])


def signature(node):
    result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    keyword = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    text = f"{keyword} {node.name}({', '.join(arguments(node.args))}){result}"
    if len(text) <= 80:
        return text
    return f"{keyword} {node.name}(\n" + "".join(f"    {one},\n" for one in arguments(node.args)) + f"){result}"


def documented(node):
    """What stands below a definition; a property's too, whose body may be that alone."""
    blocks = (ast.get_docstring(node) or "").split("\n\n")
    # Lines with columns, and examples, stay lines.
    return "\n\n".join(f"```text\n{block}\n```" if re.search(r"^(\w+ {2,}\S|    \S|>>>)", block, re.M) else block for block in blocks)


def function(node, level):
    decorators = "".join(f"@{ast.unparse(one)}\n" for one in node.decorator_list)
    return [f"{'#' * level} `{node.name}`", "", "```python", decorators + signature(node), "```", "", documented(node), ""]


def klass(node):
    bases = ", ".join(ast.unparse(base) for base in node.bases)
    lines = [f"### `{node.name}`", "", "```python", f"class {node.name}({bases})" if bases else f"class {node.name}", "```", "",
             documented(node), ""]
    members, fields = [], []
    for index, child in enumerate(node.body):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)) and is_public(child.name):
            members.append(child)
        elif isinstance(child, ast.AnnAssign) and is_public(child.target.id):
            after = node.body[index + 1] if index + 1 < len(node.body) else None
            text = after.value.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else ""
            fields.append(f"- `{child.target.id}: {ast.unparse(child.annotation)}`" + (f" — {' '.join(text.split())}" if text else ""))
    lines += [*fields, ""] if fields else []
    for member in members:
        lines += function(member, 4)
    return lines


def page(package):
    """The text of the page. package: the folder of the sources."""
    lines = ["# Python API", "", "Made of the package's sources and of the stub that type checkers read. [How it is used](python.md).", ""]
    seen = set()
    for module, file in MODULES:
        tree = ast.parse((pathlib.Path(package) / file).read_text())
        nodes = [node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
                 and is_public(node.name) and (module, node.name) not in seen]
        if not nodes:
            continue
        if not any(module == known for known, _ in seen):
            lines += [f"## {module}", ""]
        seen |= {(module, node.name) for node in nodes}
        for node in nodes:
            lines += klass(node) if isinstance(node, ast.ClassDef) else function(node, 3)
    return "\n".join(lines) + "\n"
