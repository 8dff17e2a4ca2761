"""What a function or a class of the user is called with, to build a network or a tokenizer."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from overheard.core.task import Task

Value = bool | int | float | str
"""A value in the configuration of an app."""

Argument = tuple[str, Value]
"""A name and its value."""

CONFIGS = frozenset({"run_config", "config", "cfg", "conf"})
"""Usual names of a parameter that gets the whole configuration of a run."""


class RunConfig(dict[str, object]):
    """A configuration whose dotted names are also attributes, such as `cfg.model.rank`."""

    def __getattr__(self, name: str) -> object:
        """Return a value, or the part of the configuration below this name."""
        for spelling in (name, name.replace("_", "-")):
            if spelling in self:
                return self[spelling]
            beginning = f"{spelling}."
            part = {
                key.removeprefix(beginning): value
                for key, value in self.items()
                if key.startswith(beginning)
            }
            if part:
                return RunConfig(part)
        raise AttributeError(name)


def bind_arguments(
    builder: Callable[..., object], task: Task | None, arguments: Sequence[Argument]
) -> inspect.BoundArguments:
    """Return what a builder is called with.

    Its first parameter gets the task if it is called `task`, or has neither a default nor a
    value among the arguments. Every other parameter gets the argument of its name, or the whole
    configuration if it is called so; a parameter with a default keeps it otherwise.

    Raises:
        TypeError: if a parameter has no value.

    """
    values = RunConfig(arguments)
    try:
        signature = inspect.signature(builder)
    except (TypeError, ValueError):  # a class of another language does not tell
        signature = inspect.signature(lambda task: task)
    given = dict[str, object]()
    names = [
        one
        for one in signature.parameters.values()
        if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
    ]
    for place, parameter in enumerate(names):
        is_first = not place and parameter.kind is not parameter.KEYWORD_ONLY
        value = argument_of(parameter.name, values)
        if is_first and parameter.name == "task" and task is not None:
            given[parameter.name] = task
        elif value is not None:
            given[parameter.name] = value
        elif parameter.default is not parameter.empty:
            continue
        elif is_first and task is not None:
            given[parameter.name] = task
        else:
            raise TypeError(
                f"its parameter {parameter.name} has no value: give one in `arguments`, such "
                "as "
                f'arguments = [["{parameter.name}", 8]], or write a function without '
                "parameters that calls it"
            )
    bound = signature.bind_partial()
    bound.arguments.update(given)
    return bound


def argument_of(name: str, values: Mapping[str, object]) -> object | None:
    """Return the value of a parameter of this name; None = it has none.

    >>> argument_of("model_name", {"model-name": "tiny"})
    'tiny'
    >>> argument_of("rank", {"model.lora.rank": 8}), argument_of("rank", {"seed": 8})
    (8, None)
    >>> argument_of("model_cfg", {"model.rank": 8})
    {'rank': 8}
    """
    plain = {_plain(key): value for key, value in values.items()}
    if name in plain:
        return plain[name]
    if name in CONFIGS:
        return RunConfig(values) if values else None
    beginning, _, last = name.rpartition("_")
    if last in CONFIGS:  # such as model_cfg
        try:
            return cast(object, getattr(RunConfig(values), beginning))
        except AttributeError:
            return None
    found = [value for key, value in values.items() if _plain(key.rpartition(".")[2]) == name]
    return found[0] if len(found) == 1 else None


def _plain(name: str) -> str:
    return name.replace("-", "_").replace(".", "_")
