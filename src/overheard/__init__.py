"""Measures what a federated-learning run reveals, and which defenses prevent that.

A run leaves a *transcript* of *messages*; an observer has a *view* of it; an *attack* turns the
view into a *claim*; a *scorer* holds the claim against the *ground truth*.

The public names stand in `__init__.pyi`; each is imported when it is first used, so that to
import the package takes no time and no torch.
"""

import lazy_loader

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    """Import a public name, or say which ones are spelled much like it."""
    if name in __all__:
        return _load(name)
    from difflib import get_close_matches

    by_lower = {public.lower(): public for public in __all__}
    close = [by_lower[one] for one in get_close_matches(name.lower(), by_lower)]
    hint = f"did you mean {' or '.join(close)}?" if close else "dir(overheard) lists them"
    raise AttributeError(f"overheard has no public name {name!r}: {hint}")
