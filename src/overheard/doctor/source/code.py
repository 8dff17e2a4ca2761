"""The code of an app: its functions, what calls what, and where a value comes from."""

import ast
import operator
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import final

from overheard.doctor.source.files import AppFile, AppFiles

DEPTH = 12
"""Expressions within expressions that are followed to a number."""

MOST_STEPS = 4000
"""Expressions that are followed from one value to its sources."""

MOST_BINDINGS = 50
"""Values of one name in one function, and classes above a class, that are followed."""

MOST_FRAMES = 8
"""Calls within calls that are followed."""

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Module


@final
@dataclass(frozen=True, slots=True)
class Place:
    """A line of code.

    Args:
        path: the file, as seen from the folder of the app.
        line: its number, from 1 on.
        code: its text.

    """

    path: str
    line: int
    code: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


@final
@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A function of the app, or the code of a file outside of functions.

    Args:
        file: its file.
        node: its syntax.
        owner: the class that it is a method of.

    """

    file: AppFile
    node: FunctionNode
    owner: ast.ClassDef | None = None

    @property
    def name(self) -> str:
        """Its name; "" = the code outside of functions."""
        return "" if isinstance(self.node, ast.Module) else self.node.name

    @property
    def parameters(self) -> list[str]:
        """The names of its parameters."""
        return [one.arg for one in self.arguments]

    @property
    def arguments(self) -> list[ast.arg]:
        """Its parameters."""
        if isinstance(self.node, ast.Module):
            return []
        arguments = self.node.args
        return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """A function with the call that runs it; None = any call."""

    function: Function
    call: ast.Call | None = None
    caller: "Frame | None" = None

    @property
    def depth(self) -> int:
        """The number of calls that lead here."""
        return 0 if self.caller is None else self.caller.depth + 1


@final
@dataclass(frozen=True, slots=True)
class Flow:
    """An expression in a frame.

    Args:
        node: the expression.
        frame: its function, and how it is called.
        index: the item of its value that is meant; None = all of it.

    """

    node: ast.AST
    frame: Frame
    index: int | None = None


@final
@dataclass(frozen=True, slots=True)
class Known:
    """A value that the code or the configuration states."""

    value: object


@final
@dataclass(frozen=True, slots=True)
class _Binding:
    """What a name is bound to.

    Args:
        value: the expression.
        index: the item of its value; None = all of it.
        is_part: whether the name only takes it in, as a list or a sum does.
        node: the statement, loop or comprehension that binds it.

    """

    node: ast.AST
    value: ast.expr
    index: int | None = None
    is_part: bool = False


@final
@dataclass(frozen=True, slots=True, eq=False)
class CallSite:
    """A call, the function around it, and the dotted name of what is called."""

    call: ast.Call
    function: Function
    dotted: str

    @property
    def last(self) -> str:
        """The last part of the name."""
        return self.dotted.rpartition(".")[2]


@final
class AppCode:
    """The code of all files of an app."""

    def __init__(self, files: AppFiles) -> None:
        self.files = files.files
        self.config = files.config
        self.unread = files.unread
        self.nodes = files.nodes
        self.job = files.job
        self._functions = dict[ast.AST, Function]()
        self._local = dict[tuple[ast.AST, str], Function]()
        self._by_name = dict[str, Function]()
        self._classes = dict[str, tuple[AppFile, ast.ClassDef]]()
        self._bindings = dict[tuple[ast.AST, str], list[_Binding]]()
        self._attributes = defaultdict[str, list[tuple[Function, _Binding]]](list)
        self._of_node = dict[ast.AST, Function]()
        self._reach = dict[Function, frozenset[Function]]()
        self._frames = dict[tuple[Function, ast.Call | None, Frame | None], Frame]()
        self.calls: list[CallSite] = []
        for file in self.files:
            self._read(file)
        for file in self.files:
            self._bind(file)
        self._callers = defaultdict[Function, list[CallSite]](list)
        for site in self.calls:
            target = self.target(site.call.func, site.function)
            if target is not None:
                self._callers[target].append(site)

    def _read(self, file: AppFile) -> None:
        top = Function(file, file.tree)
        self._functions[file.tree] = top
        for node in ast.walk(file.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                around = file.parents.get(node)
                owner = around if isinstance(around, ast.ClassDef) else None
                function = Function(file, node, owner)
                self._functions[node] = function
                if around is not None:
                    self._local[around, node.name] = function
                middle = f"{owner.name}." if owner else ""
                self._by_name.setdefault(f"{file.module}.{middle}{node.name}", function)
            elif isinstance(node, ast.ClassDef):
                self._classes.setdefault(f"{file.module}.{node.name}", (file, node))
        pending: list[tuple[ast.AST, Function]] = [(file.tree, top)]
        while pending:
            node, function = pending.pop()
            function = self._functions.get(node, function)
            self._of_node[node] = function
            pending.extend((child, function) for child in ast.iter_child_nodes(node))
            if isinstance(node, ast.Call):
                self.calls.append(CallSite(node, function, self._name(node.func, file)))
        self.calls.sort(key=lambda one: (one.function.file.path, one.call.lineno))

    def _bind(self, file: AppFile) -> None:
        shared = {
            name
            for node in ast.walk(file.tree)
            if isinstance(node, ast.Global)
            for name in node.names
        }
        for node in ast.walk(file.tree):
            function = self._of_node[node]
            for target, binding in _bound(node):
                match target:
                    case ast.Name(id=name):
                        scope = file.tree if name in shared else function.node
                        found = self._bindings.setdefault((scope, name), [])
                        found += [binding] if len(found) < MOST_BINDINGS else []
                    case ast.Attribute(value=ast.Name(id="self"), attr=name):
                        self._attributes[name].append((function, binding))

    def frame(
        self, function: Function, call: ast.Call | None = None, caller: Frame | None = None
    ) -> Frame:
        """Return a function with the call that runs it, the same object each time."""
        key = (function, call, caller)
        return self._frames.setdefault(key, Frame(*key))

    @property
    def functions(self) -> Sequence[Function]:
        """All functions, and the code of each file outside of them."""
        return tuple(self._functions.values())

    def function_of(self, node: ast.AST) -> Function:
        """Return the function around an expression or a statement."""
        return self._of_node[node]

    def classes(self) -> Iterator[tuple[AppFile, ast.ClassDef]]:
        """Yield all classes."""
        yield from self._classes.values()

    def bases(self, file: AppFile, node: ast.ClassDef) -> set[str]:
        """Return the dotted names of all classes that a class derives from."""
        found, pending = set[str](), [(file, node)]
        while pending and len(found) < MOST_BINDINGS:
            at, one = pending.pop()
            for base in one.bases:
                name = self._name(base, at)
                if name not in found:
                    found.add(name)
                    pending += [self._classes[name]] if name in self._classes else []
        return found

    def place(self, node: ast.AST, function: Function) -> Place:
        """Return where a node is."""
        line = getattr(node, "lineno", 1)
        lines = function.file.lines
        code = lines[line - 1].strip() if line <= len(lines) else ""
        return Place(function.file.path, line, code[:160])

    def dotted(self, node: ast.AST, function: Function) -> str:
        """Return the dotted name of an expression, as far as imports tell it."""
        return self._name(node, function.file)

    def _name(self, node: ast.AST, file: AppFile) -> str:
        parts = list[str]()
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if isinstance(node, ast.Name):
            first = file.imports.get(node.id, node.id)
            own = f"{file.module}.{first}"
            first = own if own in self._by_name or own in self._classes else first
        else:
            first = "?"
        return ".".join([first, *reversed(parts)])

    def class_named(self, node: ast.AST, function: Function) -> ast.ClassDef | None:
        """Return the class of the app that an expression names."""
        found = self._classes.get(self.dotted(node, function))
        return found[1] if found else None

    def target(self, node: ast.AST, function: Function) -> Function | None:
        """Return the function of the app that an expression names."""
        if isinstance(node, ast.Name):
            scope: ast.AST | None = function.node
            while scope is not None:
                if (scope, node.id) in self._local:
                    return self._local[scope, node.id]
                scope = function.file.parents.get(scope)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owner = self._owner(node.value, function)
            if owner is not None:
                return self.method(owner, node.attr)
        name = self.dotted(node, function)
        if name in self._classes:
            return self.method(self._classes[name][1], "__init__")
        return self._by_name.get(name)

    def _owner(self, node: ast.Name, function: Function) -> ast.ClassDef | None:
        """Return the class of the app that a local name is an instance of."""
        scope = function
        while node.id in ("self", "cls"):
            if scope.owner is not None:
                return scope.owner
            around = scope.file.parents.get(scope.node)
            if around is None or isinstance(scope.node, ast.Module):
                return None
            scope = self._of_node[around]
        for binding in self._bindings.get((function.node, node.id), ()):
            if isinstance(binding.value, ast.Call):
                found = self.class_named(binding.value.func, function)
                if found is not None:
                    return found
        return None

    def method(self, owner: ast.ClassDef, name: str) -> Function | None:
        """Return a method of a class, or of the classes of the app that it derives from."""
        pending, seen = [owner], set[ast.ClassDef]()
        while pending and len(seen) < MOST_BINDINGS:
            one = pending.pop(0)
            if one in seen:
                continue
            seen.add(one)
            if (one, name) in self._local:
                return self._local[one, name]
            function = self._of_node[one]
            found = [self.class_named(base, function) for base in one.bases]
            pending += [base for base in found if base is not None]
        return None

    def callers(self, function: Function) -> Sequence[CallSite]:
        """Return the calls of a function within the app."""
        return self._callers[function]

    def reached(self, starts: Sequence[ast.AST]) -> set[Function]:
        """Return the functions that run within some code: those it calls or hands on."""
        found, pending = set[Function](), list(starts)
        while pending:
            start = pending.pop()
            for node in ast.walk(start):
                if isinstance(node, ast.Name | ast.Attribute):
                    target = self.target(node, self._of_node[node])
                    if target is not None and target not in found:
                        found.add(target)
                        pending.append(target.node)
        return found

    def calls_in(self, function: Function) -> Iterator[CallSite]:
        """Yield the calls in a function itself."""
        return (one for one in self.calls if one.function is function)

    def run_together(self, first: Function, second: Function) -> bool:
        """Return whether one function runs two others, or is one of them."""
        return any(one.name for one in self._above(first) & self._above(second))

    def _above(self, function: Function) -> set[Function]:
        """Return a function and all those that call it, directly or not."""
        found, pending = {function}, [function]
        while pending:
            for site in self.callers(pending.pop()):
                if site.function not in found:
                    found.add(site.function)
                    pending.append(site.function)
        return found

    def reach(self, function: Function) -> frozenset[Function]:
        """Return a function and all functions that run within it."""
        found = self._reach.get(function)
        if found is None:
            found = frozenset({function} | self.reached([function.node]))
            self._reach[function] = found
        return found

    def around(self, node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
        """Yield what is around a node within its function, and the part that holds the node."""
        function = self._of_node[node]
        parents = function.file.parents
        inner, outer = node, parents.get(node)
        while outer is not None and inner is not function.node:
            yield outer, inner
            inner, outer = outer, parents.get(outer)

    def sources(
        self, flow: Flow, *, derived: bool, until: Callable[[ast.AST], bool] | None = None
    ) -> Iterator[Flow]:
        """Yield all that a value comes from, itself first.

        Args:
            flow: the value.
            derived: whether to follow what a value was computed from; otherwise, only names,
                attributes, items and calls of functions of the app are followed.
            until: whether an expression is not followed any further.

        """
        pending, seen = [flow], set[tuple[int, int, int | None]]()
        while pending and len(seen) < MOST_STEPS:
            one = pending.pop()
            key = (id(one.node), id(one.frame), one.index)
            if key in seen:
                continue
            seen.add(key)
            yield one
            if until is None or not until(one.node):
                pending += self._step(one, derived)

    def _step(self, flow: Flow, derived: bool) -> list[Flow]:
        node, frame, index = flow.node, flow.frame, flow.index
        found = list[Flow]()
        match node:
            case ast.Name(ctx=ast.Store()):
                pass
            case ast.Name(id=name):
                found = self._name_sources(node, name, frame, index, derived)
            case ast.Attribute(value=ast.Name(id="self"), attr=name) if (
                name in self._attributes
            ):
                found = [
                    Flow(binding.value, self.frame(function), _item(binding.index, index))
                    for function, binding in self._attributes[name]
                    if function.owner is frame.function.owner
                    if derived or not binding.is_part
                ]
            case ast.Tuple(elts=items) | ast.List(elts=items) if index is not None:
                if index < len(items) and not isinstance(items[index], ast.Starred):
                    found = [Flow(items[index], frame)]
            case ast.IfExp(body=body, orelse=other):
                found = [Flow(body, frame, index), Flow(other, frame, index)]
            case ast.NamedExpr(value=value) | ast.Await(value=value):
                found = [Flow(value, frame, index)]
            case ast.Subscript(value=value, slice=ast.Constant(value=int(at))) if at >= 0:
                found = [Flow(value, frame, at)]
            case ast.Call():
                found = self._call_sources(node, frame, index, derived)
            case ast.Lambda():
                pass
            case _ if derived:
                found = [Flow(child, frame) for child in ast.iter_child_nodes(node)]
        return found

    def _name_sources(
        self, node: ast.AST, name: str, frame: Frame, index: int | None, derived: bool
    ) -> list[Flow]:
        function: Function | None = frame.function
        at = frame
        while function is not None:
            bindings = self._bindings.get((function.node, name), [])
            found, is_replaced = self._in_force(bindings, node, function)
            flows = [
                Flow(one.value, at, _item(one.index, index))
                for one in found
                if derived or not one.is_part
            ]
            if name in function.parameters and not is_replaced:
                flows += self._argument_sources(name, at, index)
            if found or name in function.parameters:
                return flows
            around = function.file.parents.get(function.node)
            function = self._of_node[around] if around is not None else None
            at = self.frame(function) if function else at
        module, _, imported = frame.function.file.imports.get(name, "").rpartition(".")
        for file in self.files:
            if file.module == module and (file.tree, imported) in self._bindings:
                top = self.frame(self._functions[file.tree])
                return [
                    Flow(one.value, top, _item(one.index, index))
                    for one in self._bindings[file.tree, imported]
                ]
        return []

    def _in_force(
        self, bindings: Sequence[_Binding], use: ast.AST, function: Function
    ) -> tuple[Sequence[_Binding], bool]:
        """Return the bindings that a use of a name may see, and whether it sees no others.

        The last binding that always runs before the use hides those before it; if it is in the
        same loop, it also hides those after the use.
        """
        if not bindings or self._of_node.get(use) is not function:
            return bindings, False
        above = {use: use}
        above |= dict(self.around(use))
        before = [one for one in bindings if _precedes(one, above, function.file.parents)]
        if not before:
            return bindings, False
        last = max(before, key=lambda one: _line(one.node))
        loops = [
            one
            for one in above
            if isinstance(one, ast.For | ast.While) and not _is_within(last.node, one)
        ]
        kept = [
            one
            for one in bindings
            if _line(one.node) >= _line(last.node)
            if _line(one.node) <= _line(use)
            or any(_is_within(one.node, loop) for loop in loops)
        ]
        return kept, True

    def _argument_sources(self, name: str, frame: Frame, index: int | None) -> list[Flow]:
        function = frame.function
        if frame.call is not None and frame.caller is not None:
            sites = [(frame.call, frame.caller)]
        else:
            sites = [(one.call, self.frame(one.function)) for one in self.callers(function)]
        found = list[Flow]()
        for call, caller in sites:
            given = argument(call, name, function)
            if given is not None:
                found.append(Flow(given, caller, index))
            elif (default := _default(function, name)) is not None:
                found.append(Flow(default, frame, index))
        if not sites and (default := _default(function, name)) is not None:
            found.append(Flow(default, frame, index))
        return found

    def _call_sources(
        self, call: ast.Call, frame: Frame, index: int | None, derived: bool
    ) -> list[Flow]:
        target = self.target(call.func, frame.function)
        if target is not None and target.name != "__init__":
            if frame.depth >= MOST_FRAMES:
                return []
            inner = self.frame(target, call, frame)
            return [
                Flow(one.value, inner, index)
                for one in ast.walk(target.node)
                if isinstance(one, ast.Return) and one.value is not None
                if self._of_node[one] is target
            ]
        private = _PRIVATE_PARTS.get(self.dotted(call.func, frame.function).rpartition(".")[2])
        if private is not None:
            # Of the engine's model, optimizer and loader, each comes from its argument alone.
            if index is None or index >= len(private):
                return []
            given = keyword(call, private[index])
            return [Flow(given, frame)] if given is not None else []
        if not derived or (isinstance(call.func, ast.Name) and call.func.id == "len"):
            # A length tells no more of the items than their number.
            return []
        parts = [*call.args, *(one.value for one in call.keywords)]
        if isinstance(call.func, ast.Attribute):
            parts.append(call.func.value)
        return [Flow(one, frame) for one in parts]

    def constant(self, node: ast.AST | None, function: Function) -> Known | None:
        """Return the value of an expression, if the code or the configuration states it."""
        return self._constant(Flow(node, self.frame(function)), DEPTH) if node else None

    def _constant(self, flow: Flow, depth: int) -> Known | None:
        if depth <= 0:
            return None
        values = list[Known]()
        for one in self.sources(flow, derived=False):
            if self._step(one, derived=False):
                continue
            found = self._literal(one, depth)
            if found is None or one.index is not None:
                return None
            values.append(found)
        same = values and all(one == values[0] for one in values)
        return values[0] if same else None

    def _literal(self, flow: Flow, depth: int) -> Known | None:
        node, frame = flow.node, flow.frame
        found: Known | None = None
        match node:
            case ast.Constant(value=value):
                found = Known(value)
            case ast.UnaryOp(op=ast.USub(), operand=right):
                second = self._constant(Flow(right, frame), depth - 1)
                found = _calculate(Known(0), ast.Sub(), second)
            case ast.BinOp(left=left, op=op, right=right):
                first = self._constant(Flow(left, frame), depth - 1)
                second = self._constant(Flow(right, frame), depth - 1)
                found = _calculate(first, op, second)
            case ast.Call(func=ast.Name(id="int" | "float" | "str" as kind), args=[inner]):
                found = _convert(kind, self._constant(Flow(inner, frame), depth - 1))
            case (
                ast.Call(
                    func=ast.Attribute(value=store, attr="get"),
                    args=[ast.Constant(value=str(key)), *_],
                )
                | ast.Subscript(value=store, slice=ast.Constant(value=str(key)))
            ):
                found = self._item_of(store, key, frame, depth)
            case ast.Attribute(value=ast.Name() as owner, attr=name):
                held = self.class_named(owner, frame.function)
                found = (
                    self._option(name, frame, depth)
                    if held is None
                    else self._class_value(held, name, depth)
                )
        return found

    def _item_of(self, store: ast.expr, key: str, frame: Frame, depth: int) -> Known | None:
        for one in self.sources(Flow(store, frame), derived=False):
            if isinstance(one.node, ast.Dict):
                for name, value in zip(one.node.keys, one.node.values, strict=True):
                    if isinstance(name, ast.Constant) and name.value == key:
                        return self._constant(Flow(value, one.frame), depth - 1)
            elif isinstance(one.node, ast.Attribute) and one.node.attr == "run_config":
                return Known(self.config[key]) if key in self.config else None
        return None

    def _class_value(self, owner: ast.ClassDef, name: str, depth: int) -> Known | None:
        """Return an attribute that the body of a class states."""
        frame = self.frame(self._of_node[owner])
        for statement in owner.body:
            for target, binding in _bound(statement):
                if isinstance(target, ast.Name) and target.id == name:
                    return self._constant(Flow(binding.value, frame), depth - 1)
        return None

    def _option(self, name: str, frame: Frame, depth: int) -> Known | None:
        """Return the default of an option of the command line."""
        for site in self.calls:
            if site.last != "add_argument" or site.function.file is not frame.function.file:
                continue
            options = [one.value for one in site.call.args if isinstance(one, ast.Constant)]
            if f"--{name}" in options or f"--{name.replace('_', '-')}" in options:
                default = keyword(site.call, "default")
                if default is not None:
                    return self._constant(Flow(default, self.frame(site.function)), depth - 1)
        return None


_PRIVATE_PARTS = {
    "make_private": ("module", "optimizer", "data_loader"),
    "make_private_with_epsilon": ("module", "optimizer", "data_loader"),
}


def keyword(call: ast.Call, name: str, position: int | None = None) -> ast.expr | None:
    """Return an argument of a call by its name, or else by its position."""
    for one in call.keywords:
        if one.arg == name:
            return one.value
    if position is not None and position < len(call.args):
        found = call.args[position]
        return None if isinstance(found, ast.Starred) else found
    return None


def argument(call: ast.Call, name: str, function: Function) -> ast.expr | None:
    """Return what a call gives for a parameter of a function of the app."""
    names = function.parameters
    if function.owner is not None and names[:1] in (["self"], ["cls"]):
        names = names[1:]
    return keyword(call, name, names.index(name) if name in names else None)


def _default(function: Function, name: str) -> ast.expr | None:
    if isinstance(function.node, ast.Module):
        return None
    arguments = function.node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    late = positional[len(positional) - len(arguments.defaults) :]
    pairs: list[tuple[ast.arg, ast.expr | None]] = [
        *zip(late, arguments.defaults, strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    return next((value for one, value in pairs if one.arg == name), None)


def _item(of_binding: int | None, of_flow: int | None) -> int | None:
    """Return the item of a value that is meant; items of items are not told apart."""
    return of_flow if of_binding is None else of_binding


def _line(node: ast.AST) -> int:
    if isinstance(node, ast.comprehension):
        return node.target.lineno
    return int(getattr(node, "lineno", 0))


def _is_within(node: ast.AST, loop: ast.For | ast.While) -> bool:
    return loop.lineno <= _line(node) <= (loop.end_lineno or loop.lineno)


def _precedes(
    binding: _Binding, above: Mapping[ast.AST, ast.AST], parents: Mapping[ast.AST, ast.AST]
) -> bool:
    """Return whether a binding always runs before a use of its name.

    Args:
        binding: the binding.
        above: what is around the use, each with the part of it that holds the use.
        parents: what is around each node of the file.

    """
    node = binding.node
    if isinstance(node, ast.For):
        return above.get(node) in node.body
    around = parents.get(node)
    holder = above.get(around) if around is not None else None
    if holder is None or holder is node:
        return False
    if isinstance(node, ast.comprehension):
        return True
    if binding.is_part or not isinstance(node, ast.Assign | ast.AnnAssign):
        return False
    for block in ("body", "orelse", "finalbody"):
        statements = getattr(around, block, ())
        if isinstance(statements, list) and node in statements and holder in statements:
            return statements.index(node) < statements.index(holder)
    return False


def _bound(node: ast.AST) -> Iterator[tuple[ast.expr, _Binding]]:
    """Yield the targets to which a statement binds values."""
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from _unpacked(node, target, value)
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            yield target, _Binding(node, value)
        case ast.NamedExpr(target=target, value=value):
            yield target, _Binding(node, value)
        case ast.AugAssign(target=target, value=value):
            yield target, _Binding(node, value, is_part=True)
        case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
            for name in ast.walk(target):
                if isinstance(name, ast.Name):
                    yield name, _Binding(node, value, is_part=True)
        case ast.withitem(context_expr=value, optional_vars=ast.expr() as target):
            yield target, _Binding(node, value)
        case ast.Call(
            func=ast.Attribute(value=target, attr="append" | "extend" | "update" | "add_"),
            args=[value, *_],
        ):
            yield target, _Binding(node, value, is_part=True)


def _unpacked(
    node: ast.AST, target: ast.expr, value: ast.expr
) -> Iterator[tuple[ast.expr, _Binding]]:
    match target:
        case ast.Tuple(elts=items) | ast.List(elts=items):
            for index, item in enumerate(items):
                yield item, _Binding(node, value, index)
        case ast.Subscript(value=inner):
            yield inner, _Binding(node, value, is_part=True)
        case _:
            yield target, _Binding(node, value)


_OPERATIONS: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
}


def _calculate(first: Known | None, op: ast.operator, second: Known | None) -> Known | None:
    calculate = _OPERATIONS.get(type(op))
    if first is None or second is None or calculate is None:
        return None
    a, b = first.value, second.value
    if not isinstance(a, int | float) or not isinstance(b, int | float):
        return None
    try:
        return Known(calculate(float(a), float(b)))
    except (OverflowError, ZeroDivisionError):
        return None


def _convert(kind: str, found: Known | None) -> Known | None:
    if found is None:
        return None
    try:
        match kind, found.value:
            case "str", value:
                return Known(str(value)[:200])
            case "int", int() | float() | str() as value:
                return Known(int(float(value)) if isinstance(value, float) else int(value))
            case "float", int() | float() | str() as value:
                return Known(float(value))
    except (ValueError, OverflowError):
        pass
    return None
