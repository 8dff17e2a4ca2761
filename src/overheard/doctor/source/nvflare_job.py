"""Reads the folder of an NVFlare job; nothing of it is imported or run."""

import math
import os
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import final

from overheard.core.errors import PlanError
from overheard.disk.folders import walk_folders
from overheard.disk.limits import SMALL_FILE, refuse_large
from overheard.disk.reading import parse_json, read_text
from overheard.doctor.source.hocon import parse_hocon

META = ("meta.json", "meta.conf")

SUFFIXES = (".json", ".conf")

UNREAD = (".yml", ".yaml")
"""Formats of settings that NVFlare also reads, and that are not read here."""

SERVER, CLIENT = "config_fed_server", "config_fed_client"

MOST_APPS = 200
"""The most apps of a job."""

MOST_FOLDERS = 1000
"""The most folders in which further settings of an app are looked for."""

LONGEST_TEXT = 2_000
"""The most letters of a text of the settings that are kept."""

DEFAULT_ROUNDS = 5
"""Rounds of NVFlare 2.9's FedAvg, Scaffold and ScatterAndGather, if a job states none."""

CYCLIC = "cyclic weight transfer"

WORKFLOWS: Mapping[str, str] = MappingProxyType(
    {
        "FedAvg": "FedAvg",
        "PTFedAvg": "FedAvg",
        "ScatterAndGather": "FedAvg",
        "Scaffold": "SCAFFOLD",
        "PTScaffold": "SCAFFOLD",
        "ScatterAndGatherScaffold": "SCAFFOLD",
        "FedOpt": "FedOpt",
        "FedAvgEarlyStopping": "FedAvg",
        "PTFedAvgEarlyStopping": "FedAvg",
        "CyclicController": CYCLIC,
        "Cyclic": CYCLIC,
        "SwarmServerController": "swarm learning",
    }
)
"""Workflows of NVFlare by the algorithm that they run."""

PRIVATE_FILTERS = ("SVTPrivacy", "GaussianPrivacy")
"""Filters of jobs that add noise in the name of differential privacy."""

NOTHING: Mapping[str, object] = MappingProxyType({})

_VARIABLE = re.compile(r"\{([A-Za-z_]\w{0,99})\}", re.ASCII)

_CLASS = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+", re.ASCII)


@final
@dataclass(frozen=True, slots=True)
class JobPart:
    """A component of a job.

    Args:
        path: its class, such as "nvflare.app_common.workflows.fedavg.FedAvg".
        args: its arguments.
        place: the file that names it, as a path in the job.
        tasks: for a filter, the tasks whose messages it changes.
        what: for a filter, "results" or "data".

    """

    path: str
    args: Mapping[str, object]
    place: str
    tasks: tuple[str, ...] = ()
    what: str = ""

    @property
    def name(self) -> str:
        """The name of its class."""
        return self.path.rpartition(".")[2]

    @property
    def is_of_nvflare(self) -> bool:
        """Whether its class is one of NVFlare, which also finds its own without a module."""
        return self.path == self.name or self.path.startswith("nvflare.")

    @property
    def shown(self) -> str:
        """The name of its class, with the module unless it is one of NVFlare."""
        return self.name if self.is_of_nvflare else self.path

    @property
    def algorithm(self) -> str:
        """The algorithm that it runs, as a workflow of NVFlare; "" = unknown."""
        return WORKFLOWS.get(self.name, "") if self.is_of_nvflare else ""

    def is_at(self, side: str) -> bool:
        """Return whether it is at the server or at clients: `SERVER` or `CLIENT`."""
        return self.place.rpartition("/")[2].startswith(f"{side}.")


@final
@dataclass(frozen=True, slots=True)
class NvflareJob:
    """What the files of a job state.

    Args:
        name: its name.
        min_clients: the fewest clients; None = not stated.
        sites: the clients that are named; () = all that are there.
        workflows: what the server runs, in turn.
        components: components of server and clients.
        filters: of results and data, in their order.
        executors: what clients run.
        custom: folders with its own code.
        texts: text of each file that was read, by its path in the job.
        unread: what could not be read and why, in sentences.

    """

    name: str = ""
    min_clients: int | None = None
    sites: tuple[str, ...] = ()
    workflows: tuple[JobPart, ...] = ()
    components: tuple[JobPart, ...] = ()
    filters: tuple[JobPart, ...] = ()
    executors: tuple[JobPart, ...] = ()
    custom: tuple[Path, ...] = ()
    texts: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    unread: tuple[str, ...] = ()

    @property
    def algorithm(self) -> str:
        """The algorithm by the first workflow that is known; "" = unknown."""
        return next(filter(None, (one.algorithm for one in self.workflows)), "")

    @property
    def rounds(self) -> tuple[int, str] | None:
        """Number of rounds and where it is stated, in words; None = unknown."""
        for one in self.workflows:
            value = one.args.get("num_rounds")
            if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**31:
                return value, f"num_rounds of {one.shown} in {one.place}"
            if value is None and one.algorithm in ("FedAvg", "SCAFFOLD"):
                return DEFAULT_ROUNDS, f"the default of {one.name}, as {one.place} states none"
        return None

    @property
    def model(self) -> JobPart | None:
        """The network that the server starts from, by its persistor; None = unknown."""
        for one in self.components:
            model = one.args.get("model")
            if isinstance(model, dict):
                path, args = model.get("path", model.get("class_path")), model.get("args", {})
                if isinstance(path, str) and _CLASS.fullmatch(path):
                    return JobPart(path, args if isinstance(args, dict) else {}, one.place)
        return None

    @property
    def settings(self) -> Mapping[str, tuple[object, str]]:
        """Plain values that clients' components and training scripts get, and their places."""
        found = dict[str, tuple[object, str]]()
        for one in (*self.executors, *self.components):
            if not one.is_at(CLIENT):
                continue
            script = one.args.get("task_script_args")
            words = _words(script) if isinstance(script, str) else {}
            for name, value in {**one.args, **words}.items():
                if isinstance(value, bool | int | float | str):
                    found.setdefault(name, (value, one.place))
        return MappingProxyType(found)


def is_nvflare_job(folder: Path) -> bool:
    """Return whether a folder is that of a job, or of an app of one."""
    if any(os.path.lexists(folder / name) for name in META):
        return True
    config = folder / "config"
    return any(
        os.path.lexists(config / f"{name}{suffix}")
        for name in (SERVER, CLIENT)
        for suffix in (*SUFFIXES, *UNREAD)
    )


def read_nvflare_job(folder: Path) -> NvflareJob:
    """Read the files of settings of a job.

    Raises:
        PlanError: if it is no job, or a file is damaged or too large.

    """
    if not is_nvflare_job(folder):
        inner = sorted(one.name for one in folder.glob("*") if is_nvflare_job(one))[:3]
        more = f", such as {', '.join(inner)} in it" if inner else ""
        raise PlanError(
            f"{folder} is no NVFlare job: name the folder with meta.json and its apps{more}"
        )
    reader = _Reader(folder)
    meta = reader.settings("meta", folder)
    deploy = meta.get("deploy_map", {})
    apps = list(deploy) if isinstance(deploy, dict) and deploy else [""]
    if len(apps) > MOST_APPS:
        raise PlanError(f"{folder}: has more than {MOST_APPS} apps: name one of them")
    for app in apps:
        place = folder / app
        # A name of an app is a folder of the job, and no path out of it.
        if app and not re.fullmatch(r"[A-Za-z0-9@_][\w.@ -]{0,99}", app):
            reader.unread.append(
                f"the app {app[:50]!r} was not read: it is no name of a folder"
            )
        elif place.is_symlink():
            reader.unread.append(f"{app} was not read: it is a link")
        elif app and not place.is_dir():
            reader.unread.append(f"the app {app} was not read: there is no such folder")
        else:
            reader.read_app(place)
    fewest = meta.get("min_clients")
    is_number = isinstance(fewest, int) and not isinstance(fewest, bool) and fewest > 0
    return NvflareJob(
        str(meta.get("name", ""))[:200],
        fewest if is_number and isinstance(fewest, int) else None,
        tuple(_sites(deploy)),
        tuple(reader.workflows),
        tuple(reader.components),
        tuple(reader.filters),
        tuple(reader.executors),
        tuple(reader.custom),
        MappingProxyType(reader.texts),
        tuple(reader.unread),
    )


def _sites(deploy: object) -> Iterator[str]:
    """Yield the clients that a job names; none if it names all."""
    names = dict[str, None]()
    for sites in deploy.values() if isinstance(deploy, dict) else ():
        listed = sites.get("sites") if isinstance(sites, dict) else sites
        for one in listed if isinstance(listed, list) else ():
            if isinstance(one, str) and one not in ("server", "@ALL"):
                names[one[:200]] = None
    yield from names


def _words(arguments: str) -> dict[str, object]:
    """Return what a command line says, such as --lr 0.05."""
    try:
        words = shlex.split(arguments[:10_000])
    except ValueError:
        return {}
    found = dict[str, object]()
    for place, word in enumerate(words):
        name, is_given, value = word.partition("=")
        if not name.startswith("--"):
            continue
        if not is_given:
            value = words[place + 1] if place + 1 < len(words) else ""
        if value and not value.startswith("--"):
            found[name.removeprefix("--")] = _number(value)
    return found


def _number(text: str) -> object:
    try:
        number = int(text) if text.lstrip("-").isdecimal() else float(text)
    except ValueError:
        return text
    return number if math.isfinite(number) else text


class _Reader:
    """Reads the files of a job, and collects what they state."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._size = folder, 0
        self.texts, self.unread = dict[str, str](), list[str]()
        self.workflows, self.components = list[JobPart](), list[JobPart]()
        self.filters, self.executors = list[JobPart](), list[JobPart]()
        self.custom = list[Path]()

    def settings(self, name: str, place: Path) -> Mapping[str, object]:
        """Return the settings in the first file of this name; empty if there is none.

        The order is that of NVFlare. It also looks into folders below, so that a file there
        may come before; files that are left out are told as unread.
        """
        # Whatever else has this name, such as a folder, is refused where it is read.
        names = [f"{name}{suffix}" for suffix in (*SUFFIXES, *UNREAD)]
        found = [place / one for one in names if os.path.lexists(place / one)]
        for path in (*found[1:], *self._below(place, names)):
            relative = path.relative_to(self._folder).as_posix()
            self.unread.append(
                f"{relative} was not read: there are several files of this name, of which "
                "NVFlare reads one. Leave one"
            )
        if not found:
            return NOTHING
        path = found[0]
        relative = path.relative_to(self._folder).as_posix()
        if path.suffix in UNREAD:
            self.unread.append(f"{relative} was not read: save it as .json")
            return NOTHING
        text = read_text(path, PlanError, inside=self._folder)
        self._size += len(text)
        refuse_large(f"{self._folder}: its settings", self._size, PlanError, part=SMALL_FILE)
        self.texts[relative] = text
        read = (
            parse_json(text.encode(), str(path), PlanError)
            if path.suffix == ".json"
            else parse_hocon(text, str(path))
        )
        if not isinstance(read, dict):
            raise PlanError(f"{path}: is no object of settings: correct it")
        return read

    def _below(self, place: Path, names: list[str]) -> Iterator[Path]:
        """Yield files of these names in folders of an app's settings."""
        if place == self._folder:
            return
        for folder, _, files in islice(walk_folders(place), 1, MOST_FOLDERS):
            yield from (folder / one for one in names if one in files)

    def read_app(self, app: Path) -> None:
        """Read the settings of the server and of the clients in an app."""
        for name in (SERVER, CLIENT):
            config = self.settings(name, app / "config")
            if not config:
                continue
            place = next(reversed(self.texts))
            values = {
                key: value
                for key, value in config.items()
                if isinstance(value, bool | int | float | str)
            }
            self._read_config(config, values, place)
        custom = app / "custom"
        if custom.is_symlink():
            relative = custom.relative_to(self._folder).as_posix()
            self.unread.append(f"{relative} was not read: it is a link to a folder")
        elif custom.is_dir():
            self.custom.append(custom)

    def _read_config(
        self, config: Mapping[str, object], values: Mapping[str, object], place: str
    ) -> None:
        def parts(listed: object) -> Iterator[JobPart]:
            for one in listed if isinstance(listed, list) else ():
                part = _part(one, values, place)
                if part is not None:
                    yield part

        self.workflows += parts(config.get("workflows"))
        self.components += parts(config.get("components"))
        executors = config.get("executors")
        self.executors += parts(
            [one.get("executor") for one in executors if isinstance(one, dict)]
            if isinstance(executors, list)
            else None
        )
        for what in ("results", "data"):
            chains = config.get(f"task_{what.removesuffix('s')}_filters")
            for chain in chains if isinstance(chains, list) else ():
                if not isinstance(chain, dict):
                    continue
                tasks = chain.get("tasks")
                named = tuple(map(str, tasks)) if isinstance(tasks, list) else ()
                self.filters += (
                    JobPart(one.path, one.args, place, named, what)
                    for one in parts(chain.get("filters"))
                )


def _part(one: object, values: Mapping[str, object], place: str) -> JobPart | None:
    """Return a component of the settings; None = it names no class."""
    if not isinstance(one, dict):
        return None
    filled = _filled(one, values, 0)
    assert isinstance(filled, dict)
    path, args = (
        filled.get("path", filled.get("class_path", filled.get("name"))),
        filled.get("args"),
    )
    if not isinstance(path, str):
        return None
    return JobPart(path[:500], args if isinstance(args, dict) else {}, place)


def _filled(value: object, values: Mapping[str, object], depth: int) -> object:
    """Return a value in which names in braces are replaced by the settings of these names."""
    if depth > 50:
        return None
    if isinstance(value, dict):
        return {str(key): _filled(one, values, depth + 1) for key, one in value.items()}
    if isinstance(value, list):
        return [_filled(one, values, depth + 1) for one in value]
    if not isinstance(value, str):
        return value
    if (whole := _VARIABLE.fullmatch(value)) and whole[1] in values:
        return values[whole[1]]
    # Many names of a long value could make a far longer text.
    text = _VARIABLE.sub(
        lambda one: str(values.get(one[1], one[0]))[:200], value[:LONGEST_TEXT]
    )
    return text[:LONGEST_TEXT]
