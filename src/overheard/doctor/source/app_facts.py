"""What an app states of itself: framework, strategy, rounds, what clients send, protections."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import final

from overheard.doctor.source.code import AppCode
from overheard.doctor.source.privacy import PrivateApp

FRAMEWORKS: Mapping[str, str] = {
    "flwr": "Flower",
    "nvflare": "NVFlare",
    "fedbiomed": "Fed-BioMed",
    "torch": "PyTorch",
    "tensorflow": "TensorFlow",
    "keras": "Keras",
    "jax": "JAX",
    "sklearn": "scikit-learn",
    "xgboost": "XGBoost",
    "transformers": "Hugging Face transformers",
    "peft": "PEFT",
    "opacus": "Opacus",
}
"""Packages that say how an app trains, and their names."""

STRATEGIES = ("flwr.server.strategy.", "flwr.serverapp.strategy.")
"""Where the strategies of Flower are."""

HIDING = ("secagg", "secureaggregation", "homomorphic", "modelencrypt")
"""Parts of names that speak of sums whose parts the server cannot read.

In lower case and without underscores; the last one is of NVFlare's HEModelEncryptor.
"""

UNKNOWN = "not found in the source"

MOST_NAMES = 20
"""Most names of one fact that are listed; of more their number is given."""


@final
@dataclass(frozen=True, slots=True)
class AppFact:
    """One fact of an app.

    Args:
        name: what it is about, such as "Rounds".
        text: what was found, or that nothing was.
        places: where, as file and line.

    """

    name: str
    text: str
    places: tuple[str, ...] = ()


def app_facts(app: PrivateApp) -> tuple[AppFact, ...]:
    """Return what the source of an app states. Nothing is run, so what runs set is unknown."""
    code = app.code
    return (
        AppFact("Frameworks", _listed(_frameworks(code)) or UNKNOWN),
        _named("Strategy", _strategies(code)),
        _rounds(code),
        _sent(app),
        _privacy(app),
        _named("Secure aggregation", _hiding(code)),
    )


def _listed(names: Iterable[str]) -> str:
    unique = list(dict.fromkeys(names))
    more = len(unique) - MOST_NAMES
    return ", ".join(unique[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def _named(name: str, found: Iterable[tuple[str, str]]) -> AppFact:
    """Return a fact of pairs of a name and its place."""
    pairs = list(dict.fromkeys(found))
    texts = _listed(text for text, _ in pairs)
    return AppFact(name, texts or UNKNOWN, tuple(place for _, place in pairs[:MOST_NAMES]))


def _frameworks(code: AppCode) -> Iterator[str]:
    imported = {
        dotted.partition(".")[0] for file in code.files for dotted in file.imports.values()
    }
    yield from (name for package, name in FRAMEWORKS.items() if package in imported)


def _strategies(code: AppCode) -> Iterator[tuple[str, str]]:
    for site in code.calls:
        if site.dotted.startswith(STRATEGIES):
            yield site.last, str(code.place(site.call, site.function))
    for file, node in code.classes():
        for base in sorted(code.bases(file, node)):
            if base.startswith(STRATEGIES):
                kind = base.rpartition(".")[2]
                yield f"{node.name} (its own {kind})", f"{file.path}:{node.lineno}"


def _hiding(code: AppCode) -> Iterator[tuple[str, str]]:
    for site in code.calls:
        if any(part in site.last.lower().replace("_", "") for part in HIDING):
            yield site.last, str(code.place(site.call, site.function))


def _rounds(code: AppCode) -> AppFact:
    stated = [
        f"{value} ({name} in pyproject.toml)"
        for name, value in code.config.items()
        if "round" in name and isinstance(value, int) and not isinstance(value, bool)
    ]
    if stated:
        return AppFact("Rounds", ", ".join(stated[:MOST_NAMES]))
    return _named("Rounds", _given_rounds(code))


def _given_rounds(code: AppCode) -> Iterator[tuple[str, str]]:
    for site in code.calls:
        for one in site.call.keywords:
            is_number = isinstance(one.value, ast.Constant) and isinstance(one.value.value, int)
            if one.arg in ("num_rounds", "rounds") and is_number:
                yield ast.unparse(one.value), str(code.place(site.call, site.function))


def _sent(app: PrivateApp) -> AppFact:
    """Return the names under which clients answer, those of weights seldom among them."""
    keys = (f"“{one.key}”" for one in app.sent if one.key)
    places = dict.fromkeys(str(app.places(one.node)[0]) for one in app.sent)
    found = _listed(keys)
    unnamed = "values without a name that could be read" if app.sent else UNKNOWN
    return AppFact("Clients send, by name", found or unnamed, tuple(places)[:MOST_NAMES])


def _privacy(app: PrivateApp) -> AppFact:
    return _named(
        "Differential privacy",
        ((one.name.rpartition(".")[2], str(app.places(one.node)[0])) for one in app.mechanisms),
    )
