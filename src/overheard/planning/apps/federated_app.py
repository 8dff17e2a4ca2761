"""A Flower app or an NVFlare job, as its files state it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import final

from overheard.core.custom_code.builder_arguments import Argument
from overheard.learning.models.custom import Own
from overheard.planning.apps.app_training import AppTraining

ROUNDS = ("num-server-rounds", "num-rounds", "rounds")
"""Usual names of the number of rounds in an app's configuration."""

MOST_ROUNDS = 2**31
"""No plan has as many rounds."""

NO_ARGUMENTS: Mapping[str, tuple[Argument, ...]] = MappingProxyType({})

NO_CONFIG: Mapping[str, object] = MappingProxyType({})


@final
@dataclass(frozen=True, slots=True)
class FederatedApp:
    """What the files of a Flower app or an NVFlare job say.

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
