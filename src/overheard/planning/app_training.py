"""Reads from the source code of an app how its clients train; no code is run."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import final

from overheard.archive.run_config import Setting, parse_setting, plain_name
from overheard.disk.reading import parse_literal

DEPTH = 5
"""Names, arguments and calls that are followed to find a value."""

NO_NAMES: Mapping[str, str] = MappingProxyType({})


@final
@dataclass(frozen=True, slots=True)
class StatedSetting:
    """A setting of clients' training, with its source.

    Args:
        key: the key of a plan, such as "rate".
        value: the value.
        source: where it is stated, in words.

    """

    key: str
    value: Setting
    source: str


@final
@dataclass(frozen=True, slots=True)
class AppTraining:
    """What the source code of an app tells of its clients' training.

    Args:
        settings: values that are written in the code.
        names: by the key of a plan, the name in the configuration that the code reads.
        server_names: names in the configuration that the code gives to the server's optimizer.
        optimizers: where each optimizer of torch is made, in words.
        beyond: what the code does that a recipe cannot state, in words.

    """

    settings: tuple[StatedSetting, ...] = ()
    names: Mapping[str, str] = field(default_factory=lambda: NO_NAMES)
    server_names: frozenset[str] = frozenset()
    optimizers: tuple[str, ...] = ()
    beyond: tuple[str, ...] = ()


@final
@dataclass(frozen=True, slots=True, eq=False)
class SourceFile:
    """A parsed source file of an app.

    Args:
        module: its dotted name.
        path: its path in the app.
        tree: its syntax.

    """

    module: str
    path: str
    tree: ast.Module


def read_app_training(files: Sequence[SourceFile]) -> AppTraining:
    """Read how clients train from the syntax of an app.

    An optimizer is taken if all that are made have the same settings. The batch size is that of
    the data loaders that shuffle, and the epochs are those of a loop around a loop that calls
    `backward`. A value is followed to a number, through names, constants and arguments.
    """
    code = _Code(files)
    calls = [_OptimizerCall(code, place, call) for place, call in code.optimizers()]
    found = list(_optimizer_settings(calls))
    beyond = {word: None for call in calls for word in call.beyond()}
    for key, nodes in (
        ("batch", code.batch_sizes()),
        ("epochs", code.epochs()),
        ("label_smoothing", code.smoothings()),
    ):
        places = list(nodes)
        values = list({code.resolve(node, place) for place, node in places})
        if len(values) == 1:
            place, node = places[0]
            found.append((key, values[0], place.describe(node)))
        is_number = len(values) == 1 and isinstance(values[0], int | float)
        if key == "label_smoothing" and values and not is_number:
            beyond["label smoothing by an unknown number"] = None
    names = {key: value.name for key, value, _ in found if isinstance(value, _Name)}
    return AppTraining(
        tuple(
            StatedSetting(key, parsed, source)
            for key, value, source in found
            if not isinstance(value, _Name)
            if (parsed := parse_setting(key, value)) is not None
        ),
        MappingProxyType(names),
        frozenset(plain_name(name) for name in code.server_names())
        - set(map(plain_name, names.values())),
        tuple(call.describe() for call in calls),
        tuple(beyond | dict.fromkeys(code.other_steps())),
    )


@dataclass(frozen=True, slots=True)
class _Name:
    """A name in the configuration of the run."""

    name: str


_Value = float | str | _Name | None
"""What an expression is; None = unknown."""

_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True, eq=False)
class _Place:
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
        return f"{self.file.path}, line {node.lineno}"


_Found = tuple[_Place, ast.expr]


@final
class _Code:
    """The syntax of all files of an app."""

    def __init__(self, files: Sequence[SourceFile]) -> None:
        self._files = {one.module: one for one in files}
        self._imports = {one.module: dict(_imports(one)) for one in files}
        self._nodes = [(place, node) for one in files for place, node in _walk(one)]
        self._calls = [(at, one) for at, one in self._nodes if isinstance(one, ast.Call)]

    def optimizers(self) -> Iterator[tuple[_Place, ast.Call]]:
        """Yield the calls that make an optimizer of torch."""
        for place, call in self._calls:
            parts = self.dotted(call.func, place).split(".")
            if parts == ["functools", "partial"] and call.args:
                # The same call, but for the parameters, which are given later.
                parts = self.dotted(call.args[0], place).split(".")
                later = [ast.Constant(None), *call.args[1:]]
                made = ast.copy_location(ast.Call(call.args[0], later, call.keywords), call)
            else:
                made = call
            if parts[:2] == ["torch", "optim"] and len(parts) == 3 and parts[2][0].isupper():
                yield place, made

    def batch_sizes(self) -> Iterator[_Found]:
        """Yield the batch sizes of the data loaders that shuffle, or else of all."""
        loaders = [
            (place, call)
            for place, call in self._calls
            if self.dotted(call.func, place).rpartition(".")[2] == "DataLoader"
        ]
        shuffling = [(place, call) for place, call in loaders if _shuffles(call)]
        for place, call in shuffling or loaders:
            size = _keyword(call, "batch_size") or (
                call.args[1] if len(call.args) > 1 else None
            )
            yield place, size or ast.copy_location(ast.Constant(1), call)

    def epochs(self) -> Iterator[_Found]:
        """Yield the number of passes of loops around loops that call `backward`."""
        for place, call in self._calls:
            is_step = isinstance(call.func, ast.Attribute) and call.func.attr == "backward"
            if is_step and len(place.loops) > 1:
                loop = place.loops[-2]
                yield place, _range_end(loop.iter) or loop.iter

    def smoothings(self) -> Iterator[_Found]:
        """Yield the smoothing of labels in losses."""
        for place, call in self._calls:
            smoothing = _keyword(call, "label_smoothing")
            if smoothing is not None:
                yield place, smoothing

    def server_names(self) -> Iterator[str]:
        """Yield names in the configuration that go to the server's optimizer."""
        for place, call in self._calls:
            for keyword in call.keywords:
                if keyword.arg in _OF_SERVER:
                    value = self.resolve(keyword.value, place)
                    if isinstance(value, _Name):
                        yield value.name

    def other_steps(self) -> Iterator[str]:
        """Yield what changes the training beside the optimizer."""
        for _, node in self._nodes:
            match node:
                case (
                    ast.Assign(targets=[ast.Subscript(slice=ast.Constant(value="lr"))])
                    | ast.AugAssign(target=ast.Subscript(slice=ast.Constant(value="lr")))
                ):
                    yield "a learning rate that is changed later"
        for place, call in self._calls:
            dotted = self.dotted(call.func, place)
            last = dotted.rpartition(".")[2]
            if dotted.startswith("torch.optim.lr_scheduler."):
                yield f"a schedule of the learning rate ({last})"
            elif dotted.rpartition(".")[0].endswith("keras.optimizers"):
                yield f"the optimizer {last} of Keras"
            elif last == "compile" and _keyword(call, "loss") is not None:
                optimizer = self.resolve(_keyword(call, "optimizer"), place)
                if isinstance(optimizer, str):
                    yield f"the optimizer {optimizer} of Keras"
            elif last in _OTHER_STEPS:
                yield f"{_OTHER_STEPS[last]} ({last})"

    def resolve(self, node: ast.expr | None, place: _Place, depth: int = DEPTH) -> _Value:
        """Return what an expression is: a number, a text or a name in the configuration."""
        value: _Value = None
        match node:
            case ast.Constant(value=int() | float() | str() as found):
                value = None if isinstance(found, bool) else found
            case ast.Call(func=ast.Name(id="int" | "float" | "str"), args=[inner]):
                value = self.resolve(inner, place, depth)
            case ast.Call(
                func=ast.Attribute(attr="get"), args=[ast.Constant(value=str() as name), *_]
            ):
                value = _Name(name)
            case ast.Subscript(slice=ast.Constant(value=str() as name)):
                value = _Name(name)
            case ast.Name(id=name) if depth > 0:
                value = self._resolve_name(name, place, depth - 1)
        return value

    def _resolve_name(self, name: str, place: _Place, depth: int) -> _Value:
        function = place.function
        if function is not None:
            values = list(_assigned(name, ast.walk(function)))
            if name in _parameters(function):
                return None if values else self._argument(name, function, place, depth)
            if values:
                return self.resolve(values[0], place, depth) if len(values) == 1 else None
        values = list(_assigned(name, iter(place.file.tree.body)))
        if values:
            top = _Place(place.file)
            return self.resolve(values[0], top, depth) if len(values) == 1 else None
        module, _, imported = self._imports[place.file.module].get(name, "").rpartition(".")
        if module in self._files and depth > 0:
            return self._resolve_name(imported, _Place(self._files[module]), depth - 1)
        return None

    def _argument(self, name: str, function: _Function, place: _Place, depth: int) -> _Value:
        """Return what all calls of a function give for a parameter."""
        default = _default(function, name)
        values: set[_Value] = set()
        for caller, call in self._calls:
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
        self, call: ast.Call, caller: _Place, function: _Function, place: _Place
    ) -> bool:
        dotted = self.dotted(call.func, caller)
        if _parameters(function)[:1] in (["self"], ["cls"]):
            return dotted.endswith(f".{function.name}")
        is_same_file = caller.file is place.file and dotted == function.name
        return is_same_file or dotted == f"{place.file.module}.{function.name}"

    def dotted(self, node: ast.expr, place: _Place) -> str:
        """Return the full dotted name of a function or class, as far as imports tell it."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        first = node.id if isinstance(node, ast.Name) else "?"
        first = self._imports[place.file.module].get(first, first)
        return ".".join([first, *reversed(parts)])


_OF_SERVER = frozenset({"eta", "server_learning_rate", "server_lr", "server_momentum"})
"""Arguments of server optimizers."""

_OTHER_STEPS: Mapping[str, str] = MappingProxyType(
    {
        "clip_grad_norm_": "clipped gradients",
        "clip_grad_value_": "clipped gradients",
        "PrivacyEngine": "DP-SGD",
        "make_private": "DP-SGD",
        "make_private_with_epsilon": "DP-SGD",
    }
)
"""Calls that change the training in a way that no recipe states."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Signature:
    """The arguments of an optimizer of torch after its parameters.

    Args:
        name: the optimizer as a plan names it.
        arguments: their names in order, with their defaults.

    """

    name: str
    arguments: Mapping[str, object]


_ADAM = {"betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.0, "amsgrad": False}
_SIGNATURES: Mapping[str, _Signature] = MappingProxyType(
    {
        "SGD": _Signature(
            "sgd",
            {
                "lr": 1e-3,
                "momentum": 0.0,
                "dampening": 0.0,
                "weight_decay": 0.0,
                "nesterov": False,
            },
        ),
        "Adam": _Signature("adam", {"lr": 1e-3} | _ADAM),
        "AdamW": _Signature("adamw", {"lr": 1e-3} | _ADAM | {"weight_decay": 1e-2}),
        "Adadelta": _Signature(
            "adadelta", {"lr": 1.0, "rho": 0.9, "eps": 1e-6, "weight_decay": 0.0}
        ),
    }
)

_KEYS: Mapping[str, str] = MappingProxyType(
    {"lr": "rate", "momentum": "momentum", "weight_decay": "weight_decay"}
)
"""By argument of an optimizer of torch, the key of a plan."""

_WITHOUT_EFFECT = frozenset({"params", "foreach", "fused", "capturable", "differentiable"})


@final
@dataclass(frozen=True, slots=True, eq=False)
class _OptimizerCall:
    """A call that makes an optimizer of torch."""

    code: _Code
    place: _Place
    call: ast.Call

    @property
    def kind(self) -> str:
        """The name of its class."""
        return self.code.dotted(self.call.func, self.place).rpartition(".")[2]

    def describe(self) -> str:
        """Return class and place in words."""
        return f"{self.kind} in {self.place.describe(self.call)}"

    def settings(self) -> dict[str, _Value]:
        """Return its settings by the key of a plan; empty if no recipe has the optimizer."""
        signature = _SIGNATURES.get(self.kind)
        if signature is None:
            return {}
        given = self._given(signature)
        found: dict[str, _Value] = {"optimizer": signature.name}
        if signature.name != "sgd":
            found["momentum"] = 0.0
        for argument, key in _KEYS.items():
            if argument in given:
                found[key] = self.code.resolve(given[argument], self.place)
            elif argument in signature.arguments:
                found[key] = float(str(signature.arguments[argument]))
        return found

    def beyond(self) -> Iterator[str]:
        """Yield what its arguments say that no recipe can."""
        signature = _SIGNATURES.get(self.kind)
        if signature is None:
            yield f"the optimizer {self.kind}"
            return
        call = self.call
        if any(one.arg is None for one in call.keywords):
            yield f"arguments of {self.kind} that are not written out"
        if call.args and _is_groups(call.args[0]):
            yield f"groups of parameters of {self.kind}"
        for argument, node in self._given(signature).items():
            if argument in _KEYS or argument in _WITHOUT_EFFECT:
                continue
            try:
                value = parse_literal(node)
            except SyntaxError:
                value = None
            if value is None or value != signature.arguments.get(argument, False):
                yield f"{argument} of {self.kind}"

    def _given(self, signature: _Signature) -> dict[str, ast.expr]:
        """Return the arguments that the call gives, by name."""
        positional = zip(signature.arguments, self.call.args[1:], strict=False)
        named = {one.arg: one.value for one in self.call.keywords if one.arg is not None}
        return dict(positional) | named


def _is_groups(parameters: ast.expr) -> bool:
    """Return whether an optimizer gets groups with settings of their own.

    All parameters that need a gradient are one group.
    """
    if isinstance(parameters, ast.ListComp):
        return not isinstance(parameters.elt, ast.Name)
    return isinstance(parameters, ast.List) and not all(map(_is_plain_group, parameters.elts))


def _is_plain_group(group: ast.expr) -> bool:
    """Return whether a group has parameters alone, so that it trains as all others do."""
    return isinstance(group, ast.Dict) and all(
        isinstance(key, ast.Constant) and key.value == "params" for key in group.keys
    )


def _optimizer_settings(
    calls: Sequence[_OptimizerCall],
) -> Iterator[tuple[str, _Value, str]]:
    """Yield key, value and source of the settings of the optimizer, if there is one."""
    settings = [call.settings() for call in calls]
    if not settings or any(one != settings[0] for one in settings):
        return
    source = calls[0].place.describe(calls[0].call)
    given = calls[0].call.keywords
    for key, value in settings[0].items():
        arguments = [argument for argument, name in _KEYS.items() if name == key]
        is_given = key == "optimizer" or any(one.arg in arguments for one in given)
        is_given = is_given or len(calls[0].call.args) > 1
        yield key, value, source if is_given else f"PyTorch's default, {source}"


def _walk(file: SourceFile) -> Iterator[tuple[_Place, ast.AST]]:
    """Yield all nodes of a file with their places."""
    waiting: list[tuple[_Place, ast.AST]] = [(_Place(file), file.tree)]
    while waiting:
        place, node = waiting.pop()
        yield place, node
        inner = place
        if isinstance(node, _Function):
            inner = _Place(file, node)
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
    keyword = _keyword(call, name)
    if keyword is not None:
        return keyword, True
    names = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
    # A method is called without its first parameter.
    if names[:1] in (["self"], ["cls"]):
        names = names[1:]
    at = names.index(name) if name in names else len(call.args)
    return (call.args[at] if at < len(call.args) else None), True


def _keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((one.value for one in call.keywords if one.arg == name), None)


def _shuffles(call: ast.Call) -> bool:
    match _keyword(call, "shuffle"):
        case ast.Constant(value=value):
            return bool(value)
    return False


def _range_end(node: ast.expr) -> ast.expr | None:
    """Return the number of passes of a loop over a range; None if it is no plain one."""
    match node:
        case ast.Call(func=ast.Name(id="range"), args=[count]):
            return count
        case ast.Call(
            func=ast.Name(id="range"),
            args=[
                ast.Constant(value=1),
                ast.BinOp(left=count, op=ast.Add(), right=ast.Constant(value=1)),
            ],
        ):
            return count
        case ast.Call(func=ast.Name(id="tqdm" | "trange"), args=[inner, *_]):
            return _range_end(inner) or inner
    return None
