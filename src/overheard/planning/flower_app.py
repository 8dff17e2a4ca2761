"""Reads a Flower app without running it: its networks and its settings."""

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import final

from overheard.core.errors import PlanError

MAX_FILE = 1_000_000
"""Largest source file that is read, in bytes."""

SETTINGS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "rounds": ("num-server-rounds", "num-rounds", "rounds"),
        "rate": ("learning-rate", "lr", "rate"),
        "epochs": ("local-epochs", "num-epochs", "epochs"),
        "batch": ("batch-size", "batch"),
    }
)
"""Usual names in an app's settings, by the key of a plan."""

NO_SETTINGS: Mapping[str, float] = MappingProxyType({})


@final
@dataclass(frozen=True, slots=True)
class FlowerApp:
    """What the files of a Flower app say.

    Args:
        networks: reference to each class of torch modules, such as "app.task:Net".
        settings: numbers by the key of a plan: "rounds", "rate", "epochs", "batch".

    """

    networks: tuple[str, ...] = ()
    settings: Mapping[str, float] = field(default_factory=lambda: NO_SETTINGS)


def read_flower_app(folder: Path) -> FlowerApp:
    """Read the app in a folder; its code is parsed and never run.

    Raises:
        PlanError: if there is no pyproject.toml of a Flower app.

    """
    path = folder / "pyproject.toml"
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        app = content["tool"]["flwr"]["app"]
        server = str(app["components"]["serverapp"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PlanError(
            f"{path}: is no pyproject.toml of a Flower app ({type(error).__name__}): name the "
            "folder that `flwr run` is called with"
        ) from error
    package = server.partition(":")[0].partition(".")[0]
    config = app.get("config", {})
    return FlowerApp(
        tuple(_find_networks(folder, package)),
        _read_settings(config if isinstance(config, dict) else {}),
    )


def _read_settings(config: Mapping[str, object]) -> dict[str, float]:
    found = dict[str, float]()
    for key, names in SETTINGS.items():
        for name in names:
            value = config.get(name, config.get(name.replace("-", "_")))
            if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
                found[key] = float(value)
                break
    return found


def _find_networks(folder: Path, package: str) -> Iterator[str]:
    if not re.fullmatch(r"[A-Za-z_]\w*", package):
        return
    single = folder / f"{package}.py"
    for path in [single] if single.is_file() else sorted((folder / package).rglob("*.py")):
        try:
            if path.stat().st_size > MAX_FILE:
                continue
            tree = ast.parse(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, SyntaxError, RecursionError):
            continue
        module = ".".join(path.relative_to(folder).with_suffix("").parts)
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and any(map(_is_module, node.bases)):
                yield f"{module.removesuffix('.__init__')}:{node.name}"


def _is_module(base: ast.expr) -> bool:
    name = base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")
    return bool(name == "Module")
