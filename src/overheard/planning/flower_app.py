"""Reads a Flower app without running it: its networks and how its clients train."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import final

from overheard.core.custom_code.builder_arguments import Argument
from overheard.core.errors import PlanError
from overheard.data.partition.schedule import MAX_CLIENTS
from overheard.disk.folders import walk_folders
from overheard.disk.limits import SOURCE_FILES, refuse_large
from overheard.disk.reading import parse_python, parse_toml, read_text
from overheard.doctor.source.nvflare_job import is_nvflare_job
from overheard.learning.models.custom import Own
from overheard.planning.app_builders import find_builders, find_encoders
from overheard.planning.app_training import AppTraining, SourceFile, read_app_training

MOST_FILES = 1000
"""The most source files of a package that are read."""

ROUNDS = ("num-server-rounds", "num-rounds", "rounds")
"""Usual names of the number of rounds in an app's configuration."""

MOST_ROUNDS = 2**31
"""No plan has as many rounds."""

LONGEST_NAME = 255
"""The most letters of a name of a file, and so of a package."""

NO_ARGUMENTS: Mapping[str, tuple[Argument, ...]] = MappingProxyType({})

NO_CONFIG: Mapping[str, object] = MappingProxyType({})


@final
@dataclass(frozen=True, slots=True)
class FlowerApp:
    """What the files of a Flower app say.

    Args:
        networks: reference to each class of torch modules, such as "app.task:Net", and then to
            each function that builds one, such as "app.task:get_model".
        config: the configuration of its pyproject.toml, with dotted names.
        training: what its source code tells of its clients' training.
        folder: its folder; None = there is no app.
        arguments: by reference, what it takes from the configuration.
        encoders: references to functions whose names say that they tokenise texts.
        config_place: where its configuration stands, in words.
        notes: sentences on what else it states.
        nodes: how many nodes it simulates by its pyproject.toml; None = not stated there.

    """

    networks: tuple[str, ...] = ()
    config: Mapping[str, object] = field(default_factory=lambda: NO_CONFIG)
    training: AppTraining = field(default_factory=AppTraining)
    folder: Path | None = None
    arguments: Mapping[str, tuple[Argument, ...]] = field(default_factory=lambda: NO_ARGUMENTS)
    encoders: tuple[str, ...] = ()
    config_place: str = "pyproject.toml of the Flower app"
    notes: tuple[str, ...] = ()
    nodes: int | None = None

    def models(self) -> tuple[Own, ...]:
        """Return the networks as models of a plan, with their arguments."""
        return tuple(Own(one, self.arguments.get(one)) for one in self.networks)

    @property
    def rounds(self) -> int | None:
        """The number of rounds by the configuration; None = unknown."""
        for name in ROUNDS:
            value = self.config.get(name, self.config.get(name.replace("-", "_")))
            if isinstance(value, bool) or not isinstance(value, int):
                continue
            if 0 < value < MOST_ROUNDS:
                return value
        return None


def read_flower_app(folder: Path) -> FlowerApp:
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
    return FlowerApp(
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


def read_sources(folder: Path, paths: Sequence[Path]) -> Iterator[SourceFile]:
    """Yield those source files of a folder that can be parsed.

    Raises:
        PlanError: if they are too large, or a link leads out of the folder.

    """
    size = 0
    for path in paths[:MOST_FILES]:
        text = read_text(path, PlanError, inside=folder, part=SOURCE_FILES)
        size += len(text)
        refuse_large(f"{folder}: the source code", size, PlanError, part=SOURCE_FILES)
        try:
            tree = parse_python(text)
        except SyntaxError:
            continue
        relative = path.relative_to(folder)
        module = ".".join(relative.with_suffix("").parts).removesuffix(".__init__")
        yield SourceFile(module, relative.as_posix(), tree)


def source_paths(package: Path) -> list[Path]:
    """Return what a package names as source files, sorted, up to the most that are read.

    A folder with such a name is among them, so that reading it is refused.
    """
    found = [
        folder / name
        for folder, folders, files in islice(walk_folders(package), MOST_FILES)
        for name in (*folders, *files)
        if name.endswith(".py")
    ]
    return sorted(found)


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


def _bases(node: ast.ClassDef) -> Iterator[str]:
    """Yield the last names of the classes from which a class derives."""
    for base in node.bases:
        yield base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")
