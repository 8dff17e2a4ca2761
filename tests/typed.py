"""Types and shapes of our own functions, checked at every call."""

from collections.abc import Callable
from functools import partial
from importlib.machinery import SourceFileLoader
from types import CodeType
from typing import ParamSpec, TypeVar
from unittest.mock import patch

from beartype import beartype
from jaxtyping import _import_hook as hook

Arguments = ParamSpec("Arguments")
Given = TypeVar("Given")


def lazily(function: Callable[Arguments, Given]) -> Callable[Arguments, Given]:
    """The function, checked by beartype from its first call on.

    To write the check of every function of ours takes 5 s; few test files call many of them.
    """
    checked: Callable[Arguments, Given] | None = None

    def check(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Given:
        nonlocal checked
        if checked is None:
            checked = beartype(function)
        return checked(*args, **kwargs)

    return check


def leave_bytecode_of_others_alone() -> None:
    """Let jaxtyping's hook look for bytecode under a name of its own for our modules alone.

    The hook of jaxtyping 0.3.11 does so as long as a module of ours *runs*: whatever else is
    imported in that time, torch and scipy included, is not found compiled and is compiled
    again. Here it does so as long as it looks for our module.
    """
    loader = hook._JaxtypingLoader

    def get_code(self: hook._JaxtypingLoader, fullname: str) -> CodeType | None:
        name = partial(hook._optimized_cache_from_source, self._typechecker.get_hash())
        with patch("importlib._bootstrap_external.cache_from_source", name):
            return SourceFileLoader.get_code(self, fullname)

    loader.get_code = get_code
    loader.exec_module = SourceFileLoader.exec_module
