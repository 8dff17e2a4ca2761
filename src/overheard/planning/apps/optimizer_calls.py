"""Reads with which settings an app makes its optimizers."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import final

from overheard.disk.reading import parse_literal
from overheard.planning.apps.code_values import CodePlace, CodeValue, CodeValues


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
class OptimizerCall:
    """A call that makes an optimizer of torch."""

    code: CodeValues
    place: CodePlace
    call: ast.Call

    @property
    def kind(self) -> str:
        """The name of its class."""
        return self.code.dotted(self.call.func, self.place).rpartition(".")[2]

    def describe(self) -> str:
        """Return class and place in words."""
        return f"{self.kind} in {self.place.describe(self.call)}"

    def settings(self) -> dict[str, CodeValue]:
        """Return its settings by the key of a plan; empty if no recipe has the optimizer."""
        signature = _SIGNATURES.get(self.kind)
        if signature is None:
            return {}
        given = self._given(signature)
        found: dict[str, CodeValue] = {"optimizer": signature.name}
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


def find_optimizers(code: CodeValues) -> Iterator[OptimizerCall]:
    """Yield the calls that make an optimizer of torch."""
    for place, call in code.calls:
        parts = code.dotted(call.func, place).split(".")
        if parts == ["functools", "partial"] and call.args:
            # The same call, but for the parameters, which are given later.
            parts = code.dotted(call.args[0], place).split(".")
            later = [ast.Constant(None), *call.args[1:]]
            made = ast.copy_location(ast.Call(call.args[0], later, call.keywords), call)
        else:
            made = call
        if parts[:2] == ["torch", "optim"] and len(parts) == 3 and parts[2][0].isupper():
            yield OptimizerCall(code, place, made)


def optimizer_settings(
    calls: Sequence[OptimizerCall],
) -> Iterator[tuple[str, CodeValue, str]]:
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
