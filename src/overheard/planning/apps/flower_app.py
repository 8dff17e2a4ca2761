"""Reads a Flower app without running it: its networks and how its clients train."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from overheard.core.errors import PlanError
from overheard.data.partition.schedule import MAX_CLIENTS
from overheard.disk.reading import parse_toml, read_text
from overheard.doctor.source.nvflare_job import is_nvflare_job
from overheard.planning.apps.app_training import read_app_training
from overheard.planning.apps.federated_app import FederatedApp
from overheard.planning.apps.network_definitions import (
    find_builders,
    find_encoders,
    find_networks,
)
from overheard.planning.apps.source_files import SourceFile, read_sources, source_paths

LONGEST_NAME = 255
"""The most letters of a name of a file, and so of a package."""


def read_flower_app(folder: Path) -> FederatedApp:
    """Read the app in a folder; its code is parsed and never run.

    Raises:
        PlanError: if there is no pyproject.toml of a Flower app.

    """
    path = folder / "pyproject.toml"
    if not path.exists() and is_nvflare_job(folder):
        raise PlanError(f"{folder} is an NVFlare job: name it by --nvflare, not by --flower")
    content = parse_toml(read_text(path, PlanError), str(path), PlanError)
    try:
        app = content["tool"]["flwr"]["app"]
        server = str(app["components"]["serverapp"])
        client = str(app["components"].get("clientapp", server))
    except (KeyError, TypeError, AttributeError) as error:
        raise PlanError(
            f"{path}: is no pyproject.toml of a Flower app ({type(error).__name__}): name the "
            "folder that `flwr run` is called with"
        ) from error
    config = app.get("config", {})
    files = tuple(_read_files(folder, _package(server)))
    others = tuple(_read_files(folder, _package(client))) if client != server else ()
    by_module = {one.module: one for one in (*files, *others)}
    flat = MappingProxyType(dict(_flatten(config, "")) if isinstance(config, dict) else {})
    builders, encoders = dict(find_builders(files, flat)), dict(find_encoders(files, flat))
    classes = tuple(find_networks(files))
    return FederatedApp(
        (*classes, *(one for one in builders if one not in classes)),
        flat,
        read_app_training(tuple(by_module.values())),
        folder,
        MappingProxyType({one: given for one, given in (builders | encoders).items() if given}),
        tuple(encoders),
        nodes=_nodes(content["tool"]["flwr"].get("federations")),
    )


def _nodes(federations: object) -> int | None:
    """Return the number of nodes of the federation that `flwr run` takes by default.

    If none is the default, it is that of the only one.
    """
    if not isinstance(federations, dict):
        return None
    named = {name: one for name, one in federations.items() if isinstance(one, dict)}
    default = federations.get("default")
    if not isinstance(default, str) and len(named) == 1:
        (default,) = named
    options = named.get(str(default), {}).get("options")
    count = options.get("num-supernodes") if isinstance(options, dict) else None
    if isinstance(count, bool) or not isinstance(count, int):
        return None
    return count if 0 < count <= MAX_CLIENTS else None


def _package(component: str) -> str:
    return component.partition(":")[0].partition(".")[0]


def _flatten(config: Mapping[str, object], prefix: str) -> Iterator[tuple[str, object]]:
    for name, value in config.items():
        if isinstance(value, dict):
            yield from _flatten(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _read_files(folder: Path, package: str) -> Iterator[SourceFile]:
    """Yield the source files of a package that can be parsed."""
    if len(package) > LONGEST_NAME or not re.fullmatch(r"[A-Za-z_]\w*", package):
        return
    single = folder / f"{package}.py"
    paths = [single] if single.is_file() else source_paths(folder / package)
    yield from read_sources(folder, paths)
