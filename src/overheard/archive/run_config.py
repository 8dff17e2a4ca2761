"""Settings of clients' training that the configuration of a run states, by their usual names.

A recorder writes those that the caller of the run chose, such as Flower's `--run-config`, to
`run_config.json` beside the transcript. Other settings, which may be secret, are left out.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from overheard.archive.layout import path_exists
from overheard.core.errors import TranscriptError
from overheard.disk.reading import parse_json, read_json_text

RUN_CONFIG = "run_config.json"
"""Name of the file with the run's configuration."""

SETTING_NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "rate": (
            "learning-rate",
            "local-learning-rate",
            "client-learning-rate",
            "lr",
            "local-lr",
            "client-lr",
            "rate",
        ),
        "epochs": ("local-epochs", "num-epochs", "num-local-epochs", "epochs"),
        "batch": ("batch-size", "local-batch-size", "train-batch-size", "batch"),
        "optimizer": ("optimizer",),
        "momentum": ("momentum",),
        "weight_decay": ("weight-decay",),
    }
)
"""Usual names of the settings of clients' training, by the key of a plan; the first counts."""

_OF_OTHERS = frozenset({"server", "strategy", "evaluate", "eval", "test", "evaluation"})
"""Parts of a configuration that are not about clients' training."""

LONGEST = 64
"""The most characters of a setting."""

MOST = 1e9
"""No setting is as large as this."""

Setting = float | str


def plain_name(name: str) -> str:
    """Return a name as the usual names are spelled; "" = it is not about clients' training.

    >>> plain_name("train.Batch_Size"), plain_name("server.lr")
    ('batch-size', '')
    """
    *parts, last = re.split(r"[./]", name.lower().replace("_", "-"))
    return "" if _OF_OTHERS & set(parts) else last


def parse_setting(key: str, value: object) -> Setting | None:
    """Return the value of a setting as a plan has it; None if it is impossible."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if key == "optimizer":
        return value.lower() if isinstance(value, str) else None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    if not 0 <= number < MOST or (number == 0 and key == "rate"):
        return None
    if key in ("momentum", "label_smoothing"):
        return number if number < 1 else None
    is_count = key in ("epochs", "batch")
    return None if is_count and (number != int(number) or number < 1) else number


def training_settings(config: Mapping[str, object]) -> dict[str, Setting]:
    """Return those settings of a configuration that are about clients' training."""
    known = {name for names in SETTING_NAMES.values() for name in names}
    return {name: value for name, value in _plain_values(config) if plain_name(name) in known}


def run_config_text(config: Mapping[str, object]) -> str:
    """Return the text of `run_config.json`; "" if no setting is about clients' training."""
    settings = training_settings(config)
    return json.dumps(settings, indent=2) + "\n" if settings else ""


def read_run_config(folder: Path) -> dict[str, Setting]:
    """Read the configuration of a recorded run; empty if none was recorded.

    Raises:
        TranscriptError: if the file is damaged.

    """
    path = folder / RUN_CONFIG
    if not path_exists(path):
        return {}
    text = read_json_text(path, TranscriptError, inside=folder)
    content = parse_json(text, str(path), TranscriptError)
    return training_settings(content if isinstance(content, dict) else {})


def _plain_values(config: Mapping[str, object]) -> Iterator[tuple[str, Setting]]:
    for name, value in config.items():
        if isinstance(value, int | float | str) and len(str(value)) <= LONGEST:
            yield str(name), value
