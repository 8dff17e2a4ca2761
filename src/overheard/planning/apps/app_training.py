"""Reads from the source code of an app how its clients train; no code is run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import final

from overheard.archive.run_config import Setting, parse_setting, plain_name
from overheard.planning.apps.code_values import CodeValues, ConfigName
from overheard.planning.apps.optimizer_calls import find_optimizers, optimizer_settings
from overheard.planning.apps.source_files import SourceFile
from overheard.planning.apps.training_steps import (
    batch_sizes,
    epochs,
    other_steps,
    server_names,
    smoothings,
)

NO_NAMES: Mapping[str, str] = MappingProxyType({})


@final
@dataclass(frozen=True, slots=True)
class StatedSetting:
    """A setting of clients' training, with its source.

    Args:
        key: the key of a plan, such as "rate".
        value: the value.
        source: where it is stated, in words.

    """

    key: str
    value: Setting
    source: str


@final
@dataclass(frozen=True, slots=True)
class AppTraining:
    """What the source code of an app tells of its clients' training.

    Args:
        settings: values that are written in the code.
        names: by the key of a plan, the name in the configuration that the code reads.
        server_names: names in the configuration that the code gives to the server's optimizer.
        optimizers: where each optimizer of torch is made, in words.
        beyond: what the code does that a recipe cannot state, in words.

    """

    settings: tuple[StatedSetting, ...] = ()
    names: Mapping[str, str] = field(default_factory=lambda: NO_NAMES)
    server_names: frozenset[str] = frozenset()
    optimizers: tuple[str, ...] = ()
    beyond: tuple[str, ...] = ()


def read_app_training(files: Sequence[SourceFile]) -> AppTraining:
    """Read how clients train from the syntax of an app.

    An optimizer is taken if all that are made have the same settings. The batch size is that of
    the data loaders that shuffle, and the epochs are those of a loop around a loop that calls
    `backward`. A value is followed to a number, through names, constants and arguments.
    """
    code = CodeValues(files)
    calls = list(find_optimizers(code))
    found = list(optimizer_settings(calls))
    beyond = {word: None for call in calls for word in call.beyond()}
    for key, nodes in (
        ("batch", batch_sizes(code)),
        ("epochs", epochs(code)),
        ("label_smoothing", smoothings(code)),
    ):
        places = list(nodes)
        values = list({code.resolve(node, place) for place, node in places})
        if len(values) == 1:
            place, node = places[0]
            found.append((key, values[0], place.describe(node)))
        is_number = len(values) == 1 and isinstance(values[0], int | float)
        if key == "label_smoothing" and values and not is_number:
            beyond["label smoothing by an unknown number"] = None
    names = {key: value.name for key, value, _ in found if isinstance(value, ConfigName)}
    return AppTraining(
        tuple(
            StatedSetting(key, parsed, source)
            for key, value, source in found
            if not isinstance(value, ConfigName)
            if (parsed := parse_setting(key, value)) is not None
        ),
        MappingProxyType(names),
        frozenset(plain_name(name) for name in server_names(code))
        - set(map(plain_name, names.values())),
        tuple(call.describe() for call in calls),
        tuple(beyond | dict.fromkeys(other_steps(code))),
    )
