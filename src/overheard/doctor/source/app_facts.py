"""What an app states of itself: framework, strategy, rounds, what clients send, protections."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import final

from overheard.doctor.source.code import AppCode
from overheard.doctor.source.nvflare_job import (
    CLIENT,
    PRIVATE_FILTERS,
    SERVER,
    JobPart,
    NvflareJob,
)
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


def app_facts(app: PrivateApp, job: NvflareJob | None = None) -> tuple[AppFact, ...]:
    """Return what the source of an app states. Nothing is run, so what runs set is unknown.

    Args:
        app: its source.
        job: the settings of an NVFlare job; None = it is none.

    """
    code = app.code
    named = (*(("NVFlare",) if job is not None else ()), *_frameworks(code))
    return (
        AppFact("Frameworks", _listed(named) or UNKNOWN),
        _named("Strategy", (*_workflows(job), *_strategies(code))),
        _rounds_of_job(job) or _rounds(code),
        _sent(app),
        *(() if job is None else _job_facts(job)),
        _privacy(app, job),
        _named("Secure aggregation", (*_hiding_filters(job), *_hiding(code))),
    )


def _workflows(job: NvflareJob | None) -> Iterator[tuple[str, str]]:
    for one in () if job is None else job.workflows:
        is_said = one.algorithm in ("", one.name)
        yield one.shown if is_said else f"{one.shown} ({one.algorithm})", one.place


def _rounds_of_job(job: NvflareJob | None) -> AppFact | None:
    found = None if job is None else job.rounds
    return None if found is None else AppFact("Rounds", f"{found[0]} ({found[1]})")


def _job_facts(job: NvflareJob) -> Iterator[AppFact]:
    """Yield facts that only a job states: its clients, its network, its filters."""
    fewest = "not stated" if job.min_clients is None else f"{job.min_clients} or more"
    yield AppFact("Clients", f"{fewest}: {_listed(job.sites) or 'all that are there'}")
    model = job.model
    if model is not None:
        yield AppFact("Network", f"{model.path}({_arguments(model)})", (model.place,))
    for side, name in ((CLIENT, "clients"), (SERVER, "the server")):
        found = [one for one in job.filters if one.is_at(side)]
        yield _named(
            f"Filters at {name}",
            (
                (
                    f"{one.shown}({_arguments(one)}) on {one.what} of "
                    f"{', '.join(one.tasks) or 'no task'}",
                    one.place,
                )
                for one in found
            ),
        )


def _arguments(part: JobPart) -> str:
    return ", ".join(f"{name}={value!r}"[:100] for name, value in list(part.args.items())[:10])


def _hiding_filters(job: NvflareJob | None) -> Iterator[tuple[str, str]]:
    for one in () if job is None else job.filters:
        if any(part in one.name.lower().replace("_", "") for part in HIDING):
            yield one.shown, one.place


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


def _privacy(app: PrivateApp, job: NvflareJob | None) -> AppFact:
    filters = () if job is None else job.filters
    return _named(
        "Differential privacy",
        (
            *((one.shown, one.place) for one in filters if one.name in PRIVATE_FILTERS),
            *(
                (one.name.rpartition(".")[2], str(app.places(one.node)[0]))
                for one in app.mechanisms
            ),
        ),
    )
