"""Finds in an app's source its networks, what builds them, and what tokenises texts."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from overheard.core.custom_code.builder_arguments import (
    CONFIGS,
    Argument,
    argument_of,
)
from overheard.planning.apps.source_files import SourceFile

BUILDER = re.compile(
    r"((get|build|make|create|init|load|setup|new)_)?(the_|base_|peft_|global_)?"
    r"(model|net|network|module|classifier)(_and_\w+|_fn|_fun|_factory)?"
)
"""Usual names of functions that return a network."""

MAKERS = frozenset({"get_peft_model", "from_pretrained", "from_config", "Sequential"})
"""Functions and classes of libraries that make a network."""

ENCODER = re.compile(r"(get_|load_|make_|build_)?(tokeni[sz]er?|encode|encoder|encode_text)")
"""Usual names of functions that make token ids of a text, or a tokenizer."""

MOST_ARGUMENTS = 100
"""The most values of a configuration that a builder gets."""


def find_networks(files: Sequence[SourceFile]) -> Iterator[str]:
    """Yield the classes of torch modules, also those derived from another one of the app."""
    classes = [
        (file, node)
        for file in files
        for node in file.tree.body
        if isinstance(node, ast.ClassDef)
    ]
    derived = defaultdict[str, list[str]](list)
    for _, node in classes:
        for base in _bases(node):
            derived[base].append(node.name)
    modules, found = set[str](), ["Module", "Sequential", "LightningModule"]
    while found:
        name = found.pop()
        if name not in modules:
            modules.add(name)
            found += derived[name]
    for file, node in classes:
        if modules & set(_bases(node)):
            yield f"{file.module}:{node.name}"


def find_builders(
    files: Sequence[SourceFile], config: Mapping[str, object]
) -> Iterator[tuple[str, tuple[Argument, ...]]]:
    """Yield functions that build a network, with what they take from a configuration.

    A function is taken by its name, or if it returns what Hugging Face, PEFT or torch make a
    network with.
    """
    values = _values(config)
    for file in files:
        for node in file.tree.body:
            if isinstance(node, ast.FunctionDef) and _is_builder(node):
                yield f"{file.module}:{node.name}", _arguments(node, values)


def find_encoders(
    files: Sequence[SourceFile], config: Mapping[str, object]
) -> Iterator[tuple[str, tuple[Argument, ...]]]:
    """Yield functions whose names say that they tokenise texts, with what they take.

    A function that takes a text takes nothing from a configuration.
    """
    values = _values(config)
    for file in files:
        for node in file.tree.body:
            if isinstance(node, ast.FunctionDef) and ENCODER.fullmatch(node.name):
                yield f"{file.module}:{node.name}", _arguments(node, values)


def _bases(node: ast.ClassDef) -> Iterator[str]:
    """Yield the last names of the classes from which a class derives."""
    for base in node.bases:
        yield base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")


def _values(config: Mapping[str, object]) -> dict[str, bool | int | float | str]:
    return {
        name: value
        for name, value in list(config.items())[:MOST_ARGUMENTS]
        if isinstance(value, bool | int | float | str)
    }


def _is_builder(function: ast.FunctionDef) -> bool:
    if BUILDER.fullmatch(function.name.lower()):
        return True
    return any(
        isinstance(node, ast.Return)
        and isinstance(node.value, ast.Call)
        and _last_name(node.value.func) in MAKERS
        and "token" not in function.name.lower()
        for node in ast.walk(function)
    )


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _arguments(
    function: ast.FunctionDef, values: Mapping[str, bool | int | float | str]
) -> tuple[Argument, ...]:
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    needed = [one.arg for one in positional[: len(positional) - len(arguments.defaults)]]
    needed += [
        one.arg
        for one, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if default is None
    ]
    # A part of the configuration, such as model_cfg, is a mapping as the whole is.
    if any(name in CONFIGS or name.rpartition("_")[2] in CONFIGS for name in needed):
        return tuple(values.items())
    found = ((name, argument_of(name, values)) for name in needed)
    return tuple(
        (name, value) for name, value in found if isinstance(value, bool | int | float | str)
    )
