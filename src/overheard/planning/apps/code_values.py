"""Follows expressions in an app's code to numbers, texts, and names in its configuration."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import final

from overheard.planning.apps.source_files import SourceFile

DEPTH = 5
"""Names, arguments and calls that are followed to find a value."""


@final
@dataclass(frozen=True, slots=True)
class ConfigName:
    """A name in the configuration of the run."""

    name: str


CodeValue = float | str | ConfigName | None
"""What an expression is; None = unknown."""

_Function = ast.FunctionDef | ast.AsyncFunctionDef


@final
@dataclass(frozen=True, slots=True, eq=False)
class CodePlace:
    """A file, and what is around a piece of its code.

    Args:
        file: the file.
        function: the function around it; None = there is none.
        loops: the loops around it in this function, the outermost first.

    """

    file: SourceFile
    function: _Function | None = None
    loops: tuple[ast.For, ...] = ()

    def describe(self, node: ast.expr) -> str:
        """Return file and line in words."""
        return f"{self.file.path}, line {node.lineno}"


@final
class CodeValues:
    """The syntax of all files of an app, whose expressions are followed to values.

    Attributes:
        nodes: all nodes of the syntax with their places.
        calls: those that are calls.

    """

    def __init__(self, files: Sequence[SourceFile]) -> None:
        self._files = {one.module: one for one in files}
        self._imports = {one.module: dict(_imports(one)) for one in files}
        self.nodes = [(place, node) for one in files for place, node in _walk(one)]
        self.calls = [(at, one) for at, one in self.nodes if isinstance(one, ast.Call)]

    def resolve(self, node: ast.expr | None, place: CodePlace, depth: int = DEPTH) -> CodeValue:
        """Return what an expression is: a number, a text or a name in the configuration."""
        value: CodeValue = None
        match node:
            case ast.Constant(value=int() | float() | str() as found):
                value = None if isinstance(found, bool) else found
            case ast.Call(func=ast.Name(id="int" | "float" | "str"), args=[inner]):
                value = self.resolve(inner, place, depth)
            case ast.Call(
                func=ast.Attribute(attr="get"), args=[ast.Constant(value=str() as name), *_]
            ):
                value = ConfigName(name)
            case ast.Subscript(slice=ast.Constant(value=str() as name)):
                value = ConfigName(name)
            case ast.Name(id=name) if depth > 0:
                value = self._resolve_name(name, place, depth - 1)
        return value

    def _resolve_name(self, name: str, place: CodePlace, depth: int) -> CodeValue:
        function = place.function
        if function is not None:
            values = list(_assigned(name, ast.walk(function)))
            if name in _parameters(function):
                return None if values else self._argument(name, function, place, depth)
            if values:
                return self.resolve(values[0], place, depth) if len(values) == 1 else None
        values = list(_assigned(name, iter(place.file.tree.body)))
        if values:
            top = CodePlace(place.file)
            return self.resolve(values[0], top, depth) if len(values) == 1 else None
        module, _, imported = self._imports[place.file.module].get(name, "").rpartition(".")
        if module in self._files and depth > 0:
            return self._resolve_name(imported, CodePlace(self._files[module]), depth - 1)
        return None

    def _argument(
        self, name: str, function: _Function, place: CodePlace, depth: int
    ) -> CodeValue:
        """Return what all calls of a function give for a parameter."""
        default = _default(function, name)
        values: set[CodeValue] = set()
        for caller, call in self.calls:
            if not self._calls_function(call, caller, function, place):
                continue
            given, is_clear = _given(call, function, name)
            if not is_clear:
                return None
            at = place if given is None else caller
            values.add(self.resolve(default if given is None else given, at, depth))
        if not values:
            return self.resolve(default, place, depth)
        return values.pop() if len(values) == 1 else None

    def _calls_function(
        self, call: ast.Call, caller: CodePlace, function: _Function, place: CodePlace
    ) -> bool:
        dotted = self.dotted(call.func, caller)
        if _parameters(function)[:1] in (["self"], ["cls"]):
            return dotted.endswith(f".{function.name}")
        is_same_file = caller.file is place.file and dotted == function.name
        return is_same_file or dotted == f"{place.file.module}.{function.name}"

    def dotted(self, node: ast.expr, place: CodePlace) -> str:
        """Return the full dotted name of a function or class, as far as imports tell it."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        first = node.id if isinstance(node, ast.Name) else "?"
        first = self._imports[place.file.module].get(first, first)
        return ".".join([first, *reversed(parts)])


def _walk(file: SourceFile) -> Iterator[tuple[CodePlace, ast.AST]]:
    """Yield all nodes of a file with their places."""
    waiting: list[tuple[CodePlace, ast.AST]] = [(CodePlace(file), file.tree)]
    while waiting:
        place, node = waiting.pop()
        yield place, node
        inner = place
        if isinstance(node, _Function):
            inner = CodePlace(file, node)
        elif isinstance(node, ast.For):
            inner = replace(place, loops=(*place.loops, node))
        waiting.extend((inner, child) for child in reversed(list(ast.iter_child_nodes(node))))


def _imports(file: SourceFile) -> Iterator[tuple[str, str]]:
    """Yield the names that a file imports, with the full dotted names."""
    is_package = file.path.endswith("__init__.py")
    package = file.module.split(".")[: None if is_package else -1]
    for node in ast.walk(file.tree):
        if isinstance(node, ast.Import):
            for one in node.names:
                yield (one.asname, one.name) if one.asname else (one.name.split(".")[0],) * 2
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*start, *([node.module] if node.module else [])])
            for one in node.names:
                yield one.asname or one.name, f"{base}.{one.name}"


def _assigned(name: str, nodes: Iterator[ast.AST]) -> Iterator[ast.expr]:
    """Yield the values that are assigned to a name."""
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=found)], value=value) if found == name:
                yield value
            case ast.AnnAssign(target=ast.Name(id=found), value=ast.expr() as value) if (
                found == name
            ):
                yield value
            case ast.AugAssign(target=ast.Name(id=found), value=value) if found == name:
                # Changed in steps: two values make it unknown.
                yield value
                yield value


def _parameters(function: _Function) -> list[str]:
    arguments = function.args
    every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    return [one.arg for one in every]


def _default(function: _Function, name: str) -> ast.expr | None:
    """Return the default of a parameter; None if it has none."""
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = arguments.defaults
    with_default = positional[len(positional) - len(defaults) :] if defaults else []
    for one, default in zip(with_default, defaults, strict=True):
        if one.arg == name:
            return default
    for one, keyword_default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if one.arg == name:
            return keyword_default
    return None


def _given(call: ast.Call, function: _Function, name: str) -> tuple[ast.expr | None, bool]:
    """Return what a call gives for a parameter, and whether that is clear."""
    if any(one.arg is None for one in call.keywords) or any(
        isinstance(one, ast.Starred) for one in call.args
    ):
        return None, False
    by_keyword = keyword_value(call, name)
    if by_keyword is not None:
        return by_keyword, True
    names = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
    # A method is called without its first parameter.
    if names[:1] in (["self"], ["cls"]):
        names = names[1:]
    at = names.index(name) if name in names else len(call.args)
    return (call.args[at] if at < len(call.args) else None), True


def keyword_value(call: ast.Call, name: str) -> ast.expr | None:
    """Return what a call gives by a keyword; None = nothing."""
    return next((one.value for one in call.keywords if one.arg == name), None)
