"""Finds where an app's code has its batch size, its epochs, and steps that no recipe states."""

import ast
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from overheard.planning.apps.code_values import (
    CodePlace,
    CodeValues,
    ConfigName,
    keyword_value,
)

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

FoundExpression = tuple[CodePlace, ast.expr]
"""An expression, and where it stands."""


def batch_sizes(code: CodeValues) -> Iterator[FoundExpression]:
    """Yield the batch sizes of the data loaders that shuffle, or else of all."""
    loaders = [
        (place, call)
        for place, call in code.calls
        if code.dotted(call.func, place).rpartition(".")[2] == "DataLoader"
    ]
    shuffling = [(place, call) for place, call in loaders if _shuffles(call)]
    for place, call in shuffling or loaders:
        size = keyword_value(call, "batch_size") or (
            call.args[1] if len(call.args) > 1 else None
        )
        yield place, size or ast.copy_location(ast.Constant(1), call)


def epochs(code: CodeValues) -> Iterator[FoundExpression]:
    """Yield the number of passes of loops around loops that call `backward`."""
    for place, call in code.calls:
        is_step = isinstance(call.func, ast.Attribute) and call.func.attr == "backward"
        if is_step and len(place.loops) > 1:
            loop = place.loops[-2]
            yield place, _range_end(loop.iter) or loop.iter


def smoothings(code: CodeValues) -> Iterator[FoundExpression]:
    """Yield the smoothing of labels in losses."""
    for place, call in code.calls:
        smoothing = keyword_value(call, "label_smoothing")
        if smoothing is not None:
            yield place, smoothing


def server_names(code: CodeValues) -> Iterator[str]:
    """Yield names in the configuration that go to the server's optimizer."""
    for place, call in code.calls:
        for given in call.keywords:
            if given.arg in _OF_SERVER:
                value = code.resolve(given.value, place)
                if isinstance(value, ConfigName):
                    yield value.name


def other_steps(code: CodeValues) -> Iterator[str]:
    """Yield what changes the training beside the optimizer."""
    for _, node in code.nodes:
        match node:
            case (
                ast.Assign(targets=[ast.Subscript(slice=ast.Constant(value="lr"))])
                | ast.AugAssign(target=ast.Subscript(slice=ast.Constant(value="lr")))
            ):
                yield "a learning rate that is changed later"
    for place, call in code.calls:
        dotted = code.dotted(call.func, place)
        last = dotted.rpartition(".")[2]
        if dotted.startswith("torch.optim.lr_scheduler."):
            yield f"a schedule of the learning rate ({last})"
        elif dotted.rpartition(".")[0].endswith("keras.optimizers"):
            yield f"the optimizer {last} of Keras"
        elif last == "compile" and keyword_value(call, "loss") is not None:
            optimizer = code.resolve(keyword_value(call, "optimizer"), place)
            if isinstance(optimizer, str):
                yield f"the optimizer {optimizer} of Keras"
        elif last in _OTHER_STEPS:
            yield f"{_OTHER_STEPS[last]} ({last})"


def _shuffles(call: ast.Call) -> bool:
    match keyword_value(call, "shuffle"):
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
