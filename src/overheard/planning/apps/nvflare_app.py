"""Reads an NVFlare job without running it, for a first plan."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from overheard.core.custom_code.builder_arguments import Argument
from overheard.doctor.source.nvflare_job import CLIENT, JobPart, NvflareJob, read_nvflare_job
from overheard.planning.apps.app_training import read_app_training
from overheard.planning.apps.federated_app import FederatedApp
from overheard.planning.apps.network_definitions import find_builders, find_networks
from overheard.planning.apps.source_files import SourceFile, read_sources, source_paths

ROUNDS = "rounds"
"""The name under which the number of rounds stands in the configuration."""


def read_nvflare_app(folder: Path) -> FederatedApp:
    """Read a job as what `init` reads of an app; its code is parsed and never run.

    Its network is that of the server's persistor, if its class is in the job's own code. Else
    all networks of that code are looked at.

    Raises:
        PlanError: if it is no job, or a file is damaged or too large.

    """
    job = read_nvflare_job(folder)
    sources = {place: tuple(read_sources(place, source_paths(place))) for place in job.custom}
    home, networks, arguments = _networks(job, sources)
    values = {name: value for name, (value, _) in job.settings.items()}
    rounds = {} if job.rounds is None else {ROUNDS: job.rounds[0]}
    by_module = {one.module: one for files in sources.values() for one in files}
    return FederatedApp(
        networks,
        MappingProxyType({**values, **rounds}),
        read_app_training(tuple(by_module.values())),
        home,
        MappingProxyType(arguments),
        config_place=f"{CLIENT} of the NVFlare job",
        notes=tuple(_notes(job, networks)),
    )


def _networks(
    job: NvflareJob, sources: Mapping[Path, tuple[SourceFile, ...]]
) -> tuple[Path | None, tuple[str, ...], dict[str, tuple[Argument, ...]]]:
    """Return the folder that networks are imported from, their references and arguments."""
    model = job.model
    for place, files in sources.items():
        reference = _reference(model, files)
        if reference is not None and model is not None:
            given = tuple(
                (name, value)
                for name, value in model.args.items()
                if isinstance(value, bool | int | float | str)
            )
            return place, (reference,), {reference: given} if given else {}
    for place, files in sources.items():
        classes = tuple(find_networks(files))
        config = {name: value for name, (value, _) in job.settings.items()}
        builders = dict(find_builders(files, config))
        names = tuple(dict.fromkeys((*classes, *builders)))
        if names:
            return place, names, {name: given for name, given in builders.items() if given}
    return next(iter(sources), None), (), {}


def _reference(model: JobPart | None, files: tuple[SourceFile, ...]) -> str | None:
    """Return the reference to a class or function in these files; None = it is elsewhere."""
    if model is None:
        return None
    module, _, name = model.path.rpartition(".")
    known = {one.module: one for one in files}
    if module not in known or not re.fullmatch(r"[A-Za-z_]\w*", name):
        return None
    defined = {getattr(one, "name", None) for one in known[module].tree.body}
    return f"{module}:{name}" if name in defined else None


def _notes(job: NvflareJob, networks: tuple[str, ...]) -> Iterator[str]:
    """Yield what a job states that a plan does not take over by itself."""
    workflows = ", ".join(one.shown for one in job.workflows) or "no workflow that is read"
    clients = "" if job.min_clients is None else f", {job.min_clients} clients or more"
    rounds = "" if job.rounds is None else f", {job.rounds[0]} rounds ({job.rounds[1]})"
    algorithm = f" ({job.algorithm})" if job.algorithm not in ("", workflows) else ""
    yield f"The job {job.name!r} states: {workflows}{algorithm}{clients}{rounds}"
    for one in job.filters:
        if one.is_at(CLIENT) and one.what == "results":
            tasks = ", ".join(one.tasks) or "no task"
            yield (
                f"Clients change what they send by the filter {one.shown} on {tasks}. If the "
                "recording does not state it, give it to the recorder by defenses_of "
                "(docs/nvflare.md), so that attacks know it"
            )
    model = job.model
    if model is not None and not networks:
        module, _, name = model.path.rpartition(".")
        yield (
            f"The job's network is {model.path}, which is not in its own code, so nothing was "
            f"imported: if you trust it, add --model {module}:{name}"
        )
    yield from job.unread
