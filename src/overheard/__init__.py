"""Measures what a federated-learning run reveals, and which defenses prevent that.

A run leaves a *transcript* of *messages*; an observer has a *view* of it; an *attack* turns the
view into a *claim*; a *scorer* holds the claim against the *ground truth*.

The public names are those in `__init__.pyi`, and the classes of built-in plugins and claims.
Each is imported when it is first used: importing the package takes no time, and no torch.
"""

import functools
import pathlib

import lazy_loader

_load, _, __all__ = lazy_loader.attach_stub(__name__, __file__)


@functools.cache
def _plugin_classes() -> dict[str, str]:
    """Return the module of each plugin's class."""
    from overheard.core.plugin_discovery import plugin_classes

    return plugin_classes(pathlib.Path(__file__).parent)


def __dir__() -> list[str]:
    """Return all public names."""
    return sorted({*__all__, *_plugin_classes()})


def __getattr__(name: str) -> object:
    """Import a public name, or say which ones are spelled much like it."""
    if name in __all__:
        return _load(name)
    # Python itself asks for names such as `__path__`.
    plugins = {} if name.startswith("__") else _plugin_classes()
    if name in plugins:
        from overheard.core.plugin_registry import import_built_in

        return getattr(import_built_in(f"{__name__}.{plugins[name]}"), name)
    from difflib import get_close_matches

    by_lower = {public.lower(): public for public in (*__all__, *plugins)}
    close = [by_lower[one] for one in get_close_matches(name.lower(), by_lower)]
    hint = f"did you mean {' or '.join(close)}?" if close else "dir(overheard) lists them"
    raise AttributeError(f"overheard has no public name {name!r}: {hint}")
