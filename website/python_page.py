"""The page on Python: every public name with what its docstring says."""

import inspect
import sys
from types import FunctionType

from pydantic import BaseModel

import overheard
from overheard.plans.registries import REGISTRIES
from overheard.plans.schema.docstrings import read_arguments, read_description
from website.site_markdown import plain, sentence

_HEAD = """\
# Python

Look up here every public name of the package. `import overheard` loads nothing large; a name is
loaded when it is first used. What [attacks](attacks.md), [defenses](defenses.md),
[models](models.md), [data sets](datasets.md) and [splits](splits.md) can be set to stands on
their own pages.

```python
import overheard

plan = overheard.built_in_plan()
transcript, truth = overheard.simulate(plan)
view, knowledge = transcript.seen_by("server"), overheard.knowledge(plan)
claims = overheard.Decaf().infer(view, view.senders(), knowledge, overheard.Seed(0))
frame = overheard.score(claims, truth, knowledge, view.rounds()).to_frame()
```
"""

_PAGES = {
    "algorithms",
    "attacks",
    "datasets",
    "defenses",
    "distillations",
    "models",
    "questions",
    "splits",
}
"""Kinds of plugins that have a page of their own."""


def python_page() -> str:
    """Return the page on all public names."""
    groups: dict[str, list[str]] = {
        "Functions": [], "Contracts and values": [], "Claims": [], "Errors": [],
    }  # fmt: skip
    plugins = {one.__name__ for kind in REGISTRIES for one in kind.plugins().values()}
    for name in dir(overheard):
        if name not in plugins:
            groups[_group(name)].append(name)
    parts = [
        f"\n## {title}\n" + "".join(map(_entry, sorted(names, key=str.lower)))
        for title, names in groups.items()
    ]
    return _HEAD + "".join(parts) + _plugins()


def _group(name: str) -> str:
    public = getattr(overheard, name)
    if inspect.isfunction(public):
        return "Functions"
    if not inspect.isclass(public):
        return "Contracts and values"
    if issubclass(public, Exception):
        return "Errors"
    is_claim = issubclass(public, overheard.Claim) and public is not overheard.Claim
    return "Claims" if is_claim else "Contracts and values"


def _entry(name: str) -> str:
    public = getattr(overheard, name)
    if not (inspect.isclass(public) or inspect.isfunction(public)):
        module = sys.modules[public.__module__].__doc__ or ""
        return f"\n### `{name}` {{#{name}}}\n\n{plain(module)}\n"
    signature = "" if inspect.isclass(public) else f"\n```python\n{_signature(public)}\n```\n"
    arguments = "".join(
        f"- `{one}`: {plain(sentence(text))}\n" for one, text in read_arguments(public).items()
    )
    text = plain(_without_examples(read_description(public)))
    return f"\n### `{name}` {{#{name}}}\n{signature}\n{text}\n\n{arguments}{_methods(public)}"


def _signature(function: FunctionType) -> str:
    """Return the names of the parameters, without types that would take several lines."""
    parameters = [
        one.replace(annotation=inspect.Parameter.empty)
        for one in inspect.signature(function).parameters.values()
    ]
    return f"overheard.{function.__name__}{inspect.Signature(parameters)}"


def _methods(public: type | FunctionType) -> str:
    """Return the public methods and properties that a class itself defines, a line each."""
    if not inspect.isclass(public) or issubclass(public, BaseModel):
        return ""
    lines = []
    for name, member in vars(public).items():
        function = getattr(member, "fget", None) or getattr(member, "__func__", member)
        if name[0] != "_" and inspect.isfunction(function) and function.__doc__:
            call = "" if isinstance(member, property) else "()"
            first = read_description(function).split("\n\n", maxsplit=1)[0]
            lines.append(f"- `.{name}{call}`: {plain(' '.join(first.split()))}\n")
    return "\n" + "".join(lines) if lines else ""


def _without_examples(text: str) -> str:
    """Return the paragraphs that hold no example for an interpreter."""
    return "\n\n".join(one for one in text.split("\n\n") if ">>> " not in one)


def _plugins() -> str:
    lines = []
    for registry in REGISTRIES:
        names = [
            f"[`{plugin.__name__}`]({registry.name}.md#{name})"
            if registry.name in _PAGES
            else f"`{plugin.__name__}`"
            for name, plugin in registry.plugins().items()
            if plugin.__name__ in dir(overheard)
        ]
        if names:
            lines.append(f"- {registry.name}: {', '.join(names)}\n")
    return "\n## Plugins\n\n" + "".join(lines)
